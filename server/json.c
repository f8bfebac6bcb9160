/* SPDX-License-Identifier: BSD-3-Clause */
/* Engine objects in the JSON of the interface. */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "api-internal.h"

static void
set_int (json_t *object, const char *key, uint64_t n)
{
  json_object_set_new (object, key, json_integer ((json_int_t) n));
}

json_t *
cow_json_text (const char *text)
{
  json_t *value = json_string (text);
  char quoted[400];

  if (value)
    return value;
  return json_string (cow_text_quote (text, quoted, sizeof quoted));
}

json_t *
cow_json_volume (const struct cow_pool *pool,
                 const struct cow_volume_info *info, bool details)
{
  json_t *v = json_object ();

  json_object_set_new (v, "name", cow_json_text (info->name));
  json_object_set_new (v, "pool", cow_json_text (cow_pool_name (pool)));
  set_int (v, "id", info->id);
  set_int (v, "size", info->size);
  if (details) {
    set_int (v, "allocated", info->allocated);
    set_int (v, "exclusive", info->exclusive);
    set_int (v, "shared", info->shared);
  }
  set_int (v, "reserved", info->reserved);
  json_object_set_new (v, "thick", json_boolean (info->thick));
  json_object_set_new (v, "readonly", json_boolean (info->readonly));
  json_object_set_new (v, "damaged", json_boolean (info->damaged));
  set_int (v, "created", info->created);
  set_int (v, "snapshots", info->nr_snapshots);
  return v;
}

json_t *
cow_json_pool (struct cow_pool *pool)
{
  struct cow_pool_stat st;
  json_t *p = json_object ();

  cow_pool_stat (pool, &st);
  json_object_set_new (p, "name", cow_json_text (cow_pool_name (pool)));
  json_object_set_new (p, "directory", cow_json_text (cow_pool_dir (pool)));
  set_int (p, "capacity", st.capacity);
  set_int (p, "used", st.used);
  set_int (p, "free", st.free);
  set_int (p, "reserved", st.reserved);
  set_int (p, "warn_at", st.warn_at);
  set_int (p, "critical_at", st.critical_at);
  json_object_set_new (p, "state", cow_json_text (st.state));
  set_int (p, "chunk_size", st.chunk_size);
  set_int (p, "block_size", st.block_size);
  set_int (p, "volumes", st.nr_volumes);
  set_int (p, "snapshots", st.nr_snapshots);
  set_int (p, "metadata", st.metadata_bytes);
  set_int (p, "deleting", st.deleting);
  return p;
}

json_t *
cow_json_job (const struct cow_api *api, size_t pool_index,
              const struct cow_job_info *job)
{
  json_t *j = json_object ();

  set_int (j, "id", job->id * api->nr_pools + pool_index);
  json_object_set_new (j, "op", cow_json_text (job->op));
  json_object_set_new (j, "pool", cow_json_text
                       (cow_pool_name (api->pools[pool_index])));
  json_object_set_new (j, "source", cow_json_text (job->source));
  json_object_set_new (j, "destination", cow_json_text (job->destination));
  json_object_set_new (j, "state", cow_json_text (job->state));
  set_int (j, "done", job->done);
  set_int (j, "total", job->total);
  set_int (j, "rate", job->rate);
  set_int (j, "started", job->started);
  set_int (j, "ended", job->ended);
  json_object_set_new (j, "error", job->error[0] ? cow_json_text (job->error)
                       : json_null ());
  return j;
}

json_t *
cow_json_check (const struct cow_pool *pool,
                const struct cow_check_result *result)
{
  json_t *check = json_object (), *faults = json_array ();

  for (size_t i = 0; i < result->nr_faults; i++) {
    const struct cow_check_fault *f = &result->faults[i];
    json_t *fault = json_object ();

    json_object_set_new (fault, "where", cow_json_text (f->where));
    json_object_set_new (fault, "what", cow_json_text (f->what));
    json_object_set_new (fault, "repaired", json_boolean (f->repaired));
    json_array_append_new (faults, fault);
  }
  json_object_set_new (check, "pool", cow_json_text (cow_pool_name (pool)));
  json_object_set_new (check, "faults", faults);
  set_int (check, "total", result->faults_total);
  set_int (check, "leaked", result->leaked);
  return check;
}

/* ---- Errors ---- */

json_t *
cow_json_error (const char *code, const char *message)
{
  json_t *error = json_object (), *reply = json_object ();

  json_object_set_new (error, "code", cow_json_text (code));
  json_object_set_new (error, "message", cow_json_text (message));
  json_object_set_new (reply, "error", error);
  return reply;
}

static const struct {
  const char *code;
  int status;
} statuses[] = {
  { "not-found", 404 },
  { "method-not-allowed", 405 },
  { "exists", 409 },
  { "busy", 409 },
  { "pool-busy", 409 },
  { "has-snapshots", 409 },
  { "not-cancellable", 409 },
  { "too-large", 400 },         /* the size of a volume */
  { "no-space", 507 },
  { "read-only", 403 },
  { "unauthorized", 401 },
};

int
cow_error_status (const struct cow_error *err)
{
  if (strncmp (err->code, "invalid-", 8) == 0)
    return 400;
  for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
    if (strcmp (err->code, statuses[i].code) == 0)
      return statuses[i].status;
  return 500;
}

static const struct {
  int errnum;
  const char *code, *message;
} errnos[] = {
  { ENOENT, "not-found", "no such thing" },
  { EEXIST, "exists", "it exists already" },
  { EINVAL, "invalid-request", "not a valid request" },
  { EBUSY, "busy", "it is in use" },
  { EROFS, "read-only", "it is read-only" },
  { ENOSPC, "no-space", "the pool has no space left for it" },
  { ESHUTDOWN, "busy", "it was removed, rolled back or shrunk meanwhile" },
  { ENOMEM, "no-memory", "out of memory" },
};

int
cow_error_from_errno (struct cow_error *err, int r, const char *what)
{
  for (size_t i = 0; i < sizeof errnos / sizeof errnos[0]; i++)
    if (errnos[i].errnum == -r)
      return cow_error_set (err, -r, errnos[i].code, "%s: %s", what,
                            errnos[i].message);
  return cow_error_set (err, -r, "io-error", "%s: %s", what, strerror (-r));
}
