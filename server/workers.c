/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "workers.h"

struct list {
  struct work *first, **end;
};

struct workers {
  pthread_mutex_t lock;         /* all below */
  pthread_cond_t wake;
  struct list queue, done;
  size_t nr_queued, queue_max;
  bool stopping;
  int notify_fd;
  unsigned nr_threads;
  pthread_t threads[];
};

static void
list_init (struct list *list)
{
  list->first = NULL;
  list->end = &list->first;
}

static void
list_append (struct list *list, struct work *work)
{
  work->next = NULL;
  *list->end = work;
  list->end = &work->next;
}

static struct work *
list_pop (struct list *list)
{
  struct work *work = list->first;

  list->first = work->next;
  if (list->first == NULL)
    list->end = &list->first;
  return work;
}

static void
notify (int fd)
{
  const uint64_t one = 1;

  /* Fails only where the counter is full: the reader is awake then. */
  if (write (fd, &one, sizeof one) < 0)
    return;
}

static void *
worker (void *opaque)
{
  struct workers *ws = opaque;

  pthread_mutex_lock (&ws->lock);
  for (;;) {
    struct work *work;

    while (ws->queue.first == NULL && !ws->stopping)
      pthread_cond_wait (&ws->wake, &ws->lock);
    if (ws->queue.first == NULL)
      break;
    work = list_pop (&ws->queue);
    ws->nr_queued--;
    pthread_mutex_unlock (&ws->lock);
    work->run (work);
    pthread_mutex_lock (&ws->lock);
    list_append (&ws->done, work);
    notify (ws->notify_fd);
  }
  pthread_mutex_unlock (&ws->lock);
  return NULL;
}

/* Signals are for the program's own threads. */
static int
start_threads (struct workers *ws, unsigned n)
{
  sigset_t all, old;
  int r = 0;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  while (r == 0 && ws->nr_threads < n) {
    r = pthread_create (&ws->threads[ws->nr_threads], NULL, worker, ws);
    if (r == 0)
      ws->nr_threads++;
  }
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  return -r;
}

int
cow_workers_start (unsigned nr_threads, size_t queue_max, int notify_fd,
                   struct workers **workers)
{
  struct workers *ws = calloc (1, sizeof *ws +
                               nr_threads * sizeof ws->threads[0]);
  int r;

  if (ws == NULL)
    return -ENOMEM;
  pthread_mutex_init (&ws->lock, NULL);
  pthread_cond_init (&ws->wake, NULL);
  list_init (&ws->queue);
  list_init (&ws->done);
  ws->queue_max = queue_max;
  ws->notify_fd = notify_fd;
  r = start_threads (ws, nr_threads);
  if (r < 0) {
    cow_workers_stop (ws);
    return r;
  }
  *workers = ws;
  return 0;
}

int
cow_workers_submit (struct workers *ws, struct work *work)
{
  int r = -EAGAIN;

  pthread_mutex_lock (&ws->lock);
  if (ws->nr_queued < ws->queue_max) {
    list_append (&ws->queue, work);
    ws->nr_queued++;
    pthread_cond_signal (&ws->wake);
    r = 0;
  }
  pthread_mutex_unlock (&ws->lock);
  return r;
}

struct work *
cow_workers_take (struct workers *ws)
{
  struct work *done;

  pthread_mutex_lock (&ws->lock);
  done = ws->done.first;
  list_init (&ws->done);
  pthread_mutex_unlock (&ws->lock);
  return done;
}

void
cow_workers_stop (struct workers *ws)
{
  if (ws == NULL)
    return;
  pthread_mutex_lock (&ws->lock);
  ws->stopping = true;
  pthread_cond_broadcast (&ws->wake);
  pthread_mutex_unlock (&ws->lock);
  for (unsigned i = 0; i < ws->nr_threads; i++)
    pthread_join (ws->threads[i], NULL);
  pthread_cond_destroy (&ws->wake);
  pthread_mutex_destroy (&ws->lock);
  free (ws);
}
