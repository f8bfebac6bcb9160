/* SPDX-License-Identifier: BSD-3-Clause */
/* Background work as jobs that a user can list and wait for. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "volumes.h"

#define JOBS_KEPT 100

static bool
running (const struct job *j)
{
  return strcmp (j->info.state, "running") == 0;
}

/* Keep the last JOBS_KEPT that ended. */
static void
forget_old_locked (struct local_pool *p)
{
  struct job **link, *j;
  size_t ended = 0;

  for (j = p->jobs; j; j = j->next)
    ended += !running (j);
  for (link = &p->jobs; (j = *link) != NULL && ended > JOBS_KEPT; ) {
    if (running (j)) {
      link = &j->next;
      continue;
    }
    *link = j->next;
    free (j);
    ended--;
  }
}

/* May fail silently: without memory a deletion just is not listed. */
void
cow_jobs_deletion (struct local_pool *p, const char *name)
{
  struct job *j = calloc (1, sizeof *j), **end;

  if (j == NULL)
    return;
  snprintf (j->info.op, sizeof j->info.op, "delete");
  snprintf (j->info.state, sizeof j->info.state, "running");
  snprintf (j->info.source, sizeof j->info.source, "%s", name);
  j->info.started = time (NULL);
  pthread_mutex_lock (&p->job_lock);
  j->info.id = ++p->next_job;
  for (end = &p->jobs; *end; end = &(*end)->next)
    ;
  *end = j;
  forget_old_locked (p);
  pthread_mutex_unlock (&p->job_lock);
}

void
cow_jobs_deletions_done (struct local_pool *p)
{
  struct job *j;
  size_t queued;

  pthread_rwlock_rdlock (&p->map_lock);
  queued = p->nr_queue - p->nr_stuck;
  pthread_rwlock_unlock (&p->map_lock);
  if (queued > 0)
    return;
  pthread_mutex_lock (&p->job_lock);
  for (j = p->jobs; j; j = j->next)
    if (running (j) && strcmp (j->info.op, "delete") == 0) {
      snprintf (j->info.state, sizeof j->info.state, "done");
      j->info.ended = time (NULL);
    }
  pthread_cond_broadcast (&p->job_changed);
  pthread_mutex_unlock (&p->job_lock);
}

int
cow_jobs_list (struct cow_pool *pool,
               int (*fn) (void *, const struct cow_job_info *), void *opaque)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct cow_job_info *copy = NULL;
  struct job *j;
  size_t nr = 0, i;
  int r = 0;

  pthread_mutex_lock (&p->job_lock);
  for (j = p->jobs; j; j = j->next)
    nr++;
  copy = calloc (nr + 1, sizeof *copy);
  for (j = p->jobs, nr = 0; copy && j; j = j->next)
    copy[nr++] = j->info;
  pthread_mutex_unlock (&p->job_lock);
  if (copy == NULL)
    return -ENOMEM;
  for (i = 0; r == 0 && i < nr; i++)
    r = fn (opaque, &copy[i]);
  free (copy);
  return r;
}

static struct job *
find_job_locked (struct local_pool *p, uint64_t id)
{
  struct job *j = p->jobs;

  while (j && j->info.id != id)
    j = j->next;
  return j;
}

int
cow_jobs_wait (struct cow_pool *pool, uint64_t id, unsigned timeout_ms,
               struct cow_job_info *info)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct timespec until;
  struct job *j;
  int r = 0;

  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_sec += timeout_ms / 1000;
  until.tv_nsec += timeout_ms % 1000 * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    until.tv_sec++;
  }
  pthread_mutex_lock (&p->job_lock);
  while ((j = find_job_locked (p, id)) != NULL && running (j) && r == 0)
    r = -pthread_cond_timedwait (&p->job_changed, &p->job_lock, &until);
  if (j)
    *info = j->info;
  else
    r = -ENOENT;
  pthread_mutex_unlock (&p->job_lock);
  return r;
}

int
cow_jobs_cancel (struct cow_pool *pool, uint64_t id)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct job *j;

  pthread_mutex_lock (&p->job_lock);
  j = find_job_locked (p, id);
  pthread_mutex_unlock (&p->job_lock);
  return j ? -EINVAL : -ENOENT;
}

void
cow_jobs_free (struct local_pool *p)
{
  struct job *j;

  while ((j = p->jobs) != NULL) {
    p->jobs = j->next;
    free (j);
  }
}
