/* SPDX-License-Identifier: BSD-3-Clause */
/* Background work, in bounded steps: free the nodes of the delete queue,
 * give freed chunks back to the file system and to the allocator.
 *
 * Whatever a crash interrupts goes on after the next open: the queue is
 * stored in the same transactions as the counts that it changes, and chunks
 * that were freed but not yet released are free then.
 */
#ifndef COW_REAP_H
#define COW_REAP_H

#include "local.h"

int cow_reap_start (struct local_pool *p);
void cow_reap_stop (struct local_pool *p);
/* Forget batches that wait; the pool is being closed. */
void cow_reap_free (struct local_pool *p);
void cow_reap_kick (struct local_pool *p);

/* Chunks freed in a commit that is durable now; takes the list over. */
void cow_reap_freed (struct local_pool *p, struct chunk_list *freed);

/* Let the queue be worked off and committed, and freed chunks released.
 * Blocks; called with no lock held.  0 if chunks became free meanwhile,
 * else -ENOSPC.
 */
int cow_reap_wait (struct local_pool *p);

#endif /* COW_REAP_H */
