/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking at maps: extents, diff, and what a volume uses. */
#ifndef COW_WALK_H
#define COW_WALK_H

#include "local.h"

int cow_walk_extents (struct cow_object *o, uint64_t len, uint64_t offset,
                      size_t max, unsigned flags,
                      int (*fn) (void *, const struct cow_extent *),
                      void *opaque);
int cow_walk_diff (struct cow_object *a, struct cow_object *b, uint64_t len,
                   uint64_t offset, size_t max,
                   int (*fn) (void *, const struct cow_extent *),
                   void *opaque);

/* Bytes of whole chunks: all it refers to, and of these the ones that only
 * it refers to.  Structure lock held shared.
 */
int cow_walk_usage (struct local_pool *p, struct local_volume *v,
                    uint64_t *allocated, uint64_t *exclusive);

#endif /* COW_WALK_H */
