/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <stddef.h>

#include "ranges.h"

void
cow_ranges_init (struct cow_ranges *rs)
{
  pthread_mutex_init (&rs->lock, NULL);
  pthread_cond_init (&rs->changed, NULL);
  rs->first = rs->last = NULL;
  rs->nr_exclusive = rs->nr_waiting = 0;
}

void
cow_ranges_destroy (struct cow_ranges *rs)
{
  pthread_mutex_destroy (&rs->lock);
  pthread_cond_destroy (&rs->changed);
}

static bool
conflicts (const struct cow_range *a, const struct cow_range *b)
{
  return (a->exclusive || b->exclusive) &&
    a->start < b->end && b->start < a->end;
}

/* Whether anything that arrived before r stands in its way. */
static bool
blocked (const struct cow_ranges *rs, const struct cow_range *r)
{
  const struct cow_range *x;

  if (rs->nr_exclusive == 0)
    return false;
  for (x = r->prev; x; x = x->prev)
    if (conflicts (x, r))
      return true;
  return false;
}

static void
append (struct cow_ranges *rs, struct cow_range *r, uint64_t start,
        uint64_t end, bool exclusive)
{
  *r = (struct cow_range) { .start = start, .end = end,
                            .exclusive = exclusive, .prev = rs->last };
  if (rs->last)
    rs->last->next = r;
  else
    rs->first = r;
  rs->last = r;
  if (exclusive)
    rs->nr_exclusive++;
}

static void
detach (struct cow_ranges *rs, struct cow_range *r)
{
  if (r->prev)
    r->prev->next = r->next;
  else
    rs->first = r->next;
  if (r->next)
    r->next->prev = r->prev;
  else
    rs->last = r->prev;
  if (r->exclusive)
    rs->nr_exclusive--;
}

void
cow_range_lock (struct cow_ranges *rs, struct cow_range *r, uint64_t start,
                uint64_t end, bool exclusive)
{
  pthread_mutex_lock (&rs->lock);
  append (rs, r, start, end, exclusive);
  if (blocked (rs, r)) {
    rs->nr_waiting++;
    while (blocked (rs, r))
      pthread_cond_wait (&rs->changed, &rs->lock);
    rs->nr_waiting--;
  }
  pthread_mutex_unlock (&rs->lock);
}

bool
cow_range_trylock (struct cow_ranges *rs, struct cow_range *r, uint64_t start,
                   uint64_t end, bool exclusive)
{
  bool ok;

  pthread_mutex_lock (&rs->lock);
  append (rs, r, start, end, exclusive);
  ok = !blocked (rs, r);
  if (!ok)
    detach (rs, r);
  pthread_mutex_unlock (&rs->lock);
  return ok;
}

void
cow_range_unlock (struct cow_ranges *rs, struct cow_range *r)
{
  pthread_mutex_lock (&rs->lock);
  detach (rs, r);
  if (rs->nr_waiting > 0)
    pthread_cond_broadcast (&rs->changed);
  pthread_mutex_unlock (&rs->lock);
}
