/* SPDX-License-Identifier: BSD-3-Clause */
/* Many threads on one pool, meant for ThreadSanitizer as well.
 *
 * Two volumes are shared by all.  A data thread claims a range of sectors
 * that no other has claimed, reads, writes, zeroes or trims it, and gives it
 * back; so what each sector must hold is known, while neighbouring sectors
 * of one block and one chunk change at the same time.  Meanwhile other
 * threads snapshot, clone, check that a frozen snapshot does not change,
 * remove, list, walk extents and diffs, and flush.
 *
 * Every 8-byte word holds either zero or a number that carries the volume,
 * the place and a version, so that a word from elsewhere shows at once.
 *
 *   COWSHED_THREADS_SECONDS (10), COWSHED_THREADS_SEED
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "volume.h"
#include "test-util.h"

#define NR_VOLUMES 2
#define NR_DATA_THREADS 4
#define NR_SNAP_THREADS 2
#define SECTOR_WORDS 64
#define NR_SECTORS 731          /* no multiple of a block */
#define NR_WORDS (NR_SECTORS * SECTOR_WORDS)
#define VOLUME_SIZE ((uint64_t) NR_WORDS * 8)

static struct cow_pool *pool;
static char *dir;
static uint64_t seed;
static int64_t stop_at;
static atomic_uint_least64_t nr_data_ops, nr_control_ops;

static void __attribute__ ((format (printf, 1, 2), noreturn))
fault (const char *fmt, ...)
{
  va_list ap;

  printf ("FAULT: ");
  va_start (ap, fmt);
  vprintf (fmt, ap);
  va_end (ap);
  printf ("\nseed %" PRIu64 "\n", seed);
  fflush (stdout);
  _exit (1);
}

/* The engine has nothing to call an error here. */
static void
log_line (enum cow_log_level level, const char *line)
{
  if (level == COW_LOG_ERROR)
    fault ("logged: %s", line);
}

static bool
time_left (void)
{
  return now_ms () < stop_at;
}

static const char *
volume_name (unsigned n)
{
  return n == 0 ? "a" : "b";
}

static struct cow_volume *
must_open (const char *name, unsigned flags)
{
  struct cow_error err = { 0 };
  struct cow_volume *v;
  int r = cow_volume_open (pool, name, flags, &v, &err);

  if (r < 0)
    fault ("open %s: %s: %s", name, strerror (-r), err.message);
  return v;
}

/* ---- Data threads ---- */

/* What a volume must hold.  Whoever has claimed a sector may change its
 * words; the claims are under the lock.
 */
static struct shared {
  pthread_mutex_t lock;
  bool claimed[NR_SECTORS];
  uint64_t want[NR_WORDS];
} shared[NR_VOLUMES];

struct worker {
  unsigned thread;
  struct rng rng;
  struct cow_volume *v[NR_VOLUMES];
  uint64_t buf[NR_WORDS];
  uint64_t version;
};

static bool
claim (struct worker *w, unsigned n, size_t *first, size_t *nr)
{
  static const size_t lengths[] = { 1, 1, 3, 7, 8, 8, 16, 40, 128, 300 };
  struct shared *s = &shared[n];
  bool free = true;

  *nr = lengths[rng_below (&w->rng, sizeof lengths / sizeof lengths[0])];
  *first = rng_below (&w->rng, NR_SECTORS - *nr + 1);
  if (rng_percent (&w->rng, 50))
    *first -= *first % 8;
  pthread_mutex_lock (&s->lock);
  for (size_t i = *first; i < *first + *nr; ++i)
    free &= !s->claimed[i];
  for (size_t i = *first; free && i < *first + *nr; ++i)
    s->claimed[i] = true;
  pthread_mutex_unlock (&s->lock);
  return free;
}

static void
unclaim (unsigned n, size_t first, size_t nr)
{
  pthread_mutex_lock (&shared[n].lock);
  memset (&shared[n].claimed[first], 0, nr);
  pthread_mutex_unlock (&shared[n].lock);
}

static void
range_write (struct worker *w, unsigned n, size_t word, size_t nr)
{
  uint64_t *want = &shared[n].want[word];
  unsigned flags = rng_percent (&w->rng, 2) ? COW_FUA : 0;
  int r;

  w->version++;
  for (size_t i = 0; i < nr; ++i)
    want[i] = (uint64_t) (n + 1) << 56 | (uint64_t) (word + i) << 36 |
      (uint64_t) w->thread << 32 | w->version;
  r = cow_volume_pwrite (w->v[n], want, nr * 8, word * 8,
                         flags | COW_DETECT_ZEROES);
  if (r < 0)
    fault ("write: %s", strerror (-r));
}

static void
range_clear (struct worker *w, unsigned n, size_t word, size_t nr)
{
  int r = rng_percent (&w->rng, 50) ?
    cow_volume_zero (w->v[n], nr * 8, word * 8,
                     rng_percent (&w->rng, 20) ? COW_NO_HOLE : 0) :
    cow_volume_trim (w->v[n], nr * 8, word * 8, 0);

  if (r < 0)
    fault ("zero or trim: %s", strerror (-r));
  memset (&shared[n].want[word], 0, nr * 8);
}

static void
range_verify (struct worker *w, unsigned n, size_t word, size_t nr)
{
  const uint64_t *want = &shared[n].want[word];
  int r = cow_volume_pread (w->v[n], w->buf, nr * 8, word * 8);

  if (r < 0)
    fault ("read: %s", strerror (-r));
  for (size_t i = 0; i < nr; ++i)
    if (w->buf[i] != want[i])
      fault ("volume %s, sector %zu (block %zu): found %016" PRIx64
             ", expected %016" PRIx64, volume_name (n),
             (word + i) / SECTOR_WORDS, (word + i) / 512, w->buf[i],
             want[i]);
}

static void *
data_thread (void *opaque)
{
  struct worker *w = opaque;

  for (unsigned n = 0; n < NR_VOLUMES; ++n)
    w->v[n] = must_open (volume_name (n), 0);
  while (time_left ()) {
    unsigned n = rng_below (&w->rng, NR_VOLUMES);
    unsigned what = rng_below (&w->rng, 100);
    size_t first, nr;

    if (!claim (w, n, &first, &nr))
      continue;
    if (what < 45)
      range_write (w, n, first * SECTOR_WORDS, nr * SECTOR_WORDS);
    else if (what < 60)
      range_clear (w, n, first * SECTOR_WORDS, nr * SECTOR_WORDS);
    else if (what < 99)
      range_verify (w, n, first * SECTOR_WORDS, nr * SECTOR_WORDS);
    else if (cow_volume_flush (w->v[n]) < 0)
      fault ("flush");
    unclaim (n, first, nr);
    nr_data_ops++;
  }
  for (unsigned n = 0; n < NR_VOLUMES; ++n)
    cow_volume_close (w->v[n]);
  return NULL;
}

/* With nobody else at work. */
static void
verify_whole (struct worker *w)
{
  for (unsigned n = 0; n < NR_VOLUMES; ++n) {
    w->v[n] = must_open (volume_name (n), COW_RDONLY);
    range_verify (w, n, 0, NR_WORDS);
    cow_volume_close (w->v[n]);
  }
}

/* ---- Snapshot threads ---- */

struct snapper {
  unsigned thread;
  struct rng rng;
  uint64_t one[NR_WORDS], two[NR_WORDS];
};

/* Each word of a snapshot was written to that place of that volume. */
static void
check_words (const uint64_t *words, unsigned n)
{
  for (size_t i = 0; i < NR_WORDS; ++i)
    if (words[i] && words[i] >> 36 != ((uint64_t) (n + 1) << 20 | i))
      fault ("a copy of volume %s holds %016" PRIx64 " at word %zu",
             volume_name (n), words[i], i);
}

static int
see_hole (void *opaque, const struct cow_extent *e)
{
  const uint8_t *data = opaque;

  if (e->flags & COW_EXTENT_ZERO)
    for (uint64_t i = e->offset; i < e->offset + e->length; ++i)
      if (data[i])
        fault ("offset %" PRIu64 " of a snapshot is flagged zero but has "
               "data", i);
  return 0;
}

static int
ignore_extent (void *opaque, const struct cow_extent *e)
{
  return 0;
}

static void
scribble (struct snapper *s, struct cow_volume *v)
{
  uint64_t words[600];

  for (unsigned i = 0; i < 10; ++i) {
    int r;

    memset (words, 0xee, sizeof words);
    r = cow_volume_pwrite (v, words, sizeof words,
                           rng_below (&s->rng, VOLUME_SIZE - sizeof words),
                           0);
    if (r == 0)
      r = cow_volume_trim (v, 3000, rng_below (&s->rng, VOLUME_SIZE - 3000),
                           0);
    if (r < 0)
      fault ("writing to a clone: %s", strerror (-r));
  }
}

static void
must (int r, const struct cow_error *err, const char *what, const char *name)
{
  if (r < 0)
    fault ("%s %s: %s: %s", what, name, strerror (-r), err->message);
  nr_control_ops++;
}

static void
snapshot_round (struct snapper *s, unsigned round)
{
  struct cow_error err = { 0 };
  unsigned n = rng_below (&s->rng, NR_VOLUMES);
  char snap[40], clone[40];
  const char *names[1] = { snap };
  struct cow_volume *v, *c, *live;

  snprintf (snap, sizeof snap, "%s@t%u-%u", volume_name (n), s->thread,
            round);
  snprintf (clone, sizeof clone, "clone%u-%u", s->thread, round);
  must (cow_snapshot_create (pool, names, 1, COW_NOSYNC, &err), &err,
        "snapshot", snap);
  v = must_open (snap, COW_RDONLY);
  if (cow_volume_pread (v, s->one, VOLUME_SIZE, 0) < 0)
    fault ("read of %s", snap);
  check_words (s->one, n);
  must (cow_volume_clone (pool, snap, clone, COW_NOSYNC, &err), &err,
        "clone", clone);
  c = must_open (clone, 0);
  if (cow_volume_pread (c, s->two, VOLUME_SIZE, 0) < 0)
    fault ("read of %s", clone);
  if (memcmp (s->one, s->two, VOLUME_SIZE) != 0)
    fault ("a clone differs from its snapshot");
  scribble (s, c);
  live = must_open (volume_name (n), COW_RDONLY);
  if (cow_volume_diff (v, live, VOLUME_SIZE, 0, 1000, ignore_extent, NULL) < 0
      || cow_volume_extents (live, VOLUME_SIZE, 0, 1000, 0, ignore_extent,
                             NULL) < 0 ||
      cow_volume_extents (v, VOLUME_SIZE, 0, 100000, 0, see_hole, s->one) < 0)
    fault ("diff or extents");
  cow_volume_close (live);
  if (cow_volume_pread (v, s->two, VOLUME_SIZE, 0) < 0 ||
      memcmp (s->one, s->two, VOLUME_SIZE) != 0)
    fault ("the snapshot %s changed", snap);
  cow_volume_close (c);
  cow_volume_close (v);
  if (rng_percent (&s->rng, 80))
    must (cow_volume_remove (pool, snap, COW_NOSYNC, &err), &err, "remove",
          snap);
  must (cow_volume_remove (pool, clone, COW_NOSYNC, &err), &err, "remove",
        clone);
}

static void *
snap_thread (void *opaque)
{
  struct snapper *s = opaque;

  for (unsigned round = 0; time_left (); ++round)
    snapshot_round (s, round);
  return NULL;
}

/* ---- A thread that looks and flushes ---- */

static int
count_listed (void *opaque, const struct cow_volume_info *info)
{
  ++*(unsigned *) opaque;
  return 0;
}

static void *
look_thread (void *opaque)
{
  while (time_left ()) {
    struct cow_volume_info info;
    struct cow_error err = { 0 };
    struct cow_pool_stat st;
    unsigned n = 0;

    cow_volume_list (pool, count_listed, &n);
    if (n < NR_VOLUMES)
      fault ("%u objects are listed", n);
    must (cow_volume_info (pool, "a", &info, &err), &err, "info", "a");
    cow_pool_stat (pool, &st);
    if (cow_pool_flush (pool) < 0)
      fault ("flush of the pool");
    pause_ms (20);
  }
  return NULL;
}

/* ---- The run ---- */

static void
run_threads (void)
{
  pthread_t data[NR_DATA_THREADS], snap[NR_SNAP_THREADS], look;
  struct worker *workers = calloc (NR_DATA_THREADS, sizeof *workers);
  struct snapper *snappers = calloc (NR_SNAP_THREADS, sizeof *snappers);

  for (unsigned i = 0; i < NR_DATA_THREADS; ++i) {
    workers[i].thread = i;
    workers[i].rng.state = seed + i;
    pthread_create (&data[i], NULL, data_thread, &workers[i]);
  }
  for (unsigned i = 0; i < NR_SNAP_THREADS; ++i) {
    snappers[i].thread = i;
    snappers[i].rng.state = seed + 100 + i;
    pthread_create (&snap[i], NULL, snap_thread, &snappers[i]);
  }
  pthread_create (&look, NULL, look_thread, NULL);
  for (unsigned i = 0; i < NR_DATA_THREADS; ++i)
    pthread_join (data[i], NULL);
  for (unsigned i = 0; i < NR_SNAP_THREADS; ++i)
    pthread_join (snap[i], NULL);
  pthread_join (look, NULL);
  verify_whole (&workers[0]);
  free (workers);
  free (snappers);
}

static void
check_pool (void)
{
  struct cow_check_result result = { 0 };
  struct cow_error err = { 0 };
  int r = cow_pool_check (dir, false, &result, NULL, NULL, &err);

  if (r < 0)
    fault ("check: %s: %s", strerror (-r), err.message);
  if (result.faults_total)
    fault ("check found %" PRIu64 " faults, the first: %s: %s",
           result.faults_total, result.faults[0].where,
           result.faults[0].what);
  cow_check_result_free (&result);
}

int
main (void)
{
  struct cow_init_options init = { 0 };
  struct cow_pool_options options = { .metadata_cache_bytes = 128 << 10,
    .commit_interval_ms = 50 };
  struct cow_error err = { 0 };

  seed = env_number ("COWSHED_THREADS_SEED",
                     (uint64_t) time (NULL) * 1000003 + getpid ());
  printf ("COWSHED_THREADS_SEED=%" PRIu64 "\n", seed);
  fflush (stdout);
  cow_log_set (log_line);
  init.dir = dir = make_temp_dir ();
  must (cow_pool_init (&init, &err), &err, "init", dir);
  must (cow_pool_open (dir, &options, &pool, &err), &err, "open", dir);
  for (unsigned n = 0; n < NR_VOLUMES; ++n) {
    pthread_mutex_init (&shared[n].lock, NULL);
    must (cow_volume_create (pool, volume_name (n), VOLUME_SIZE, 0, &err),
          &err, "create", volume_name (n));
  }
  stop_at = now_ms () +
    (int64_t) env_number ("COWSHED_THREADS_SECONDS", 10) * 1000;
  run_threads ();
  if (cow_pool_flush (pool) < 0)
    fault ("the last flush");
  if (cow_pool_close (pool) < 0)
    fault ("close");
  check_pool ();
  printf ("%" PRIuLEAST64 " data operations, %" PRIuLEAST64
          " control operations\n", nr_data_ops, nr_control_ops);
  remove_tree (dir);
  free (dir);
  return 0;
}
