/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests about jobs.
 *
 * Each pool numbers its jobs by itself.  Outside, a job's id is
 * id * (number of pools) + index of the pool: with one pool, the same.
 *
 * A request that waits occupies a worker, so only some may wait at a time;
 * the others get their answer sooner and ask again.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "api-internal.h"
#include "size.h"

#define WAIT_MAX_S 60
#define WAITING_MAX 8           /* of the 16 workers */
#define WAIT_SLICE_MS 200       /* between looks at whether to stop */

struct job_listing {
  struct request *rq;
  size_t pool_index;
};

static int
list_job (void *opaque, const struct cow_job_info *job)
{
  struct job_listing *l = opaque;

  return cow_result_append (l->rq, "jobs",
                            cow_json_job (l->rq->api, l->pool_index, job));
}

int
cow_route_jobs (struct request *rq)
{
  struct job_listing l = { .rq = rq };
  int r = cow_result_append (rq, "jobs", NULL);

  for (; r == 0 && l.pool_index < rq->api->nr_pools; l.pool_index++)
    r = cow_job_list (rq->api->pools[l.pool_index], list_job, &l);
  return r < 0 ? r : 200;
}

static int
parse_id (struct request *rq, uint64_t *id, size_t *pool_index)
{
  const char *text = rq->param;
  char quoted[64];

  if (text[strspn (text, "0123456789")] || cow_size_parse (text, id) < 0)
    return cow_error_set (&rq->err, EINVAL, "invalid-id",
                          "bad job id %s: expected a number",
                          cow_text_quote (text, quoted, sizeof quoted));
  *pool_index = *id % rq->api->nr_pools;
  *id /= rq->api->nr_pools;
  return 0;
}

static int
no_job (struct request *rq)
{
  char quoted[64];

  return cow_error_set (&rq->err, ENOENT, "not-found", "there is no job %s",
                        cow_text_quote (rq->param, quoted, sizeof quoted));
}

/* In slices, so that the server can stop. */
static int
wait_job (struct request *rq, struct cow_pool *pool, uint64_t id,
          uint64_t wait_ms, struct cow_job_info *job)
{
  struct cow_api *api = rq->api;
  int r;

  if (atomic_fetch_add (&api->nr_waiting, 1) >= WAITING_MAX &&
      wait_ms > WAIT_SLICE_MS)
    wait_ms = WAIT_SLICE_MS;
  do {
    unsigned slice = wait_ms < WAIT_SLICE_MS ? wait_ms : WAIT_SLICE_MS;

    r = cow_job_wait (pool, id, slice, job);
    wait_ms -= slice;
  } while (r == -ETIMEDOUT && wait_ms && !atomic_load (&api->stopping));
  atomic_fetch_sub (&api->nr_waiting, 1);
  return r == -ETIMEDOUT ? 0 : r;
}

int
cow_route_job (struct request *rq)
{
  uint64_t seconds = cow_field_number (rq, "wait", 0);
  struct cow_job_info job;
  size_t index;
  uint64_t id;
  int r = parse_id (rq, &id, &index);

  if (r < 0)
    return r;
  if (seconds > WAIT_MAX_S)
    seconds = WAIT_MAX_S;
  r = wait_job (rq, rq->api->pools[index], id, 1000 * seconds, &job);
  if (r == -ENOENT)
    return no_job (rq);
  if (r < 0)
    return r;
  json_decref (rq->result);
  rq->result = cow_json_job (rq->api, index, &job);
  return 200;
}

int
cow_route_job_cancel (struct request *rq)
{
  struct cow_job_info job;
  size_t index;
  uint64_t id;
  int r = parse_id (rq, &id, &index);

  if (r == 0)
    r = cow_job_cancel (rq->api->pools[index], id);
  if (r == -ENOENT)
    return no_job (rq);
  if (r == -EINVAL && rq->err.code[0] == '\0')
    return cow_error_set (&rq->err, EINVAL, "not-cancellable",
                          "job %s cannot be cancelled", rq->param);
  if (r < 0)
    return r;
  r = cow_job_wait (rq->api->pools[index], id, 0, &job);
  if (r == 0 || r == -ETIMEDOUT) {
    json_decref (rq->result);
    rq->result = cow_json_job (rq->api, index, &job);
  }
  return 200;
}
