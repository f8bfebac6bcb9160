/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on whole pools: init, df, check. */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "cowshed.h"
#include "size.h"
#include "volume.h"

/* An option's size, or 0 where it was not given. */
static int
size_option (const struct session *s, const char *name, uint64_t *bytes)
{
  const char *text = session_option (s, name);
  CLEANUP_FREE char *what = text_format ("--%s", name);

  int status;

  *bytes = 0;
  if (text == NULL)
    return STATUS_OK;
  status = parse_size (s, what, text, bytes);
  /* The engine takes 0 for "not given". */
  if (status == STATUS_OK && *bytes == 0)
    return fail_usage (s, "%s %s: a size above 0 is expected", what, text);
  return status;
}

int
cmd_init (struct session *s)
{
  CLEANUP_FREE char *name = NULL;
  CLEANUP_FREE char *dir = NULL;
  struct cow_init_options o = { .device = session_option (s, "device") };
  struct cow_error err = { 0 };
  int status;

  status = size_option (s, "chunk", &o.chunk_size);
  if (status == STATUS_OK)
    status = size_option (s, "capacity", &o.capacity);
  if (status != STATUS_OK)
    return status;
  if (cow_pool_split (s->args[0], &name, &dir, &err) < 0)
    return fail (s, "%s", err.message);
  o.dir = dir;
  if (cow_pool_init (&o, &err) < 0)
    return fail (s, "%s", err.message);
  if (s->json) {
    json_t *reply = json_pack ("{s:s}", "name", name);

    print_json (reply);
    json_decref (reply);
  }
  return STATUS_OK;
}

static const struct column df_columns[] = {
  { "POOL", "name", COLUMN_TEXT },
  { "CAPACITY", "capacity", COLUMN_SIZE },
  { "USED", "used", COLUMN_SIZE },
  { "FREE", "free", COLUMN_SIZE },
  { "RESERVED", "reserved", COLUMN_SIZE },
  { "USE", "percent", COLUMN_PERCENT },
  { "WARN", "warn_at", COLUMN_PERCENT },
  { "CRITICAL", "critical_at", COLUMN_PERCENT },
  { "STATE", "state", COLUMN_TEXT },
  { NULL }
};

static void
add_percent (json_t *pool)
{
  uint64_t used = json_u64 (pool, "used");
  uint64_t capacity = json_u64 (pool, "capacity");
  double part = capacity ? (double) used / (double) capacity : 0;

  json_object_set_new (pool, "percent",
                       json_integer ((json_int_t) (part * 100 + 0.5)));
}

int
cmd_df (struct session *s)
{
  json_t *reply, *pool;
  size_t i;
  int status = backend_call (s, "GET", "/v1/pools", NULL, NULL, &reply);

  if (status != STATUS_OK)
    return status;
  if (s->json)
    print_json (reply);
  else {
    json_array_foreach (json_object_get (reply, "pools"), i, pool)
      add_percent (pool);
    print_table (json_object_get (reply, "pools"), df_columns);
  }
  json_decref (reply);
  return status;
}

/* ---- check ---- */

static void
check_progress (void *opaque, uint64_t done, uint64_t total)
{
  progress_update (opaque, done, total);
}

static void
print_check_json (const struct cow_check_result *r)
{
  json_t *faults = json_array ();
  json_t *reply;

  for (size_t i = 0; i < r->nr_faults; i++)
    json_array_append_new (faults, json_pack
                           ("{s:s, s:s, s:b}", "where", r->faults[i].where,
                            "what", r->faults[i].what,
                            "repaired", (int) r->faults[i].repaired));
  reply = json_pack ("{s:o, s:I, s:I}", "faults", faults,
                     "total", (json_int_t) r->faults_total,
                     "leaked", (json_int_t) r->leaked);
  print_json (reply);
  json_decref (reply);
}

static void
print_check_text (const struct cow_check_result *r)
{
  char buf[64];

  for (size_t i = 0; i < r->nr_faults; i++)
    printf ("%s: %s%s\n", r->faults[i].where, r->faults[i].what,
            r->faults[i].repaired ? " (repaired)" : "");
  if (r->faults_total > r->nr_faults)
    printf ("... and %" PRIu64 " more\n", r->faults_total - r->nr_faults);
  if (r->leaked)
    printf ("leaked: %s, to be reclaimed when the pool is next served\n",
            cow_size_format (r->leaked, buf, sizeof buf));
  if (r->faults_total == 0)
    printf ("no faults found\n");
  else
    printf ("%" PRIu64 " fault%s found\n", r->faults_total,
            r->faults_total == 1 ? "" : "s");
}

/* Faults beyond those that are kept count as repaired if r says so. */
static int
check_status (const struct cow_check_result *r)
{
  if (r->faults_total == 0)
    return r->repaired ? STATUS_REPAIRED : STATUS_OK;
  for (size_t i = 0; i < r->nr_faults; i++)
    if (!r->faults[i].repaired)
      return STATUS_FAILED;
  return r->repaired ? STATUS_REPAIRED : STATUS_FAILED;
}

int
cmd_check (struct session *s)
{
  CLEANUP_FREE char *dir = NULL;
  struct cow_check_result result = { 0 };
  struct cow_error err = { 0 };
  struct progress p;
  int r, status;

  if (s->nr_args == 0 && s->nr_pools != 1)
    return fail_usage (s, "give the directory of one pool");
  dir = pool_dir (s->nr_args ? s->args[0] : s->pools[0]);
  progress_begin (&p, "check", false);
  r = cow_pool_check (dir, session_option (s, "repair") != NULL, &result,
                      check_progress, &p, &err);
  progress_end (&p);
  if (r < 0)
    return fail (s, "%s", err.message);
  (s->json ? print_check_json : print_check_text) (&result);
  status = check_status (&result);
  cow_check_result_free (&result);
  return status;
}
