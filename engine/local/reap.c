/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cache.h"
#include "changes.h"
#include "commit.h"
#include "data.h"
#include "epoch.h"
#include "log.h"
#include "reap.h"
#include "space.h"
#include "tree.h"
#include "volumes.h"

/* How long to wait for I/O that is older than a freed chunk. */
#define EPOCH_POLL_MS 5
#define RELEASE_BATCH 256

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

/* Free queued nodes until the queue is empty. */
static int
drain_queue (struct local_pool *p)
{
  struct miss miss;
  struct queued q;
  int r;

  for (;;) {
    if (cow_pool_read_only (p))
      return -EROFS;
    cow_commit_admit (p);
    pthread_rwlock_wrlock (&p->map_lock);
    if (!cow_changes_peek (p, &q)) {
      pthread_rwlock_unlock (&p->map_lock);
      return 0;
    }
    r = cow_tree_reap (p, &q, &miss);
    pthread_rwlock_unlock (&p->map_lock);
    if (r == -EAGAIN)
      r = cow_cache_load (p, &miss);
    if (r < 0) {
      cow_log (COW_LOG_ERROR, "pool %s: node %llu cannot be freed: %s; its "
               "space stays in use: run 'cowshed check --repair'",
               p->pool.name, (unsigned long long) q.id, strerror (-r));
      return r;
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
    pthread_mutex_lock (&rp->lock);
    rp->released += b->chunks.nr;
    pthread_mutex_unlock (&rp->lock);
    cow_chunk_list_clear (&b->chunks);
    free (b);
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

/* One pass over all work; false if something has to wait. */
static bool
reap_round (struct local_pool *p)
{
  bool drained = drain_queue (p) == 0;

  if (drained && anything_freed (p))
    cow_commit_flush (p);
  if (drained)
    cow_jobs_deletions_done (p);
  return release_batches (p);
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

  pthread_mutex_lock (&rp->lock);
  while (!rp->stop) {
    if (!rp->kick) {
      pthread_cond_wait (&rp->changed, &rp->lock);
      continue;
    }
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

  if (cow_pool_read_only (p))
    return -ENOSPC;
  pthread_mutex_lock (&rp->lock);
  want = rp->rounds_started + 1;
  released = rp->released;
  rp->kick = true;
  pthread_cond_broadcast (&rp->changed);
  while (!rp->stop && rp->rounds < want)
    pthread_cond_wait (&rp->changed, &rp->lock);
  released = rp->released - released;
  pthread_mutex_unlock (&rp->lock);
  return released > 0 ? 0 : -ENOSPC;
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
