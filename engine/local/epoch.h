/* SPDX-License-Identifier: BSD-3-Clause */
/* Grace periods for chunks: I/O enters an epoch before it looks up where to
 * read or write and leaves it when its system calls are done.  Entering and
 * leaving are atomic counters, no lock.
 */
#ifndef COW_EPOCH_H
#define COW_EPOCH_H

#include "local.h"

uint64_t cow_epoch_enter (struct epoch *e);
void cow_epoch_leave (struct epoch *e, uint64_t epoch);

/* The stamp for something that is unreachable from now on. */
uint64_t cow_epoch_stamp (struct epoch *e);
/* Whether all I/O that began at or before the stamp has ended.  Moves the
 * current epoch on; does not block.
 */
bool cow_epoch_passed (struct epoch *e, uint64_t stamp);

#endif /* COW_EPOCH_H */
