/* SPDX-License-Identifier: BSD-3-Clause */
/* The algebra of map entries: which chunk supplies each of the sixteen
 * blocks of one chunk-sized piece of a volume.  Pure functions: no locks, no
 * I/O.
 *
 * Normal form, kept by every function here:
 *   present & omask == 0
 *   omask == 0    <=>  origin none
 *   present == 0  <=>  own none, and then origin none too
 * A block in neither mask reads as zero.  Two entries are equal only if all
 * fields are.
 */
#ifndef COW_ENTRY_H
#define COW_ENTRY_H

#include <string.h>

#include "types.h"

struct entry {
  uint64_t own : 40;
  uint64_t present : 16;
  uint64_t flags_lo : 8;        /* zero, for later */
  uint64_t origin : 40;
  uint64_t omask : 16;
  uint64_t flags_hi : 8;
};

_Static_assert (sizeof (struct entry) == 16, "entry is 16 bytes");

static inline bool
cow_entry_empty (const struct entry *e)
{
  return e->own == 0;
}

static inline bool
cow_entry_equal (const struct entry *a, const struct entry *b)
{
  return memcmp (a, b, sizeof *a) == 0;
}

/* Blocks that hold data. */
static inline unsigned
cow_entry_mapped (const struct entry *e)
{
  return e->present | e->omask;
}

/* Whether e obeys the normal form and names chunks below nr_chunks. */
bool cow_entry_valid (const struct entry *e, uint64_t nr_chunks);

/* Restore the normal form after masks changed. */
void cow_entry_normalise (struct entry *e);

/* e without the blocks of mask. */
struct entry cow_entry_clear (struct entry e, unsigned mask);

/* How to write the blocks of mask (not 0) through an entry. */
struct entry_write {
  struct entry after;           /* the entry to install */
  bool in_place;                /* write into old own; no chunk needed */
  /* Blocks to copy into the new chunk first, and where from. */
  unsigned copy_mask;
  uint64_t copy_from;
};

/* Plan it.  own_exclusive: the path and the own chunk may be written in
 * place.  fresh: the new chunk to use when they may not (0 to find out
 * whether one is needed: see in_place).
 */
void cow_entry_plan_write (const struct entry *e, unsigned mask,
                           bool own_exclusive, uint64_t fresh,
                           struct entry_write *w);

#endif /* COW_ENTRY_H */
