/* SPDX-License-Identifier: BSD-3-Clause */
/* Reference counts of nodes and chunks: how many parents each has.
 *
 * Rodeh's shadowing: a shared node's children are counted once, and rise
 * only when that node is copied.  All functions need map_lock (the getters
 * shared, the rest exclusive) and return -EAGAIN with miss set where a page
 * is not cached.  cow_counts_need makes sure of a page without changing it,
 * so that a step can gather all it needs first.
 */
#ifndef COW_COUNTS_H
#define COW_COUNTS_H

#include "local.h"

int cow_node_need (struct local_pool *p, uint64_t id, struct miss *miss);
int cow_chunk_need (struct local_pool *p, chunk_t c, struct miss *miss);

int cow_node_count (struct local_pool *p, uint64_t id, uint32_t *count,
                    struct miss *miss);
int cow_chunk_count (struct local_pool *p, chunk_t c, uint32_t *count,
                     struct miss *miss);

/* Count 1 and not in the unshared set: may be changed in place.
 *
 * The unshared set holds what lost a reference and kept some since the last
 * durable commit.  Without it: A shares a chunk with B, A overwrites and
 * leaves it, B overwrites it in place, power fails, A comes back and shows
 * B's data.
 */
int cow_node_exclusive (struct local_pool *p, uint64_t id, bool *exclusive,
                        struct miss *miss);
int cow_chunk_exclusive (struct local_pool *p, chunk_t c, bool *exclusive,
                         struct miss *miss);

/* One reference more.  -EMLINK at the limit: copy instead. */
int cow_node_get (struct local_pool *p, uint64_t id, struct miss *miss);
int cow_chunk_get (struct local_pool *p, chunk_t c, struct miss *miss);

/* One reference less.  A node without references goes to the delete queue,
 * a chunk waits until this generation is durable.
 */
int cow_node_put (struct local_pool *p, uint64_t id, unsigned level,
                  struct miss *miss);
int cow_chunk_put (struct local_pool *p, chunk_t c, struct miss *miss);

/* A new node's id, count 1. */
int cow_node_new (struct local_pool *p, uint64_t *id, struct miss *miss);
/* A held chunk becomes part of a map, count 1. */
int cow_chunk_install (struct local_pool *p, chunk_t c, struct miss *miss);

/* ---- The set ---- */

bool cow_idset_has (const struct idset *s, uint64_t key);
int cow_idset_add (struct idset *s, uint64_t key);
void cow_idset_clear (struct idset *s);
int cow_idset_merge (struct idset *to, struct idset *from);
#define UNSHARED_NODE(id) ((id) * 2 + 1)
#define UNSHARED_CHUNK(n) ((n) * 2)

#endif /* COW_COUNTS_H */
