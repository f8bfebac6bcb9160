/* SPDX-License-Identifier: BSD-3-Clause */
/* The control server: HTTP/1.1 and JSON on a Unix socket (mode 0600) and,
 * if asked, on TCP with a bearer token.  One libevent thread that never
 * blocks hands requests to a small pool of workers, which call cow_api_call.
 */
#ifndef COW_SERVER_H
#define COW_SERVER_H

#include <stddef.h>

#include "error.h"
#include "volume.h"

struct cow_server;

struct cow_server_config {
  struct cow_pool *const *pools;
  size_t nr_pools;
  const char *socket_path;      /* NULL: no Unix socket */
  const char *listen;           /* "HOST:PORT" or NULL */
  const char *token_file;       /* required with listen */
};

/* Start listening; a stale socket file of a dead server is replaced, a live
 * one is -EADDRINUSE.  Call after fork.
 */
int cow_server_start (const struct cow_server_config *config,
                      struct cow_server **server, struct cow_error *err);

/* Stop listening, finish running requests, join the threads, unlink the
 * socket.  NULL is allowed.
 */
void cow_server_stop (struct cow_server *server);

#endif /* COW_SERVER_H */
