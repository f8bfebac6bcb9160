/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP connections of the control server.  Everything here runs on the event
 * loop's thread, but for the requests themselves.
 */
#ifndef COW_HTTP_H
#define COW_HTTP_H

#include <event2/event.h>
#include <event2/util.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "api-internal.h"
#include "workers.h"

struct http_conn;
TAILQ_HEAD (http_conns, http_conn);

struct http {
  struct event_base *base;
  struct workers *workers;
  struct cow_api *api;
  const char *token;            /* asked of connections that say so */
  struct http_conns conns;      /* longest idle first */
  unsigned nr_conns;
  bool stopping;                /* connections close after their reply */
};

void cow_http_init (struct http *http);

/* Serve a connection; the descriptor is taken over. */
void cow_http_accept (struct http *http, evutil_socket_t fd,
                      bool needs_token);

/* A request's work is done: send its reply. */
void cow_http_done (struct work *work);

/* Close what is idle, and the others after their reply. */
void cow_http_stop (struct http *http);

/* Close what is left; no work may be outstanding. */
void cow_http_destroy (struct http *http);

#endif /* COW_HTTP_H */
