/* SPDX-License-Identifier: BSD-3-Clause */
/* Many threads on one pool, meant for ThreadSanitizer as well.
 *
 * Two volumes are shared by all.  Each data thread owns one stripe of each
 * volume, so that it knows what it must read back; its stripes begin and end
 * in the middle of blocks that the neighbours write too.  Meanwhile other
 * threads snapshot, clone, check that a frozen snapshot does not change,
 * remove, list, walk extents and diffs, and flush.
 *
 * Within a stripe every 8-byte word holds either zero or a number that
 * carries the thread and a version, so that a word from elsewhere shows at
 * once.
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

#include "volume.h"
#include "test-util.h"

#define NR_VOLUMES 2
#define NR_DATA_THREADS 4
#define NR_SNAP_THREADS 2
#define STRIPE_WORDS (90 * 1024 / 8 + 5)
#define STRIPE ((uint64_t) STRIPE_WORDS * 8)
#define VOLUME_SIZE (STRIPE * NR_DATA_THREADS)

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

struct stripe {
  unsigned thread;
  struct rng rng;
  struct cow_volume *v[NR_VOLUMES];
  uint64_t want[NR_VOLUMES][STRIPE_WORDS];
  uint64_t buf[STRIPE_WORDS];
  uint64_t version;
};

static void
stripe_range (struct stripe *s, size_t *first, size_t *nr)
{
  *first = rng_below (&s->rng, STRIPE_WORDS);
  *nr = 1 + rng_below (&s->rng, rng_percent (&s->rng, 20) ? STRIPE_WORDS :
                       1200);
  if (*nr > STRIPE_WORDS - *first)
    *nr = STRIPE_WORDS - *first;
}

static void
stripe_write (struct stripe *s, unsigned n, size_t first, size_t nr,
              uint64_t offset)
{
  unsigned flags = rng_percent (&s->rng, 2) ? COW_FUA : 0;
  int r;

  s->version++;
  for (size_t i = 0; i < nr; ++i)
    s->want[n][first + i] = (uint64_t) (s->thread + 1) << 56 |
      (uint64_t) n << 48 | s->version;
  r = cow_volume_pwrite (s->v[n], &s->want[n][first], nr * 8, offset,
                         flags | COW_DETECT_ZEROES);
  if (r < 0)
    fault ("write: %s", strerror (-r));
}

static void
stripe_clear (struct stripe *s, unsigned n, size_t first, size_t nr,
              uint64_t offset)
{
  int r = rng_percent (&s->rng, 50) ?
    cow_volume_zero (s->v[n], nr * 8, offset,
                     rng_percent (&s->rng, 20) ? COW_NO_HOLE : 0) :
    cow_volume_trim (s->v[n], nr * 8, offset, 0);

  if (r < 0)
    fault ("zero or trim: %s", strerror (-r));
  memset (&s->want[n][first], 0, nr * 8);
}

static void
stripe_verify (struct stripe *s, unsigned n, size_t first, size_t nr,
               uint64_t offset)
{
  int r = cow_volume_pread (s->v[n], s->buf, nr * 8, offset);

  if (r < 0)
    fault ("read: %s", strerror (-r));
  for (size_t i = 0; i < nr; ++i)
    if (s->buf[i] != s->want[n][first + i])
      fault ("thread %u, volume %s, offset %" PRIu64 ": found %016" PRIx64
             ", expected %016" PRIx64, s->thread, volume_name (n),
             offset + i * 8, s->buf[i], s->want[n][first + i]);
}

static void *
data_thread (void *opaque)
{
  struct stripe *s = opaque;

  for (unsigned n = 0; n < NR_VOLUMES; ++n)
    s->v[n] = must_open (volume_name (n), 0);
  while (time_left ()) {
    unsigned n = rng_below (&s->rng, NR_VOLUMES);
    unsigned what = rng_below (&s->rng, 100);
    size_t first, nr;
    uint64_t offset;

    stripe_range (s, &first, &nr);
    offset = STRIPE * s->thread + first * 8;
    if (what < 45)
      stripe_write (s, n, first, nr, offset);
    else if (what < 60)
      stripe_clear (s, n, first, nr, offset);
    else if (what < 99)
      stripe_verify (s, n, first, nr, offset);
    else if (cow_volume_flush (s->v[n]) < 0)
      fault ("flush");
    nr_data_ops++;
  }
  for (unsigned n = 0; n < NR_VOLUMES; ++n) {
    stripe_verify (s, n, 0, STRIPE_WORDS, STRIPE * s->thread);
    cow_volume_close (s->v[n]);
  }
  return NULL;
}

/* ---- Snapshot threads ---- */

struct snapper {
  unsigned thread;
  struct rng rng;
  uint64_t one[VOLUME_SIZE / 8], two[VOLUME_SIZE / 8];
};

/* Each word of a snapshot was written to that stripe of that volume. */
static void
check_words (const uint64_t *words, unsigned n)
{
  for (size_t i = 0; i < VOLUME_SIZE / 8; ++i)
    if (words[i] && (words[i] >> 56 != i / STRIPE_WORDS + 1 ||
                     (words[i] >> 48 & 0xff) != n))
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
  struct stripe *stripes = calloc (NR_DATA_THREADS, sizeof *stripes);
  struct snapper *snappers = calloc (NR_SNAP_THREADS, sizeof *snappers);

  for (unsigned i = 0; i < NR_DATA_THREADS; ++i) {
    stripes[i].thread = i;
    stripes[i].rng.state = seed + i;
    pthread_create (&data[i], NULL, data_thread, &stripes[i]);
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
  free (stripes);
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
  init.dir = dir = make_temp_dir ();
  must (cow_pool_init (&init, &err), &err, "init", dir);
  must (cow_pool_open (dir, &options, &pool, &err), &err, "open", dir);
  for (unsigned n = 0; n < NR_VOLUMES; ++n)
    must (cow_volume_create (pool, volume_name (n), VOLUME_SIZE, 0, &err),
          &err, "create", volume_name (n));
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
