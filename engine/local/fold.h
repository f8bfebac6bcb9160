/* SPDX-License-Identifier: BSD-3-Clause */
/* Fold: when an entry's origin has no other user left, merge its two chunks
 * into one, copying the smaller side, so that the other becomes free.
 *
 * A slow pass over all volumes in bounded steps, started when a deletion
 * has dropped references; without pauses while a writer waits for space.
 * Only where the path and both chunks are exclusive, rechecked at install;
 * pairs in nodes that a snapshot shares stay until it goes.
 */
#ifndef COW_FOLD_H
#define COW_FOLD_H

#include "local.h"

/* References were dropped: another pass is due. */
void cow_fold_due (struct local_pool *p);
/* The next step begins a pass. */
bool cow_fold_starts (const struct local_pool *p);

/* One step of at most `leaves` leaves; false when the pass is complete.
 * Blocks on I/O; no lock held.  Only the reaper's thread.
 */
bool cow_fold_step (struct local_pool *p, unsigned leaves);

#endif /* COW_FOLD_H */
