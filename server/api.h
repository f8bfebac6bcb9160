/* SPDX-License-Identifier: BSD-3-Clause */
/* The control requests, apart from how they arrive.
 *
 * One table of routes (method, path, handler, fields) serves the HTTP
 * server, the cowshed command where no server runs (it opens the pool and
 * calls in-process) and, later, the in-band channel.  Requests and replies
 * are jansson objects with the names of cowshed(1).
 */
#ifndef COW_API_H
#define COW_API_H

#include <jansson.h>
#include <stddef.h>

#include "error.h"
#include "volume.h"

struct cow_api;

/* Pools stay the caller's and must outlive the api.  The first one is meant
 * where a name has no POOL/ part.
 */
int cow_api_new (struct cow_pool *const *pools, size_t nr_pools,
                 struct cow_api **api);
void cow_api_free (struct cow_api *api);

/* Carry out one request; blocks; thread-safe.  path is still
 * percent-encoded and starts with '/'; query is an object of strings
 * (already decoded) or NULL; body an object or NULL; neither is kept.
 * *reply is always set to a new object: the result, or
 * {"error":{"code":..., "message":...}}.  Returns the HTTP status.
 */
int cow_api_call (struct cow_api *api, const char *method, const char *path,
                  json_t *query, json_t *body, json_t **reply);

#endif /* COW_API_H */
