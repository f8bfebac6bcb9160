/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "changes.h"
#include "commit.h"
#include "log.h"
#include "space.h"

#define ALL_SPANS 0xffffu

/* Chunks of region r that exist. */
static unsigned
region_chunks (const struct space *s, uint64_t r)
{
  uint64_t left = s->nr_chunks - r * COUNTS_PER_PAGE;

  return left < COUNTS_PER_PAGE ? left : COUNTS_PER_PAGE;
}

static unsigned
all_spans (const struct space *s, uint64_t r)
{
  unsigned spans = region_chunks (s, r) / LEAF_ENTRIES;

  return spans >= SPANS_PER_REGION ? ALL_SPANS : (1u << spans) - 1;
}

/* Extend the array of regions to cover region r. */
static int
cover_region (struct space *s, uint64_t r)
{
  if (r >= s->room) {
    uint64_t room = s->room ? s->room * 2 : 64;
    struct region *bigger;

    if (room <= r)
      room = r + 1;
    bigger = realloc (s->region, room * sizeof *bigger);
    if (bigger == NULL)
      return -ENOMEM;
    s->region = bigger;
    s->room = room;
  }
  for (; s->nr_regions <= r; s->nr_regions++)
    s->region[s->nr_regions] =
      (struct region) { 0, all_spans (s, s->nr_regions) };
  return 0;
}

int
cow_space_set_region (struct local_pool *p, uint64_t page, unsigned used,
                      unsigned free_spans)
{
  struct space *s = &p->space;
  int r;

  if (page * COUNTS_PER_PAGE >= s->nr_chunks || used > COUNTS_PER_PAGE)
    return -EIO;
  r = cover_region (s, page);
  if (r == 0)
    s->region[page] = (struct region) { used,
                                        free_spans & all_spans (s, page) };
  return r;
}

int
cow_space_ready (struct local_pool *p)
{
  struct space *s = &p->space;
  uint64_t r;

  s->used = 0;
  for (r = 0; r < s->nr_regions; r++)
    s->used += s->region[r].used;
  if (s->used > 0)
    s->used--;                  /* chunk 0, the header */
  return 0;
}

void
cow_space_summarise (const uint32_t *counts, unsigned *used,
                     unsigned *free_spans)
{
  unsigned span, i;

  *used = *free_spans = 0;
  for (span = 0; span < SPANS_PER_REGION; span++) {
    unsigned in_span = 0;

    for (i = 0; i < LEAF_ENTRIES; i++) {
      uint32_t c = counts[span * LEAF_ENTRIES + i];

      in_span += c != 0 && c != COUNT_HELD;
    }
    *used += in_span;
    if (in_span == 0)
      *free_spans |= 1u << span;
  }
}

/* Hold chunk n if it is free.  0, -EBUSY if it is not, -EAGAIN. */
static int
try_chunk (struct local_pool *p, uint64_t n, chunk_t *chunk,
           struct miss *miss)
{
  struct space *s = &p->space;
  uint64_t r = n >> COUNTS_SHIFT;
  struct object *o;
  uint32_t *c;

  if (n == 0 || n >= s->nr_chunks || r >= s->nr_regions)
    return -EBUSY;
  o = cow_cache_get (p, OBJ_CHUNK_COUNTS, r, 0, miss);
  if (o == NULL)
    return -EAGAIN;
  c = &o->count[n & (COUNTS_PER_PAGE - 1)];
  if (*c != 0)
    return -EBUSY;
  *c = COUNT_HELD;
  o->nr_held++;
  s->region[r].used++;
  s->region[r].free_spans &=
    ~(1u << ((n & (COUNTS_PER_PAGE - 1)) / LEAF_ENTRIES));
  s->used++;
  *chunk = CHUNK (n);
  return 0;
}

int
cow_space_hold (struct local_pool *p, chunk_t chunk, struct chunk_list *held,
                struct miss *miss)
{
  chunk_t c;
  int r = try_chunk (p, chunk.n, &c, miss);

  if (r == -EBUSY)
    return 0;
  if (r == 0 && cow_chunk_list_add (held, chunk) < 0) {
    cow_space_release (p, chunk);
    r = -ENOMEM;
  }
  return r;
}

/* The first wholly free span, perhaps a new one at the end. */
static int
find_span (struct local_pool *p, uint64_t *base)
{
  struct space *s = &p->space;
  uint64_t r;

  for (r = s->span_cursor; r < s->nr_regions; r++)
    if (s->region[r].free_spans)
      break;
  s->span_cursor = r;
  if (r == s->nr_regions) {
    if (r * COUNTS_PER_PAGE >= s->nr_chunks || all_spans (s, r) == 0)
      return -ENOSPC;
    if (cover_region (s, r) < 0)
      return -ENOMEM;
  }
  *base = r * COUNTS_PER_PAGE +
    (uint64_t) __builtin_ctz (s->region[r].free_spans) * LEAF_ENTRIES;
  return 0;
}

/* Any free chunk, lowest first. */
static int
find_any (struct local_pool *p, chunk_t *chunk, struct miss *miss)
{
  struct space *s = &p->space;
  uint64_t r;

  for (r = s->chunk_cursor; r * COUNTS_PER_PAGE < s->nr_chunks; r++) {
    struct object *o;
    unsigned i, n = region_chunks (s, r);

    if (cover_region (s, r) < 0)
      return -ENOMEM;
    if (s->region[r].used >= n)
      continue;
    s->chunk_cursor = r;
    o = cow_cache_get (p, OBJ_CHUNK_COUNTS, r, 0, miss);
    if (o == NULL)
      return -EAGAIN;
    for (i = 0; i < n; i++)
      if (o->count[i] == 0 && r + i > 0)
        return try_chunk (p, r * COUNTS_PER_PAGE + i, chunk, miss);
  }
  return -ENOSPC;
}

/* Where the leaf's other chunks say that entry i should be. */
static int
try_beside (struct local_pool *p, const struct object *leaf, unsigned i,
            chunk_t *chunk, struct miss *miss)
{
  uint64_t last_base = 0;
  unsigned j, tries = 0;

  for (j = 0; j < LEAF_ENTRIES && tries < 3; j++) {
    uint64_t own = leaf->entry[j].own, base = own - j;
    int r;

    if (own == 0 || own < j || base % LEAF_ENTRIES || base == last_base)
      continue;
    last_base = base;
    tries++;
    r = try_chunk (p, base + i, chunk, miss);
    if (r != -EBUSY)
      return r;
  }
  return -EBUSY;
}

int
cow_space_alloc (struct local_pool *p, struct local_volume *v,
                 uint64_t index, const struct object *leaf, chunk_t *chunk,
                 struct miss *miss)
{
  uint64_t leaf_nr = index >> LEAF_SHIFT, base;
  unsigned i = index & (LEAF_ENTRIES - 1), h = leaf_nr % NR_HINTS;
  int r = -EBUSY;

  if (p->space.used >= p->space.cap_chunks || cow_fs_full (p))
    return -ENOSPC;
  if (v->hint[h].base != 0 && v->hint[h].leaf == leaf_nr)
    r = try_chunk (p, v->hint[h].base + i, chunk, miss);
  if (r == -EBUSY && leaf)
    r = try_beside (p, leaf, i, chunk, miss);
  if (r != -EBUSY)
    return r;

  r = find_span (p, &base);
  if (r == 0) {
    /* Only once it worked: a hint without a held chunk would let another
     * volume take the span.
     */
    r = try_chunk (p, base + i, chunk, miss);
    if (r == 0) {
      v->hint[h].leaf = leaf_nr;
      v->hint[h].base = base;
    }
    if (r != -EBUSY)
      return r;
  }
  return r == -ENOMEM ? r : find_any (p, chunk, miss);
}

void
cow_space_release (struct local_pool *p, chunk_t chunk)
{
  struct space *s = &p->space;
  uint64_t r = chunk.n >> COUNTS_SHIFT;
  unsigned i = chunk.n & (COUNTS_PER_PAGE - 1);
  unsigned start = i - i % LEAF_ENTRIES, j;
  struct miss miss;
  /* Cached for certain: a page with held chunks never leaves. */
  struct object *o = cow_cache_get (p, OBJ_CHUNK_COUNTS, r, 0, &miss);

  if (o == NULL || o->count[i] != COUNT_HELD) {
    cow_log (COW_LOG_ERROR, "pool %s: chunk %llu is freed but was not held",
             p->pool.name, (unsigned long long) chunk.n);
    return;
  }
  o->count[i] = 0;
  o->nr_held--;
  s->region[r].used--;
  s->used--;
  for (j = start; j < start + LEAF_ENTRIES && o->count[j] == 0; j++)
    ;
  if (j == start + LEAF_ENTRIES) {
    s->region[r].free_spans |= 1u << (start / LEAF_ENTRIES);
    if (r < s->span_cursor)
      s->span_cursor = r;
  }
  if (r < s->chunk_cursor)
    s->chunk_cursor = r;
}
