/* SPDX-License-Identifier: BSD-3-Clause */
/* What a generation gathers besides dirty records: lists that grow.  All
 * under map_lock, exclusive; 0 or -ENOMEM.
 */
#ifndef COW_CHANGES_H
#define COW_CHANGES_H

#include "local.h"

int cow_chunk_list_add (struct chunk_list *l, chunk_t c);
void cow_chunk_list_clear (struct chunk_list *l);

/* The delete queue: a node without references, to be freed bit by bit. */
int cow_changes_enqueue (struct local_pool *p, uint64_t id, unsigned level);
/* The last queued node that can be read, or false. */
bool cow_changes_peek (struct local_pool *p, struct queued *q);
/* The node that peek gave is freed: no record, no place in the queue. */
int cow_changes_dequeue (struct local_pool *p, const struct queued *q);

/* This node cannot be read: leave it for the next open. */
void cow_changes_stuck (struct local_pool *p, const struct queued *q);

int cow_changes_gone_volume (struct local_pool *p, uint64_t id);

/* Move the changes of `from` under those of `to`: a commit that failed. */
int cow_changes_merge_under (struct changes *to, struct changes *from);
void cow_changes_clear (struct changes *c);

/* The pool changes no more; errnum is what writers get.  Any lock state. */
void cow_pool_set_read_only (struct local_pool *p, int errnum);
static inline int
cow_pool_read_only (const struct local_pool *p)
{
  return __atomic_load_n (&p->read_only, __ATOMIC_ACQUIRE);
}

#endif /* COW_CHANGES_H */
