/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include "entry.h"

bool
cow_entry_valid (const struct entry *e, uint64_t nr_chunks)
{
  if (e->flags_lo || e->flags_hi)
    return false;
  if (e->present & e->omask)
    return false;
  if ((e->present == 0) != (e->own == 0))
    return false;
  if ((e->omask == 0) != (e->origin == 0))
    return false;
  if (e->own == 0 && e->origin != 0)
    return false;
  if (e->own != 0 && e->own == e->origin)
    return false;
  return e->own < nr_chunks && e->origin < nr_chunks;
}

void
cow_entry_normalise (struct entry *e)
{
  if (e->omask == 0)
    e->origin = 0;
  if (e->present == 0) {
    e->own = e->origin;
    e->present = e->omask;
    e->origin = 0;
    e->omask = 0;
  }
}

struct entry
cow_entry_clear (struct entry e, unsigned mask)
{
  e.present &= ~mask;
  e.omask &= ~mask;
  cow_entry_normalise (&e);
  return e;
}

/* The own chunk is shared and both chunks of the entry are still needed:
 * copy the smaller side into the new chunk, keep the other as origin.
 */
static void
plan_three_chunks (const struct entry *e, unsigned rest_own,
                   unsigned rest_origin, struct entry_write *w)
{
  bool copy_own = __builtin_popcount (rest_own) <=
    __builtin_popcount (rest_origin);

  w->copy_mask = copy_own ? rest_own : rest_origin;
  w->copy_from = copy_own ? e->own : e->origin;
  w->after.present |= w->copy_mask;
  w->after.origin = copy_own ? e->origin : e->own;
  w->after.omask = copy_own ? rest_origin : rest_own;
}

void
cow_entry_plan_write (const struct entry *e, unsigned mask,
                      bool own_exclusive, uint64_t fresh,
                      struct entry_write *w)
{
  unsigned rest_own = e->present & ~mask;
  unsigned rest_origin = e->omask & ~mask;

  memset (w, 0, sizeof *w);
  if (own_exclusive && e->own != 0) {
    w->in_place = true;
    w->after = *e;
    w->after.present |= mask;
    w->after.omask = rest_origin;
    cow_entry_normalise (&w->after);
    return;
  }

  w->after.own = fresh;
  w->after.present = mask;
  if (rest_own && rest_origin)
    plan_three_chunks (e, rest_own, rest_origin, w);
  else if (rest_own) {
    w->after.origin = e->own;
    w->after.omask = rest_own;
  }
  else if (rest_origin) {
    w->after.origin = e->origin;
    w->after.omask = rest_origin;
  }
}
