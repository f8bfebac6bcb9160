/* SPDX-License-Identifier: BSD-3-Clause */
/* Who carries out a command's requests.
 *
 * Either the control server of the pool, over HTTP, or this process: it
 * opens the pool under the pool's lock and calls the same request table.  A
 * command cannot tell the two apart.  The choice is made at the first
 * request:
 *
 *   1. --control PATH, where somebody listens there;
 *   2. without --control, DIR/control.sock of each pool in turn;
 *   3. the pools themselves.  One that another process goes on holding is
 *      an error which says where a server was looked for.
 */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "cleanup.h"
#include "cowshed.h"

#define BUSY_TRIES 40
#define BUSY_US 50000

struct backend {
  struct client *client;
  struct cow_api *api;
  struct cow_pool **pools;
  size_t nr_pools;
};

char *
pool_dir (const char *spec)
{
  CLEANUP_FREE char *name = NULL;
  CLEANUP_FREE char *dir = NULL;
  char *full;

  if (cow_pool_split (spec, &name, &dir, NULL) < 0)
    return text_format ("%s", spec);
  full = realpath (dir, NULL);
  return full ? full : text_format ("%s", dir);
}

char *
control_path (const char *spec)
{
  CLEANUP_FREE char *dir = pool_dir (spec);

  return text_format ("%s/control.sock", dir);
}

char *
volume_path (const char *name, const char *suffix)
{
  CLEANUP_FREE char *encoded = percent_encode (name, "");

  return text_format ("/v1/volumes/%s%s", encoded, suffix);
}

/* One that cannot be reached leaves in *why what the last attempt gave. */
static void
find_server (struct session *s, int *why)
{
  struct backend *b = s->backend;

  if (s->control) {
    b->client = client_open (s->control);
    *why = errno;
    return;
  }
  for (size_t i = 0; i < s->nr_pools && !b->client; i++) {
    CLEANUP_FREE char *path = control_path (s->pools[i]);

    b->client = client_open (path);
    *why = errno;
  }
}

static void
close_pools (struct backend *b)
{
  while (b->nr_pools)
    cow_pool_close (b->pools[--b->nr_pools]);
}

/* All of them or none. */
static int
open_pools (struct session *s, struct cow_error *err)
{
  static const struct cow_pool_options options;
  struct backend *b = s->backend;

  for (size_t i = 0; i < s->nr_pools; i++) {
    int r = cow_pool_open (s->pools[i], &options, &b->pools[i], err);

    if (r < 0) {
      close_pools (b);
      return r;
    }
    b->nr_pools++;
  }
  return 0;
}

static int
fail_busy (const struct session *s, const struct cow_error *err, int why)
{
  CLEANUP_FREE char *path = s->control ? text_format ("%s", s->control)
    : control_path (s->pools[s->nr_pools - 1]);

  return fail (s, "%s, and no server answers at %s: %s (give the socket of "
               "its server with --control)", err->message, path,
               strerror (why));
}

/* A pool in use may be about to be served, or another command is just at
 * work on it: look again for a while.
 */
static int
open_server_or_pools (struct session *s)
{
  struct backend *b = s->backend;
  struct cow_error err = { 0 };
  int why = 0, r = -EBUSY;

  for (int tries = 0; r == -EBUSY && tries < BUSY_TRIES; tries++) {
    if (tries)
      usleep (BUSY_US);
    find_server (s, &why);
    if (b->client)
      return STATUS_OK;
    r = open_pools (s, &err);
    if (r < 0 && strcmp (err.code, "pool-busy") != 0)
      return fail (s, "%s", err.message);
  }
  if (r < 0)
    return fail_busy (s, &err, why);
  r = cow_api_new (b->pools, b->nr_pools, &b->api);
  return r < 0 ? fail (s, "%s", strerror (-r)) : STATUS_OK;
}

static int
backend_open (struct session *s)
{
  int why = 0;

  s->backend = memory_alloc (sizeof *s->backend);
  s->backend->pools = memory_alloc (s->nr_pools *
                                    sizeof *s->backend->pools);
  if (s->nr_pools)
    return open_server_or_pools (s);
  if (s->control == NULL)
    return fail_usage (s, "no pool given (use -p DIR or set COWSHED_POOL)");
  find_server (s, &why);
  if (s->backend->client == NULL)
    return fail (s, "no server answers at %s: %s", s->control,
                 strerror (why));
  return STATUS_OK;
}

int
backend_close (struct session *s)
{
  struct backend *b = s->backend;
  int status = STATUS_OK;

  if (b == NULL)
    return status;
  client_close (b->client);
  cow_api_free (b->api);
  for (size_t i = 0; i < b->nr_pools; i++) {
    int r = cow_pool_close (b->pools[i]);

    if (r < 0)
      status = fail (s, "pool %s: the last commit failed: %s", s->pools[i],
                     strerror (-r));
  }
  free (b->pools);
  free (b);
  s->backend = NULL;
  return status;
}

static int
request (struct session *s, const char *method, const char *path,
         json_t *query, json_t *body, json_t **reply)
{
  char error[256] = "";
  const char *message;
  int status;

  *reply = NULL;
  if (s->backend->client)
    status = client_call (s->backend->client, 0, method, path, query, body,
                          reply, error, sizeof error);
  else
    status = cow_api_call (s->backend->api, method, path, query, body, reply);
  if (status < 0)
    return fail (s, "no answer from the server: %s", error);
  if (status < 300)
    return STATUS_OK;
  message = json_string_value (json_object_get
                               (json_object_get (*reply, "error"),
                                "message"));
  if (message)
    fail (s, "%s", message);
  else
    fail (s, "the server answered with status %d", status);
  json_decref (*reply);
  *reply = NULL;
  return STATUS_FAILED;
}

int
backend_call (struct session *s, const char *method, const char *path,
              json_t *query, json_t *body, json_t **reply)
{
  int status = s->backend ? STATUS_OK : backend_open (s);

  if (status == STATUS_OK)
    status = request (s, method, path, query, body, reply);
  json_decref (query);
  json_decref (body);
  return status;
}

int
backend_do (struct session *s, const char *method, const char *path,
            json_t *query, json_t *body)
{
  json_t *reply;
  int status = backend_call (s, method, path, query, body, &reply);

  if (status == STATUS_OK && s->json)
    print_json (reply);
  if (status == STATUS_OK)
    json_decref (reply);
  return status;
}
