/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests are described and carried out; for server/ only. */
#ifndef COW_API_INTERNAL_H
#define COW_API_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api.h"
#include "names.h"

struct cow_api {
  struct cow_pool *const *pools;
  size_t nr_pools;
  atomic_bool stopping;         /* requests that wait should end */
  atomic_uint nr_waiting;
};

/* ---- The table of routes ---- */

enum field_type {
  FIELD_TEXT,
  FIELD_TEXTS,                  /* an array of strings */
  FIELD_SIZE,                   /* bytes: an integer, or text as "1G" */
  FIELD_NUMBER,                 /* an integer, not negative */
  FIELD_FLAG,
};

#define IN_QUERY 1u
#define IN_BODY 2u
#define REQUIRED 4u

struct field {
  const char *name;             /* NULL ends a list */
  enum field_type type;
  unsigned flags;               /* IN_QUERY IN_BODY REQUIRED */
  const char *summary;
};

struct request {
  struct cow_api *api;
  const struct route *route;
  char *param;                  /* the decoded {...} of the path, or NULL */
  json_t *args;                 /* fields checked and typed: sizes and
                                   numbers are integers, flags booleans */
  json_t *result;               /* object, set by the handler */
  struct cow_error err;         /* set by the handler when it fails */
};

struct route {
  const char *method;
  const char *path;             /* at most one segment is "{...}" */
  int (*handler) (struct request *rq); /* HTTP status or -errno */
  const char *summary;
  struct field fields[8];
};

extern const struct route cow_routes[]; /* ends with method NULL */

/* Methods that path takes, as an Allow header has them; "" if none. */
void cow_api_allowed (const char *path, char *buf, size_t len);

/* Make requests that wait for something return early, for ever. */
void cow_api_stop (struct cow_api *api);

/* ---- Fields (fields.c) ---- */

/* Check query and body against the route's fields and make rq->args; 0 or
 * -EINVAL with rq->err.
 */
int cow_fields_check (struct request *rq, json_t *query, json_t *body);

bool cow_field_given (const struct request *rq, const char *name);
const char *cow_field_text (const struct request *rq, const char *name);
uint64_t cow_field_number (const struct request *rq, const char *name,
                           uint64_t if_absent);
/* flag where the field is true, else 0 */
unsigned cow_field_flag (const struct request *rq, const char *name,
                         unsigned flag);
/* COW_NOSYNC where "sync" is given as false */
unsigned cow_field_sync (const struct request *rq);

/* ---- Paths (path.c) ---- */

/* Decode %XX once in len bytes; '+' is itself.  A new string, or NULL with
 * errno EINVAL (bad escape, or %00) or ENOMEM.
 */
char *cow_percent_decode (const char *text, size_t len);

/* 0 and *param (new, or NULL) where path fits pattern; -ENOENT where not;
 * -EINVAL for a bad escape in the parameter; -ENOMEM.
 */
int cow_path_match (const char *pattern, const char *path, char **param);

/* "a=1&b=2" into an object of strings.  Empty pairs are skipped; a key given
 * twice, a bad escape or bytes that are not UTF-8 are -EINVAL with err.
 */
int cow_query_parse (const char *text, json_t **query,
                     struct cow_error *err);

/* ---- Objects and errors as JSON (json.c) ---- */

/* As json_string, quoted where text is not UTF-8. */
json_t *cow_json_text (const char *text);
json_t *cow_json_volume (const struct cow_pool *pool,
                         const struct cow_volume_info *info, bool details);
json_t *cow_json_pool (struct cow_pool *pool);
json_t *cow_json_job (const struct cow_api *api, size_t pool_index,
                      const struct cow_job_info *job);
json_t *cow_json_check (const struct cow_pool *pool,
                        const struct cow_check_result *result);
json_t *cow_json_error (const char *code, const char *message);

/* The HTTP status for an error code. */
int cow_error_status (const struct cow_error *err);

/* err for an engine function that gives only -errno. */
int cow_error_from_errno (struct cow_error *err, int r, const char *what);

/* ---- What handlers share (api.c) ---- */

/* Append item to the array list of rq's result. */
int cow_result_append (struct request *rq, const char *list, json_t *item);

/* The pool called name, the first one for "". */
int cow_api_pool (struct request *rq, const char *name,
                  struct cow_pool **pool);

/* Parse text and find its pool. */
int cow_api_spec (struct request *rq, const char *text, unsigned flags,
                  struct cow_spec *spec, struct cow_pool **pool);

/* ---- Handlers ---- */

int cow_route_root (struct request *rq);
int cow_route_pools (struct request *rq);
int cow_route_flush (struct request *rq);
int cow_route_check (struct request *rq);
int cow_route_volumes (struct request *rq);
int cow_route_volume_create (struct request *rq);
int cow_route_volume_info (struct request *rq);
int cow_route_volume_change (struct request *rq);
int cow_route_volume_remove (struct request *rq);
int cow_route_volume_snapshots (struct request *rq);
int cow_route_volume_snapshot (struct request *rq);
int cow_route_snapshots (struct request *rq);
int cow_route_map (struct request *rq);
int cow_route_diff (struct request *rq);
int cow_route_zero (struct request *rq);
int cow_route_trim (struct request *rq);
int cow_route_jobs (struct request *rq);
int cow_route_job (struct request *rq);
int cow_route_job_cancel (struct request *rq);

#endif /* COW_API_INTERNAL_H */
