/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cache.h"
#include "changes.h"
#include "commit.h"
#include "data.h"
#include "epoch.h"
#include "fold.h"
#include "log.h"
#include "reap.h"
#include "space.h"
#include "tree.h"
#include "volumes.h"

/* How long to wait for I/O that is older than a freed chunk. */
#define EPOCH_POLL_MS 5
#define RELEASE_BATCH 256
#define SCAVENGE_BATCH 64
/* The slow fold pass: so many leaves, then a pause. */
#define FOLD_LEAVES 64
#define FOLD_PAUSE_MS 20

void
cow_reap_freed (struct local_pool *p, struct chunk_list *freed)
{
  struct reaper *rp = &p->reaper;
  struct freed_batch *b, **end;

  if (freed->nr == 0) {
    cow_chunk_list_clear (freed);
    return;
  }
  b = calloc (1, sizeof *b);
  if (b == NULL) {
    /* They stay held; the next open finds them free. */
    cow_log (COW_LOG_WARNING, "pool %s: out of memory: %zu freed chunks can "
             "be used again after a restart", p->pool.name, freed->nr);
    cow_chunk_list_clear (freed);
    return;
  }
  b->chunks = *freed;
  b->epoch = cow_epoch_stamp (&p->epoch);
  pthread_mutex_lock (&rp->lock);
  for (end = &rp->batches; *end; end = &(*end)->next)
    ;
  *end = b;
  rp->kick = true;
  pthread_cond_broadcast (&rp->changed);
  pthread_mutex_unlock (&rp->lock);
}

static bool
stopping (struct local_pool *p)
{
  bool stop;

  pthread_mutex_lock (&p->reaper.lock);
  stop = p->reaper.stop;
  pthread_mutex_unlock (&p->reaper.lock);
  return stop;
}

/* Free queued nodes until the queue is empty. */
static int
drain_queue (struct local_pool *p)
{
  struct miss miss;
  struct queued q;
  size_t unshared;
  int r;

  for (;;) {
    if (cow_pool_read_only (p) || stopping (p))
      return -EROFS;
    cow_commit_admit (p);
    pthread_rwlock_wrlock (&p->map_lock);
    if (!cow_changes_peek (p, &q)) {
      pthread_rwlock_unlock (&p->map_lock);
      return 0;
    }
    unshared = p->open.unshared.nr_used;
    r = cow_tree_reap (p, &q, &miss);
    if (r == 0 && p->open.unshared.nr_used > unshared)
      cow_fold_due (p);         /* somebody may be the only user now */
    pthread_rwlock_unlock (&p->map_lock);
    if (r == -EAGAIN)
      r = cow_cache_load (p, &miss);
    if (r < 0) {
      cow_log (COW_LOG_ERROR, "pool %s: node %llu cannot be freed: %s; its "
               "space stays in use: run 'cowshed check --repair'",
               p->pool.name, (unsigned long long) q.id, strerror (-r));
      if (r != -EIO)
        return r;
      pthread_rwlock_wrlock (&p->map_lock);
      cow_changes_stuck (p, &q);
      pthread_rwlock_unlock (&p->map_lock);
    }
  }
}

static int
compare_chunks (const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

  return (x > y) - (x < y);
}

/* Punch a batch in runs of neighbours, then let its chunks be used again. */
static void
release_batch (struct local_pool *p, struct freed_batch *b)
{
  uint64_t *c = b->chunks.chunk;
  size_t nr = b->chunks.nr, i, n;

  qsort (c, nr, sizeof *c, compare_chunks);
  for (i = 0; i < nr; i += n) {
    int r;

    for (n = 1; i + n < nr && c[i + n] == c[i] + n; n++)
      ;
    r = cow_data_punch (p, (uint64_t) n << p->chunk_shift,
                        c[i] << p->chunk_shift);
    if (r < 0)
      cow_log (COW_LOG_WARNING, "pool %s: punching %zu chunks at %llu: %s",
               p->pool.name, n, (unsigned long long) c[i], strerror (-r));
  }
  for (i = 0; i < nr; ) {
    pthread_rwlock_wrlock (&p->map_lock);
    for (n = 0; n < RELEASE_BATCH && i < nr; n++, i++)
      cow_space_release (p, CHUNK (c[i]));
    pthread_rwlock_unlock (&p->map_lock);
  }
}

static void
count_released (struct local_pool *p, size_t nr)
{
  pthread_mutex_lock (&p->reaper.lock);
  p->reaper.released += nr;
  pthread_mutex_unlock (&p->reaper.lock);
}

/* Release batches whose epoch has passed; false if some have to wait. */
static bool
release_batches (struct local_pool *p)
{
  struct reaper *rp = &p->reaper;
  struct freed_batch *b;

  for (;;) {
    pthread_mutex_lock (&rp->lock);
    b = rp->batches;
    if (b && cow_epoch_passed (&p->epoch, b->epoch))
      rp->batches = b->next;
    else {
      pthread_mutex_unlock (&rp->lock);
      return b == NULL;
    }
    pthread_mutex_unlock (&rp->lock);
    release_batch (p, b);
    count_released (p, b->chunks.nr);
    cow_chunk_list_clear (&b->chunks);
    free (b);
  }
}

/* Hold the free chunks of [from, to) that lie in region r. */
static int
hold_free (struct local_pool *p, uint64_t r, uint64_t from, uint64_t to,
           struct chunk_list *held)
{
  struct miss miss = { .kind = OBJ_CHUNK_COUNTS, .id = r };
  uint64_t n;
  int rc;

  do {
    rc = 0;
    pthread_rwlock_wrlock (&p->map_lock);
    for (n = from; rc == 0 && n < to; n++)
      rc = cow_space_hold (p, CHUNK (n), held, &miss);
    pthread_rwlock_unlock (&p->map_lock);
    from = rc == -EAGAIN ? n - 1 : n;
  } while (rc == -EAGAIN && (rc = cow_cache_load (p, &miss)) == 0);
  return rc;
}

/* A few chunks at a time, since those that are held are missed by writers
 * of a pool that is nearly full.
 */
static int
scavenge_range (struct local_pool *p, uint64_t r, uint64_t from, uint64_t to)
{
  int rc = 0;

  for (; rc == 0 && from < to; from += SCAVENGE_BATCH) {
    struct freed_batch b = { .next = NULL };
    uint64_t n = from + SCAVENGE_BATCH < to ? from + SCAVENGE_BATCH : to;

    rc = hold_free (p, r, from, n, &b.chunks);
    if (b.chunks.nr > 0)
      release_batch (p, &b);
    count_released (p, b.chunks.nr);
    cow_chunk_list_clear (&b.chunks);
  }
  return rc;
}

/* After an unclean end: punch what is free and yet has space in the file,
 * region by region.  Reading where the file has data costs no data I/O.
 */
static void
scavenge (struct local_pool *p)
{
  uint64_t region_bytes = p->chunk_size * COUNTS_PER_PAGE, r, nr;
  off_t at = 0;

  pthread_rwlock_rdlock (&p->map_lock);
  nr = p->space.nr_regions;
  pthread_rwlock_unlock (&p->map_lock);
  for (r = 0; r < nr && !p->is_device && !cow_pool_read_only (p) &&
         !stopping (p); r++) {
    off_t end = (r + 1) * region_bytes;

    at = lseek (p->data_fd, r * region_bytes, SEEK_DATA);
    while (at != -1 && at < end) {
      off_t hole = lseek (p->data_fd, at, SEEK_HOLE);

      if (hole == -1 || hole > end)
        hole = end;
      if (scavenge_range (p, r, at >> p->chunk_shift,
                          (hole + p->chunk_size - 1) >> p->chunk_shift) < 0)
        return;
      at = lseek (p->data_fd, hole, SEEK_DATA);
    }
    if (at == -1)
      break;
    r = (uint64_t) at / region_bytes > r + 1 ? at / region_bytes - 1 : r;
  }
}

static bool
anything_freed (struct local_pool *p)
{
  bool any;

  pthread_rwlock_rdlock (&p->map_lock);
  any = p->open.freed.nr > 0;
  pthread_rwlock_unlock (&p->map_lock);
  return any;
}

/* A step of the slow pass, or all of it while somebody waits for space. */
static void
fold (struct local_pool *p)
{
  bool hurry, more;

  /* What lost a reference just now is exclusive only once that is durable. */
  if (cow_fold_starts (p))
    cow_commit_flush (p);
  do {
    pthread_mutex_lock (&p->reaper.lock);
    hurry = p->reaper.nr_waiting > 0 && !p->reaper.stop;
    pthread_mutex_unlock (&p->reaper.lock);
    cow_commit_admit (p);
    more = cow_fold_step (p, FOLD_LEAVES);
    if (hurry && anything_freed (p)) {
      cow_commit_flush (p);
      release_batches (p);
    }
  } while (more && hurry);
  p->reaper.folding = more;
}

/* One pass over all work; false if something has to wait. */
static bool
reap_round (struct local_pool *p)
{
  bool drained = drain_queue (p) == 0, all;

  if (drained)
    fold (p);

  if (drained && anything_freed (p))
    cow_commit_flush (p);
  if (drained)
    cow_jobs_deletions_done (p);
  all = release_batches (p);
  if (cow_fs_full (p))
    cow_ballast_make (p);
  return all;
}

static void
wait_until (struct reaper *rp, unsigned ms)
{
  struct timespec until;

  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_nsec += ms * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    until.tv_sec++;
  }
  pthread_cond_timedwait (&rp->changed, &rp->lock, &until);
}

static void *
reaper_main (void *opaque)
{
  struct local_pool *p = opaque;
  struct reaper *rp = &p->reaper;
  bool all;

  if (p->scavenge.due)
    scavenge (p);
  pthread_mutex_lock (&rp->lock);
  while (!rp->stop) {
    if (!rp->kick) {
      if (!rp->folding)
        pthread_cond_wait (&rp->changed, &rp->lock);
      else
        wait_until (rp, FOLD_PAUSE_MS);
      if (!rp->kick && !rp->folding)
        continue;
    }
    if (rp->stop)
      break;
    rp->kick = false;
    rp->rounds_started++;
    pthread_mutex_unlock (&rp->lock);
    all = reap_round (p);
    cow_store_checkpoint (p->store);
    pthread_mutex_lock (&rp->lock);
    if (all) {
      rp->rounds = rp->rounds_started;
      pthread_cond_broadcast (&rp->changed);
    }
    else {
      rp->kick = true;
      if (!rp->stop)
        wait_until (rp, EPOCH_POLL_MS);
    }
  }
  pthread_mutex_unlock (&rp->lock);
  return NULL;
}

void
cow_reap_kick (struct local_pool *p)
{
  struct reaper *rp = &p->reaper;

  pthread_mutex_lock (&rp->lock);
  rp->kick = true;
  pthread_cond_broadcast (&rp->changed);
  pthread_mutex_unlock (&rp->lock);
}

int
cow_reap_wait (struct local_pool *p)
{
  struct reaper *rp = &p->reaper;
  uint64_t want, released;
  bool room;

  if (cow_pool_read_only (p))
    return -ENOSPC;
  pthread_mutex_lock (&rp->lock);
  rp->nr_waiting++;
  cow_fold_due (p);
  want = rp->rounds_started + 1;
  released = rp->released;
  rp->kick = true;
  pthread_cond_broadcast (&rp->changed);
  while (!rp->stop && rp->rounds < want)
    pthread_cond_wait (&rp->changed, &rp->lock);
  rp->nr_waiting--;
  released = rp->released - released;
  pthread_mutex_unlock (&rp->lock);
  /* What was released just before we came counts too. */
  pthread_rwlock_rdlock (&p->map_lock);
  room = p->space.used < p->space.cap_chunks && !cow_fs_full (p);
  pthread_rwlock_unlock (&p->map_lock);
  return released > 0 || room ? 0 : -ENOSPC;
}

int
cow_reap_start (struct local_pool *p)
{
  int r = pthread_create (&p->reaper.thread, NULL, reaper_main, p);

  p->reaper.thread_started = r == 0;
  return -r;
}

void
cow_reap_stop (struct local_pool *p)
{
  struct reaper *rp = &p->reaper;

  if (rp->thread_started) {
    pthread_mutex_lock (&rp->lock);
    rp->stop = true;
    pthread_cond_broadcast (&rp->changed);
    pthread_mutex_unlock (&rp->lock);
    pthread_join (rp->thread, NULL);
    rp->thread_started = false;
  }
}

void
cow_reap_free (struct local_pool *p)
{
  struct reaper *rp = &p->reaper;
  struct freed_batch *b;

  while ((b = rp->batches) != NULL) {
    rp->batches = b->next;
    cow_chunk_list_clear (&b->chunks);
    free (b);
  }
}
