/* SPDX-License-Identifier: BSD-3-Clause */
/* Generations: data and map become durable together.
 *
 * A cycle: freeze the open generation (map_lock, exclusive, short), sync the
 * data file so that every chunk a frozen node points to is there, store the
 * frozen records in one transaction, release.  What was freed in it may be
 * reused once it is durable and its epoch has passed.
 *
 * One thread leads a cycle, the others wait for it.  A flush needs a cycle
 * that began after its arrival: then every change it must cover is in that
 * cycle or an earlier one, and the sync of the data came after its writes.
 * So flushes that arrive during a cycle share the next one.  With nothing to
 * store a cycle is one fdatasync.
 *
 * Failures: out of space in the transaction puts the frozen changes back
 * under the newer ones and is -ENOSPC, to be tried again.  Any other error,
 * and a failed sync of the data, make the pool read-only: no success is
 * reported after it.
 */
#ifndef COW_COMMIT_H
#define COW_COMMIT_H

#include "local.h"

/* Wait until all that was done before the call is durable.  Blocks; called
 * with no lock held.
 */
int cow_commit_flush (struct local_pool *p);

/* Wait, with no lock held, until the dirty records fit their bound. */
void cow_commit_admit (struct local_pool *p);

/* The background committer. */
int cow_commit_start (struct local_pool *p);
void cow_commit_stop (struct local_pool *p);
void cow_commit_kick (struct local_pool *p);

/* The ballast: a file that is given up when the file system is full, so that
 * deletions and trims can still be committed.  While there is none, no chunk
 * is allocated.  make: 0, -ENOSPC, or another error, which leaves it out.
 */
int cow_ballast_make (struct local_pool *p);
/* When the pool is opened: make it, or, if there is no room even for what a
 * server needs to start, give a part of it up.  Half of it is enough.
 */
void cow_ballast_open (struct local_pool *p);
bool cow_ballast_drop (struct local_pool *p);

static inline bool
cow_fs_full (const struct local_pool *p)
{
  return __atomic_load_n (&p->fs_full, __ATOMIC_ACQUIRE);
}

#endif /* COW_COMMIT_H */
