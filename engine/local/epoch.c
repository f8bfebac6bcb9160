/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include "epoch.h"

uint64_t
cow_epoch_enter (struct epoch *e)
{
  uint64_t now;

  pthread_mutex_lock (&e->lock);
  now = e->current;
  e->active[now & 1]++;
  pthread_mutex_unlock (&e->lock);
  return now;
}

void
cow_epoch_leave (struct epoch *e, uint64_t epoch)
{
  pthread_mutex_lock (&e->lock);
  e->active[epoch & 1]--;
  pthread_mutex_unlock (&e->lock);
}

uint64_t
cow_epoch_stamp (struct epoch *e)
{
  uint64_t now;

  pthread_mutex_lock (&e->lock);
  now = e->current;
  pthread_mutex_unlock (&e->lock);
  return now;
}

/* Only the current epoch and the one before can have I/O, so the current
 * one may advance when the one before is empty.
 */
bool
cow_epoch_passed (struct epoch *e, uint64_t stamp)
{
  bool passed;

  pthread_mutex_lock (&e->lock);
  while (e->current < stamp + 2 && e->active[(e->current - 1) & 1] == 0)
    e->current++;
  passed = e->current >= stamp + 2;
  pthread_mutex_unlock (&e->lock);
  return passed;
}
