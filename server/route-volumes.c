/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests about volumes and snapshots as wholes.
 *
 * Replies to changes carry name, pool and size only: the other fields take a
 * walk of the map, and a snapshot should cost no such thing.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api-internal.h"
#include "cleanup.h"

#define OBJECT_MAX (2 * COW_NAME_MAX + 2)

/* ---- Helpers ---- */

static int
set_object (struct request *rq, struct cow_pool *pool, const char *name)
{
  struct cow_volume *v;

  json_object_set_new (rq->result, "name", cow_json_text (name));
  json_object_set_new (rq->result, "pool",
                       cow_json_text (cow_pool_name (pool)));
  /* It may be gone again already; then its size is of no interest. */
  if (cow_volume_open (pool, name, COW_RDONLY, &v, NULL) == 0) {
    json_object_set_new (rq->result, "size", json_integer
                         ((json_int_t) cow_volume_size (v)));
    cow_volume_close (v);
  }
  return 0;
}

/* The object that the path names. */
static int
path_object (struct request *rq, struct cow_spec *spec,
             struct cow_pool **pool, char *name)
{
  int r = cow_api_spec (rq, rq->param, 0, spec, pool);

  if (r == 0)
    cow_spec_object (spec, name);
  return r;
}

static int
path_volume (struct request *rq, struct cow_spec *spec,
             struct cow_pool **pool)
{
  int r = cow_api_spec (rq, rq->param, 0, spec, pool);

  if (r == 0 && spec->snap[0])
    r = cow_error_set (&rq->err, EINVAL, "invalid-name",
                       "%s@%s is a snapshot: expected a volume",
                       spec->volume, spec->snap);
  return r;
}

/* "SNAP" or "[POOL/]VOLUME@SNAP" of the volume in spec, into spec->snap. */
static int
parse_snap_of (struct request *rq, const char *text, struct cow_spec *spec)
{
  struct cow_spec other;
  char quoted[100];

  if (strchr (text, '@')) {
    int r = cow_spec_parse (text, 0, &other, &rq->err);

    if (r < 0)
      return r;
    if (strcmp (other.volume, spec->volume) != 0 ||
        (other.pool[0] && strcmp (other.pool, spec->pool) != 0))
      return cow_error_set (&rq->err, EINVAL, "invalid-name", "%s is not a "
                            "snapshot of %s",
                            cow_text_quote (text, quoted, sizeof quoted),
                            spec->volume);
    text = strchr (text, '@') + 1;
  }
  if (!cow_snap_name_valid (text))
    return cow_error_set (&rq->err, EINVAL, "invalid-name", "bad snapshot "
                          "name %s: expected a letter or digit, then at most "
                          "127 letters, digits or any of ._- (but not \"..\")",
                          cow_text_quote (text, quoted, sizeof quoted));
  snprintf (spec->snap, sizeof spec->snap, "%s", text);
  return 0;
}

/* ---- List and info ---- */

struct listing {
  struct request *rq;
  struct cow_pool *pool;
  const char *list;
  bool details;
  const char *snapshots_of;     /* only these */
};

static int
list_one (void *opaque, const struct cow_volume_info *info)
{
  struct listing *l = opaque;
  struct cow_volume_info full = *info;
  size_t len = l->snapshots_of ? strlen (l->snapshots_of) : 0;

  if (l->snapshots_of && (strncmp (info->name, l->snapshots_of, len) != 0 ||
                          info->name[len] != '@'))
    return 0;
  /* One that was removed since the list was made is left out. */
  if (l->details && cow_volume_info (l->pool, info->name, &full, NULL) < 0) {
    if (!info->damaged)
      return 0;
    full = *info;
  }
  return cow_result_append (l->rq, l->list,
                            cow_json_volume (l->pool, &full, l->details));
}

int
cow_route_volumes (struct request *rq)
{
  struct listing l = { .rq = rq, .list = "volumes" };
  const char *name = cow_field_text (rq, "pool");
  int r = 0;

  l.details = cow_field_flag (rq, "details", 1);
  cow_result_append (rq, l.list, NULL);
  if (name) {
    r = cow_api_pool (rq, name, &l.pool);
    if (r == 0)
      r = cow_volume_list (l.pool, list_one, &l);
    return r < 0 ? r : 200;
  }
  for (size_t i = 0; r == 0 && i < rq->api->nr_pools; i++) {
    l.pool = rq->api->pools[i];
    r = cow_volume_list (l.pool, list_one, &l);
  }
  return r < 0 ? r : 200;
}

int
cow_route_volume_info (struct request *rq)
{
  struct cow_volume_info info;
  struct cow_spec spec;
  struct cow_pool *pool;
  char name[OBJECT_MAX];
  int r = path_object (rq, &spec, &pool, name);

  if (r == 0)
    r = cow_volume_info (pool, name, &info, &rq->err);
  if (r < 0)
    return r;
  json_decref (rq->result);
  rq->result = cow_json_volume (pool, &info, true);
  return 200;
}

int
cow_route_volume_snapshots (struct request *rq)
{
  struct listing l = { .rq = rq, .list = "snapshots" };
  struct cow_spec spec;
  struct cow_volume *v;
  int r = path_volume (rq, &spec, &l.pool);

  if (r == 0)                   /* only to say so where it does not exist */
    r = cow_volume_open (l.pool, spec.volume, COW_RDONLY, &v, &rq->err);
  if (r < 0)
    return r;
  cow_volume_close (v);
  l.snapshots_of = spec.volume;
  cow_result_append (rq, l.list, NULL);
  r = cow_volume_list (l.pool, list_one, &l);
  return r < 0 ? r : 200;
}

/* ---- Create ---- */

static int
clone_volume (struct request *rq, struct cow_pool *pool, const char *name)
{
  struct cow_spec spec;
  struct cow_pool *source_pool;
  char source[OBJECT_MAX];
  int r;

  if (cow_field_given (rq, "size") || cow_field_given (rq, "thick"))
    return cow_error_set (&rq->err, EINVAL, "invalid-request", "a clone has "
                          "its source's size: give either source or size "
                          "and thick");
  r = cow_api_spec (rq, cow_field_text (rq, "source"), 0, &spec,
                    &source_pool);
  if (r < 0)
    return r;
  if (source_pool != pool)
    return cow_error_set (&rq->err, EINVAL, "invalid-request", "%s is in "
                          "pool %s, not in %s: a clone must be in its "
                          "source's pool", cow_spec_object (&spec, source),
                          cow_pool_name (source_pool), cow_pool_name (pool));
  return cow_volume_clone (pool, cow_spec_object (&spec, source), name,
                           cow_field_sync (rq), &rq->err);
}

int
cow_route_volume_create (struct request *rq)
{
  unsigned flags = cow_field_sync (rq) |
    cow_field_flag (rq, "thick", COW_THICK);
  struct cow_spec spec;
  struct cow_pool *pool;
  int r = cow_api_spec (rq, cow_field_text (rq, "name"), 0, &spec, &pool);

  if (r < 0)
    return r;
  if (spec.snap[0])
    return cow_error_set (&rq->err, EINVAL, "invalid-name", "%s@%s would be "
                          "a snapshot: expected the name of a volume",
                          spec.volume, spec.snap);
  if (cow_field_given (rq, "source"))
    r = clone_volume (rq, pool, spec.volume);
  else if (cow_field_given (rq, "size"))
    r = cow_volume_create (pool, spec.volume,
                           cow_field_number (rq, "size", 0), flags, &rq->err);
  else
    r = cow_error_set (&rq->err, EINVAL, "invalid-request", "give size for a "
                       "new volume or source for a clone");
  if (r == 0)
    r = set_object (rq, pool, spec.volume);
  return r < 0 ? r : 201;
}

/* ---- Change and remove ---- */

/* The new name must stay in the pool; name becomes it. */
static int
rename_object (struct request *rq, struct cow_pool *pool, char *name)
{
  struct cow_pool *to_pool;
  struct cow_spec to;
  char new_name[OBJECT_MAX];
  int r = cow_api_spec (rq, cow_field_text (rq, "name"), 0, &to, &to_pool);

  if (r < 0)
    return r;
  if (to.pool[0] && to_pool != pool)
    return cow_error_set (&rq->err, EINVAL, "invalid-name", "renaming does "
                          "not move %s from pool %s to %s", name,
                          cow_pool_name (pool), cow_pool_name (to_pool));
  if (!strchr (name, '@') != !to.snap[0])
    return cow_error_set (&rq->err, EINVAL, "invalid-name", "bad new name "
                          "for %s: expected %s", name, to.snap[0] ?
                          "a volume's name" : "VOLUME@SNAP");
  cow_spec_object (&to, new_name);
  r = cow_volume_rename (pool, name, new_name, cow_field_sync (rq),
                         &rq->err);
  if (r == 0)
    strcpy (name, new_name);
  return r;
}

static int
rollback_volume (struct request *rq, struct cow_pool *pool,
                 struct cow_spec *spec, unsigned flags)
{
  char snapshot[OBJECT_MAX];
  int r;

  if (spec->snap[0])
    return cow_error_set (&rq->err, EINVAL, "invalid-name", "%s@%s is a "
                          "snapshot: only a volume can be rolled back",
                          spec->volume, spec->snap);
  r = parse_snap_of (rq, cow_field_text (rq, "rollback"), spec);
  if (r < 0)
    return r;
  return cow_volume_rollback (pool, cow_spec_object (spec, snapshot), flags,
                              &rq->err);
}

/* Exactly one change: two would not be one step after a crash. */
static int
check_change (struct request *rq)
{
  int n = cow_field_given (rq, "size") + cow_field_given (rq, "name") +
    cow_field_given (rq, "rollback");

  if (n != 1)
    return cow_error_set (&rq->err, EINVAL, "invalid-request",
                          "give one of size, name and rollback");
  if (cow_field_given (rq, "shrink") && !cow_field_given (rq, "size"))
    return cow_error_set (&rq->err, EINVAL, "invalid-request",
                          "shrink goes with size only");
  if (cow_field_given (rq, "force") && cow_field_given (rq, "name"))
    return cow_error_set (&rq->err, EINVAL, "invalid-request",
                          "renaming needs no force");
  return 0;
}

int
cow_route_volume_change (struct request *rq)
{
  unsigned flags = cow_field_sync (rq) |
    cow_field_flag (rq, "force", COW_FORCE) |
    cow_field_flag (rq, "shrink", COW_SHRINK);
  struct cow_spec spec;
  struct cow_pool *pool;
  char name[OBJECT_MAX];
  int r = path_object (rq, &spec, &pool, name);

  if (r == 0)
    r = check_change (rq);
  if (r < 0)
    return r;
  if (cow_field_given (rq, "size"))
    r = cow_volume_resize (pool, name, cow_field_number (rq, "size", 0),
                           flags, &rq->err);
  else if (cow_field_given (rq, "name"))
    r = rename_object (rq, pool, name);
  else
    r = rollback_volume (rq, pool, &spec, flags);
  if (r == 0)
    r = set_object (rq, pool, name);
  return r < 0 ? r : 200;
}

int
cow_route_volume_remove (struct request *rq)
{
  unsigned flags = cow_field_sync (rq) |
    cow_field_flag (rq, "force", COW_FORCE) |
    cow_field_flag (rq, "snapshots", COW_SNAPSHOTS);
  struct cow_spec spec;
  struct cow_pool *pool;
  char name[OBJECT_MAX];
  int r = path_object (rq, &spec, &pool, name);

  if (r == 0)
    r = cow_volume_remove (pool, name, flags, &rq->err);
  if (r < 0)
    return r;
  json_object_set_new (rq->result, "name", cow_json_text (name));
  json_object_set_new (rq->result, "pool",
                       cow_json_text (cow_pool_name (pool)));
  return 200;
}

/* ---- Snapshots ---- */

int
cow_route_volume_snapshot (struct request *rq)
{
  struct cow_spec spec;
  struct cow_pool *pool;
  char name[OBJECT_MAX];
  const char *names[1] = { name };
  int r = path_volume (rq, &spec, &pool);

  if (r == 0)
    r = parse_snap_of (rq, cow_field_text (rq, "name"), &spec);
  if (r < 0)
    return r;
  cow_spec_object (&spec, name);
  r = cow_snapshot_create (pool, names, 1, cow_field_sync (rq), &rq->err);
  if (r == 0)
    r = set_object (rq, pool, name);
  return r < 0 ? r : 201;
}

/* One instant is one pool's: its structure locks are what makes it one. */
static int
parse_snapshots (struct request *rq, json_t *list, struct cow_pool **pool,
                 char (*objects)[OBJECT_MAX], const char **names)
{
  json_t *item;
  size_t i;

  json_array_foreach (list, i, item) {
    struct cow_pool *this_pool;
    struct cow_spec spec;
    int r = cow_api_spec (rq, json_string_value (item), 0, &spec,
                          &this_pool);

    if (r < 0)
      return r;
    names[i] = cow_spec_object (&spec, objects[i]);
    if (spec.snap[0] == '\0')
      return cow_error_set (&rq->err, EINVAL, "invalid-name", "%s is no "
                            "snapshot's name: expected VOLUME@SNAP",
                            names[i]);
    if (i && this_pool != *pool)
      return cow_error_set (&rq->err, EINVAL, "invalid-request", "snapshots "
                            "at one instant must be of one pool: %s is not "
                            "in %s", names[i], cow_pool_name (*pool));
    *pool = this_pool;
  }
  return 0;
}

int
cow_route_snapshots (struct request *rq)
{
  json_t *list = json_object_get (rq->args, "names");
  size_t n = json_array_size (list);
  CLEANUP_FREE char (*objects)[OBJECT_MAX] = calloc (n + 1, sizeof *objects);
  CLEANUP_FREE const char **names = calloc (n + 1, sizeof *names);
  struct cow_pool *pool = NULL;
  int r;

  if (objects == NULL || names == NULL)
    return -ENOMEM;
  if (n == 0)
    return cow_error_set (&rq->err, EINVAL, "invalid-request",
                          "names is empty: expected VOLUME@SNAP");
  r = parse_snapshots (rq, list, &pool, objects, names);
  if (r == 0)
    r = cow_snapshot_create (pool, names, n, cow_field_sync (rq), &rq->err);
  for (size_t i = 0; r == 0 && i < n; i++)
    r = cow_result_append (rq, "snapshots", json_pack
                           ("{s:s, s:s}", "name", names[i], "pool",
                            cow_pool_name (pool)));
  return r < 0 ? r : 201;
}
