/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a local pool and how they hang together.
 *
 *   tree.c    the maps: walk, shadow (copy on write), cut
 *   counts.c  reference counts of nodes and chunks, the unshared set
 *   space.c   which chunks are free, where new ones go, punching
 *   cache.c   cached tree nodes and count pages, dirty and frozen state
 *   commit.c  generations: freeze, sync, store, release; flush
 *   reap.c    the delete queue and punching, in the background
 *   fold.c    merging chunk pairs
 *   io.c      read, write, zero, trim
 *   walk.c    extents, diff, info
 *   table.c   names, handles, objects
 *   volumes.c the control operations on them
 *   pool.c    init, open, close
 *
 * THE MAP LOCK.  One reader-writer lock per pool, map_lock, stands for the
 * change lock, the node latches and the allocator's lock: readers look
 * things up, a writer carries out one whole step (copy a node and count its
 * children; install entries; free a node's children and its queue record;
 * freeze a commit).  It is never held across I/O, so a step is a few
 * microseconds, far below what a request costs in nbdkit; and every rule
 * that several of those locks would have to keep together (a step is in
 * one generation, counts agree with pointers, an install sees what it
 * compared) holds because nobody sees the middle of a step.
 *
 * Since nothing may be loaded under it, a step that needs a node or count
 * page that is not cached changes nothing, notes what is missing in struct
 * miss and returns -EAGAIN; the caller drops the lock, loads it
 * (cow_cache_load) and starts the step again.
 *
 * Lock order: control_lock -> structure lock of volumes (by id) -> in-flight
 * ranges -> table_lock (names, handles) -> map_lock -> the mutexes of
 * committer, reaper, epoch and store, each a leaf.  Nobody waits for
 * durability with any of them held.
 */
#ifndef COW_LOCAL_H
#define COW_LOCAL_H

#include <pthread.h>

#include "entry.h"
#include "pool-ops.h"
#include "store.h"
#include "types.h"

/* ---- cache.c ---- */

enum object_kind { OBJ_NODE = STORE_NODE,
                   OBJ_CHUNK_COUNTS = STORE_CHUNK_COUNTS,
                   OBJ_NODE_COUNTS = STORE_NODE_COUNTS };

/* A cached record.  All fields under map_lock; `referenced` is also set by
 * readers (relaxed).
 */
struct object {
  uint64_t id;
  uint8_t kind;                 /* enum object_kind */
  uint8_t level;                /* of a node */
  bool dirty;                   /* changed since the last freeze */
  bool frozen;                  /* in the commit under way */
  bool dead;                    /* removed; kept only for the commit */
  bool referenced;              /* used since the clock hand passed */
  uint32_t nr_held;             /* count page: COUNT_HELD values */
  struct object *hash_next;
  struct object *clock_prev, *clock_next;
  struct object *dirty_prev, *dirty_next;
  void *snapshot;               /* payload as frozen, if changed since */
  union {
    struct entry entry[LEAF_ENTRIES];
    uint64_t child[INNER_CHILDREN];
    uint32_t count[COUNTS_PER_PAGE];
  };                            /* allocated to the kind's size */
};

struct miss {
  enum object_kind kind;
  uint8_t level;
  uint64_t id;
  uint64_t commits;             /* how many had ended when it was missed */
};

struct cache {
  struct object **bucket;
  size_t nr_buckets, nr_objects;
  struct object *hand;          /* clock list of all objects */
  struct object *dirty_first, *dirty_last;
  uint64_t bytes, dirty_bytes, limit_bytes;
};

/* ---- counts.c ---- */

/* A set of chunk and node numbers (open addressing). */
struct idset {
  uint64_t *slot;
  size_t nr_slots, nr_used;
};

/* ---- space.c ---- */

struct region {
  uint16_t used;                /* chunks in use or held */
  uint16_t free_spans;          /* bit s: the 64 chunks of span s are free */
};

struct chunk_list {
  uint64_t *chunk;
  size_t nr, room;
};

struct space {
  struct region *region;        /* below the high-water mark */
  uint64_t nr_regions, room;
  uint64_t nr_chunks;           /* address space, chunk 0 included */
  uint64_t cap_chunks;          /* how many may be in use */
  uint64_t used;                /* in use or held */
  uint64_t span_cursor;         /* no free span in regions below */
  uint64_t chunk_cursor;        /* no free chunk in regions below */
};

/* ---- commit.c ---- */

struct queue_op {
  uint64_t id;
  uint8_t level;
  bool add;
};

/* What a generation carries besides dirty objects. */
struct changes {
  struct queue_op *queue;       /* delete queue records, in order */
  size_t nr_queue, room_queue;
  uint64_t *dropped;            /* nodes whose record goes */
  size_t nr_dropped, room_dropped;
  uint64_t *gone_volumes;
  size_t nr_gone, room_gone;
  struct chunk_list freed;      /* reusable once this is durable */
  struct idset unshared;
  bool any;                     /* anything at all to store */
};

struct committer {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool running;                 /* somebody leads a cycle */
  uint64_t started, finished;   /* numbers of cycles */
  int last_error;               /* of the last finished cycle */
  bool kick;                    /* the background thread should commit */
  bool stop;
  pthread_t thread;
  bool thread_started;
};

/* ---- epoch.c ---- */

/* Grace periods: a chunk is reused or punched only after all I/O that began
 * before it was freed has ended.
 */
struct epoch {
  pthread_mutex_t lock;         /* one thread moves current on */
  uint64_t current;             /* I/O that begins now belongs to it */
  uint64_t active[2];           /* of current (& 1) and the one before */
};

/* Freed chunks of one durable commit, waiting for their epoch. */
struct freed_batch {
  struct freed_batch *next;
  uint64_t epoch;
  struct chunk_list chunks;
};

/* ---- reap.c ---- */

struct queued {
  uint64_t id;
  uint8_t level;
};

struct reaper {
  pthread_mutex_t lock;
  pthread_cond_t changed;       /* work came, or work was done */
  bool stop, kick;
  uint64_t rounds_started, rounds;      /* passes over all work; completed */
  uint64_t released;            /* chunks given back so far */
  unsigned nr_waiting;          /* writers that need space */
  bool folding;                 /* the thread's own: a pass is under way */
  pthread_t thread;
  bool thread_started;
  struct freed_batch *batches;  /* oldest first; under lock */
};

/* ---- volumes.c ---- */

#define NR_HINTS 32
#define NR_PENDING 32

/* A chunk that writers are filling and that no map refers to yet.  Writers
 * of other blocks of the same hole or shared chunk join it, so that small
 * sequential writes at a high queue depth do not allocate twice.
 */
struct pending {
  uint64_t index;               /* chunk number in the volume */
  chunk_t chunk;
  unsigned users;               /* 0: free slot */
  bool installed;               /* a map refers, or referred, to it */
};

struct local_volume {
  struct cow_object obj;        /* generic part: locks, ranges, handles */
  struct local_volume *hash_next;
  struct local_volume *parent;  /* snapshot: its volume */
  struct local_volume **snapshot; /* volume: oldest first; table_lock */
  unsigned nr_snapshots;
  struct store_volume row;      /* name: table_lock; root, level: map_lock */
  bool row_dirty, row_frozen;   /* in dirty_next, frozen_next; map_lock */
  struct store_volume frozen_row;
  struct local_volume *dirty_next;   /* list of changed records */
  struct local_volume *frozen_next;  /* the committer's list */
  /* Where chunks of a leaf that is being filled go: map_lock. */
  struct { uint64_t leaf; uint64_t base; } hint[NR_HINTS];
  struct pending pending[NR_PENDING];
  bool gone;                    /* removed by name; table_lock */
  bool released;                /* and its root dropped; map_lock */
};

struct job {
  struct cow_job_info info;
  struct job *next;
};

/* ---- fold.c ---- */

/* After an unclean end, free chunks may still have space in the file. */
struct scavenge {
  bool due;                     /* before threads start; then the reaper's */
};

struct fold {
  bool due;                     /* atomic */
  bool active;                  /* the rest: the reaper's thread */
  uint64_t volume, index;       /* where the pass is */
};

struct local_pool {
  struct cow_pool pool;         /* generic part */
  struct store_pool conf;
  struct cow_store *store;
  int lock_fd, data_fd;
  bool is_device;
  uint64_t chunk_size, block_size;
  unsigned chunk_shift, block_shift;
  int read_only;                /* errno of why, or 0; atomic */
  unsigned commit_interval_ms;
  unsigned fill_level;          /* 0, 1 warned, 2 critical; committer's */

  pthread_rwlock_t map_lock;
  struct cache cache;
  struct space space;
  struct changes open;          /* the generation that gathers */
  struct changes frozen;        /* the one being committed */
  uint64_t next_node, next_volume; /* map_lock */
  struct queued *queue;         /* nodes to be freed, a stack; map_lock */
  size_t nr_queue, room_queue;
  size_t nr_stuck;              /* at the bottom: they cannot be read */
  bool fs_full;                 /* no ballast: allocate nothing; atomic */
  struct local_volume *dirty_volumes;   /* map_lock */
  uint64_t commits;             /* finished, for cow_cache_load; map_lock */

  pthread_mutex_t control_lock; /* one control operation at a time */
  pthread_mutex_t table_lock;
  struct local_volume **by_name;
  size_t nr_name_buckets;
  struct local_volume **all;    /* every object, for scans */
  size_t nr_all, room_all;
  size_t nr_gone;               /* of these, removed by name */

  struct committer committer;
  struct epoch epoch;
  struct reaper reaper;
  struct fold fold;
  struct scavenge scavenge;

  pthread_mutex_t job_lock;
  pthread_cond_t job_changed;
  struct job *jobs;
  uint64_t next_job;
};

#define LOCAL_POOL(p) ((struct local_pool *) (p))
#define LOCAL_VOLUME(o) ((struct local_volume *) (o))

#endif /* COW_LOCAL_H */
