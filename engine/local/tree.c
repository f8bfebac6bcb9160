/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "cache.h"
#include "changes.h"
#include "counts.h"
#include "log.h"
#include "tree.h"

static unsigned
slot_index (uint64_t index, unsigned level)
{
  return (index >> cow_level_shift (level)) &
    (level == 0 ? LEAF_ENTRIES - 1 : INNER_CHILDREN - 1);
}

/* First chunk after the subtree of a node at level that covers index. */
static uint64_t
subtree_end (uint64_t index, unsigned level)
{
  unsigned shift = cow_level_shift (level + 1);

  return ((index >> shift) + 1) << shift;
}

unsigned
cow_tree_level_for (uint64_t nr_chunks)
{
  unsigned level = 0;

  while (nr_chunks > UINT64_C (1) << cow_level_shift (level + 1))
    level++;
  return level;
}

void
cow_volume_row_dirty (struct local_pool *p, struct local_volume *v)
{
  p->open.any = true;
  if (v->row_dirty)
    return;
  v->row_dirty = true;
  v->dirty_next = p->dirty_volumes;
  p->dirty_volumes = v;
}

/* A step that must not fail half-way did (there was no memory): what is in
 * memory cannot be trusted, what is stored can.
 */
static int
half_way (struct local_pool *p, int r)
{
  if (r < 0 && r != -EIO) {
    cow_log (COW_LOG_ERROR, "pool %s: a change failed half-way (%s); the pool "
             "is read-only until it is opened again", p->pool.name,
             strerror (-r));
    cow_pool_set_read_only (p, -r);
  }
  return r < 0 ? -EIO : 0;
}

int
cow_tree_lookup (struct local_pool *p, const struct store_volume *row,
                 uint64_t index, struct object **leaf, uint64_t *span,
                 bool *exclusive, struct miss *miss)
{
  uint64_t id = row->root;
  unsigned level = row->level;

  *leaf = NULL;
  if (exclusive)
    *exclusive = true;
  for (;;) {
    struct object *o;
    bool one;

    *span = subtree_end (index, level) - index;
    if (id == 0)
      return 0;
    if (exclusive && *exclusive) {
      if (cow_node_exclusive (p, id, &one, miss) < 0)
        return -EAGAIN;
      *exclusive = one;
    }
    o = cow_cache_get (p, OBJ_NODE, id, level, miss);
    if (o == NULL)
      return -EAGAIN;
    if (o->level != level)
      return -EIO;
    if (level == 0) {
      *leaf = o;
      return 0;
    }
    id = o->child[slot_index (index, level)];
    level--;
  }
}

/* ---- Changing ---- */

/* Where a node hangs: a child slot of an exclusive parent, or the root. */
struct slot {
  struct local_volume *v;
  struct object *parent;        /* NULL: the volume's root */
  unsigned i;
};

static uint64_t
slot_get (const struct slot *s)
{
  return s->parent ? s->parent->child[s->i] : s->v->row.root;
}

static int
slot_set (struct local_pool *p, const struct slot *s, uint64_t id)
{
  if (s->parent) {
    if (cow_cache_dirty (p, s->parent) < 0)
      return -ENOMEM;
    s->parent->child[s->i] = id;
  }
  else {
    s->v->row.root = id;
    cow_volume_row_dirty (p, s->v);
  }
  return 0;
}

/* All count pages of the children of o are cached; -EMLINK if they are and
 * a count is at the limit.
 */
static int
need_children (struct local_pool *p, const struct object *o,
               struct miss *miss)
{
  unsigned i;
  uint32_t count, highest = 0;
  int r = 0;

  for (i = 0; r == 0 && o->level > 0 && i < INNER_CHILDREN; i++)
    if (o->child[i]) {
      r = cow_node_count (p, o->child[i], &count, miss);
      highest = r == 0 && count > highest ? count : highest;
    }
  for (i = 0; r == 0 && o->level == 0 && i < LEAF_ENTRIES; i++) {
    const struct entry *e = &o->entry[i];

    if (e->own) {
      r = cow_chunk_count (p, CHUNK (e->own), &count, miss);
      highest = r == 0 && count > highest ? count : highest;
    }
    if (r == 0 && e->origin) {
      r = cow_chunk_count (p, CHUNK (e->origin), &count, miss);
      highest = r == 0 && count > highest ? count : highest;
    }
  }
  return r == 0 && highest >= COUNT_MAX ? -EMLINK : r;
}

static int
get_children (struct local_pool *p, const struct object *o,
              struct miss *miss)
{
  unsigned i;
  int r = 0;

  for (i = 0; r == 0 && o->level > 0 && i < INNER_CHILDREN; i++)
    if (o->child[i])
      r = cow_node_get (p, o->child[i], miss);
  for (i = 0; r == 0 && o->level == 0 && i < LEAF_ENTRIES; i++) {
    if (o->entry[i].own)
      r = cow_chunk_get (p, CHUNK (o->entry[i].own), miss);
    if (r == 0 && o->entry[i].origin)
      r = cow_chunk_get (p, CHUNK (o->entry[i].origin), miss);
  }
  return r;
}

/* Make an empty node in an empty slot. */
static int
new_node (struct local_pool *p, const struct slot *s, unsigned level,
          struct object **out, struct miss *miss)
{
  uint64_t id;
  int r = cow_node_new (p, &id, miss);

  if (r < 0)
    return r;
  *out = cow_cache_create (p, OBJ_NODE, id, level);
  r = *out ? slot_set (p, s, id) : -ENOMEM;
  return half_way (p, r);
}

/* Copy the shared node o, which hangs in s. */
static int
shadow (struct local_pool *p, const struct slot *s, struct object *o,
        struct object **out, struct miss *miss)
{
  struct object *copy;
  uint64_t id;
  int r = cow_node_need (p, p->next_node, miss);

  if (r == 0)
    r = need_children (p, o, miss);
  if (r == 0)
    r = cow_node_new (p, &id, miss);
  if (r < 0)
    return r;
  /* From here on everything is cached. */
  copy = cow_cache_create (p, OBJ_NODE, id, o->level);
  if (copy == NULL)
    return half_way (p, -ENOMEM);
  if (o->level == 0)
    memcpy (copy->entry, o->entry, sizeof o->entry);
  else
    memcpy (copy->child, o->child, sizeof o->child);
  r = get_children (p, copy, miss);
  if (r == 0)
    r = slot_set (p, s, id);
  if (r == 0)
    r = cow_node_put (p, o->id, o->level, miss);
  *out = copy;
  return half_way (p, r);
}

/* The node in slot s, exclusive: made if missing, shadowed if shared. */
static int
own_node (struct local_pool *p, const struct slot *s, unsigned level,
          struct object **out, struct miss *miss)
{
  uint64_t id = slot_get (s);
  bool exclusive;
  int r;

  if (id == 0)
    return new_node (p, s, level, out, miss);
  r = cow_node_exclusive (p, id, &exclusive, miss);
  if (r < 0)
    return r;
  *out = cow_cache_get (p, OBJ_NODE, id, level, miss);
  if (*out == NULL)
    return -EAGAIN;
  if ((*out)->level != level)
    return -EIO;
  return exclusive ? 0 : shadow (p, s, *out, out, miss);
}

/* Own the path to index down to the node at `level`. */
static int
own_path (struct local_pool *p, struct local_volume *v, uint64_t index,
          unsigned level, struct object **node, struct miss *miss)
{
  struct slot s = { .v = v };
  unsigned l = v->row.level;
  int r;

  for (;;) {
    r = own_node (p, &s, l, node, miss);
    if (r < 0 || l == level)
      return r;
    s.parent = *node;
    s.i = slot_index (index, l);
    l--;
  }
}

int
cow_tree_own_leaf (struct local_pool *p, struct local_volume *v,
                   uint64_t index, struct object **leaf, struct miss *miss)
{
  return own_path (p, v, index, 0, leaf, miss);
}

static bool
entry_uses (const struct entry *e, uint64_t chunk)
{
  return e->own == chunk || e->origin == chunk;
}

/* The count pages that replacing `before` by `after` touches. */
static int
need_drop (struct local_pool *p, const struct entry *before,
           const struct entry *after, struct miss *miss)
{
  int r = 0;

  if (before->own && !entry_uses (after, before->own))
    r = cow_chunk_need (p, CHUNK (before->own), miss);
  if (r == 0 && before->origin && !entry_uses (after, before->origin))
    r = cow_chunk_need (p, CHUNK (before->origin), miss);
  return r;
}

int
cow_tree_set_entry (struct local_pool *p, struct object *leaf, unsigned i,
                    const struct entry *after, struct miss *miss)
{
  struct entry before = leaf->entry[i];
  int r = need_drop (p, &before, after, miss);

  if (r == 0)
    r = cow_cache_dirty (p, leaf);
  if (r < 0)
    return r;
  leaf->entry[i] = *after;
  if (before.own && !entry_uses (after, before.own))
    r = cow_chunk_put (p, CHUNK (before.own), miss);
  if (r == 0 && before.origin && !entry_uses (after, before.origin))
    r = cow_chunk_put (p, CHUNK (before.origin), miss);
  return half_way (p, r);
}

/* ---- Clearing ---- */

/* Empty one slot and drop the subtree of level that hangs in it. */
static int
cut_slot (struct local_pool *p, const struct slot *s, unsigned level,
          struct miss *miss)
{
  uint64_t id = slot_get (s);
  int r;

  if (id == 0)
    return 0;
  r = cow_node_need (p, id, miss);
  if (r < 0)
    return r;
  r = slot_set (p, s, 0);
  if (r == 0)
    r = cow_node_put (p, id, level, miss);
  return half_way (p, r);
}

/* Cut the subtree at `level` (of the node to go) that covers index, and with
 * it up to nr - 1 of the next ones below the same parent; *done says how many
 * slots are empty now.
 */
static int
cut (struct local_pool *p, struct local_volume *v, uint64_t index,
     unsigned level, uint64_t nr, uint64_t *done, struct miss *miss)
{
  struct slot s = { .v = v };
  int r;

  *done = 0;
  if (level == v->row.level) {
    r = cut_slot (p, &s, level, miss);
    *done = r == 0;
    return r;
  }
  r = own_path (p, v, index, level + 1, &s.parent, miss);
  if (r < 0)
    return r;
  for (s.i = slot_index (index, level + 1);
       s.i < INNER_CHILDREN && *done < nr; s.i++, ++*done) {
    r = cut_slot (p, &s, level, miss);
    if (r < 0)
      return r == -EAGAIN && *done > 0 ? 0 : r;
  }
  return 0;
}

/* Mask of the blocks [start, end) that lie in chunk index. */
static unsigned
chunk_mask (uint64_t index, uint64_t start, uint64_t end)
{
  uint64_t first = index * BLOCKS_PER_CHUNK;
  unsigned from = start > first ? start - first : 0;
  unsigned to = end - first < BLOCKS_PER_CHUNK ? end - first
    : BLOCKS_PER_CHUNK;

  return ((1u << to) - 1) & ~((1u << from) - 1);
}

/* What clearing [start, end) would do to a leaf: nothing, leave it empty, or
 * something between.
 */
static void
clear_effect (const struct object *leaf, uint64_t leaf_start, uint64_t start,
              uint64_t end, bool *any, bool *empty)
{
  unsigned i;

  *any = false;
  *empty = true;
  for (i = 0; i < LEAF_ENTRIES; i++) {
    uint64_t first = (leaf_start + i) * BLOCKS_PER_CHUNK;
    unsigned mapped = cow_entry_mapped (&leaf->entry[i]), mask = 0;

    if (mapped == 0)
      continue;
    if (first < end && first + BLOCKS_PER_CHUNK > start)
      mask = chunk_mask (leaf_start + i, start, end);
    if (mapped & mask)
      *any = true;
    if (mapped & ~mask)
      *empty = false;
  }
}

/* Clear [start, end), which lies within one leaf, entry by entry. */
static int
clear_leaf (struct local_pool *p, struct local_volume *v, uint64_t start,
            uint64_t end, struct miss *miss)
{
  uint64_t index = start / BLOCKS_PER_CHUNK;
  uint64_t last = (end - 1) / BLOCKS_PER_CHUNK;
  struct object *leaf;
  int r = cow_tree_own_leaf (p, v, index, &leaf, miss);

  for (; r == 0 && index <= last; index++) {
    unsigned i = index & (LEAF_ENTRIES - 1);
    struct entry after = cow_entry_clear (leaf->entry[i],
                                          chunk_mask (index, start, end));

    if (!cow_entry_equal (&after, &leaf->entry[i]))
      r = cow_tree_set_entry (p, leaf, i, &after, miss);
  }
  return r;
}

int
cow_tree_clear_step (struct local_pool *p, struct local_volume *v,
                     uint64_t start, uint64_t end, uint64_t last_block,
                     uint64_t *next, bool *changed, struct miss *miss)
{
  uint64_t index = start / BLOCKS_PER_CHUNK, id = v->row.root;
  unsigned level = v->row.level;
  struct object *o = NULL;
  uint64_t done_slots;
  bool any, empty;
  int r;

  for (;; level--) {
    uint64_t to = subtree_end (index, level);
    uint64_t from = to - (UINT64_C (1) << cow_level_shift (level + 1));

    /* A subtree that reaches beyond the end is whole up to the end. */
    *next = to > end / BLOCKS_PER_CHUNK ? end : to * BLOCKS_PER_CHUNK;
    if (id == 0)
      return 0;
    if (from * BLOCKS_PER_CHUNK >= start &&
        (*next < end || end >= last_block ||
         to * BLOCKS_PER_CHUNK == end)) {
      unsigned shift = cow_level_shift (level + 1);
      uint64_t whole = (end / BLOCKS_PER_CHUNK - from) >> shift, done;

      r = cut (p, v, index, level, whole > 0 ? whole : 1, &done, miss);
      if (r == 0 && done > 1)
        *next = (((from >> shift) + done) << shift) * BLOCKS_PER_CHUNK;
      break;
    }
    o = cow_cache_get (p, OBJ_NODE, id, level, miss);
    if (o == NULL)
      return -EAGAIN;
    if (o->level != level)
      return -EIO;
    if (level > 0) {
      id = o->child[slot_index (index, level)];
      continue;
    }
    clear_effect (o, from, start, *next, &any, &empty);
    if (!any)
      return 0;
    r = empty ? cut (p, v, index, 0, 1, &done_slots, miss)
      : clear_leaf (p, v, start, *next, miss);
    break;
  }
  if (r == 0)
    *changed = true;
  return r;
}

int
cow_tree_grow (struct local_pool *p, struct local_volume *v, unsigned level,
               struct miss *miss)
{
  while (v->row.level < level) {
    if (v->row.root != 0) {
      struct object *top;
      uint64_t id;
      int r = cow_node_new (p, &id, miss);

      if (r < 0)
        return r;
      top = cow_cache_create (p, OBJ_NODE, id, v->row.level + 1);
      if (top == NULL)
        return half_way (p, -ENOMEM);
      top->child[0] = v->row.root;
      v->row.root = id;
    }
    v->row.level++;
    cow_volume_row_dirty (p, v);
  }
  return 0;
}

/* ---- Freeing ---- */

static int
put_children (struct local_pool *p, const struct object *o,
              struct miss *miss)
{
  unsigned i;
  int r = 0;

  for (i = 0; r == 0 && o->level > 0 && i < INNER_CHILDREN; i++)
    if (o->child[i])
      r = cow_node_put (p, o->child[i], o->level - 1, miss);
  for (i = 0; r == 0 && o->level == 0 && i < LEAF_ENTRIES; i++) {
    if (o->entry[i].own)
      r = cow_chunk_put (p, CHUNK (o->entry[i].own), miss);
    if (r == 0 && o->entry[i].origin)
      r = cow_chunk_put (p, CHUNK (o->entry[i].origin), miss);
  }
  return r;
}

int
cow_tree_reap (struct local_pool *p, const struct queued *q,
               struct miss *miss)
{
  struct object *o = cow_cache_get (p, OBJ_NODE, q->id, q->level, miss);
  int r;

  if (o == NULL)
    return -EAGAIN;
  r = need_children (p, o, miss);
  if (r < 0 && r != -EMLINK)
    return r;
  r = cow_changes_dequeue (p, q);
  if (r == 0)
    r = put_children (p, o, miss);
  if (r == 0)
    cow_cache_remove (p, o);
  return half_way (p, r);
}
