/* SPDX-License-Identifier: BSD-3-Clause */
/* The maps: a page-table-like tree per volume over its chunk numbers.
 *
 * A node at level L > 0 has 512 child slots, a leaf (level 0) 64 entries.
 * Snapshot and clone share the root.  A shared node is never changed:
 * whoever wants to change something below it first shadows it (copies it,
 * counts its children once more, and swaps the pointer), one complete step
 * a node, so that a step that stops half-way down the path leaves a valid
 * tree.  Source of the method: O. Rodeh, "B-trees, Shadowing, and Clones".
 *
 * All under map_lock: look-ups at least shared, changes exclusive; -EAGAIN
 * with miss where something is not cached.
 */
#ifndef COW_TREE_H
#define COW_TREE_H

#include "local.h"

/* The level of the root for a volume of nr chunks. */
unsigned cow_tree_level_for (uint64_t nr_chunks);

/* The leaf that covers chunk index, or NULL for a hole; *span is how many
 * chunks from index on the answer holds for.  *exclusive (may be NULL):
 * every node on the path may be changed in place.
 */
int cow_tree_lookup (struct local_pool *p, const struct store_volume *row,
                     uint64_t index, struct object **leaf, uint64_t *span,
                     bool *exclusive, struct miss *miss);

/* The leaf that covers index, made if missing, its path shadowed where
 * shared.
 */
int cow_tree_own_leaf (struct local_pool *p, struct local_volume *v,
                       uint64_t index, struct object **leaf,
                       struct miss *miss);

/* Put `after` into entry i of an exclusive leaf: drops the references that
 * the old entry had and the new one lacks; those that are new the caller
 * has counted.
 */
int cow_tree_set_entry (struct local_pool *p, struct object *leaf, unsigned i,
                        const struct entry *after, struct miss *miss);

/* Clear whole blocks [start, end) of v from start on, as far as one step
 * goes: *next is where to continue.  Cuts whole subtrees, which go to the
 * delete queue.  last_block: the volume's end in blocks, rounded up.
 */
int cow_tree_clear_step (struct local_pool *p, struct local_volume *v,
                         uint64_t start, uint64_t end, uint64_t last_block,
                         uint64_t *next, bool *changed, struct miss *miss);

/* Raise the root to `level`, with the old tree as first child. */
int cow_tree_grow (struct local_pool *p, struct local_volume *v,
                   unsigned level, struct miss *miss);

/* Free the children of a queued node without references, and it. */
int cow_tree_reap (struct local_pool *p, const struct queued *q,
                   struct miss *miss);

/* Mark the volume's record to be stored. */
void cow_volume_row_dirty (struct local_pool *p, struct local_volume *v);

#endif /* COW_TREE_H */
