/* SPDX-License-Identifier: BSD-3-Clause */
/* In-flight ranges of one object: every data operation registers its range
 * before it starts.  Shared ranges may overlap each other, an exclusive one
 * overlaps nothing.  Waiters are served in turn: a request also waits for an
 * earlier waiter that it conflicts with, so that nobody starves.
 *
 * Lock order: below the structure lock, above everything in a pool.  Held
 * across I/O, never while waiting for durability.
 */
#ifndef COW_RANGES_H
#define COW_RANGES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct cow_range {
  uint64_t start, end;          /* [start, end) bytes */
  bool exclusive;
  struct cow_range *prev, *next;
};

struct cow_ranges {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct cow_range *first, *last; /* in order of arrival */
  unsigned nr_exclusive, nr_waiting;
};

void cow_ranges_init (struct cow_ranges *rs);
void cow_ranges_destroy (struct cow_ranges *rs);

/* Block until r may start.  r is the caller's, until unlock. */
void cow_range_lock (struct cow_ranges *rs, struct cow_range *r,
                     uint64_t start, uint64_t end, bool exclusive);
/* The same without blocking; false if it would have to wait. */
bool cow_range_trylock (struct cow_ranges *rs, struct cow_range *r,
                        uint64_t start, uint64_t end, bool exclusive);
void cow_range_unlock (struct cow_ranges *rs, struct cow_range *r);

#endif /* COW_RANGES_H */
