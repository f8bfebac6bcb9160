/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests about pools and about the server. */
#include <config.h>

#include "api-internal.h"

int
cow_route_root (struct request *rq)
{
  json_object_set_new (rq->result, "name", json_string (PACKAGE_NAME));
  json_object_set_new (rq->result, "version", json_string (PACKAGE_VERSION));
  for (const struct route *r = cow_routes; r->method; r++) {
    json_t *link = json_object ();

    json_object_set_new (link, "method", json_string (r->method));
    json_object_set_new (link, "path", json_string (r->path));
    json_object_set_new (link, "summary", json_string (r->summary));
    cow_result_append (rq, "requests", link);
  }
  return 200;
}

int
cow_route_pools (struct request *rq)
{
  for (size_t i = 0; i < rq->api->nr_pools; i++)
    cow_result_append (rq, "pools", cow_json_pool (rq->api->pools[i]));
  return 200;
}

static int
flush_pool (struct request *rq, struct cow_pool *pool)
{
  int r = cow_pool_flush (pool);

  if (r < 0)
    return cow_error_from_errno (&rq->err, r, cow_pool_name (pool));
  return cow_result_append (rq, "flushed",
                            cow_json_text (cow_pool_name (pool)));
}

int
cow_route_flush (struct request *rq)
{
  const char *name = cow_field_text (rq, "pool");
  struct cow_pool *pool;
  int r = 0;

  if (name) {
    r = cow_api_pool (rq, name, &pool);
    return r < 0 || (r = flush_pool (rq, pool)) < 0 ? r : 200;
  }
  for (size_t i = 0; r == 0 && i < rq->api->nr_pools; i++)
    r = flush_pool (rq, rq->api->pools[i]);
  return r < 0 ? r : 200;
}

/* It reads what the last commit left, so commit first: what is being checked
 * is then what the user just did.
 */
int
cow_route_check (struct request *rq)
{
  const char *name = cow_field_text (rq, "pool");
  struct cow_check_result result = { 0 };
  struct cow_pool *pool;
  int r = cow_api_pool (rq, name ? name : "", &pool);

  if (r < 0)
    return r;
  cow_pool_flush (pool);        /* a failure shows in the check */
  r = cow_pool_check (cow_pool_dir (pool), false, &result, NULL, NULL,
                      &rq->err);
  if (r < 0)
    return r;
  json_decref (rq->result);
  rq->result = cow_json_check (pool, &result);
  cow_check_result_free (&result);
  return 200;
}
