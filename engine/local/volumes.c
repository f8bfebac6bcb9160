/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cache.h"
#include "changes.h"
#include "cleanup.h"
#include "commit.h"
#include "counts.h"
#include "fold.h"
#include "io.h"
#include "names.h"
#include "reap.h"
#include "table.h"
#include "tree.h"
#include "volumes.h"

#define MAX_SIZE ((uint64_t) INT64_MAX)

/* ---- Beginning and ending a control operation ---- */

static int
begin_control (struct local_pool *p, struct cow_error *err)
{
  int ro = cow_pool_read_only (p);

  if (ro)
    return cow_error_set (err, EROFS, "read-only",
                          "pool %s is read-only since an error (%s)",
                          p->pool.name, strerror (ro));
  cow_commit_admit (p);
  pthread_mutex_lock (&p->control_lock);
  return 0;
}

/* Unlock, and make the change durable.  r is the operation's result. */
static int
end_control (struct local_pool *p, unsigned flags, int r,
             struct cow_error *err)
{
  cow_table_sweep (p);
  pthread_mutex_unlock (&p->control_lock);
  if (r < 0 || (flags & COW_NOSYNC))
    return r;
  r = cow_commit_flush (p);
  if (r == -ENOSPC && cow_reap_wait (p) == 0)
    r = cow_commit_flush (p);
  if (r < 0)
    return cow_error_set (err, -r, r == -ENOSPC ? "no-space" : "io-error",
                          "the change is not durable: pool %s: %s",
                          p->pool.name, strerror (-r));
  return 0;
}

static int
step_error (struct cow_error *err, int r, const char *doing,
            const char *name)
{
  return cow_error_set (err, -r, r == -EIO ? "io-error" :
                        r == -ENOSPC ? "no-space" : "failed",
                        "cannot %s '%s': %s", doing, name, strerror (-r));
}

static int
exists_error (struct cow_error *err, const char *name)
{
  return cow_error_set (err, EEXIST, "exists", "'%s' exists already", name);
}

static int
busy_error (struct cow_error *err, const char *name, unsigned nr)
{
  return cow_error_set (err, EBUSY, "busy",
                        "'%s' is open for writing (%u handle%s); force would "
                        "cut its clients off", name, nr, nr == 1 ? "" : "s");
}

/* ---- Making objects ---- */

/* One of the objects that an operation makes together. */
struct addition {
  struct store_volume row;
  struct local_volume *parent;  /* of a snapshot */
  struct local_volume *source;  /* whose root to share, or NULL */
  struct local_volume *made;
};

/* Allocate everything and enter it into lists that can be undone. */
static int
prepare_additions_locked (struct local_pool *p, struct addition *a, size_t nr)
{
  size_t i;
  int r = 0;

  for (i = 0; r == 0 && i < nr; i++) {
    if (a[i].source)
      a[i].row.flags |= a[i].source->row.flags & VOL_DAMAGED;
    a[i].made = cow_table_new (p, &a[i].row);
    r = a[i].made ? cow_table_add_locked (p, a[i].made) : -ENOMEM;
    if (r < 0 && a[i].made) {
      cow_table_destroy (a[i].made);
      a[i].made = NULL;
    }
    if (r == 0 && a[i].parent)
      r = cow_table_attach_locked (a[i].parent, a[i].made);
  }
  return r;
}

static void
undo_additions_locked (struct local_pool *p, struct addition *a, size_t nr)
{
  while (nr-- > 0) {
    if (a[nr].made == NULL)
      continue;
    if (a[nr].made->parent)
      cow_table_detach_locked (a[nr].made);
    p->nr_all--;                /* the last one */
    cow_table_destroy (a[nr].made);
  }
}

/* The step that makes them real: all in one hold of the map lock, so that
 * they are in one commit.
 */
static int
add_step (struct local_pool *p, struct addition *a, size_t nr,
          struct miss *miss)
{
  uint32_t count;
  size_t i;
  int r = 0;

  for (i = 0; r == 0 && i < nr; i++)
    if (a[i].source && a[i].source->row.root) {
      r = cow_node_count (p, a[i].source->row.root, &count, miss);
      if (r == 0 && count + nr >= COUNT_MAX)
        r = -EMLINK;
    }
  for (i = 0; r == 0 && i < nr; i++) {
    struct local_volume *v = a[i].made;

    if (a[i].source && a[i].source->row.root)
      r = cow_node_get (p, a[i].source->row.root, miss);
    if (r < 0)
      break;
    v->row.id = v->obj.id = p->next_volume++;
    if (a[i].source) {
      v->row.root = a[i].source->row.root;
      v->row.level = a[i].source->row.level;
    }
    cow_volume_row_dirty (p, v);
  }
  if (r < 0 && i > 0)
    cow_pool_set_read_only (p, -r);     /* half of them: never to be stored */
  return r;
}

/* Enter new objects into the table and the map state, all or none.
 * control_lock held, and the structure locks of the sources.
 */
static int
add_objects (struct local_pool *p, struct addition *a, size_t nr)
{
  struct miss miss;
  size_t i;
  int r;

  pthread_mutex_lock (&p->table_lock);
  r = prepare_additions_locked (p, a, nr);
  while (r == 0) {
    pthread_rwlock_wrlock (&p->map_lock);
    r = add_step (p, a, nr, &miss);
    pthread_rwlock_unlock (&p->map_lock);
    if (r != -EAGAIN)
      break;
    r = cow_cache_load (p, &miss);
  }
  if (r < 0)
    undo_additions_locked (p, a, nr);
  for (i = 0; r == 0 && i < nr; i++)
    cow_table_hash_locked (p, a[i].made);
  pthread_mutex_unlock (&p->table_lock);
  return r;
}

static int
check_new_volume (struct local_pool *p, const char *name,
                  struct cow_error *err)
{
  struct local_volume *v;

  if (!cow_name_valid (name))
    return cow_error_set (err, EINVAL, "invalid-name",
                          "'%.150s' is not a volume's name: 1 to 128 of "
                          "letters, digits, '.', '_' and '-' are expected, "
                          "the first a letter or digit", name);
  pthread_mutex_lock (&p->table_lock);
  v = cow_table_find_locked (p, 0, name);
  pthread_mutex_unlock (&p->table_lock);
  return v ? exists_error (err, name) : 0;
}

static uint64_t
volume_chunks (const struct local_pool *p, uint64_t size)
{
  return (size >> p->chunk_shift) + ((size & (p->chunk_size - 1)) != 0);
}

static int
check_size (const struct local_pool *p, uint64_t size, struct cow_error *err)
{
  if (size > MAX_SIZE)
    return cow_error_set (err, EFBIG, "too-large",
                          "size %llu is too large: at most %llu bytes",
                          (unsigned long long) size,
                          (unsigned long long) MAX_SIZE);
  return 0;
}

int
cow_volumes_create (struct cow_pool *pool, const char *name, uint64_t size,
                    unsigned flags, struct cow_error *err)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct addition a = { .row = { .size = size, .created = time (NULL) } };
  int r = check_size (p, size, err);

  if (r == 0 && (flags & COW_THICK))
    r = cow_error_set (err, ENOTSUP, "unsupported",
                       "cannot create '%.150s': this version of cowshed has "
                       "no thick volumes", name);
  if (r == 0)
    r = begin_control (p, err);
  if (r < 0)
    return r;
  r = check_new_volume (p, name, err);
  if (r == 0) {
    snprintf (a.row.name, sizeof a.row.name, "%s", name);
    a.row.level = cow_tree_level_for (volume_chunks (p, size));
    r = add_objects (p, &a, 1);
    if (r < 0)
      step_error (err, r, "create", name);
  }
  return end_control (p, flags, r, err);
}

int
cow_volumes_clone (struct cow_pool *pool, const char *source,
                   const char *name, unsigned flags, struct cow_error *err)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct local_volume *src;
  struct addition a = { .row = { .created = time (NULL) } };
  int r = begin_control (p, err);

  if (r < 0)
    return r;
  r = cow_table_find (p, source, &src, err);
  if (r == 0)
    r = check_new_volume (p, name, err);
  if (r == 0) {
    pthread_rwlock_wrlock (&src->obj.structure);
    a.source = src;
    a.row.size = src->row.size;
    snprintf (a.row.name, sizeof a.row.name, "%s", name);
    r = add_objects (p, &a, 1);
    pthread_rwlock_unlock (&src->obj.structure);
    if (r < 0)
      step_error (err, r, "clone", source);
  }
  return end_control (p, flags, r, err);
}

/* ---- Snapshots ---- */

struct snap_request {
  struct cow_spec spec;
  struct local_volume *volume;
};

static int
find_snap_volumes (struct local_pool *p, const char *const *names, size_t nr,
                   struct snap_request *req, struct cow_error *err)
{
  size_t i, k;
  int r = 0;

  for (i = 0; r == 0 && i < nr; i++) {
    r = cow_table_parse (names[i], &req[i].spec, err);
    if (r == 0 && req[i].spec.snap[0] == 0)
      r = cow_error_set (err, EINVAL, "invalid-name",
                         "'%s' names no snapshot: VOLUME@SNAP is expected",
                         names[i]);
    for (k = 0; r == 0 && k < i; k++)
      if (strcmp (req[k].spec.volume, req[i].spec.volume) == 0 &&
          strcmp (req[k].spec.snap, req[i].spec.snap) == 0)
        r = exists_error (err, names[i]);
    if (r < 0)
      break;
    pthread_mutex_lock (&p->table_lock);
    req[i].volume = cow_table_find_locked (p, 0, req[i].spec.volume);
    if (req[i].volume == NULL)
      r = cow_error_set (err, ENOENT, "not-found",
                         "pool %s has no volume '%s'", p->pool.name,
                         req[i].spec.volume);
    else if (cow_table_find_locked (p, req[i].volume->row.id, req[i].spec.snap))
      r = exists_error (err, names[i]);
    pthread_mutex_unlock (&p->table_lock);
  }
  return r;
}

static int
compare_ids (const void *a, const void *b)
{
  const struct local_volume *const *x = a, *const *y = b;

  return ((*x)->row.id > (*y)->row.id) - ((*x)->row.id < (*y)->row.id);
}

/* Take the structure locks, each once, in the order of the ids. */
static size_t
lock_structures (const struct snap_request *req, size_t nr,
                 struct local_volume **locked)
{
  size_t i, n = 0;

  for (i = 0; i < nr; i++)
    locked[i] = req[i].volume;
  qsort (locked, nr, sizeof *locked, compare_ids);
  for (i = 0; i < nr; i++)
    if (n == 0 || locked[n - 1] != locked[i])
      locked[n++] = locked[i];
  for (i = 0; i < n; i++)
    pthread_rwlock_wrlock (&locked[i]->obj.structure);
  return n;
}

/* All or none; the structure locks make it one instant. */
static int
take_snapshots (struct local_pool *p, const struct snap_request *req,
                size_t nr, struct cow_error *err)
{
  CLEANUP_FREE struct addition *a = calloc (nr + 1, sizeof *a);
  size_t i;
  int r;

  for (i = 0; a && i < nr; i++) {
    a[i].parent = a[i].source = req[i].volume;
    a[i].row.parent = req[i].volume->row.id;
    a[i].row.size = req[i].volume->row.size;
    a[i].row.created = time (NULL);
    snprintf (a[i].row.name, sizeof a[i].row.name, "%s", req[i].spec.snap);
  }
  r = a ? add_objects (p, a, nr) : -ENOMEM;
  return r < 0 ? step_error (err, r, "snapshot", req[0].spec.volume) : 0;
}

int
cow_volumes_snapshot (struct cow_pool *pool, const char *const *names,
                      size_t nr, unsigned flags, struct cow_error *err)
{
  struct local_pool *p = LOCAL_POOL (pool);
  CLEANUP_FREE struct snap_request *req = calloc (nr + 1, sizeof *req);
  CLEANUP_FREE struct local_volume **locked = calloc (nr + 1, sizeof *locked);
  size_t nr_locked, i;
  int r;

  if (req == NULL || locked == NULL)
    return cow_error_set (err, ENOMEM, "no-memory", "out of memory");
  r = begin_control (p, err);
  if (r < 0)
    return r;
  r = find_snap_volumes (p, names, nr, req, err);
  if (r == 0) {
    nr_locked = lock_structures (req, nr, locked);
    r = take_snapshots (p, req, nr, err);
    for (i = 0; i < nr_locked; i++)
      pthread_rwlock_unlock (&locked[i]->obj.structure);
  }
  return end_control (p, flags, r, err);
}

/* ---- Removing ---- */

/* Take an object out of the table.  With cut_off its handles end now, else
 * they pin what they show until they close, and handles that may write make
 * it -EBUSY.  control_lock held, no structure lock of v.
 */
static int
remove_object (struct local_pool *p, struct local_volume *v, bool cut_off)
{
  bool now;
  int r = 0;

  pthread_mutex_lock (&p->table_lock);
  if (!cut_off && v->obj.nr_open_rw > 0) {
    pthread_mutex_unlock (&p->table_lock);
    return -EBUSY;
  }
  cow_table_unhash_locked (p, v);
  if (v->parent)
    cow_table_detach_locked (v);
  now = cut_off || v->obj.nr_open == 0;
  p->nr_gone++;
  pthread_rwlock_wrlock (&p->map_lock);
  v->gone = true;
  v->row.flags |= VOL_DELETED;
  snprintf (v->row.name, sizeof v->row.name, "#%llu",
            (unsigned long long) v->row.id);
  cow_volume_row_dirty (p, v);
  pthread_rwlock_unlock (&p->map_lock);
  if (now) {
    v->obj.nr_open++;           /* keep it while we work on it */
    __atomic_add_fetch (&v->obj.incarnation, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock (&p->table_lock);
  if (!now)
    return 0;
  pthread_rwlock_wrlock (&v->obj.structure);
  r = cow_table_release (p, v);
  pthread_rwlock_unlock (&v->obj.structure);
  pthread_mutex_lock (&p->table_lock);
  v->obj.nr_open--;
  pthread_mutex_unlock (&p->table_lock);
  return r;
}

static unsigned
open_for_writing (struct local_pool *p, const struct local_volume *v)
{
  unsigned nr;

  pthread_mutex_lock (&p->table_lock);
  nr = v->obj.nr_open_rw;
  pthread_mutex_unlock (&p->table_lock);
  return nr;
}

static int
check_removable (struct local_pool *p, struct local_volume *v,
                 const char *name, unsigned flags, struct cow_error *err)
{
  unsigned nr_rw, nr_snapshots;

  pthread_mutex_lock (&p->table_lock);
  nr_rw = v->obj.nr_open_rw;
  nr_snapshots = v->nr_snapshots;
  pthread_mutex_unlock (&p->table_lock);
  if (nr_rw > 0 && !(flags & COW_FORCE))
    return busy_error (err, name, nr_rw);
  if (nr_snapshots > 0 && !(flags & COW_SNAPSHOTS))
    return cow_error_set (err, EBUSY, "has-snapshots",
                          "'%s' has %u snapshot%s; they must be removed too "
                          "(--snapshots)", name, nr_snapshots,
                          nr_snapshots == 1 ? "" : "s");
  return 0;
}

int
cow_volumes_remove (struct cow_pool *pool, const char *name, unsigned flags,
                    struct cow_error *err)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct local_volume *v;
  int r = begin_control (p, err);

  if (r < 0)
    return r;
  r = cow_table_find (p, name, &v, err);
  if (r == 0)
    r = check_removable (p, v, name, flags, err);
  if (r == 0) {
    while (r == 0 && v->nr_snapshots > 0)
      r = remove_object (p, v->snapshot[v->nr_snapshots - 1], false);
    if (r == 0)
      r = remove_object (p, v, flags & COW_FORCE);
    if (r == -EBUSY)
      r = busy_error (err, name, open_for_writing (p, v));
    else if (r < 0)
      r = cow_error_set (err, -r, "io-error", "'%s' is removed, but its space "
                         "cannot be freed: %s; run 'cowshed check'", name,
                         strerror (-r));
    else
      cow_jobs_deletion (p, name);
  }
  r = end_control (p, flags, r, err);
  if (r == 0) {
    cow_fold_due (p);
    cow_reap_kick (p);
  }
  return r;
}

/* ---- Changing ---- */

static int
find_new_name (struct local_pool *p, const struct cow_spec *from,
               const struct cow_spec *to, const char *to_text,
               struct cow_error *err)
{
  struct local_volume *other, *parent;

  if ((from->snap[0] == 0) != (to->snap[0] == 0) ||
      (from->snap[0] && strcmp (from->volume, to->volume) != 0))
    return cow_error_set (err, EINVAL, "invalid-name",
                          "cannot rename to '%s': a volume becomes a volume, "
                          "and a snapshot stays with its volume", to_text);
  parent = cow_table_find_locked (p, 0, to->volume);
  other = to->snap[0] && parent
    ? cow_table_find_locked (p, parent->row.id, to->snap) : parent;
  return other ? exists_error (err, to_text) : 0;
}

int
cow_volumes_rename (struct cow_pool *pool, const char *from, const char *to,
                    unsigned flags, struct cow_error *err)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct cow_spec f, t;
  struct local_volume *v;
  int r = cow_table_parse (from, &f, err);

  if (r == 0)
    r = cow_table_parse (to, &t, err);
  if (r == 0)
    r = begin_control (p, err);
  if (r < 0)
    return r;
  pthread_mutex_lock (&p->table_lock);
  r = cow_table_find_spec_locked (p, &f, &v, err);
  if (r == 0)
    r = find_new_name (p, &f, &t, to, err);
  if (r == 0) {
    cow_table_unhash_locked (p, v);
    pthread_rwlock_wrlock (&p->map_lock);
    snprintf (v->row.name, sizeof v->row.name, "%s",
              t.snap[0] ? t.snap : t.volume);
    cow_volume_row_dirty (p, v);
    pthread_rwlock_unlock (&p->map_lock);
    cow_table_hash_locked (p, v);
  }
  pthread_mutex_unlock (&p->table_lock);
  return end_control (p, flags, r, err);
}

static void
set_size (struct local_pool *p, struct local_volume *v, uint64_t size)
{
  pthread_mutex_lock (&p->table_lock);
  pthread_rwlock_wrlock (&p->map_lock);
  v->row.size = v->obj.size = size;
  cow_volume_row_dirty (p, v);
  pthread_rwlock_unlock (&p->map_lock);
  pthread_mutex_unlock (&p->table_lock);
}

static int
grow (struct local_pool *p, struct local_volume *v, uint64_t size)
{
  unsigned level = cow_tree_level_for (volume_chunks (p, size));
  struct miss miss;
  int r;

  do {
    pthread_rwlock_wrlock (&p->map_lock);
    r = cow_tree_grow (p, v, level, &miss);
    pthread_rwlock_unlock (&p->map_lock);
  } while (r == -EAGAIN && (r = cow_cache_load (p, &miss)) == 0);
  if (r == 0)
    set_size (p, v, size);
  return r;
}

/* What lies beyond is cleared before the size changes: a crash between the
 * two leaves the old size with zeros at its end, never old data that a later
 * growth would show.
 */
static int
shrink (struct local_pool *p, struct local_volume *v, uint64_t size)
{
  bool changed;
  int r = cow_io_zero (&v->obj, v->obj.size - size, size, 0, &changed);

  if (r == 0) {
    __atomic_add_fetch (&v->obj.incarnation, 1, __ATOMIC_RELEASE);
    set_size (p, v, size);
  }
  return r;
}

int
cow_volumes_resize (struct cow_pool *pool, const char *name, uint64_t size,
                    unsigned flags, struct cow_error *err)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct local_volume *v;
  unsigned nr_rw;
  int r = check_size (p, size, err);

  if (r == 0)
    r = begin_control (p, err);
  if (r < 0)
    return r;
  r = cow_table_find_volume (p, name, &v, err);
  if (r == 0 && (v->row.flags & VOL_DAMAGED))
    r = cow_error_set (err, EROFS, "damaged", "'%s' is damaged and therefore "
                       "read-only", name);
  if (r == 0 && size < v->row.size && !(flags & COW_SHRINK))
    r = cow_error_set (err, EINVAL, "invalid-size",
                       "'%s' has %llu bytes; making it smaller loses data "
                       "and needs --shrink", name,
                       (unsigned long long) v->row.size);
  if (r == 0 && size < v->row.size && !(flags & COW_FORCE) &&
      (nr_rw = open_for_writing (p, v)) > 0)
    r = busy_error (err, name, nr_rw);
  if (r == 0 && size != v->row.size) {
    pthread_rwlock_wrlock (&v->obj.structure);
    r = size > v->row.size ? grow (p, v, size) : shrink (p, v, size);
    pthread_rwlock_unlock (&v->obj.structure);
    if (r < 0)
      step_error (err, r, "resize", name);
  }
  return end_control (p, flags, r, err);
}

static int
swap_root (struct local_pool *p, struct local_volume *v,
           struct local_volume *s)
{
  struct miss miss;
  int r;

  do {
    pthread_rwlock_wrlock (&p->map_lock);
    r = v->row.root ? cow_node_need (p, v->row.root, &miss) : 0;
    if (r == 0 && s->row.root)
      r = cow_node_get (p, s->row.root, &miss);
    if (r == 0 && v->row.root) {
      r = cow_node_put (p, v->row.root, v->row.level, &miss);
      if (r < 0)
        cow_pool_set_read_only (p, -r); /* half-way: never to be stored */
    }
    if (r == 0) {
      v->row.root = s->row.root;
      v->row.level = s->row.level;
      v->row.size = v->obj.size = s->row.size;
      __atomic_add_fetch (&v->obj.incarnation, 1, __ATOMIC_RELEASE);
      memset (v->hint, 0, sizeof v->hint);
      cow_volume_row_dirty (p, v);
    }
    pthread_rwlock_unlock (&p->map_lock);
  } while (r == -EAGAIN && (r = cow_cache_load (p, &miss)) == 0);
  return r;
}

int
cow_volumes_rollback (struct cow_pool *pool, const char *snapshot,
                      unsigned flags, struct cow_error *err)
{
  struct local_pool *p = LOCAL_POOL (pool);
  struct local_volume *v, *s;
  unsigned nr_rw;
  int r = begin_control (p, err);

  if (r < 0)
    return r;
  r = cow_table_find (p, snapshot, &s, err);
  if (r == 0 && s->row.parent == 0)
    r = cow_error_set (err, EINVAL, "invalid-name",
                       "'%s' is a volume; VOLUME@SNAP is expected", snapshot);
  if (r == 0) {
    v = s->parent;
    if (!(flags & COW_FORCE) && (nr_rw = open_for_writing (p, v)) > 0)
      r = busy_error (err, v->row.name, nr_rw);
  }
  if (r == 0) {
    pthread_rwlock_wrlock (&v->obj.structure);
    r = swap_root (p, v, s);
    pthread_rwlock_unlock (&v->obj.structure);
    if (r < 0)
      step_error (err, r, "roll back to", snapshot);
  }
  r = end_control (p, flags, r, err);
  if (r == 0) {
    cow_fold_due (p);
    cow_reap_kick (p);
  }
  return r;
}
