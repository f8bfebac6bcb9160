/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, opening and closing a local pool.
 *
 * A pool directory holds `lock` (flock'ed by whoever has the pool open),
 * `meta.db*` (store.c), `data` (or a device instead) and `ballast`.  Making
 * one writes meta.db under another name last, so that a crash leaves either
 * no pool or a whole one.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "cache.h"
#include "changes.h"
#include "cleanup.h"
#include "commit.h"
#include "data.h"
#include "epoch.h"
#include "io.h"
#include "log.h"
#include "names.h"
#include "pack.h"
#include "reap.h"
#include "space.h"
#include "volumes.h"
#include "walk.h"

#define DEFAULT_CHUNK (UINT64_C (64) << 10)
#define MIN_CHUNK (UINT64_C (4) << 10)
#define MAX_CHUNK (UINT64_C (1) << 20)
#define DEFAULT_CACHE (UINT64_C (256) << 20)
#define MIN_CACHE (UINT64_C (1) << 20)
/* A data file may spread its chunks over more than its capacity, so that
 * volumes keep spans of their own.
 */
#define SPREAD 8

/* ---- Small parts ---- */

static int
path_error (struct cow_error *err, const char *doing, const char *path)
{
  int e = errno;

  return cow_error_set (err, e, e == ENOSPC ? "no-space" :
                        e == ENOENT ? "not-found" : "io-error",
                        "cannot %s %s: %s", doing, path, strerror (e));
}

static int
make_uuid (char *uuid)
{
  unsigned char b[16];

  if (getrandom (b, sizeof b, 0) != sizeof b)
    return -EIO;
  b[6] = (b[6] & 0x0f) | 0x40;
  b[8] = (b[8] & 0x3f) | 0x80;
  sprintf (uuid, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
           "%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5],
           b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
  return 0;
}

static int
sync_dir (const char *dir)
{
  CLEANUP_CLOSE int fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  return fd == -1 || fsync (fd) == -1 ? -errno : 0;
}

int
cow_pool_split (const char *spec, char **name, char **dir,
                struct cow_error *err)
{
  const char *colon = strchr (spec, ':');
  const char *slash = strchr (spec, '/');
  size_t len;

  *name = *dir = NULL;
  if (colon && (slash == NULL || colon < slash)) {
    *name = strndup (spec, colon - spec);
    *dir = strdup (colon + 1);
  }
  else {
    const char *end = spec + strlen (spec), *start;

    while (end > spec + 1 && end[-1] == '/')
      end--;
    for (start = end; start > spec && start[-1] != '/'; start--)
      ;
    *name = strndup (start, end - start);
    *dir = strdup (spec);
  }
  len = *dir ? strlen (*dir) : 0;
  while (len > 1 && (*dir)[len - 1] == '/')
    (*dir)[--len] = 0;
  if (*name && *dir && len > 0 &&
      (cow_name_valid (*name) || colon == NULL || colon > slash))
    return 0;
  free (*name);
  free (*dir);
  *name = *dir = NULL;
  return cow_error_set (err, EINVAL, "invalid-name",
                        "'%.200s' is not a pool: [NAME:]DIRECTORY is "
                        "expected", spec);
}

/* ---- Init ---- */

static int
check_init (const struct cow_init_options *o, uint64_t chunk,
            struct cow_error *err)
{
  if (chunk < MIN_CHUNK || chunk > MAX_CHUNK || (chunk & (chunk - 1)))
    return cow_error_set (err, EINVAL, "invalid-size",
                          "chunk size %llu: a power of two from 4K to 1M is "
                          "expected", (unsigned long long) chunk);
  if (o->capacity != 0 && o->capacity < chunk * LEAF_ENTRIES)
    return cow_error_set (err, EINVAL, "invalid-size",
                          "capacity %llu is too small: at least 64 chunks "
                          "(%llu bytes) are expected",
                          (unsigned long long) o->capacity,
                          (unsigned long long) chunk * LEAF_ENTRIES);
  if (o->capacity / chunk > MAX_CHUNK_NR)
    return cow_error_set (err, EINVAL, "too-large",
                          "capacity %llu is too large for chunks of %llu",
                          (unsigned long long) o->capacity,
                          (unsigned long long) chunk);
  return 0;
}

static int
device_size (int fd, const char *path, uint64_t *size, struct cow_error *err)
{
  struct stat st;

  if (fstat (fd, &st) == -1)
    return path_error (err, "look at", path);
  if (!S_ISBLK (st.st_mode))
    return cow_error_set (err, ENOTBLK, "invalid-device",
                          "%s is not a block device", path);
  if (ioctl (fd, BLKGETSIZE64, size) == -1)
    return path_error (err, "get the size of", path);
  return 0;
}

/* Open the device of a new pool and see that nobody else's pool is on it. */
static int
claim_device (const char *path, uint64_t chunk, struct cow_error *err)
{
  CLEANUP_CLOSE int fd = open (path, O_RDWR | O_CLOEXEC | O_EXCL);
  uint64_t size, other_chunk;
  char uuid[37];
  int r;

  if (fd == -1)
    return path_error (err, "open the device", path);
  r = device_size (fd, path, &size, err);
  if (r < 0)
    return r;
  if (size < chunk * (LEAF_ENTRIES + 1))
    return cow_error_set (err, EINVAL, "invalid-device",
                          "%s has %llu bytes: at least %llu are needed", path,
                          (unsigned long long) size,
                          (unsigned long long) chunk * (LEAF_ENTRIES + 1));
  r = cow_data_read_header (fd, uuid, &other_chunk);
  if (r == 0)
    return cow_error_set (err, EBUSY, "busy",
                          "%s already holds the data of pool %s; to use it "
                          "all the same, wipe its first 4096 bytes", path,
                          uuid);
  return 0;
}

static int
write_data (const struct cow_init_options *o, const struct store_pool *conf,
            struct cow_error *err)
{
  CLEANUP_FREE char *path = NULL;
  CLEANUP_CLOSE int fd = -1;
  int r;

  if (asprintf (&path, "%s/data", o->dir) < 0)
    return -ENOMEM;
  fd = o->device ? open (o->device, O_RDWR | O_CLOEXEC)
    : open (path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd == -1)
    return path_error (err, "open", o->device ? o->device : path);
  r = cow_data_write_header (fd, conf->uuid, conf->chunk_size);
  if (r == 0 && fsync (fd) == -1)
    r = -errno;
  if (r < 0) {
    errno = -r;
    return path_error (err, "write", o->device ? o->device : path);
  }
  return 0;
}

/* meta.db is made in a folder of its own and moved in at the end. */
static int
write_metadata (const char *dir, const struct store_pool *conf,
                struct cow_error *err)
{
  CLEANUP_FREE char *tmp = NULL, *from = NULL, *to = NULL;
  int r;

  if (asprintf (&tmp, "%s/init.tmp", dir) < 0 ||
      asprintf (&from, "%s/init.tmp/meta.db", dir) < 0 ||
      asprintf (&to, "%s/meta.db", dir) < 0)
    return -ENOMEM;
  unlink (from);                /* of an interrupted attempt */
  if (mkdir (tmp, 0700) == -1 && errno != EEXIST)
    return path_error (err, "make", tmp);
  r = cow_store_create (tmp, conf, err);
  if (r == 0 && rename (from, to) == -1)
    r = path_error (err, "rename", from);
  unlink (from);
  rmdir (tmp);
  if (r == 0 && sync_dir (dir) < 0)
    r = path_error (err, "sync", dir);
  return r;
}

static int
refuse_existing (const char *dir, struct cow_error *err)
{
  static const char *const parts[] = { "meta.db", "data" };
  CLEANUP_FREE char *path = NULL;
  struct stat st;
  unsigned i;

  for (i = 0; i < 2; i++) {
    free (path);
    if (asprintf (&path, "%s/%s", dir, parts[i]) < 0)
      return -ENOMEM;
    if (i == 0 && stat (path, &st) == 0)
      return cow_error_set (err, EEXIST, "exists",
                            "%s already holds a pool", dir);
    if (i == 1 && stat (path, &st) == 0 && st.st_size > DATA_HEADER_SIZE)
      return cow_error_set (err, EEXIST, "exists",
                            "%s holds the data of a pool (%s) without its "
                            "meta.db: it is left alone", dir, path);
  }
  return 0;
}

static int lock_pool (const char *dir, int *fd, struct cow_error *err);

int
cow_pool_init (const struct cow_init_options *o, struct cow_error *err)
{
  struct store_pool conf = { .capacity = o->capacity, .next_node = 1,
                             .next_volume = 1, .created = time (NULL) };
  CLEANUP_CLOSE int lock = -1;
  int r;

  conf.chunk_size = o->chunk_size ? o->chunk_size : DEFAULT_CHUNK;
  r = check_init (o, conf.chunk_size, err);
  if (r == 0 && make_uuid (conf.uuid) < 0)
    r = cow_error_set (err, EIO, "io-error", "no random numbers");
  if (r < 0)
    return r;
  if (mkdir (o->dir, 0700) == 0) {
    CLEANUP_FREE char *parent = NULL;

    if (asprintf (&parent, "%s/..", o->dir) < 0)
      return -ENOMEM;
    if (sync_dir (parent) < 0)
      return path_error (err, "sync", parent);
  }
  else if (errno != EEXIST)
    return path_error (err, "make", o->dir);
  r = refuse_existing (o->dir, err);
  if (r == 0 && o->device) {
    CLEANUP_FREE char *abs = realpath (o->device, NULL);

    if (abs == NULL)
      return path_error (err, "find", o->device);
    snprintf (conf.device, sizeof conf.device, "%s", abs);
    r = claim_device (o->device, conf.chunk_size, err);
  }
  if (r == 0)
    r = lock_pool (o->dir, &lock, err);
  if (r == 0)
    r = refuse_existing (o->dir, err);
  if (r == 0)
    r = write_data (o, &conf, err);
  if (r == 0)
    r = write_metadata (o->dir, &conf, err);
  return r;
}

/* ---- Open ---- */

static int
lock_pool (const char *dir, int *fd, struct cow_error *err)
{
  CLEANUP_FREE char *path = NULL;

  if (asprintf (&path, "%s/lock", dir) < 0)
    return -ENOMEM;
  *fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (*fd == -1)
    return path_error (err, "open", path);
  if (flock (*fd, LOCK_EX | LOCK_NB) == -1) {
    if (errno == EWOULDBLOCK)
      return cow_error_set (err, EBUSY, "pool-busy",
                            "pool %s is in use by another process (a server "
                            "or another command)", dir);
    return path_error (err, "lock", path);
  }
  return 0;
}

/* The largest file that the file system of the pool takes, in bytes, tried
 * out on a nameless file.
 */
static uint64_t
largest_file (const char *dir)
{
  CLEANUP_CLOSE int fd = open (dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  uint64_t size = UINT64_C (1) << 62;

  if (fd == -1)
    return UINT64_C (1) << 41;  /* ext4 with 1 KiB blocks: less than any */
  for (; size > UINT64_C (1) << 32; size >>= 1)
    if (ftruncate (fd, size - (UINT64_C (1) << 20)) == 0)
      break;
  return size - (UINT64_C (1) << 20);
}

static int
open_data (struct local_pool *p, struct cow_error *err)
{
  CLEANUP_FREE char *path = NULL;
  const char *shown;
  char uuid[37] = "";
  uint64_t chunk_size;
  int r;

  p->is_device = p->conf.device[0] != 0;
  if (asprintf (&path, "%s/data", p->pool.dir) < 0)
    return -ENOMEM;
  shown = p->is_device ? p->conf.device : path;
  p->data_fd = open (shown, O_RDWR | O_CLOEXEC | (p->is_device ? O_EXCL : 0));
  if (p->data_fd == -1)
    return path_error (err, "open the pool's data", shown);
  r = cow_data_read_header (p->data_fd, uuid, &chunk_size);
  if (r == -ENOENT)
    return cow_error_set (err, EIO, "damaged",
                          "%s does not hold a pool's data (no header)", shown);
  if (r < 0)
    return cow_error_set (err, EIO, "damaged",
                          "the header of %s cannot be read or is damaged",
                          shown);
  if (strcmp (uuid, p->conf.uuid) != 0 || chunk_size != p->conf.chunk_size)
    return cow_error_set (err, EIO, "wrong-device",
                          "%s holds the data of pool %s; %s/meta.db belongs "
                          "to pool %s", shown, uuid, p->pool.dir,
                          p->conf.uuid);
  return 0;
}

static int
measure (struct local_pool *p, struct cow_error *err)
{
  struct space *s = &p->space;
  uint64_t bytes, cap = p->conf.capacity >> p->chunk_shift;
  int r;

  if (p->is_device) {
    r = device_size (p->data_fd, p->conf.device, &bytes, err);
    if (r < 0)
      return r;
    s->nr_chunks = (bytes >> p->chunk_shift) & ~(uint64_t) (LEAF_ENTRIES - 1);
    s->cap_chunks = s->nr_chunks - 1;
    if (cap && cap < s->cap_chunks)
      s->cap_chunks = cap;
    return 0;
  }
  s->nr_chunks = largest_file (p->pool.dir) >> p->chunk_shift;
  if (s->nr_chunks > MAX_CHUNK_NR)
    s->nr_chunks = MAX_CHUNK_NR;
  if (cap && s->nr_chunks / SPREAD > cap + COUNTS_PER_PAGE)
    s->nr_chunks = (cap + COUNTS_PER_PAGE) * SPREAD;
  s->nr_chunks &= ~(uint64_t) (LEAF_ENTRIES - 1);
  s->cap_chunks = cap && cap < s->nr_chunks - 1 ? cap : s->nr_chunks - 1;
  return 0;
}

static int
load_region (void *opaque, uint64_t page, unsigned used, unsigned spans)
{
  return cow_space_set_region (opaque, page, used, spans);
}

static int
load_queued (void *opaque, uint64_t id, unsigned level)
{
  struct local_pool *p = opaque;
  struct queued *bigger;

  if (level > MAX_LEVEL)
    return -EIO;
  if (p->nr_queue == p->room_queue) {
    size_t room = p->room_queue ? p->room_queue * 2 : 64;

    bigger = realloc (p->queue, room * sizeof *bigger);
    if (bigger == NULL)
      return -ENOMEM;
    p->queue = bigger;
    p->room_queue = room;
  }
  p->queue[p->nr_queue++] = (struct queued) { id, level };
  return 0;
}

/* Chunk 0 holds the header: its count is 1 from the first open on. */
static int
reserve_chunk_0 (struct local_pool *p)
{
  struct miss miss = { .kind = OBJ_CHUNK_COUNTS, .id = 0 };
  struct object *o;
  int r = cow_cache_load (p, &miss);

  if (r < 0)
    return r;
  r = cow_space_set_region (p, 0, p->space.nr_regions
                            ? p->space.region[0].used : 0,
                            p->space.nr_regions
                            ? p->space.region[0].free_spans : 0xffff);
  pthread_rwlock_wrlock (&p->map_lock);
  o = cow_cache_get (p, OBJ_CHUNK_COUNTS, 0, 0, &miss);
  if (o && o->count[0] == 0 && cow_cache_dirty (p, o) == 0) {
    o->count[0] = 1;
    p->space.region[0].used++;
    p->space.region[0].free_spans &= ~1u;
  }
  pthread_rwlock_unlock (&p->map_lock);
  return r;
}

static int
load_state (struct local_pool *p, struct cow_error *err)
{
  int r = cow_store_each_region (p->store, load_region, p);

  if (r == 0)
    r = reserve_chunk_0 (p);
  if (r == 0)
    r = cow_space_ready (p);
  if (r == 0)
    r = cow_store_each_queued (p->store, load_queued, p);
  if (r == 0)
    return cow_volumes_load (p, err);
  return cow_error_set (err, -r, "damaged",
                        "pool %s: %s/meta.db: the summary of free space or "
                        "the delete queue cannot be read: %s", p->pool.name,
                        p->pool.dir, strerror (-r));
}

static void
init_locks (struct local_pool *p)
{
  cow_rwlock_init (&p->map_lock);
  pthread_mutex_init (&p->control_lock, NULL);
  pthread_mutex_init (&p->table_lock, NULL);
  pthread_mutex_init (&p->committer.lock, NULL);
  pthread_cond_init (&p->committer.changed, NULL);
  pthread_mutex_init (&p->epoch.lock, NULL);
  p->epoch.current = 2;
  pthread_mutex_init (&p->reaper.lock, NULL);
  pthread_cond_init (&p->reaper.changed, NULL);
  pthread_mutex_init (&p->job_lock, NULL);
  pthread_cond_init (&p->job_changed, NULL);
}

static void
destroy (struct local_pool *p)
{
  cow_volumes_free (p);
  cow_cache_destroy (p);
  cow_changes_clear (&p->open);
  cow_changes_clear (&p->frozen);
  cow_jobs_free (p);
  cow_reap_free (p);
  free (p->space.region);
  free (p->queue);
  if (p->store)
    cow_store_close (p->store);
  if (p->data_fd >= 0)
    close (p->data_fd);
  if (p->lock_fd >= 0)
    close (p->lock_fd);
  free (p->pool.name);
  free (p->pool.dir);
  free (p);
}

static void
apply_options (struct local_pool *p, const struct cow_pool_options *o)
{
  if (o)
    p->pool.options = *o;
  o = &p->pool.options;
  p->commit_interval_ms = o->commit_interval_ms ? o->commit_interval_ms
    : 5000;
  if (p->pool.options.warn_at_percent == 0)
    p->pool.options.warn_at_percent = 80;
  if (p->pool.options.critical_at_percent == 0)
    p->pool.options.critical_at_percent = 95;
}

static const struct cow_pool_ops local_ops;

/* Make the path absolute: the server changes its working directory. */
static int
resolve_dir (struct local_pool *p, struct cow_error *err)
{
  char *abs = realpath (p->pool.dir, NULL);

  if (abs == NULL)
    return path_error (err, "find the pool", p->pool.dir);
  free (p->pool.dir);
  p->pool.dir = abs;
  return 0;
}

static int
refuse_missing (const struct local_pool *p, struct cow_error *err)
{
  CLEANUP_FREE char *path = NULL;

  if (asprintf (&path, "%s/meta.db", p->pool.dir) < 0)
    return -ENOMEM;
  if (access (path, F_OK) == -1)
    return cow_error_set (err, errno, "not-found", "%s holds no pool (%s: %s)",
                          p->pool.dir, path, strerror (errno));
  return 0;
}

int
cow_pool_open (const char *spec, const struct cow_pool_options *o,
               struct cow_pool **out, struct cow_error *err)
{
  struct local_pool *p = calloc (1, sizeof *p);
  uint64_t cache;
  int r;

  if (p == NULL)
    return cow_error_set (err, ENOMEM, "no-memory", "out of memory");
  p->lock_fd = p->data_fd = -1;
  p->pool.ops = &local_ops;
  init_locks (p);
  apply_options (p, o);
  r = cow_pool_split (spec, &p->pool.name, &p->pool.dir, err);
  if (r == 0)
    r = resolve_dir (p, err);
  if (r == 0)
    r = refuse_missing (p, err);
  if (r == 0)
    r = lock_pool (p->pool.dir, &p->lock_fd, err);
  if (r == 0)
    r = cow_store_open (p->pool.dir, false, &p->store, &p->conf, err);
  if (r == 0)
    r = open_data (p, err);
  if (r < 0)
    goto fail;

  p->chunk_size = p->conf.chunk_size;
  p->block_size = p->pool.block_size = p->chunk_size / BLOCKS_PER_CHUNK;
  p->chunk_shift = __builtin_ctzll (p->chunk_size);
  p->block_shift = __builtin_ctzll (p->block_size);
  p->next_node = p->conf.next_node;
  p->next_volume = p->conf.next_volume;
  cache = p->pool.options.metadata_cache_bytes;
  if (cache == 0)
    cache = DEFAULT_CACHE;
  r = cow_cache_init (p, cache < MIN_CACHE ? MIN_CACHE : cache);
  if (r == 0)
    r = measure (p, err);
  if (r == 0)
    r = load_state (p, err);
  if (r < 0)
    goto fail;
  cow_ballast_open (p);
  p->scavenge.due = !p->conf.clean;
  /* Should this fail (a full disk), a later open punches nothing: the mark
   * says no more than that.
   */
  if (p->conf.ro_compat != 0) {
    cow_log (COW_LOG_WARNING, "pool %s has features (0x%llx) that this "
             "version only knows how to read: it is read-only",
             p->pool.name, (unsigned long long) p->conf.ro_compat);
    cow_pool_set_read_only (p, EROFS);
  }
  else if (p->conf.clean)
    cow_store_set_clean (p->store, false);
  r = cow_commit_start (p);
  if (r == 0)
    r = cow_reap_start (p);
  if (r < 0) {
    cow_error_set (err, -r, "failed", "cannot start a thread: %s",
                   strerror (-r));
    cow_commit_stop (p);
    goto fail;
  }
  cow_reap_kick (p);
  *out = &p->pool;
  return 0;

 fail:
  if (err && err->errnum == 0)
    cow_error_set (err, -r, "failed", "cannot open pool %s: %s", spec,
                   strerror (-r));
  destroy (p);
  return r;
}

static int
local_close (struct cow_pool *pool)
{
  struct local_pool *p = LOCAL_POOL (pool);
  int r;

  cow_reap_stop (p);
  cow_commit_stop (p);
  r = cow_pool_read_only (p) == EROFS ? 0 :
    cow_pool_read_only (p) ? -EIO : cow_commit_flush (p);
  if (cow_pool_read_only (p) == 0 && r == 0 && p->reaper.batches == NULL)
    cow_store_set_clean (p->store, true);
  destroy (p);
  return r;
}

/* ---- Numbers ---- */

static uint64_t
fs_free (const struct local_pool *p)
{
  struct statvfs vfs;

  if (p->is_device || fstatvfs (p->data_fd, &vfs) == -1)
    return UINT64_MAX;
  return (uint64_t) vfs.f_bavail * vfs.f_frsize;
}

static void
local_stat (struct cow_pool *pool, struct cow_pool_stat *st)
{
  struct local_pool *p = LOCAL_POOL (pool);
  uint64_t left = fs_free (p), percent;
  size_t i;

  memset (st, 0, sizeof *st);
  st->chunk_size = p->chunk_size;
  st->block_size = p->block_size;
  st->warn_at = pool->options.warn_at_percent;
  st->critical_at = pool->options.critical_at_percent;
  st->metadata_bytes = cow_store_bytes (p->store);
  pthread_rwlock_rdlock (&p->map_lock);
  st->used = p->space.used << p->chunk_shift;
  st->capacity = p->space.cap_chunks << p->chunk_shift;
  st->deleting = p->nr_queue;
  pthread_rwlock_unlock (&p->map_lock);
  st->free = st->capacity > st->used ? st->capacity - st->used : 0;
  if (left < st->free) {
    st->free = left;
    if (p->conf.capacity == 0)
      st->capacity = st->used + left;
  }
  percent = st->capacity ? (st->capacity - st->free) * 100.0 / st->capacity
    : 100;
  st->state = cow_pool_read_only (p) ? "read-only" :
    st->free < p->chunk_size ? "full" :
    percent >= st->critical_at ? "critical" :
    percent >= st->warn_at ? "warning" : "ok";
  pthread_mutex_lock (&p->table_lock);
  for (i = 0; i < p->nr_all; i++)
    if (!p->all[i]->gone) {
      if (p->all[i]->row.parent)
        st->nr_snapshots++;
      else
        st->nr_volumes++;
    }
  pthread_mutex_unlock (&p->table_lock);
}

static int
local_flush (struct cow_pool *pool)
{
  struct local_pool *p = LOCAL_POOL (pool);
  int r = cow_commit_flush (p);

  if (__atomic_load_n (&p->nr_queue, __ATOMIC_RELAXED) > 0)
    cow_reap_kick (p);
  return r;
}

static int
local_reclaim (struct cow_pool *pool)
{
  return cow_reap_wait (LOCAL_POOL (pool));
}

static void
local_admit (struct cow_pool *pool)
{
  cow_commit_admit (LOCAL_POOL (pool));
}

static const struct cow_pool_ops local_ops = {
  .pread = cow_io_pread,
  .pwrite = cow_io_pwrite,
  .zero = cow_io_zero,
  .trim = cow_io_trim,
  .cache = cow_io_cache,
  .extents = cow_walk_extents,
  .diff = cow_walk_diff,
  .admit = local_admit,
  .reclaim = local_reclaim,
  .flush = local_flush,
  .close = local_close,
  .stat = local_stat,
  .list = cow_volumes_list,
  .info = cow_volumes_info,
  .create = cow_volumes_create,
  .remove = cow_volumes_remove,
  .rename = cow_volumes_rename,
  .resize = cow_volumes_resize,
  .snapshot = cow_volumes_snapshot,
  .clone = cow_volumes_clone,
  .rollback = cow_volumes_rollback,
  .get = cow_volumes_get,
  .put = cow_volumes_put,
  .jobs = cow_jobs_list,
  .job_wait = cow_jobs_wait,
  .job_cancel = cow_jobs_cancel,
};
