/* SPDX-License-Identifier: BSD-3-Clause */
/* Units and constants of a local pool. */
#ifndef COW_LOCAL_TYPES_H
#define COW_LOCAL_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* A chunk number is not a byte offset: the compiler catches a swap.
 * Chunk 0 holds the data file's header, so 0 means "none".
 */
typedef struct { uint64_t n; } chunk_t;

#define CHUNK_NONE ((chunk_t) { 0 })
#define CHUNK(x) ((chunk_t) { (x) })

#define BLOCKS_PER_CHUNK 16
#define ALL_BLOCKS 0xffffu
#define MAX_CHUNK_NR ((UINT64_C (1) << 40) - 1)

#define LEAF_ENTRIES 64         /* entries of a leaf, and chunks of a span */
#define LEAF_SHIFT 6
#define INNER_CHILDREN 512
#define INNER_SHIFT 9
#define MAX_LEVEL 7             /* leaf is level 0; 6 + 7*9 bits > 63-12 */

#define COUNTS_PER_PAGE 1024    /* also the chunks of a region */
#define COUNTS_SHIFT 10
#define SPANS_PER_REGION (COUNTS_PER_PAGE / LEAF_ENTRIES)

/* A count at this value cannot rise: the caller copies bytes instead. */
#define COUNT_MAX 0xfffffff0u
/* In memory only: allocated but not installed, or freed but not yet
 * reusable.  Stored as 0, so that a crash frees it.
 */
#define COUNT_HELD 0xffffffffu

/* Chunks that level's one child slot covers, as a shift. */
static inline unsigned
cow_level_shift (unsigned level)
{
  return level == 0 ? 0 : LEAF_SHIFT + INNER_SHIFT * (level - 1);
}

#endif /* COW_LOCAL_TYPES_H */
