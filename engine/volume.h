/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools and volumes: the interface that every kind of pool implements.
 *
 * A pool holds volumes and snapshots.  An object is named "VOLUME" or
 * "VOLUME@SNAP" (names.h, without the POOL/ part).  Everything here is
 * thread-safe.  Functions return 0 or -errno; those that take a struct
 * cow_error fill it on failure with a code and a sentence for the user.
 *
 * Durability.  A control operation (create, remove, rename, resize,
 * snapshot, clone, rollback) is durable when it returns 0, unless
 * COW_NOSYNC was given: then it is durable with the next flush of any
 * volume of the pool.  Data operations are durable after a flush that began
 * after they returned, or at once with COW_FUA.  After a crash a block that
 * was not flushed reads as old or as new (each 512-byte sector of it, where
 * it was overwritten in place), never as anything else.
 *
 * Units: offsets and lengths are bytes, times are seconds since the epoch.
 */
#ifndef COW_VOLUME_H
#define COW_VOLUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

struct cow_pool;
struct cow_volume;              /* an open volume or snapshot */

/* Flags; each function says which it takes. */
#define COW_FUA        (1u << 0) /* durable before the call returns */
#define COW_FAST       (1u << 1) /* zero: -ENOTSUP rather than slow */
#define COW_NO_HOLE    (1u << 2) /* zero: keep space provisioned */
#define COW_RDONLY     (1u << 3) /* open: read-only handle */
#define COW_NOSYNC     (1u << 4) /* control: durable with the next flush */
#define COW_FORCE      (1u << 5) /* rm, rollback, shrink of an open volume */
#define COW_SHRINK     (1u << 6) /* resize: may become smaller */
#define COW_SNAPSHOTS  (1u << 7) /* remove: with its snapshots */
#define COW_THICK      (1u << 8) /* create: reserve all space */
#define COW_DETECT_ZEROES (1u << 9) /* pwrite: whole zero blocks are holes */

/* ---- Pools ---- */

struct cow_pool_options {
  uint64_t metadata_cache_bytes; /* bound on cached map nodes; 0: 256 MiB */
  unsigned commit_interval_ms;   /* longest uncommitted age; 0: 5000 */
  unsigned warn_at_percent;      /* 0: 80 */
  unsigned critical_at_percent;  /* 0: 95 */
  /* Told of thresholds, jobs' ends and errors, from any thread, without
   * locks held; must not call back into the pool.  May be NULL.
   */
  void (*event) (void *opaque, const char *kind, const char *pool,
                 const char *volume, const char *message);
  void *event_opaque;
};

struct cow_pool_stat {
  uint64_t capacity;            /* bytes the pool may hold */
  uint64_t used;                /* chunks in use, in bytes */
  uint64_t free;                /* what can still be allocated */
  uint64_t reserved;            /* promised and not yet allocated */
  uint64_t chunk_size, block_size;
  unsigned warn_at, critical_at; /* percent */
  const char *state;            /* "ok", "warning", "critical", "full",
                                   "read-only" */
  uint64_t nr_volumes, nr_snapshots;
  uint64_t metadata_bytes;      /* size of the metadata store */
  uint64_t deleting;            /* tree nodes waiting to be freed */
};

struct cow_init_options {
  const char *dir;              /* made if missing; must hold no pool */
  uint64_t chunk_size;          /* power of two, 4 KiB..1 MiB; 0: 64 KiB */
  uint64_t capacity;            /* 0: what the file system or device has */
  const char *device;           /* block device for data, or NULL */
};

/* Make a pool on a local directory.  -EEXIST where one is there already;
 * -EBUSY where the device carries another pool's header.  A crash in the
 * middle leaves either no pool or a whole one.
 */
int cow_pool_init (const struct cow_init_options *o, struct cow_error *err);

/* Open the pool spec, "DIR" or "NAME:DIR" (the default name is the last
 * part of DIR).  Takes the pool's lock: -EBUSY (code "pool-busy") where
 * another process has it.  Starts threads: call after fork.
 */
int cow_pool_open (const char *spec, const struct cow_pool_options *o,
                   struct cow_pool **pool, struct cow_error *err);

/* Commit, stop the threads, unlock, free.  All volumes must be closed.
 * 0 or the error of the last commit; the pool is gone in either case.
 */
int cow_pool_close (struct cow_pool *pool);

const char *cow_pool_name (const struct cow_pool *pool);
const char *cow_pool_dir (const struct cow_pool *pool); /* absolute */
void cow_pool_stat (struct cow_pool *pool, struct cow_pool_stat *st);

/* Make everything durable that was done before the call.  Blocks. */
int cow_pool_flush (struct cow_pool *pool);

/* Split "[NAME:]DIR" into newly allocated parts; 0, -EINVAL or -ENOMEM. */
int cow_pool_split (const char *spec, char **name, char **dir,
                    struct cow_error *err);

/* ---- Objects ---- */

struct cow_volume_info {
  char name[264];               /* VOLUME or VOLUME@SNAP */
  uint64_t id;                  /* never reused in a pool */
  uint64_t size;
  uint64_t created;             /* seconds since the epoch */
  bool is_snapshot, thick, readonly;
  bool damaged;                 /* a record of it failed validation */
  unsigned nr_snapshots;
  unsigned nr_open, nr_open_rw; /* handles */
  uint64_t reserved;
  /* Only from cow_volume_info: they take a walk of the map. */
  uint64_t allocated;           /* whole chunks it refers to */
  uint64_t exclusive;           /* of these, freed by deleting it */
  uint64_t shared;              /* of these, shared with others */
};

/* Call fn for every volume, each followed by its snapshots oldest first,
 * sorted by name; stops at the first non-zero return, which it returns.
 * fn sees a copy and may call anything.  The walk fields are zero.
 */
int cow_volume_list (struct cow_pool *pool,
                     int (*fn) (void *opaque,
                                const struct cow_volume_info *info),
                     void *opaque);

/* All fields.  Reads the map: time grows with what is mapped. */
int cow_volume_info (struct cow_pool *pool, const char *name,
                     struct cow_volume_info *info, struct cow_error *err);

/* Error codes: not-found exists invalid-name invalid-size busy
 * has-snapshots read-only no-space damaged io-error too-large
 */

/* Flags: COW_THICK COW_NOSYNC.  Size 0 is allowed; at most 2^63-1 rounded
 * down to a chunk ("too-large").
 */
int cow_volume_create (struct cow_pool *pool, const char *name,
                       uint64_t size, unsigned flags, struct cow_error *err);

/* A volume or a snapshot.  Flags: COW_SNAPSHOTS COW_FORCE COW_NOSYNC.
 * The space returns in the background.
 */
int cow_volume_remove (struct cow_pool *pool, const char *name,
                       unsigned flags, struct cow_error *err);

/* A volume (its snapshots follow) or VOL@A to VOL@B. */
int cow_volume_rename (struct cow_pool *pool, const char *from,
                       const char *to, unsigned flags,
                       struct cow_error *err);

/* Flags: COW_SHRINK COW_FORCE COW_NOSYNC.  Open handles keep the size they
 * were opened with when it grows.
 */
int cow_volume_resize (struct cow_pool *pool, const char *name,
                       uint64_t size, unsigned flags, struct cow_error *err);

/* VOLUME@SNAP...; all at one instant, or none. */
int cow_snapshot_create (struct cow_pool *pool, const char *const *names,
                         size_t nr_names, unsigned flags,
                         struct cow_error *err);

/* A new writable volume with the content of a volume or snapshot. */
int cow_volume_clone (struct cow_pool *pool, const char *source,
                      const char *name, unsigned flags,
                      struct cow_error *err);

/* VOLUME@SNAP: the volume gets the snapshot's content and size.
 * Flags: COW_FORCE COW_NOSYNC.
 */
int cow_volume_rollback (struct cow_pool *pool, const char *snapshot,
                         unsigned flags, struct cow_error *err);

/* ---- Open objects ---- */

/* Flags: COW_RDONLY.  A handle is bound to the object's id: renaming does
 * not disturb it.  Snapshots open read-only whatever is asked.
 */
int cow_volume_open (struct cow_pool *pool, const char *name,
                     unsigned flags, struct cow_volume **v,
                     struct cow_error *err);
void cow_volume_close (struct cow_volume *v);

uint64_t cow_volume_size (const struct cow_volume *v); /* as when opened */
bool cow_volume_readonly (const struct cow_volume *v);
struct cow_pool *cow_volume_pool (const struct cow_volume *v);

/* Data operations.  The range must lie within the size (-EINVAL; pwrite
 * -ENOSPC), any offset and length, zero length is a no-op.  They block on
 * I/O.  -ESHUTDOWN after the object was removed by force, rolled back or
 * shrunk; -EROFS on a read-only handle or pool; -ENOSPC where space is
 * needed and there is none; -EIO for damage (logged with its place).
 */
int cow_volume_pread (struct cow_volume *v, void *buf, size_t len,
                      uint64_t offset);
/* COW_FUA COW_DETECT_ZEROES */
int cow_volume_pwrite (struct cow_volume *v, const void *buf, size_t len,
                       uint64_t offset, unsigned flags);
/* COW_FUA COW_FAST COW_NO_HOLE.  The range reads as zero afterwards. */
int cow_volume_zero (struct cow_volume *v, uint64_t len, uint64_t offset,
                     unsigned flags);
/* COW_FUA.  As zero, but ragged edges keep their old content where no
 * space can be had to zero them.
 */
int cow_volume_trim (struct cow_volume *v, uint64_t len, uint64_t offset,
                     unsigned flags);
int cow_volume_flush (struct cow_volume *v);
/* Bring data into the page cache; allocates nothing. */
int cow_volume_cache (struct cow_volume *v, uint64_t len, uint64_t offset);

#define COW_EXTENT_HOLE 1       /* not allocated */
#define COW_EXTENT_ZERO 2       /* reads as zero */
#define COW_EXTENT_SHARED 4     /* data: not exclusively this volume's */

struct cow_extent {
  uint64_t offset, length;
  unsigned flags;
  uint64_t data_offset;         /* in the pool's data file; data only */
};

/* Report [offset, offset+len) as adjoining extents in order, neighbours
 * with the same flags merged (data_offset too, with COW_EXTENTS_PHYSICAL),
 * clipped to the range, at most max of them; the last may end early when
 * max is reached.  fn's non-zero return stops it and is returned.
 */
#define COW_EXTENTS_PHYSICAL (1u << 16)
int cow_volume_extents (struct cow_volume *v, uint64_t len, uint64_t offset,
                        size_t max, unsigned flags,
                        int (*fn) (void *opaque,
                                   const struct cow_extent *extent),
                        void *opaque);

/* Ranges in which b may differ from a, as extents with COW_EXTENT_ZERO where
 * b reads as zero; ranges that cannot differ are not reported.  Both must be
 * of one pool.  Exact to the block; beyond a's size everything that b has
 * mapped differs.
 */
int cow_volume_diff (struct cow_volume *a, struct cow_volume *b,
                     uint64_t len, uint64_t offset, size_t max,
                     int (*fn) (void *opaque,
                                const struct cow_extent *extent),
                     void *opaque);

/* ---- Check ---- */

struct cow_check_fault {
  char where[300];              /* "volume v, node 17 (leaf 3)" */
  char what[300];
  bool lasting;                 /* repair can only isolate it */
  bool repaired;
};

struct cow_check_result {
  struct cow_check_fault *faults;
  size_t nr_faults;             /* at most 1000 are kept */
  uint64_t faults_total;
  uint64_t leaked;              /* bytes; reclaimed by themselves */
  bool repaired;
};

/* Verify every structure and count of the pool in dir.  Without repair it
 * only reads, and also works beside a server (it sees the last commit).
 * With repair it needs the pool's lock.  0 when it could check, whatever it
 * found.  progress may be NULL.
 */
int cow_pool_check (const char *dir, bool repair,
                    struct cow_check_result *result,
                    void (*progress) (void *opaque, uint64_t done,
                                      uint64_t total),
                    void *opaque, struct cow_error *err);
void cow_check_result_free (struct cow_check_result *result);

/* ---- Background work of a pool ---- */

struct cow_job_info {
  uint64_t id;
  char op[32];                  /* "delete", "fold", ... */
  char source[300], destination[300];
  char state[16];               /* running done failed cancelled */
  uint64_t done, total;         /* nodes or bytes; total 0: unknown */
  uint64_t rate;                /* per second */
  uint64_t started, ended;      /* seconds; ended 0 while running */
  char error[300];
};

/* All jobs that run and the last 100 that ended, oldest first. */
int cow_job_list (struct cow_pool *pool,
                  int (*fn) (void *opaque, const struct cow_job_info *job),
                  void *opaque);
/* Wait until job id has ended or timeout_ms passed (-ETIMEDOUT); -ENOENT. */
int cow_job_wait (struct cow_pool *pool, uint64_t id, unsigned timeout_ms,
                  struct cow_job_info *job);
/* -ENOENT; -EINVAL where it cannot be cancelled (a deletion). */
int cow_job_cancel (struct cow_pool *pool, uint64_t id);

#endif /* COW_VOLUME_H */
