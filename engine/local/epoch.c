/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include "epoch.h"

/* An I/O counts itself in and then looks again: if the epoch moved on in
 * between, it might have been missed, so it tries once more.
 */
uint64_t
cow_epoch_enter (struct epoch *e)
{
  for (;;) {
    uint64_t now = __atomic_load_n (&e->current, __ATOMIC_SEQ_CST);

    __atomic_fetch_add (&e->active[now & 1], 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n (&e->current, __ATOMIC_SEQ_CST) == now)
      return now;
    __atomic_fetch_sub (&e->active[now & 1], 1, __ATOMIC_SEQ_CST);
  }
}

void
cow_epoch_leave (struct epoch *e, uint64_t epoch)
{
  __atomic_fetch_sub (&e->active[epoch & 1], 1, __ATOMIC_SEQ_CST);
}

uint64_t
cow_epoch_stamp (struct epoch *e)
{
  return __atomic_load_n (&e->current, __ATOMIC_SEQ_CST);
}

/* Only the current epoch and the one before can have I/O, so the current
 * one may advance when the one before is empty.
 */
bool
cow_epoch_passed (struct epoch *e, uint64_t stamp)
{
  bool passed;

  pthread_mutex_lock (&e->lock);
  while (e->current < stamp + 2 &&
         __atomic_load_n (&e->active[(e->current - 1) & 1],
                          __ATOMIC_SEQ_CST) == 0)
    __atomic_store_n (&e->current, e->current + 1, __ATOMIC_SEQ_CST);
  passed = e->current >= stamp + 2;
  pthread_mutex_unlock (&e->lock);
  return passed;
}
