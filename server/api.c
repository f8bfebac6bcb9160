/* SPDX-License-Identifier: BSD-3-Clause */
/* From a method and a path to a handler, and from its outcome to a reply. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api-internal.h"
#include "cleanup.h"

int
cow_api_new (struct cow_pool *const *pools, size_t nr_pools,
             struct cow_api **api)
{
  if (nr_pools == 0)
    return -EINVAL;
  for (size_t i = 1; i < nr_pools; i++)
    for (size_t j = 0; j < i; j++)
      if (strcmp (cow_pool_name (pools[i]), cow_pool_name (pools[j])) == 0)
        return -EEXIST;
  *api = calloc (1, sizeof **api);
  if (*api == NULL)
    return -ENOMEM;
  (*api)->pools = pools;
  (*api)->nr_pools = nr_pools;
  return 0;
}

void
cow_api_free (struct cow_api *api)
{
  free (api);
}

void
cow_api_stop (struct cow_api *api)
{
  atomic_store (&api->stopping, true);
}

/* ---- What handlers share ---- */

int
cow_api_pool (struct request *rq, const char *name, struct cow_pool **pool)
{
  char quoted[100];

  for (size_t i = 0; i < rq->api->nr_pools; i++) {
    *pool = rq->api->pools[i];
    if (*name == '\0' || strcmp (cow_pool_name (*pool), name) == 0)
      return 0;
  }
  return cow_error_set (&rq->err, ENOENT, "not-found", "there is no pool %s",
                        cow_text_quote (name, quoted, sizeof quoted));
}

int
cow_api_spec (struct request *rq, const char *text, unsigned flags,
              struct cow_spec *spec, struct cow_pool **pool)
{
  int r = cow_spec_parse (text, flags, spec, &rq->err);

  return r < 0 ? r : cow_api_pool (rq, spec->pool, pool);
}

int
cow_result_append (struct request *rq, const char *list, json_t *item)
{
  json_t *array = json_object_get (rq->result, list);

  if (array == NULL) {
    array = json_array ();
    json_object_set_new (rq->result, list, array);
  }
  if (item && json_array_append_new (array, item) < 0)
    return cow_error_set (&rq->err, ENOMEM, "no-memory", "out of memory");
  return 0;
}

/* ---- Dispatch ---- */

void
cow_api_allowed (const char *path, char *buf, size_t len)
{
  size_t n = 0;

  buf[0] = '\0';
  for (const struct route *r = cow_routes; r->method && n < len; r++) {
    CLEANUP_FREE char *param = NULL;

    if (cow_path_match (r->path, path, &param) != -ENOENT)
      n += snprintf (buf + n, len - n, "%s%s", n ? ", " : "", r->method);
  }
}

/* Set rq->route and rq->param; -errno with rq->err where there is none. */
static int
find_route (struct request *rq, const char *method, const char *path)
{
  char quoted[200], allowed[64];
  int r;

  for (rq->route = cow_routes; rq->route->method; rq->route++) {
    if (strcmp (rq->route->method, method) != 0)
      continue;
    r = cow_path_match (rq->route->path, path, &rq->param);
    if (r == -EINVAL)
      return cow_error_set (&rq->err, EINVAL, "invalid-path",
                            "bad percent escape in %s",
                            cow_text_quote (path, quoted, sizeof quoted));
    if (r != -ENOENT)
      return r < 0 ? cow_error_from_errno (&rq->err, r, "request") : 0;
  }
  cow_text_quote (path, quoted, sizeof quoted);
  cow_api_allowed (path, allowed, sizeof allowed);
  if (allowed[0])
    return cow_error_set (&rq->err, ENOSYS, "method-not-allowed",
                          "%s takes %s only", quoted, allowed);
  return cow_error_set (&rq->err, ENOENT, "not-found",
                        "there is nothing at %s", quoted);
}

static int
handle (struct request *rq, const char *method, const char *path,
        json_t *query, json_t *body)
{
  int r = find_route (rq, method, path);

  if (r == 0)
    r = cow_fields_check (rq, query, body);
  if (r == 0) {
    rq->result = json_object ();
    r = rq->route->handler (rq);
    if (r < 0 && rq->err.code[0] == '\0')
      cow_error_from_errno (&rq->err, r, rq->route->summary);
  }
  return r;
}

int
cow_api_call (struct cow_api *api, const char *method, const char *path,
              json_t *query, json_t *body, json_t **reply)
{
  struct request rq = { .api = api };
  int status = handle (&rq, method, path, query, body);

  if (status < 0) {
    json_decref (rq.result);
    rq.result = cow_json_error (rq.err.code, rq.err.message);
    status = cow_error_status (&rq.err);
  }
  *reply = rq.result ? rq.result : json_object ();
  json_decref (rq.args);
  free (rq.param);
  return status;
}
