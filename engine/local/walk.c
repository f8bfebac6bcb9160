/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks take the map lock for one leaf at a time: a long walk sees each leaf
 * as it is when it gets there.  The caller's structure lock keeps the size
 * and the identity of the volume.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "counts.h"
#include "tree.h"
#include "walk.h"

/* A copy of the leaf at index; *mapped false for a hole of *span chunks. */
struct leaf_view {
  struct entry entry[LEAF_ENTRIES];
  bool mapped, path_exclusive;
  uint64_t span;
};

static int
view_leaf (struct local_pool *p, const struct local_volume *v,
           uint64_t index, struct leaf_view *view)
{
  struct object *leaf;
  struct miss miss;
  int r;

  do {
    pthread_rwlock_rdlock (&p->map_lock);
    r = cow_tree_lookup (p, &v->row, index, &leaf, &view->span,
                         &view->path_exclusive, &miss);
    view->mapped = r == 0 && leaf != NULL;
    if (view->mapped)
      memcpy (view->entry, leaf->entry, sizeof view->entry);
    pthread_rwlock_unlock (&p->map_lock);
  } while (r == -EAGAIN && (r = cow_cache_load (p, &miss)) == 0);
  return r;
}

/* ---- Merging neighbours ---- */

struct merger {
  int (*fn) (void *, const struct cow_extent *);
  void *opaque;
  struct cow_extent pending;    /* length 0: none */
  size_t left;                  /* extents that may still be reported */
  bool physical;
  uint64_t start, end;          /* clip */
};

#define STOP 1                  /* the caller has enough */

static int
merger_flush (struct merger *m)
{
  int r = 0;

  if (m->pending.length > 0) {
    r = m->fn (m->opaque, &m->pending);
    m->left--;
  }
  m->pending.length = 0;
  return r;
}

static bool
mergeable (const struct merger *m, const struct cow_extent *e)
{
  const struct cow_extent *l = &m->pending;

  if (l->length == 0 || l->flags != e->flags ||
      l->offset + l->length != e->offset)
    return false;
  return !m->physical || (e->flags & COW_EXTENT_HOLE) ||
    l->data_offset + l->length == e->data_offset;
}

/* Add an extent, clipped; 0, STOP, or what fn said. */
static int
merger_add (struct merger *m, struct cow_extent e)
{
  uint64_t end = e.offset + e.length;
  int r;

  if (e.offset >= m->end || end <= m->start)
    return 0;
  if (end > m->end)
    end = m->end;
  if (e.offset < m->start) {
    e.data_offset += m->start - e.offset;
    e.offset = m->start;
  }
  e.length = end - e.offset;
  if (mergeable (m, &e)) {
    m->pending.length += e.length;
    return 0;
  }
  r = merger_flush (m);
  if (r)
    return r;
  if (m->left == 0)
    return STOP;
  m->pending = e;
  return 0;
}

/* ---- Extents ---- */

static int
chunk_shared (struct local_pool *p, uint64_t chunk, bool *shared)
{
  struct miss miss;
  uint32_t count;
  int r;

  do {
    pthread_rwlock_rdlock (&p->map_lock);
    r = cow_chunk_count (p, CHUNK (chunk), &count, &miss);
    pthread_rwlock_unlock (&p->map_lock);
  } while (r == -EAGAIN && (r = cow_cache_load (p, &miss)) == 0);
  *shared = r == 0 && count > 1;
  return r;
}

/* The extents of one entry at byte offset at. */
static int
add_entry (struct local_pool *p, struct merger *m, const struct entry *e,
           uint64_t at, bool path_exclusive)
{
  bool own_shared = !path_exclusive, origin_shared = !path_exclusive;
  unsigned b;
  int r = 0;

  if (m->physical && path_exclusive && e->own)
    r = chunk_shared (p, e->own, &own_shared);
  if (r == 0 && m->physical && path_exclusive && e->origin)
    r = chunk_shared (p, e->origin, &origin_shared);
  if (r < 0)
    return r;
  for (b = 0; r == 0 && b < BLOCKS_PER_CHUNK; b++) {
    struct cow_extent x = { at + ((uint64_t) b << p->block_shift),
                            p->block_size, 0, 0 };
    uint64_t in = (uint64_t) b << p->block_shift;

    if (e->present & (1u << b)) {
      x.data_offset = ((uint64_t) e->own << p->chunk_shift) + in;
      x.flags = m->physical && own_shared ? COW_EXTENT_SHARED : 0;
    }
    else if (e->omask & (1u << b)) {
      x.data_offset = ((uint64_t) e->origin << p->chunk_shift) + in;
      x.flags = m->physical && origin_shared ? COW_EXTENT_SHARED : 0;
    }
    else
      x.flags = COW_EXTENT_HOLE | COW_EXTENT_ZERO;
    r = merger_add (m, x);
  }
  return r;
}

static uint64_t
span_bytes (const struct local_pool *p, uint64_t index, uint64_t span,
            uint64_t end)
{
  uint64_t chunks_to_end = (end >> p->chunk_shift) + 1 - index;

  return (span < chunks_to_end ? span : chunks_to_end) << p->chunk_shift;
}

int
cow_walk_extents (struct cow_object *o, uint64_t len, uint64_t offset,
                  size_t max, unsigned flags,
                  int (*fn) (void *, const struct cow_extent *),
                  void *opaque)
{
  struct local_pool *p = LOCAL_POOL (o->pool);
  struct merger m = { .fn = fn, .opaque = opaque, .left = max,
                      .physical = flags & COW_EXTENTS_PHYSICAL,
                      .start = offset, .end = offset + len };
  uint64_t index = offset >> p->chunk_shift;
  uint64_t end = (m.end + p->chunk_size - 1) >> p->chunk_shift;
  struct leaf_view view;
  int r = 0;

  while (r == 0 && index < end) {
    uint64_t at = index << p->chunk_shift;

    r = view_leaf (p, LOCAL_VOLUME (o), index, &view);
    if (r == 0 && !view.mapped) {
      struct cow_extent hole = { at, span_bytes (p, index, view.span, m.end),
                                 COW_EXTENT_HOLE | COW_EXTENT_ZERO, 0 };

      r = merger_add (&m, hole);
      index += view.span;
      continue;
    }
    for (; r == 0 && view.span > 0 && at < m.end;
         index++, view.span--, at += p->chunk_size)
      r = add_entry (p, &m, &view.entry[index & (LEAF_ENTRIES - 1)], at,
                     view.path_exclusive);
  }
  if (r == 0 && m.left > 0)
    r = merger_flush (&m);
  return r == STOP ? 0 : r;
}

/* ---- Diff ---- */

/* How many chunks from index on both maps share one subtree (or both have a
 * hole); 0: they may differ at index.
 */
static int
same_span (struct local_pool *p, const struct store_volume *a,
           const struct store_volume *b, uint64_t index, uint64_t *span,
           struct miss *miss)
{
  uint64_t ia = a->root, ib = b->root;
  unsigned la = a->level, lb = b->level;

  *span = 0;
  for (;;) {
    struct object *o;
    unsigned shift = cow_level_shift ((la > lb ? la : lb) + 1);
    uint64_t end = ((index >> shift) + 1) << shift;
    bool descend_a, descend_b;

    /* A tree ends where its root ends: what lies beyond is a hole. */
    if (la < lb && la == a->level && ia == a->root &&
        index >> cow_level_shift (la + 1)) {
      ia = 0;
      la = lb;
    }
    else if (lb < la && lb == b->level && ib == b->root &&
             index >> cow_level_shift (lb + 1)) {
      ib = 0;
      lb = la;
    }
    descend_a = la >= lb;
    descend_b = lb >= la;
    if (ia == ib && (ia == 0 || la == lb)) {
      *span = end - index;
      return 0;
    }
    if (la == 0 && lb == 0)
      return 0;
    if (la > 0 && descend_a && ia) {
      o = cow_cache_get (p, OBJ_NODE, ia, la, miss);
      if (o == NULL || o->level != la)
        return o ? -EIO : -EAGAIN;
      ia = o->child[(index >> cow_level_shift (la)) & (INNER_CHILDREN - 1)];
    }
    if (lb > 0 && descend_b && ib) {
      o = cow_cache_get (p, OBJ_NODE, ib, lb, miss);
      if (o == NULL || o->level != lb)
        return o ? -EIO : -EAGAIN;
      ib = o->child[(index >> cow_level_shift (lb)) & (INNER_CHILDREN - 1)];
    }
    if (descend_a && la > 0)
      la--;
    if (descend_b && lb > 0)
      lb--;
  }
}

static int
same_span_loading (struct local_pool *p, const struct local_volume *a,
                   const struct local_volume *b, uint64_t index,
                   uint64_t *span)
{
  struct miss miss;
  int r;

  do {
    pthread_rwlock_rdlock (&p->map_lock);
    r = same_span (p, &a->row, &b->row, index, span, &miss);
    pthread_rwlock_unlock (&p->map_lock);
  } while (r == -EAGAIN && (r = cow_cache_load (p, &miss)) == 0);
  return r;
}

/* Where a block's data is, as one number; 0 for zeros. */
static uint64_t
block_source (const struct entry *e, unsigned b)
{
  if (e->present & (1u << b))
    return e->own;
  return e->omask & (1u << b) ? e->origin : 0;
}

static int
diff_entry (struct local_pool *p, struct merger *m, const struct entry *a,
            const struct entry *b, uint64_t at)
{
  unsigned i;
  int r = 0;

  if (cow_entry_equal (a, b))
    return 0;
  for (i = 0; r == 0 && i < BLOCKS_PER_CHUNK; i++) {
    uint64_t src = block_source (b, i);
    struct cow_extent x = { at + ((uint64_t) i << p->block_shift),
                            p->block_size, src ? 0 : COW_EXTENT_ZERO, 0 };

    if (src != block_source (a, i))
      r = merger_add (m, x);
  }
  return r;
}

static int
diff_leaf (struct local_pool *p, struct merger *m, struct local_volume *a,
           struct local_volume *b, uint64_t *index)
{
  struct leaf_view va, vb;
  uint64_t last = m->end - 1;
  int r = view_leaf (p, a, *index, &va);

  if (r == 0)
    r = view_leaf (p, b, *index, &vb);
  if (r < 0)
    return r;
  if (!va.mapped)
    memset (va.entry, 0, sizeof va.entry);
  if (!vb.mapped)
    memset (vb.entry, 0, sizeof vb.entry);
  do {
    unsigned i = *index & (LEAF_ENTRIES - 1);

    r = diff_entry (p, m, &va.entry[i], &vb.entry[i],
                    *index << p->chunk_shift);
    ++*index;
  } while (r == 0 && (*index & (LEAF_ENTRIES - 1)) != 0 &&
           *index <= last >> p->chunk_shift);
  return r;
}

int
cow_walk_diff (struct cow_object *oa, struct cow_object *ob, uint64_t len,
               uint64_t offset, size_t max,
               int (*fn) (void *, const struct cow_extent *), void *opaque)
{
  struct local_pool *p = LOCAL_POOL (ob->pool);
  struct local_volume *a = LOCAL_VOLUME (oa), *b = LOCAL_VOLUME (ob);
  struct merger m = { .fn = fn, .opaque = opaque, .left = max,
                      .start = offset, .end = offset + len };
  uint64_t index = offset >> p->chunk_shift;
  uint64_t end = (m.end + p->chunk_size - 1) >> p->chunk_shift;
  uint64_t span;
  int r = 0;

  while (r == 0 && index < end) {
    r = same_span_loading (p, a, b, index, &span);
    if (r == 0 && span > 0)
      index += span;
    else if (r == 0)
      r = diff_leaf (p, &m, a, b, &index);
  }
  if (r == 0 && m.left > 0)
    r = merger_flush (&m);
  return r == STOP ? 0 : r;
}

/* ---- Usage ---- */

/* Two entries of one volume share a chunk only through a range copy, and
 * then it is counted for each: exclusive says what deleting would free, so
 * a chunk with more than one reference is not.
 */
static int
count_chunk (struct local_pool *p, uint64_t chunk, bool path_exclusive,
             uint64_t *allocated, uint64_t *exclusive)
{
  bool shared = !path_exclusive;
  int r = 0;

  if (chunk == 0)
    return 0;
  if (path_exclusive)
    r = chunk_shared (p, chunk, &shared);
  *allocated += p->chunk_size;
  if (!shared)
    *exclusive += p->chunk_size;
  return r;
}

/* Count 1 on the whole path: unlike the test for writing in place, the
 * unshared set does not matter here.
 */
static int
path_counts_one (struct local_pool *p, const struct local_volume *v,
                 uint64_t index, bool *one)
{
  uint64_t id;
  unsigned level;
  struct miss miss;
  uint32_t count;
  int r;

 again:
  *one = true;
  pthread_rwlock_rdlock (&p->map_lock);
  id = v->row.root;
  level = v->row.level;
  for (r = 0; r == 0 && id != 0; level--) {
    struct object *o;

    r = cow_node_count (p, id, &count, &miss);
    if (r == 0 && count != 1) {
      *one = false;
      break;
    }
    if (r < 0 || level == 0)
      break;
    o = cow_cache_get (p, OBJ_NODE, id, level, &miss);
    if (o == NULL || o->level != level)
      r = o ? -EIO : -EAGAIN;
    else
      id = o->child[(index >> cow_level_shift (level)) &
                    (INNER_CHILDREN - 1)];
  }
  pthread_rwlock_unlock (&p->map_lock);
  if (r == -EAGAIN && (r = cow_cache_load (p, &miss)) == 0)
    goto again;
  return r;
}

int
cow_walk_usage (struct local_pool *p, struct local_volume *v,
                uint64_t *allocated, uint64_t *exclusive)
{
  uint64_t index = 0;
  uint64_t end = (v->obj.size + p->chunk_size - 1) >> p->chunk_shift;
  struct leaf_view view;
  bool one = false;
  unsigned i;
  int r = 0;

  *allocated = *exclusive = 0;
  while (r == 0 && index < end) {
    r = view_leaf (p, v, index, &view);
    if (r == 0 && view.mapped)
      r = path_counts_one (p, v, index, &one);
    for (i = 0; r == 0 && view.mapped && i < LEAF_ENTRIES; i++) {
      r = count_chunk (p, view.entry[i].own, one, allocated, exclusive);
      if (r == 0)
        r = count_chunk (p, view.entry[i].origin, one, allocated, exclusive);
    }
    index += view.span;
  }
  return r;
}
