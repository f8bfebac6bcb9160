/* SPDX-License-Identifier: BSD-3-Clause */
/* Which chunks are free and where new ones go.
 *
 * Placement.  The pool's chunks form spans of 64, as many as a leaf has
 * entries, and a leaf fills a span of its own with entry i in chunk base + i.
 * So a volume lies in its span as it would in a raw file, whatever the order
 * of the writes: neighbours stay adjacent, one preadv serves many, and a leaf
 * packs into a few runs.  Where no span is wholly free, single free chunks
 * are taken, lowest first.
 *
 * A chunk is free when its count is 0.  While it is allocated but not yet
 * in a map, or freed but not yet reusable, its count is COUNT_HELD, which
 * is stored as 0: a crash frees it, so nothing can leak here.  Regions (one
 * count page each) have a summary in memory and in the store, so that
 * opening a pool reads no count pages.
 *
 * All under map_lock, exclusive.
 */
#ifndef COW_SPACE_H
#define COW_SPACE_H

#include "local.h"

/* Take a chunk for entry index % 64 of the leaf that covers chunk `index` of
 * v and hold it.  leaf may be NULL.  -ENOSPC, -EAGAIN (miss).
 */
int cow_space_alloc (struct local_pool *p, struct local_volume *v,
                     uint64_t index, const struct object *leaf,
                     chunk_t *chunk, struct miss *miss);

/* Hold chunk if it is free, and add it to the list.  0 also if it is in
 * use; -EAGAIN (miss), -ENOMEM.
 */
int cow_space_hold (struct local_pool *p, chunk_t chunk,
                    struct chunk_list *held, struct miss *miss);

/* A held chunk becomes free. */
void cow_space_release (struct local_pool *p, chunk_t chunk);

/* Region summary as stored. */
int cow_space_set_region (struct local_pool *p, uint64_t page, unsigned used,
                          unsigned free_spans);
/* Summary of a count page's stored values. */
void cow_space_summarise (const uint32_t *counts, unsigned *used,
                          unsigned *free_spans);
/* After all regions were set: totals. */
int cow_space_ready (struct local_pool *p);

#endif /* COW_SPACE_H */
