/* SPDX-License-Identifier: BSD-3-Clause */
/* Cached nodes and count pages.  Everything under map_lock: lookups hold it
 * at least shared, all else exclusive.
 *
 * A record is clean, dirty (changed since the last freeze), frozen (part of
 * the commit under way) or both of the last two; a frozen one that changes
 * first keeps its payload as of the freeze in `snapshot`.  Dirty and frozen
 * records and count pages with held chunks stay cached; clean ones leave by
 * a clock when the cache is over its limit.
 */
#ifndef COW_CACHE_H
#define COW_CACHE_H

#include "local.h"

int cow_cache_init (struct local_pool *p, uint64_t limit_bytes);
void cow_cache_destroy (struct local_pool *p);

/* The cached record or NULL, and then miss says what to load. */
struct object *cow_cache_get (struct local_pool *p, enum object_kind kind,
                              uint64_t id, unsigned level, struct miss *miss);

/* Load what a step missed.  Called without map_lock; blocks on I/O.
 * 0 (try the step again), -EIO for a record that fails validation (logged),
 * -ENOMEM.
 */
int cow_cache_load (struct local_pool *p, const struct miss *miss);

/* A new, dirty, empty record; NULL without memory. */
struct object *cow_cache_create (struct local_pool *p, enum object_kind kind,
                                 uint64_t id, unsigned level);

/* Say before every change of a payload.  0 or -ENOMEM, and then nothing may
 * change.
 */
int cow_cache_dirty (struct local_pool *p, struct object *o);

/* Let clean records go if the cache is over its limit: a bounded number.
 * Takes map_lock.
 */
void cow_cache_trim (struct local_pool *p);

/* Forget a node whose record is to be deleted. */
void cow_cache_remove (struct local_pool *p, struct object *o);

/* Freeze: hand over the dirty records as an array and mark them. */
int cow_cache_freeze (struct local_pool *p, struct object ***objects,
                      size_t *nr);
/* The commit of these ended. */
void cow_cache_thaw (struct local_pool *p, struct object **objects, size_t nr,
                     bool committed);

/* Payload to store for a frozen object. */
const void *cow_cache_frozen_payload (const struct object *o);

#endif /* COW_CACHE_H */
