/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of volumes and snapshots, and the control operations on it
 * (pool-ops.h, volume.h).
 *
 * control_lock serialises the operations; table_lock protects names and
 * handle counts, which opening and closing change beside them.
 */
#ifndef COW_VOLUMES_H
#define COW_VOLUMES_H

#include "local.h"

int cow_volumes_load (struct local_pool *p, struct cow_error *err);
void cow_volumes_free (struct local_pool *p);

int cow_volumes_get (struct cow_pool *, const char *, bool rw,
                     struct cow_object **, unsigned *incarnation,
                     struct cow_error *);
void cow_volumes_put (struct cow_object *, bool rw);
int cow_volumes_list (struct cow_pool *,
                      int (*fn) (void *, const struct cow_volume_info *),
                      void *);
int cow_volumes_info (struct cow_pool *, const char *,
                      struct cow_volume_info *, struct cow_error *);
int cow_volumes_create (struct cow_pool *, const char *, uint64_t, unsigned,
                        struct cow_error *);
int cow_volumes_remove (struct cow_pool *, const char *, unsigned,
                        struct cow_error *);
int cow_volumes_rename (struct cow_pool *, const char *, const char *,
                        unsigned, struct cow_error *);
int cow_volumes_resize (struct cow_pool *, const char *, uint64_t, unsigned,
                        struct cow_error *);
int cow_volumes_snapshot (struct cow_pool *, const char *const *, size_t,
                          unsigned, struct cow_error *);
int cow_volumes_clone (struct cow_pool *, const char *, const char *,
                       unsigned, struct cow_error *);
int cow_volumes_rollback (struct cow_pool *, const char *, unsigned,
                          struct cow_error *);

/* ---- jobs.c ---- */

/* A deletion has been queued; shows as a job until the queue is empty. */
void cow_jobs_deletion (struct local_pool *p, const char *name);
void cow_jobs_deletions_done (struct local_pool *p);
int cow_jobs_list (struct cow_pool *,
                   int (*fn) (void *, const struct cow_job_info *), void *);
int cow_jobs_wait (struct cow_pool *, uint64_t, unsigned,
                   struct cow_job_info *);
int cow_jobs_cancel (struct cow_pool *, uint64_t);
void cow_jobs_free (struct local_pool *p);

#endif /* COW_VOLUMES_H */
