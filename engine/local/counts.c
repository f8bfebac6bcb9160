/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "changes.h"
#include "counts.h"
#include "log.h"
#include "space.h"

/* ---- The set: open addressing, 0 is empty; keys are never 0 ---- */

static size_t
slot_of (const struct idset *s, uint64_t key)
{
  size_t i = (key * UINT64_C (0x9e3779b97f4a7c15)) >> 32;

  i &= s->nr_slots - 1;
  while (s->slot[i] != 0 && s->slot[i] != key)
    i = (i + 1) & (s->nr_slots - 1);
  return i;
}

bool
cow_idset_has (const struct idset *s, uint64_t key)
{
  return s->nr_used > 0 && s->slot[slot_of (s, key)] == key;
}

static int
idset_grow (struct idset *s)
{
  struct idset bigger = { .nr_slots = s->nr_slots ? s->nr_slots * 2 : 64 };
  size_t i;

  bigger.slot = calloc (bigger.nr_slots, sizeof *bigger.slot);
  if (bigger.slot == NULL)
    return -ENOMEM;
  for (i = 0; i < s->nr_slots; i++)
    if (s->slot[i] != 0)
      bigger.slot[slot_of (&bigger, s->slot[i])] = s->slot[i];
  bigger.nr_used = s->nr_used;
  free (s->slot);
  *s = bigger;
  return 0;
}

int
cow_idset_add (struct idset *s, uint64_t key)
{
  size_t i;

  if (s->nr_used * 2 >= s->nr_slots && idset_grow (s) < 0)
    return -ENOMEM;
  i = slot_of (s, key);
  if (s->slot[i] != key) {
    s->slot[i] = key;
    s->nr_used++;
  }
  return 0;
}

void
cow_idset_clear (struct idset *s)
{
  free (s->slot);
  memset (s, 0, sizeof *s);
}

int
cow_idset_merge (struct idset *to, struct idset *from)
{
  size_t i;

  for (i = 0; i < from->nr_slots; i++)
    if (from->slot[i] != 0 && cow_idset_add (to, from->slot[i]) < 0)
      return -ENOMEM;
  cow_idset_clear (from);
  return 0;
}

/* ---- Pages ---- */

static struct object *
page_of (struct local_pool *p, enum object_kind kind, uint64_t n,
         uint32_t **count, struct miss *miss)
{
  struct object *o = cow_cache_get (p, kind, n >> COUNTS_SHIFT, 0, miss);

  if (o)
    *count = &o->count[n & (COUNTS_PER_PAGE - 1)];
  return o;
}

int
cow_node_need (struct local_pool *p, uint64_t id, struct miss *miss)
{
  uint32_t *c;

  return page_of (p, OBJ_NODE_COUNTS, id, &c, miss) ? 0 : -EAGAIN;
}

int
cow_chunk_need (struct local_pool *p, chunk_t chunk, struct miss *miss)
{
  uint32_t *c;

  return page_of (p, OBJ_CHUNK_COUNTS, chunk.n, &c, miss) ? 0 : -EAGAIN;
}

int
cow_node_count (struct local_pool *p, uint64_t id, uint32_t *count,
                struct miss *miss)
{
  uint32_t *c;

  if (page_of (p, OBJ_NODE_COUNTS, id, &c, miss) == NULL)
    return -EAGAIN;
  *count = *c;
  return 0;
}

int
cow_chunk_count (struct local_pool *p, chunk_t chunk, uint32_t *count,
                 struct miss *miss)
{
  uint32_t *c;

  if (page_of (p, OBJ_CHUNK_COUNTS, chunk.n, &c, miss) == NULL)
    return -EAGAIN;
  *count = *c;
  return 0;
}

static bool
unshared (const struct local_pool *p, uint64_t key)
{
  return cow_idset_has (&p->open.unshared, key) ||
    cow_idset_has (&p->frozen.unshared, key);
}

int
cow_node_exclusive (struct local_pool *p, uint64_t id, bool *exclusive,
                    struct miss *miss)
{
  uint32_t count;
  int r = cow_node_count (p, id, &count, miss);

  *exclusive = r == 0 && count == 1 && !unshared (p, UNSHARED_NODE (id));
  return r;
}

int
cow_chunk_exclusive (struct local_pool *p, chunk_t c, bool *exclusive,
                     struct miss *miss)
{
  uint32_t count;
  int r = cow_chunk_count (p, c, &count, miss);

  *exclusive = r == 0 && count == 1 && !unshared (p, UNSHARED_CHUNK (c.n));
  return r;
}

/* ---- Up and down ---- */

/* A count that should not be possible is damage, not a reason to abort: the
 * pool goes read-only, so that nothing is overwritten on a guess.
 */
static int
impossible (struct local_pool *p, const char *what, uint64_t n,
            uint32_t count)
{
  cow_log (COW_LOG_ERROR, "pool %s: %s %llu has the impossible count %u; the "
           "pool is read-only now: run 'cowshed check'", p->pool.name, what,
           (unsigned long long) n, count);
  cow_pool_set_read_only (p, EIO);
  return -EIO;
}

static int
raise (struct local_pool *p, enum object_kind kind, const char *what,
       uint64_t n, struct miss *miss)
{
  uint32_t *c;
  struct object *o = page_of (p, kind, n, &c, miss);

  if (o == NULL)
    return -EAGAIN;
  if (*c == 0 || *c == COUNT_HELD)
    return impossible (p, what, n, *c);
  if (*c >= COUNT_MAX)
    return -EMLINK;
  if (cow_cache_dirty (p, o) < 0)
    return -ENOMEM;
  ++*c;
  return 0;
}

int
cow_node_get (struct local_pool *p, uint64_t id, struct miss *miss)
{
  return raise (p, OBJ_NODE_COUNTS, "node", id, miss);
}

int
cow_chunk_get (struct local_pool *p, chunk_t c, struct miss *miss)
{
  return raise (p, OBJ_CHUNK_COUNTS, "chunk", c.n, miss);
}

int
cow_node_put (struct local_pool *p, uint64_t id, unsigned level,
              struct miss *miss)
{
  uint32_t *c;
  struct object *o = page_of (p, OBJ_NODE_COUNTS, id, &c, miss);
  int r;

  if (o == NULL)
    return -EAGAIN;
  if (*c == 0 || *c == COUNT_HELD)
    return impossible (p, "node", id, *c);
  r = cow_cache_dirty (p, o);
  if (r == 0)
    r = *c == 1 ? cow_changes_enqueue (p, id, level)
      : cow_idset_add (&p->open.unshared, UNSHARED_NODE (id));
  if (r == 0)
    --*c;
  return r;
}

int
cow_chunk_put (struct local_pool *p, chunk_t chunk, struct miss *miss)
{
  uint32_t *c;
  struct object *o = page_of (p, OBJ_CHUNK_COUNTS, chunk.n, &c, miss);
  int r;

  if (o == NULL)
    return -EAGAIN;
  if (*c == 0 || *c == COUNT_HELD)
    return impossible (p, "chunk", chunk.n, *c);
  r = cow_cache_dirty (p, o);
  if (r < 0)
    return r;
  if (*c > 1) {
    r = cow_idset_add (&p->open.unshared, UNSHARED_CHUNK (chunk.n));
    if (r == 0)
      --*c;
    return r;
  }
  r = cow_chunk_list_add (&p->open.freed, chunk);
  if (r == 0) {
    *c = COUNT_HELD;
    o->nr_held++;
  }
  return r;
}

int
cow_node_new (struct local_pool *p, uint64_t *id, struct miss *miss)
{
  uint32_t *c;
  struct object *o = page_of (p, OBJ_NODE_COUNTS, p->next_node, &c, miss);

  if (o == NULL)
    return -EAGAIN;
  if (*c != 0)
    return impossible (p, "new node", p->next_node, *c);
  if (cow_cache_dirty (p, o) < 0)
    return -ENOMEM;
  *c = 1;
  *id = p->next_node++;
  return 0;
}

int
cow_chunk_install (struct local_pool *p, chunk_t chunk, struct miss *miss)
{
  uint32_t *c;
  struct object *o = page_of (p, OBJ_CHUNK_COUNTS, chunk.n, &c, miss);

  if (o == NULL)
    return -EAGAIN;
  if (*c != COUNT_HELD)
    return impossible (p, "new chunk", chunk.n, *c);
  if (cow_cache_dirty (p, o) < 0)
    return -ENOMEM;
  *c = 1;
  o->nr_held--;
  return 0;
}
