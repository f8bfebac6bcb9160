/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "changes.h"
#include "cleanup.h"
#include "counts.h"
#include "log.h"
#include "reap.h"
#include "table.h"
#include "tree.h"
#include "volumes.h"
#include "walk.h"

#define FULL_NAME sizeof (((struct cow_volume_info *) NULL)->name)

/* ---- Names (table_lock) ---- */

static size_t
name_bucket (const struct local_pool *p, uint64_t parent, const char *name)
{
  uint64_t h = parent * UINT64_C (0x9e3779b97f4a7c15) + 5381;

  for (; *name; name++)
    h = h * 33 + (unsigned char) *name;
  return (h ^ (h >> 32)) & (p->nr_name_buckets - 1);
}

struct local_volume *
cow_table_find_locked (struct local_pool *p, uint64_t parent, const char *name)
{
  struct local_volume *v = p->by_name[name_bucket (p, parent, name)];

  while (v && (v->row.parent != parent || strcmp (v->row.name, name) != 0))
    v = v->hash_next;
  return v;
}

void
cow_table_hash_locked (struct local_pool *p, struct local_volume *v)
{
  size_t b = name_bucket (p, v->row.parent, v->row.name);

  v->hash_next = p->by_name[b];
  p->by_name[b] = v;
}

void
cow_table_unhash_locked (struct local_pool *p, struct local_volume *v)
{
  struct local_volume **link =
    &p->by_name[name_bucket (p, v->row.parent, v->row.name)];

  while (*link != v)
    link = &(*link)->hash_next;
  *link = v->hash_next;
}

struct local_volume *
cow_table_new (struct local_pool *p, const struct store_volume *row)
{
  struct local_volume *v = calloc (1, sizeof *v);

  if (v == NULL)
    return NULL;
  v->row = *row;
  v->obj.pool = &p->pool;
  v->obj.id = row->id;
  v->obj.size = row->size;
  v->obj.readonly = row->parent != 0 || (row->flags & VOL_DAMAGED);
  cow_rwlock_init (&v->obj.structure);
  cow_ranges_init (&v->obj.ranges);
  return v;
}

void
cow_table_destroy (struct local_volume *v)
{
  pthread_rwlock_destroy (&v->obj.structure);
  cow_ranges_destroy (&v->obj.ranges);
  free (v->snapshot);
  free (v);
}

int
cow_table_add_locked (struct local_pool *p, struct local_volume *v)
{
  if (p->nr_all == p->room_all) {
    size_t room = p->room_all ? p->room_all * 2 : 64;
    struct local_volume **bigger =
      realloc (p->all, room * sizeof *bigger);

    if (bigger == NULL)
      return -ENOMEM;
    p->all = bigger;
    p->room_all = room;
  }
  p->all[p->nr_all++] = v;
  return 0;
}

int
cow_table_attach_locked (struct local_volume *parent, struct local_volume *s)
{
  struct local_volume **bigger =
    realloc (parent->snapshot, (parent->nr_snapshots + 1) * sizeof *bigger);

  if (bigger == NULL)
    return -ENOMEM;
  parent->snapshot = bigger;
  parent->snapshot[parent->nr_snapshots++] = s;
  s->parent = parent;
  return 0;
}

void
cow_table_detach_locked (struct local_volume *s)
{
  struct local_volume *v = s->parent;
  unsigned i;

  for (i = 0; i < v->nr_snapshots && v->snapshot[i] != s; i++)
    ;
  if (i < v->nr_snapshots)
    memmove (&v->snapshot[i], &v->snapshot[i + 1],
             (--v->nr_snapshots - i) * sizeof v->snapshot[0]);
  s->parent = NULL;
}

static const char *
full_name (const struct local_volume *v, char *buf)
{
  if (v->parent)
    snprintf (buf, FULL_NAME, "%s@%s", v->parent->row.name, v->row.name);
  else
    snprintf (buf, FULL_NAME, "%s", v->row.name);
  return buf;
}

/* Objects that are gone by name are freed once nobody holds them.
 * control_lock held.
 */
void
cow_table_sweep (struct local_pool *p)
{
  size_t i, kept = 0;

  pthread_mutex_lock (&p->table_lock);
  if (p->nr_gone == 0) {
    pthread_mutex_unlock (&p->table_lock);
    return;
  }
  pthread_rwlock_rdlock (&p->map_lock);
  for (i = 0; i < p->nr_all; i++) {
    struct local_volume *v = p->all[i];

    if (v->gone && v->released && v->obj.nr_open == 0 && !v->row_dirty &&
        !v->row_frozen) {
      cow_table_destroy (v);
      p->nr_gone--;
    }
    else
      p->all[kept++] = v;
  }
  p->nr_all = kept;
  pthread_rwlock_unlock (&p->map_lock);
  pthread_mutex_unlock (&p->table_lock);
}

/* ---- Loading ---- */

struct loading {
  struct local_pool *p;
  struct cow_error *err;
  size_t nr_volumes;
};

static struct local_volume *
find_id (struct local_volume *const *sorted, size_t nr, uint64_t id)
{
  size_t low = 0, high = nr;

  while (low < high) {
    size_t mid = low + (high - low) / 2;

    if (sorted[mid]->row.id == id)
      return sorted[mid];
    if (sorted[mid]->row.id < id)
      low = mid + 1;
    else
      high = mid;
  }
  return NULL;
}

static int
load_volume (void *opaque, const struct store_volume *row)
{
  struct loading *l = opaque;
  struct local_pool *p = l->p;
  struct local_volume *v = cow_table_new (p, row), *parent;

  if (v == NULL || cow_table_add_locked (p, v) < 0)
    return cow_error_set (l->err, ENOMEM, "no-memory", "out of memory");
  if (row->flags & VOL_DELETED) {
    v->gone = true;
    p->nr_gone++;
    return 0;
  }
  if (row->parent == 0)
    l->nr_volumes = p->nr_all;  /* they come first, by id */
  else {
    parent = find_id (p->all, l->nr_volumes, row->parent);
    if (parent == NULL || parent->row.parent != 0)
      return cow_error_set (l->err, EIO, "damaged",
                            "meta.db is damaged: snapshot '%s' belongs to "
                            "no volume (id %llu)", row->name,
                            (unsigned long long) row->parent);
    if (cow_table_attach_locked (parent, v) < 0)
      return -ENOMEM;
  }
  cow_table_hash_locked (p, v);
  return 0;
}

/* For volumes that were deleted while open. */
static void
finish_deletions (struct local_pool *p)
{
  size_t i;

  /* One that fails is logged; the other volumes must not suffer for it. */
  for (i = 0; i < p->nr_all; i++)
    if (p->all[i]->gone && !p->all[i]->released)
      cow_table_release (p, p->all[i]);
}

int
cow_volumes_load (struct local_pool *p, struct cow_error *err)
{
  struct loading l = { .p = p, .err = err };
  int r;

  p->nr_name_buckets = 1 << 16;
  p->by_name = calloc (p->nr_name_buckets, sizeof *p->by_name);
  if (p->by_name == NULL)
    return -ENOMEM;
  r = cow_store_each_volume (p->store, load_volume, &l, err);
  if (r == 0)
    finish_deletions (p);
  return r;
}

void
cow_volumes_free (struct local_pool *p)
{
  size_t i;

  for (i = 0; i < p->nr_all; i++)
    cow_table_destroy (p->all[i]);
  free (p->all);
  free (p->by_name);
}

/* ---- Finding ---- */

/* Parse an object's name, without pool part or range. */
int
cow_table_parse (const char *name, struct cow_spec *spec, struct cow_error *err)
{
  int r = cow_spec_parse (name, 0, spec, err);

  if (r == 0 && spec->pool[0])
    return cow_error_set (err, EINVAL, "invalid-name",
                          "'%.200s': a name without a pool part is expected "
                          "here", name);
  return r;
}

int
cow_table_find_spec_locked (struct local_pool *p, const struct cow_spec *spec,
                            struct local_volume **v, struct cow_error *err)
{
  *v = cow_table_find_locked (p, 0, spec->volume);
  if (*v == NULL)
    return cow_error_set (err, ENOENT, "not-found",
                          "pool %s has no volume '%s'", p->pool.name,
                          spec->volume);
  if (spec->snap[0] == 0)
    return 0;
  *v = cow_table_find_locked (p, (*v)->row.id, spec->snap);
  if (*v == NULL)
    return cow_error_set (err, ENOENT, "not-found",
                          "volume '%s' has no snapshot '%s'", spec->volume,
                          spec->snap);
  return 0;
}

int
cow_table_find (struct local_pool *p, const char *name, struct local_volume **v,
                struct cow_error *err)
{
  struct cow_spec spec;
  int r = cow_table_parse (name, &spec, err);

  if (r < 0)
    return r;
  pthread_mutex_lock (&p->table_lock);
  r = cow_table_find_spec_locked (p, &spec, v, err);
  pthread_mutex_unlock (&p->table_lock);
  return r;
}

/* Find what must be a volume, not a snapshot. */
int
cow_table_find_volume (struct local_pool *p, const char *name,
                       struct local_volume **v, struct cow_error *err)
{
  int r = cow_table_find (p, name, v, err);

  if (r == 0 && (*v)->row.parent != 0)
    return cow_error_set (err, EINVAL, "invalid-name",
                          "'%s' is a snapshot; a volume is expected", name);
  return r;
}

int
cow_volumes_get (struct cow_pool *pool, const char *name, bool rw,
                 struct cow_object **o, unsigned *incarnation,
                 struct cow_error *err)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct local_volume *v;
  struct cow_spec spec;
  int r = cow_table_parse (name, &spec, err);

  if (r < 0)
    return r;
  pthread_mutex_lock (&p->table_lock);
  r = cow_table_find_spec_locked (p, &spec, &v, err);
  if (r == 0) {
    v->obj.nr_open++;
    if (rw && !v->obj.readonly)
      v->obj.nr_open_rw++;
    *o = &v->obj;
    *incarnation = __atomic_load_n (&v->obj.incarnation, __ATOMIC_ACQUIRE);
  }
  pthread_mutex_unlock (&p->table_lock);
  return r;
}

/* Drop the root of an object that is gone; the last step of a deletion. */
int
cow_table_release (struct local_pool *p, struct local_volume *v)
{
  struct miss miss;
  int r;

  do {
    pthread_rwlock_wrlock (&p->map_lock);
    r = v->row.root ? cow_node_put (p, v->row.root, v->row.level, &miss) : 0;
    if (r == 0)
      r = cow_changes_gone_volume (p, v->row.id);
    if (r == 0) {
      v->row.root = 0;
      v->released = true;
    }
    pthread_rwlock_unlock (&p->map_lock);
  } while (r == -EAGAIN && (r = cow_cache_load (p, &miss)) == 0);
  if (r < 0)
    cow_log (COW_LOG_ERROR, "pool %s: the space of deleted volume id %llu "
             "cannot be freed: %s", p->pool.name,
             (unsigned long long) v->row.id, strerror (-r));
  return r;
}

void
cow_volumes_put (struct cow_object *o, bool rw)
{
  struct local_pool *p = LOCAL_POOL (o->pool);
  struct local_volume *v = LOCAL_VOLUME (o);
  bool last;

  pthread_mutex_lock (&p->table_lock);
  if (rw)
    o->nr_open_rw--;
  last = o->nr_open == 1 && v->gone && !v->released;
  if (!last)
    o->nr_open--;
  pthread_mutex_unlock (&p->table_lock);
  if (!last)
    return;
  cow_table_release (p, v);
  cow_reap_kick (p);
  pthread_mutex_lock (&p->table_lock);
  o->nr_open--;
  pthread_mutex_unlock (&p->table_lock);
}

/* ---- Listing ---- */

static void
fill_info_locked (const struct local_volume *v, struct cow_volume_info *info)
{
  memset (info, 0, sizeof *info);
  full_name (v, info->name);
  info->id = v->row.id;
  info->size = v->row.size;
  info->created = v->row.created;
  info->is_snapshot = v->row.parent != 0;
  info->readonly = v->obj.readonly;
  info->thick = v->row.flags & VOL_THICK;
  info->damaged = v->row.flags & VOL_DAMAGED;
  info->nr_snapshots = v->nr_snapshots;
  info->nr_open = v->obj.nr_open;
  info->nr_open_rw = v->obj.nr_open_rw;
}

static int
compare_names (const void *a, const void *b)
{
  const struct local_volume *const *x = a, *const *y = b;

  return strcmp ((*x)->row.name, (*y)->row.name);
}

/* Infos of all objects in list order, in a new array. */
static int
gather_infos (struct local_pool *p, struct cow_volume_info **out, size_t *nr)
{
  struct local_volume **sorted;
  size_t i, k, n = 0, total = 0, room = 0;

  pthread_mutex_lock (&p->table_lock);
  sorted = calloc (p->nr_all + 1, sizeof *sorted);
  *out = calloc (p->nr_all + 1, sizeof **out);
  for (i = 0; sorted && *out && i < p->nr_all; i++)
    if (!p->all[i]->gone && p->all[i]->row.parent == 0)
      sorted[n++] = p->all[i];
  room = p->nr_all;
  if (sorted)
    qsort (sorted, n, sizeof *sorted, compare_names);
  for (i = 0; *out && i < n && total < room; i++) {
    fill_info_locked (sorted[i], &(*out)[total++]);
    for (k = 0; k < sorted[i]->nr_snapshots && total < room; k++)
      fill_info_locked (sorted[i]->snapshot[k], &(*out)[total++]);
  }
  pthread_mutex_unlock (&p->table_lock);
  *nr = total;
  if (sorted && *out) {
    free (sorted);
    return 0;
  }
  free (sorted);
  free (*out);
  return -ENOMEM;
}

int
cow_volumes_list (struct cow_pool *pool,
                  int (*fn) (void *, const struct cow_volume_info *),
                  void *opaque)
{
  CLEANUP_FREE struct cow_volume_info *infos = NULL;
  size_t nr = 0, i;
  int r = gather_infos (LOCAL_POOL (pool), &infos, &nr);

  if (r < 0) {
    infos = NULL;
    return r;
  }
  for (i = 0; r == 0 && i < nr; i++)
    r = fn (opaque, &infos[i]);
  return r;
}

int
cow_volumes_info (struct cow_pool *pool, const char *name,
                  struct cow_volume_info *info, struct cow_error *err)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct cow_object *o;
  unsigned incarnation;
  int r = cow_volumes_get (pool, name, false, &o, &incarnation, err);

  if (r < 0)
    return r;
  pthread_mutex_lock (&p->table_lock);
  fill_info_locked (LOCAL_VOLUME (o), info);
  info->nr_open--;              /* our own handle */
  pthread_mutex_unlock (&p->table_lock);
  pthread_rwlock_rdlock (&o->structure);
  r = cow_walk_usage (p, LOCAL_VOLUME (o), &info->allocated,
                      &info->exclusive);
  pthread_rwlock_unlock (&o->structure);
  info->shared = info->allocated - info->exclusive;
  cow_volumes_put (o, false);
  if (r < 0)
    return cow_error_set (err, -r, r == -EIO ? "damaged" : "io-error",
                          "the map of '%s' cannot be read: %s", name,
                          strerror (-r));
  return 0;
}
