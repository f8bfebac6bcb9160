/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>

#include "cache.h"
#include "changes.h"
#include "counts.h"
#include "epoch.h"
#include "fold.h"
#include "io.h"
#include "log.h"
#include "tree.h"
#include "volumes.h"

void
cow_fold_due (struct local_pool *p)
{
  __atomic_store_n (&p->fold.due, true, __ATOMIC_RELEASE);
}

bool
cow_fold_starts (const struct local_pool *p)
{
  return !p->fold.active && __atomic_load_n (&p->fold.due, __ATOMIC_ACQUIRE);
}

/* Find the next volume of the pass and count a handle on it. */
static struct local_volume *
next_volume (struct local_pool *p)
{
  struct local_volume *best = NULL;
  size_t i;

  pthread_mutex_lock (&p->table_lock);
  for (i = 0; i < p->nr_all; i++) {
    struct local_volume *v = p->all[i];

    if (!v->gone && v->row.id >= p->fold.volume &&
        (best == NULL || v->row.id < best->row.id))
      best = v;
  }
  if (best)
    best->obj.nr_open++;
  pthread_mutex_unlock (&p->table_lock);
  return best;
}

/* Whether entry i of the leaf at index can be folded. */
static int
foldable (struct local_pool *p, const struct local_volume *v, uint64_t index,
          struct entry *e, struct miss *miss)
{
  struct object *leaf;
  uint64_t span;
  bool path, own = false, origin = false;
  int r = cow_tree_lookup (p, &v->row, index, &leaf, &span, &path, miss);

  if (r < 0)
    return r;
  if (leaf == NULL || !path)
    return 0;
  *e = leaf->entry[index & (LEAF_ENTRIES - 1)];
  if (e->origin == 0)
    return 0;
  r = cow_chunk_exclusive (p, CHUNK (e->own), &own, miss);
  if (r == 0)
    r = cow_chunk_exclusive (p, CHUNK (e->origin), &origin, miss);
  return r < 0 ? r : own && origin;
}

static int
foldable_loading (struct local_pool *p, const struct local_volume *v,
                  uint64_t index, struct entry *e)
{
  struct miss miss;
  int r;

  do {
    pthread_rwlock_rdlock (&p->map_lock);
    r = foldable (p, v, index, e, &miss);
    pthread_rwlock_unlock (&p->map_lock);
  } while (r == -EAGAIN && (r = cow_cache_load (p, &miss)) == 0);
  return r;
}

/* Install the merged entry if nothing changed meanwhile. */
static int
install (struct local_pool *p, struct local_volume *v, uint64_t index,
         const struct entry *before, const struct entry *after)
{
  struct object *leaf;
  struct entry now;
  struct miss miss;
  int r;

  do {
    pthread_rwlock_wrlock (&p->map_lock);
    r = foldable (p, v, index, &now, &miss);
    if (r == 1 && cow_entry_equal (&now, before)) {
      r = cow_tree_own_leaf (p, v, index, &leaf, &miss);
      if (r == 0)
        r = cow_tree_set_entry (p, leaf, index & (LEAF_ENTRIES - 1), after,
                                &miss);
    }
    pthread_rwlock_unlock (&p->map_lock);
  } while (r == -EAGAIN && (r = cow_cache_load (p, &miss)) == 0);
  return r < 0 ? r : 0;
}

/* Fold one entry; its chunk of the volume is ours exclusively. */
static int
fold_entry (struct local_pool *p, struct local_volume *v, uint64_t index)
{
  struct entry e, after = { 0 };
  uint64_t from, epoch;
  unsigned mask;
  int r = foldable_loading (p, v, index, &e);

  if (r <= 0)
    return r;
  after.present = e.present | e.omask;
  if (__builtin_popcount (e.omask) <= __builtin_popcount (e.present)) {
    after.own = e.own;
    from = e.origin;
    mask = e.omask;
  }
  else {
    after.own = e.origin;
    from = e.own;
    mask = e.present;
  }
  epoch = cow_epoch_enter (&p->epoch);
  r = cow_io_copy_blocks (p, from, after.own, mask);
  if (r == 0)
    r = install (p, v, index, &e, &after);
  cow_epoch_leave (&p->epoch, epoch);
  return r;
}

/* Fold what can be folded in the leaf at index; *span is where to go on. */
static int
fold_leaf (struct local_pool *p, struct local_volume *v, uint64_t index,
           uint64_t *span)
{
  struct object *leaf;
  struct cow_range range;
  struct miss miss;
  uint64_t with_origin = 0;
  unsigned i;
  bool path;
  int r;

  do {
    pthread_rwlock_rdlock (&p->map_lock);
    r = cow_tree_lookup (p, &v->row, index, &leaf, span, &path, &miss);
    for (i = 0; r == 0 && leaf && path && i < LEAF_ENTRIES; i++)
      if (leaf->entry[i].origin)
        with_origin |= UINT64_C (1) << i;
    pthread_rwlock_unlock (&p->map_lock);
  } while (r == -EAGAIN && (r = cow_cache_load (p, &miss)) == 0);

  for (i = 0; r == 0 && i < LEAF_ENTRIES; i++) {
    uint64_t at = (index - index % LEAF_ENTRIES + i) << p->chunk_shift;

    if (!(with_origin >> i & 1))
      continue;
    cow_range_lock (&v->obj.ranges, &range, at, at + p->chunk_size, true);
    r = fold_entry (p, v, at >> p->chunk_shift);
    cow_range_unlock (&v->obj.ranges, &range);
  }
  return r;
}

/* Up to `leaves` leaves of v from the cursor on; true when v is done. */
static bool
fold_volume (struct local_pool *p, struct local_volume *v, unsigned *leaves)
{
  struct fold *f = &p->fold;
  uint64_t span, end;
  bool done;
  int r = 0;

  pthread_rwlock_rdlock (&v->obj.structure);
  end = (v->obj.size + p->chunk_size - 1) >> p->chunk_shift;
  while (r == 0 && *leaves > 0 && f->index < end &&
         !cow_pool_read_only (p)) {
    r = fold_leaf (p, v, f->index, &span);
    f->index += span;
    --*leaves;
  }
  done = r < 0 || f->index >= end;
  pthread_rwlock_unlock (&v->obj.structure);
  return done;
}

bool
cow_fold_step (struct local_pool *p, unsigned leaves)
{
  struct fold *f = &p->fold;

  if (!f->active) {
    if (!__atomic_exchange_n (&f->due, false, __ATOMIC_ACQ_REL))
      return false;
    f->active = true;
    f->volume = f->index = 0;
  }
  while (leaves > 0) {
    struct local_volume *v = next_volume (p);

    if (v == NULL) {
      f->active = false;
      return false;
    }
    if (v->row.id != f->volume) {
      f->volume = v->row.id;
      f->index = 0;
    }
    if (v->obj.readonly || fold_volume (p, v, &leaves)) {
      f->volume = v->row.id + 1;
      f->index = 0;
    }
    cow_volumes_put (&v->obj, false);
  }
  return true;
}
