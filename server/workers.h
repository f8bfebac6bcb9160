/* SPDX-License-Identifier: BSD-3-Clause */
/* A fixed number of threads that do what an event loop must not.
 *
 * Submitted work waits in a bounded queue, is run by some thread, and then
 * lies in the done list; notify_fd (an eventfd) is written to for each.
 */
#ifndef COW_WORKERS_H
#define COW_WORKERS_H

#include <stddef.h>

struct workers;

struct work {
  struct work *next;
  void (*run) (struct work *work); /* on a worker; blocks as it likes */
};

int cow_workers_start (unsigned nr_threads, size_t queue_max, int notify_fd,
                       struct workers **workers);

/* 0, or -EAGAIN where the queue is full.  Does not block. */
int cow_workers_submit (struct workers *workers, struct work *work);

/* Take all finished work, oldest first.  Does not block. */
struct work *cow_workers_take (struct workers *workers);

/* Run what is queued, join the threads, free.  NULL is allowed. */
void cow_workers_stop (struct workers *workers);

#endif /* COW_WORKERS_H */
