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
 *   3. the pools themselves.  One that another process holds is an error
 *      which says where a server was looked for.
 */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "cleanup.h"
#include "cowshed.h"

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

static void
find_server (struct session *s)
{
  if (s->control) {
    s->backend->client = client_open (s->control);
    return;
  }
  for (size_t i = 0; i < s->nr_pools && !s->backend->client; i++) {
    CLEANUP_FREE char *path = control_path (s->pools[i]);

    s->backend->client = client_open (path);
  }
}

static int
fail_open (const struct session *s, const char *spec,
           const struct cow_error *err)
{
  CLEANUP_FREE char *path = s->control ? text_format ("%s", s->control)
    : control_path (spec);

  if (strcmp (err->code, "pool-busy") != 0)
    return fail (s, "%s", err->message);
  return fail (s, "%s, and no server answers at %s "
               "(give a server's socket with --control)", err->message, path);
}

static int
open_pools (struct session *s)
{
  static const struct cow_pool_options options;
  struct backend *b = s->backend;
  struct cow_error err = { 0 };
  int r;

  b->pools = memory_alloc (s->nr_pools * sizeof *b->pools);
  for (size_t i = 0; i < s->nr_pools; i++) {
    if (cow_pool_open (s->pools[i], &options, &b->pools[i], &err) < 0)
      return fail_open (s, s->pools[i], &err);
    b->nr_pools++;
  }
  r = cow_api_new (b->pools, b->nr_pools, &b->api);
  return r < 0 ? fail (s, "%s", strerror (-r)) : STATUS_OK;
}

static int
backend_open (struct session *s)
{
  int saved_errno;

  s->backend = memory_alloc (sizeof *s->backend);
  errno = 0;
  find_server (s);
  saved_errno = errno;
  if (s->backend->client)
    return STATUS_OK;
  if (s->nr_pools)
    return open_pools (s);
  if (s->control)
    return fail (s, "no server answers at %s: %s", s->control,
                 strerror (saved_errno));
  return fail_usage (s, "no pool given (use -p DIR or set COWSHED_POOL)");
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
