/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, the event loop's thread, and an orderly end.
 *
 * The loop belongs to one thread; others speak to it through one eventfd
 * only, which says "look at the finished work and at whether to stop".
 */
#include <config.h>

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cleanup.h"
#include "http.h"
#include "listen.h"
#include "log.h"
#include "server.h"

#define NR_WORKERS 16
#define QUEUE_MAX 64
#define LISTENERS_MAX 9         /* the Unix socket and some addresses */
#define TOKEN_MIN 16
#define TOKEN_MAX 1024
#define ACCEPT_PAUSE_S 1        /* after accept failed, for want of files */

struct listener {
  struct cow_server *server;
  struct evconnlistener *listener;
  struct event *resume;
  bool needs_token;
};

struct cow_server {
  struct http http;
  struct listener listeners[LISTENERS_MAX];
  unsigned nr_listeners;
  int notify_fd;
  struct event *notify;
  pthread_t thread;
  bool has_thread;
  atomic_bool stopping;
  char *socket_path;            /* NULL: none was made */
  struct stat socket_st;
  char *token;
};

/* ---- The loop ---- */

static void
close_listeners (struct cow_server *s)
{
  for (unsigned i = 0; i < s->nr_listeners; i++) {
    evconnlistener_free (s->listeners[i].listener);
    event_free (s->listeners[i].resume);
  }
  s->nr_listeners = 0;
}

static void
on_notify (evutil_socket_t fd, short what, void *opaque)
{
  struct cow_server *s = opaque;
  struct work *work, *next;
  uint64_t n;

  if (read (fd, &n, sizeof n) < 0 && errno != EAGAIN)
    cow_log (COW_LOG_ERROR, "control server: eventfd: %s", strerror (errno));
  for (work = cow_workers_take (s->http.workers); work; work = next) {
    next = work->next;
    cow_http_done (work);
  }
  if (atomic_load (&s->stopping) && !s->http.stopping) {
    close_listeners (s);
    cow_http_stop (&s->http);
  }
}

/* Runs until told to stop and every connection has had its reply. */
static void *
loop (void *opaque)
{
  struct cow_server *s = opaque;

  while (!s->http.stopping || s->http.nr_conns)
    if (event_base_loop (s->http.base, EVLOOP_ONCE) < 0) {
      cow_log (COW_LOG_ERROR, "control server: the event loop failed");
      break;
    }
  return NULL;
}

static void
on_accept (struct evconnlistener *listener, evutil_socket_t fd,
           struct sockaddr *sa, int len, void *opaque)
{
  struct listener *l = opaque;

  cow_http_accept (&l->server->http, fd, l->needs_token);
}

/* Out of descriptors: the waiting connection would wake us at once again. */
static void
on_accept_error (struct evconnlistener *listener, void *opaque)
{
  const struct timeval pause = { .tv_sec = ACCEPT_PAUSE_S };
  struct listener *l = opaque;

  cow_log (COW_LOG_WARNING, "control server: accept: %s", strerror (errno));
  evconnlistener_disable (listener);
  evtimer_add (l->resume, &pause);
}

static void
on_resume (evutil_socket_t fd, short what, void *opaque)
{
  struct listener *l = opaque;

  evconnlistener_enable (l->listener);
}

/* ---- Start ---- */

static int
no_memory (struct cow_error *err)
{
  return cow_error_set (err, ENOMEM, "no-memory",
                        "control server: out of memory");
}

/* Take over fd, which listens. */
static int
add_listener (struct cow_server *s, int fd, bool needs_token,
              struct cow_error *err)
{
  struct listener *l = &s->listeners[s->nr_listeners];

  l->server = s;
  l->needs_token = needs_token;
  l->resume = evtimer_new (s->http.base, on_resume, l);
  l->listener = evconnlistener_new (s->http.base, on_accept, l,
                                    LEV_OPT_CLOSE_ON_FREE |
                                    LEV_OPT_CLOSE_ON_EXEC, 0, fd);
  if (l->resume == NULL || l->listener == NULL) {
    if (l->resume)
      event_free (l->resume);
    if (l->listener)
      evconnlistener_free (l->listener);
    else
      close (fd);
    return no_memory (err);
  }
  evconnlistener_set_error_cb (l->listener, on_accept_error);
  s->nr_listeners++;
  return 0;
}

static int
listen_unix (struct cow_server *s, const char *path, struct cow_error *err)
{
  int fd = cow_listen_unix (path, &s->socket_st, err);

  if (fd < 0)
    return fd;
  s->socket_path = strdup (path);
  if (s->socket_path == NULL) {
    close (fd);
    cow_unlisten_unix (path, &s->socket_st);
    return no_memory (err);
  }
  return add_listener (s, fd, false, err);
}

/* The first line of the file. */
static int
read_token (struct cow_server *s, const char *path, struct cow_error *err)
{
  char line[TOKEN_MAX + 2] = "";
  FILE *fp = fopen (path, "re");
  struct stat st;

  if (fp == NULL)
    return cow_error_set (err, errno, "io-error", "control-token-file=%s: "
                          "%s", path, strerror (errno));
  if (fgets (line, sizeof line, fp) == NULL)
    line[0] = '\0';
  if (fstat (fileno (fp), &st) == 0 && (st.st_mode & 077))
    cow_log (COW_LOG_WARNING, "control-token-file=%s: others than its owner "
             "may read it (mode %03o)", path, st.st_mode & 0777);
  fclose (fp);
  line[strcspn (line, "\r\n")] = '\0';
  if (strlen (line) < TOKEN_MIN || strlen (line) > TOKEN_MAX)
    return cow_error_set (err, EINVAL, "invalid-token",
                          "control-token-file=%s: expected a token of %d to "
                          "%d characters in the first line", path, TOKEN_MIN,
                          TOKEN_MAX);
  s->token = strdup (line);
  s->http.token = s->token;
  return s->token ? 0 : no_memory (err);
}

static int
listen_tcp (struct cow_server *s, const struct cow_server_config *config,
            struct cow_error *err)
{
  int fds[LISTENERS_MAX - 1];
  int n, r = 0;

  if (config->token_file == NULL)
    return cow_error_set (err, EINVAL, "invalid-config", "control-listen "
                          "requires control-token-file");
  r = read_token (s, config->token_file, err);
  if (r < 0)
    return r;
  n = cow_listen_tcp (config->listen, fds, LISTENERS_MAX - 1, err);
  for (int i = 0; i < n; i++)
    if (r == 0)
      r = add_listener (s, fds[i], true, err);
    else
      close (fds[i]);
  return n < 0 ? n : r;
}

static int
make_loop (struct cow_server *s, struct cow_error *err)
{
  int r;

  s->http.base = event_base_new ();
  s->notify_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (s->http.base == NULL || s->notify_fd < 0)
    return no_memory (err);
  s->notify = event_new (s->http.base, s->notify_fd, EV_READ | EV_PERSIST,
                         on_notify, s);
  if (s->notify == NULL || event_add (s->notify, NULL) < 0)
    return no_memory (err);
  r = cow_workers_start (NR_WORKERS, QUEUE_MAX, s->notify_fd,
                         &s->http.workers);
  if (r < 0)
    return cow_error_set (err, -r, "io-error", "control server: threads: %s",
                          strerror (-r));
  return 0;
}

static int
start_thread (struct cow_server *s, struct cow_error *err)
{
  sigset_t all, old;
  int r;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  r = pthread_create (&s->thread, NULL, loop, s);
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  if (r != 0)
    return cow_error_set (err, r, "io-error", "control server: thread: %s",
                          strerror (r));
  s->has_thread = true;
  return 0;
}

static int
start (struct cow_server *s, const struct cow_server_config *config,
       struct cow_error *err)
{
  int r = cow_api_new (config->pools, config->nr_pools, &s->http.api);

  if (r < 0)
    return cow_error_set (err, -r, "invalid-config", "control server: %s",
                          r == -EEXIST ? "two pools have the same name"
                          : strerror (-r));
  r = make_loop (s, err);
  if (r == 0 && config->socket_path)
    r = listen_unix (s, config->socket_path, err);
  if (r == 0 && config->listen)
    r = listen_tcp (s, config, err);
  return r < 0 ? r : start_thread (s, err);
}

int
cow_server_start (const struct cow_server_config *config,
                  struct cow_server **server, struct cow_error *err)
{
  struct cow_server *s = calloc (1, sizeof *s);
  int r;

  if (s == NULL)
    return no_memory (err);
  s->notify_fd = -1;
  cow_http_init (&s->http);
  r = start (s, config, err);
  if (r < 0) {
    cow_server_stop (s);
    return r;
  }
  *server = s;
  return 0;
}

/* ---- Stop ---- */

static void
stop_thread (struct cow_server *s)
{
  const uint64_t one = 1;

  cow_api_stop (s->http.api);
  atomic_store (&s->stopping, true);
  if (write (s->notify_fd, &one, sizeof one) < 0)
    cow_log (COW_LOG_ERROR, "control server: eventfd: %s", strerror (errno));
  pthread_join (s->thread, NULL);
}

void
cow_server_stop (struct cow_server *s)
{
  if (s == NULL)
    return;
  if (s->has_thread)
    stop_thread (s);
  cow_workers_stop (s->http.workers);
  close_listeners (s);
  cow_http_destroy (&s->http);
  if (s->socket_path)
    cow_unlisten_unix (s->socket_path, &s->socket_st);
  if (s->notify)
    event_free (s->notify);
  if (s->notify_fd >= 0)
    close (s->notify_fd);
  if (s->http.base)
    event_base_free (s->http.base);
  cow_api_free (s->http.api);
  free (s->socket_path);
  free (s->token);
  free (s);
}
