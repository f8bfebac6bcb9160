/* SPDX-License-Identifier: BSD-3-Clause */
/* What a kind of pool implements, and the generic state it embeds.
 *
 * volume.c checks arguments, takes the structure lock and the in-flight
 * range and splits off zero blocks before it calls a data operation; so an
 * implementation sees ranges inside the object, with ragged edges (not whole
 * blocks) exclusive to the caller.
 */
#ifndef COW_POOL_OPS_H
#define COW_POOL_OPS_H

#include <pthread.h>

#include "ranges.h"
#include "volume.h"

struct cow_object;

struct cow_pool_ops {
  /* data */
  int (*pread) (struct cow_object *, void *, size_t, uint64_t);
  int (*pwrite) (struct cow_object *, const void *, size_t, uint64_t);
  int (*zero) (struct cow_object *, uint64_t len, uint64_t off,
               unsigned flags, bool *changed);
  int (*trim) (struct cow_object *, uint64_t len, uint64_t off,
               bool *changed);
  int (*cache) (struct cow_object *, uint64_t len, uint64_t off);
  int (*extents) (struct cow_object *, uint64_t len, uint64_t off,
                  size_t max, unsigned flags,
                  int (*fn) (void *, const struct cow_extent *), void *);
  int (*diff) (struct cow_object *a, struct cow_object *b, uint64_t len,
               uint64_t off, size_t max,
               int (*fn) (void *, const struct cow_extent *), void *);
  /* Wait until the pool can take another change; no lock held. */
  void (*admit) (struct cow_pool *);
  /* Make space: 0 when it is worth to try an allocation again. */
  int (*reclaim) (struct cow_pool *);
  int (*flush) (struct cow_pool *);
  /* control, as in volume.h */
  int (*close) (struct cow_pool *);
  void (*stat) (struct cow_pool *, struct cow_pool_stat *);
  int (*list) (struct cow_pool *,
               int (*fn) (void *, const struct cow_volume_info *), void *);
  int (*info) (struct cow_pool *, const char *, struct cow_volume_info *,
               struct cow_error *);
  int (*create) (struct cow_pool *, const char *, uint64_t, unsigned,
                 struct cow_error *);
  int (*remove) (struct cow_pool *, const char *, unsigned,
                 struct cow_error *);
  int (*rename) (struct cow_pool *, const char *, const char *, unsigned,
                 struct cow_error *);
  int (*resize) (struct cow_pool *, const char *, uint64_t, unsigned,
                 struct cow_error *);
  int (*snapshot) (struct cow_pool *, const char *const *, size_t, unsigned,
                   struct cow_error *);
  int (*clone) (struct cow_pool *, const char *, const char *, unsigned,
                struct cow_error *);
  int (*rollback) (struct cow_pool *, const char *, unsigned,
                   struct cow_error *);
  /* Find an object and count a handle on it (rw or not).  The incarnation
   * is what it had while it could be found.
   */
  int (*get) (struct cow_pool *, const char *, bool rw,
              struct cow_object **, unsigned *incarnation,
              struct cow_error *);
  void (*put) (struct cow_object *, bool rw);
  int (*jobs) (struct cow_pool *,
               int (*fn) (void *, const struct cow_job_info *), void *);
  int (*job_wait) (struct cow_pool *, uint64_t, unsigned,
                   struct cow_job_info *);
  int (*job_cancel) (struct cow_pool *, uint64_t);
};

struct cow_pool {
  const struct cow_pool_ops *ops;
  char *name, *dir;
  struct cow_pool_options options;
  uint64_t block_size;
};

struct cow_object {
  struct cow_pool *pool;
  uint64_t id;                  /* structure locks are taken in its order */
  pthread_rwlock_t structure;   /* shared: data operations */
  struct cow_ranges ranges;
  /* Under the structure lock; changed by its exclusive holder. */
  uint64_t size;
  /* Handles of an older one get ESHUTDOWN.  Atomic: raised before the
   * exclusive structure lock is waited for, or under it.
   */
  unsigned incarnation;
  bool readonly;                /* a snapshot */
  /* Under the pool's table lock. */
  unsigned nr_open, nr_open_rw;
};

/* A rwlock that prefers writers and is never taken twice by one thread. */
void cow_rwlock_init (pthread_rwlock_t *lock);

struct cow_volume {
  struct cow_object *object;
  uint64_t size;
  unsigned incarnation;
  bool readonly;
};

#endif /* COW_POOL_OPS_H */
