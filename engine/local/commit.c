/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "cache.h"
#include "changes.h"
#include "cleanup.h"
#include "commit.h"
#include "counts.h"
#include "epoch.h"
#include "log.h"
#include "pack.h"
#include "reap.h"
#include "space.h"

#define MIN_BALLAST (UINT64_C (8) << 20)
#define MAX_BALLAST (UINT64_C (32) << 20)
/* What starting a server takes besides commits: its sockets, a pid file. */
#define STARTING_ROOM (UINT64_C (1) << 20)
/* Dirty records from which a commit starts, and writers wait; no more than
 * what the ballast has room for.
 */
#define DIRTY_KICK (UINT64_C (8) << 20)
#define DIRTY_WAIT (UINT64_C (14) << 20)

/* What one cycle carries from freeze to release. */
struct cycle {
  bool store;                   /* there is something to store */
  struct object **objects;
  size_t nr_objects;
  struct local_volume *volumes; /* by dirty_next */
  uint64_t next_node, next_volume;
};

/* ---- Freeze ---- */

static int
freeze (struct local_pool *p, struct cycle *c)
{
  struct local_volume *v;
  int r = 0;

  pthread_rwlock_wrlock (&p->map_lock);
  c->store = p->open.any;
  /* Under the lock: a step that failed half-way has set it by now. */
  if (cow_pool_read_only (p))
    r = -EIO;
  else if (c->store)
    r = cow_cache_freeze (p, &c->objects, &c->nr_objects);
  if (c->store && r == 0) {
    p->frozen = p->open;
    memset (&p->open, 0, sizeof p->open);
    c->next_node = p->next_node;
    c->next_volume = p->next_volume;
    c->volumes = p->dirty_volumes;
    p->dirty_volumes = NULL;
    for (v = c->volumes; v; v = v->dirty_next) {
      v->row_dirty = false;
      v->row_frozen = true;
      v->frozen_row = v->row;
      v->frozen_next = v->dirty_next;
    }
  }
  pthread_rwlock_unlock (&p->map_lock);
  return r;
}

/* ---- Store ---- */

static int
store_object (struct local_pool *p, const struct object *o)
{
  char buf[PACK_MAX];
  unsigned used = 0, spans = 0;
  const void *payload;
  size_t len;
  int r;

  pthread_rwlock_rdlock (&p->map_lock);
  payload = cow_cache_frozen_payload (o);
  switch (o->kind) {
  case OBJ_NODE:
    len = o->level == 0 ? cow_pack_leaf (o->id, payload, buf)
      : cow_pack_inner (o->id, o->level, payload, buf);
    break;
  case OBJ_CHUNK_COUNTS:
    len = cow_pack_counts (PACK_CHUNK_COUNTS, o->id, payload, buf);
    cow_space_summarise (payload, &used, &spans);
    break;
  default:
    len = cow_pack_counts (PACK_NODE_COUNTS, o->id, payload, buf);
  }
  pthread_rwlock_unlock (&p->map_lock);

  r = cow_store_put (p->store, (enum store_kind) o->kind, o->id, buf, len);
  if (r == 0 && o->kind == OBJ_CHUNK_COUNTS)
    r = cow_store_put_region (p->store, o->id, used, spans);
  return r;
}

static int
store_changes (struct local_pool *p, const struct changes *f)
{
  size_t i;
  int r = 0;

  for (i = 0; r == 0 && i < f->nr_dropped; i++)
    r = cow_store_delete (p->store, STORE_NODE, f->dropped[i]);
  for (i = 0; r == 0 && i < f->nr_queue; i++)
    r = f->queue[i].add
      ? cow_store_put_queued (p->store, f->queue[i].id, f->queue[i].level)
      : cow_store_delete_queued (p->store, f->queue[i].id);
  for (i = 0; r == 0 && i < f->nr_gone; i++)
    r = cow_store_delete_volume (p->store, f->gone_volumes[i]);
  return r;
}

static int
store_cycle (struct local_pool *p, const struct cycle *c)
{
  const struct local_volume *v;
  size_t i;
  int r = cow_store_begin (p->store);

  if (r < 0)
    return r;
  for (i = 0; r == 0 && i < c->nr_objects; i++)
    r = store_object (p, c->objects[i]);
  for (v = c->volumes; r == 0 && v; v = v->frozen_next)
    r = cow_store_put_volume (p->store, &v->frozen_row);
  /* Deletions last: what is gone may also have changed before. */
  if (r == 0)
    r = store_changes (p, &p->frozen);
  if (r == 0)
    r = cow_store_put_pool (p->store, "next_node", c->next_node);
  if (r == 0)
    r = cow_store_put_pool (p->store, "next_volume", c->next_volume);
  if (r == 0)
    r = cow_store_put_pool (p->store, "generation", p->conf.generation + 1);
  if (r == 0)
    r = cow_store_commit (p->store);
  if (r < 0)
    cow_store_rollback (p->store);
  return r;
}

/* ---- Release ---- */

/* The cycle is durable: its freed chunks wait for their epoch. */
static void
release (struct local_pool *p, struct cycle *c)
{
  struct chunk_list freed;
  struct local_volume *v;

  pthread_rwlock_wrlock (&p->map_lock);
  for (v = c->volumes; v; v = v->frozen_next)
    v->row_frozen = false;
  freed = p->frozen.freed;
  memset (&p->frozen.freed, 0, sizeof p->frozen.freed);
  cow_changes_clear (&p->frozen);
  p->conf.generation++;
  p->commits++;
  cow_cache_thaw (p, c->objects, c->nr_objects, true);
  pthread_rwlock_unlock (&p->map_lock);
  cow_reap_freed (p, &freed);
}

/* The cycle failed: all of it is dirty again, under what came since. */
static int
put_back (struct local_pool *p, struct cycle *c)
{
  struct local_volume *v, *next;
  int r;

  pthread_rwlock_wrlock (&p->map_lock);
  r = cow_changes_merge_under (&p->open, &p->frozen);
  p->open.any = true;
  for (v = c->volumes; v; v = next) {
    next = v->frozen_next;
    v->row_frozen = false;
    if (!v->row_dirty) {
      v->row_dirty = true;
      v->dirty_next = p->dirty_volumes;
      p->dirty_volumes = v;
    }
  }
  cow_cache_thaw (p, c->objects, c->nr_objects, false);
  pthread_rwlock_unlock (&p->map_lock);
  return r;
}

/* ---- The cycle ---- */

static int
go_read_only (struct local_pool *p, int r, const char *doing)
{
  cow_log (COW_LOG_ERROR, "pool %s: %s failed: %s; the pool is read-only "
           "until it is opened again, and what was not flushed may be lost",
           p->pool.name, doing, strerror (-r));
  cow_pool_set_read_only (p, -r);
  return r;
}

static int
run_cycle (struct local_pool *p)
{
  struct cycle c = { 0 };
  int r = cow_pool_read_only (p);

  if (r)
    return -EIO;
  r = freeze (p, &c);
  if (r < 0)
    return r;
  if (fdatasync (p->data_fd) == -1) {
    r = go_read_only (p, -errno, "syncing the data");
    goto out;
  }
  if (!c.store)
    goto out;
  r = store_cycle (p, &c);
  if (r == -ENOSPC && cow_ballast_drop (p))
    r = store_cycle (p, &c);
  if (r == 0) {
    release (p, &c);
    goto out;
  }
  /* Busy: somebody else's sqlite3 holds the database; it will let go. */
  if (put_back (p, &c) < 0 || (r != -ENOSPC && r != -EBUSY))
    go_read_only (p, r, "storing the metadata");
 out:
  free (c.objects);
  return r;
}

/* Lead a cycle; the committer's lock is held on entry and exit. */
static void
lead_locked (struct local_pool *p)
{
  struct committer *c = &p->committer;
  int r;

  c->running = true;
  c->started++;
  c->kick = false;
  pthread_mutex_unlock (&c->lock);
  r = run_cycle (p);
  pthread_mutex_lock (&c->lock);
  c->running = false;
  c->finished = c->started;
  c->last_error = r;
  pthread_cond_broadcast (&c->changed);
}

int
cow_commit_flush (struct local_pool *p)
{
  struct committer *c = &p->committer;
  uint64_t want;
  int r;

  pthread_mutex_lock (&c->lock);
  want = c->started + 1;        /* one that has not frozen yet */
  while (c->finished < want) {
    if (!c->running)
      lead_locked (p);
    else
      pthread_cond_wait (&c->changed, &c->lock);
  }
  r = c->last_error;
  pthread_mutex_unlock (&c->lock);
  return r;
}

void
cow_commit_admit (struct local_pool *p)
{
  struct cache *c = &p->cache;
  uint64_t dirty = __atomic_load_n (&c->dirty_bytes, __ATOMIC_RELAXED);

  uint64_t kick = c->limit_bytes / 4, wait = c->limit_bytes / 2;

  cow_cache_trim (p);
  if (dirty < (kick < DIRTY_KICK ? kick : DIRTY_KICK))
    return;
  if (dirty < (wait < DIRTY_WAIT ? wait : DIRTY_WAIT))
    cow_commit_kick (p);
  else
    cow_commit_flush (p);
}

/* ---- Background ---- */

void
cow_commit_kick (struct local_pool *p)
{
  struct committer *c = &p->committer;

  pthread_mutex_lock (&c->lock);
  if (!c->kick) {
    c->kick = true;
    pthread_cond_broadcast (&c->changed);
  }
  pthread_mutex_unlock (&c->lock);
}

static bool
anything_to_store (struct local_pool *p)
{
  bool any;

  pthread_rwlock_rdlock (&p->map_lock);
  any = p->open.any;
  pthread_rwlock_unlock (&p->map_lock);
  return any;
}

/* Tell once when a threshold is crossed upwards. */
static void
watch_fill (struct local_pool *p)
{
  const struct cow_pool_options *o = &p->pool.options;
  static const char *const kinds[] = { "", "threshold-warning",
                                       "threshold-critical" };
  struct cow_pool_stat st;
  unsigned level = 0, before = p->fill_level;
  uint64_t percent;
  char text[200];

  cow_pool_stat (&p->pool, &st);
  percent = st.capacity ? (st.capacity - st.free) * 100.0 / st.capacity : 100;
  if (percent >= st.warn_at)
    level = percent >= st.critical_at ? 2 : 1;
  p->fill_level = level;
  if (level <= before)
    return;
  snprintf (text, sizeof text, "pool %s is %llu%% full: %llu bytes are used, "
            "%llu free", p->pool.name, (unsigned long long) percent,
            (unsigned long long) st.used, (unsigned long long) st.free);
  cow_log (COW_LOG_WARNING, "%s", text);
  if (o->event)
    o->event (o->event_opaque, kinds[level], p->pool.name, "", text);
}

static void *
committer_main (void *opaque)
{
  struct local_pool *p = opaque;
  struct committer *c = &p->committer;
  struct timespec until;

  pthread_mutex_lock (&c->lock);
  while (!c->stop) {
    clock_gettime (CLOCK_REALTIME, &until);
    until.tv_sec += p->commit_interval_ms / 1000;
    until.tv_nsec += p->commit_interval_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
      until.tv_nsec -= 1000000000L;
      until.tv_sec++;
    }
    while (!c->stop && !c->kick &&
           pthread_cond_timedwait (&c->changed, &c->lock, &until) == 0)
      ;
    if (c->stop)
      break;
    pthread_mutex_unlock (&c->lock);
    if (cow_pool_read_only (p) == 0 && anything_to_store (p))
      cow_commit_flush (p);
    cow_ballast_make (p);
    watch_fill (p);
    cow_reap_kick (p);
    pthread_mutex_lock (&c->lock);
    c->kick = false;
  }
  pthread_mutex_unlock (&c->lock);
  return NULL;
}

int
cow_commit_start (struct local_pool *p)
{
  int r = pthread_create (&p->committer.thread, NULL, committer_main, p);

  p->committer.thread_started = r == 0;
  return -r;
}

void
cow_commit_stop (struct local_pool *p)
{
  struct committer *c = &p->committer;

  if (!c->thread_started)
    return;
  pthread_mutex_lock (&c->lock);
  c->stop = true;
  pthread_cond_broadcast (&c->changed);
  pthread_mutex_unlock (&c->lock);
  pthread_join (c->thread, NULL);
  c->thread_started = false;
}

/* ---- Ballast ---- */

/* While the ballast is gone no chunk is allocated: what it gave must serve
 * the metadata, not the next client's data.
 */
static void
set_fs_full (struct local_pool *p, bool full)
{
  __atomic_store_n (&p->fs_full, full, __ATOMIC_RELEASE);
}

static uint64_t
ballast_bytes (const struct statvfs *vfs)
{
  uint64_t part = (uint64_t) vfs->f_blocks * vfs->f_frsize / 16;

  return part < MIN_BALLAST ? MIN_BALLAST
    : part > MAX_BALLAST ? MAX_BALLAST : part;
}

static int
make_ballast (struct local_pool *p)
{
  CLEANUP_FREE char *path = NULL;
  CLEANUP_CLOSE int fd = -1;
  struct statvfs vfs;
  struct stat st;
  uint64_t full, size, avail, want;

  if (asprintf (&path, "%s/ballast", p->pool.dir) < 0)
    return -ENOMEM;
  fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd == -1 || fstat (fd, &st) == -1 || fstatvfs (fd, &vfs) == -1)
    return -errno;
  full = ballast_bytes (&vfs);
  size = st.st_size;
  avail = (uint64_t) vfs.f_bavail * vfs.f_frsize;
  if (size >= full)
    return 0;
  /* All of it, or at least the half that counts as enough. */
  want = avail >= full - size + STARTING_ROOM ? full : full / 2;
  if (want > size && avail >= want - size + STARTING_ROOM) {
    if (fallocate (fd, 0, 0, want) == 0)
      size = want;
    else if (ftruncate (fd, size) == -1)
      return -errno;
  }
  return size >= full / 2 ? 0 : -ENOSPC;
}

/* A file system without room for it counts as full. */
int
cow_ballast_make (struct local_pool *p)
{
  int r = make_ballast (p);

  set_fs_full (p, r == -ENOSPC);
  return r;
}

bool
cow_ballast_drop (struct local_pool *p)
{
  CLEANUP_FREE char *path = NULL;
  struct stat st;

  if (asprintf (&path, "%s/ballast", p->pool.dir) < 0)
    return false;
  if (stat (path, &st) == -1 || st.st_size == 0 || truncate (path, 0) == -1)
    return false;
  set_fs_full (p, true);
  cow_log (COW_LOG_WARNING, "pool %s: the file system is full: the ballast "
           "is released so that deleting and trimming can go on",
           p->pool.name);
  return true;
}

void
cow_ballast_open (struct local_pool *p)
{
  CLEANUP_FREE char *path = NULL;
  struct statvfs vfs;
  struct stat st;

  cow_ballast_make (p);
  if (statvfs (p->pool.dir, &vfs) == -1 ||
      (uint64_t) vfs.f_bavail * vfs.f_frsize >= STARTING_ROOM ||
      asprintf (&path, "%s/ballast", p->pool.dir) < 0 ||
      stat (path, &st) == -1 || (uint64_t) st.st_size < STARTING_ROOM)
    return;
  /* May fail silently: then starting fails, and says so itself. */
  if (truncate (path, st.st_size - STARTING_ROOM) == 0)
    cow_ballast_make (p);
}
