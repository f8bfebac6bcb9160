/* SPDX-License-Identifier: BSD-3-Clause */
/* Volumes through the engine's interface: faults that were found once, each
 * with the sequence that showed it.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "local.h"
#include "test-util.h"
#include "volume.h"

#define K 65536
#define B 4096

static char *dir;
static struct cow_pool *pool;

static void
open_pool (uint64_t cache)
{
  struct cow_pool_options o = { .commit_interval_ms = 100,
                                .metadata_cache_bytes = cache };
  struct cow_error err = { 0 };

  if (cow_pool_open (dir, &o, &pool, &err) < 0)
    fail_msg ("%s", err.message);
}

static void
new_pool (uint64_t capacity, uint64_t cache)
{
  struct cow_init_options o = { .capacity = capacity };
  struct cow_error err = { 0 };

  dir = make_temp_dir ();
  o.dir = dir;
  if (cow_pool_init (&o, &err) < 0)
    fail_msg ("%s", err.message);
  open_pool (cache);
}

/* Close it; nothing may be wrong with what it leaves. */
static void
end_pool (void)
{
  struct cow_check_result r;

  assert_int_equal (cow_pool_close (pool), 0);
  assert_int_equal (cow_pool_check (dir, false, &r, NULL, NULL, NULL), 0);
  if (r.faults_total)
    fail_msg ("%s: %s", r.faults[0].where, r.faults[0].what);
  cow_check_result_free (&r);
  remove_tree (dir);
  free (dir);
}

static struct cow_volume *
open_volume (const char *name)
{
  struct cow_volume *v;
  struct cow_error err = { 0 };

  if (cow_volume_open (pool, name, 0, &v, &err) < 0)
    fail_msg ("%s", err.message);
  return v;
}

/* Two writers share a new chunk; the first one's part is trimmed before the
 * second installs.  The second's data once went to a chunk that was already
 * on its way to being free.
 */
#define ROUNDS 4000
static struct cow_volume *shared;
static pthread_barrier_t barrier;
static int failed;

static uint64_t
round_offset (unsigned i)
{
  return (uint64_t) (i + i / 63 + 1) * K;
}

static void *
write_and_trim (void *unused)
{
  static char block[B];
  unsigned i;

  memset (block, 'A', sizeof block);
  for (i = 0; i < ROUNDS; i++) {
    pthread_barrier_wait (&barrier);
    failed |= cow_volume_pwrite (shared, block, B, round_offset (i), 0);
    failed |= cow_volume_trim (shared, B, round_offset (i), 0);
  }
  return NULL;
}

static void *
write_beside (void *unused)
{
  static char rest[K - B];
  unsigned i;

  memset (rest, 'B', sizeof rest);
  for (i = 0; i < ROUNDS; i++) {
    pthread_barrier_wait (&barrier);
    failed |= cow_volume_pwrite (shared, rest, sizeof rest,
                                 round_offset (i) + B, 0);
  }
  return NULL;
}

static void
test_shared_new_chunk (void **state)
{
  pthread_t a, b;
  char block[B];
  unsigned i;

  new_pool (0, 0);
  assert_int_equal (cow_volume_create (pool, "v", UINT64_C (1) << 34, 0,
                                       NULL), 0);
  shared = open_volume ("v");
  pthread_barrier_init (&barrier, NULL, 2);
  assert_int_equal (pthread_create (&a, NULL, write_and_trim, NULL), 0);
  assert_int_equal (pthread_create (&b, NULL, write_beside, NULL), 0);
  pthread_join (a, NULL);
  pthread_join (b, NULL);
  pthread_barrier_destroy (&barrier);
  assert_int_equal (failed, 0);
  assert_int_equal (cow_volume_flush (shared), 0);
  cow_volume_close (shared);
  /* Closing lets all that was freed be punched and the pool be checked. */
  assert_int_equal (cow_pool_close (pool), 0);
  open_pool (0);
  shared = open_volume ("v");
  for (i = 0; i < ROUNDS; i++) {
    assert_int_equal (cow_volume_pread (shared, block, B,
                                        round_offset (i) + B), 0);
    if (block[0] != 'B' || block[B - 1] != 'B')
      fail_msg ("round %u: an acknowledged write is lost", i);
  }
  cow_volume_close (shared);
  end_pool ();
}

static int
count_extent (void *opaque, const struct cow_extent *e)
{
  unsigned *nr = opaque;

  ++*nr;
  assert_int_equal (e->offset, 0);
  assert_int_equal (e->length, 1 << 20);
  return 0;
}

/* A span of chunks that, in bytes, is 2^64: walks once never ended. */
static void
test_largest_volume (void **state)
{
  struct cow_volume *big, *v;
  static char chunk[K];
  unsigned nr = 0, i;
  int r = 0;

  new_pool (64 * K, 0);
  assert_int_equal (cow_volume_create (pool, "big", INT64_MAX, 0, NULL), 0);
  assert_int_equal (cow_volume_create (pool, "v", 1 << 24, 0, NULL), 0);
  big = open_volume ("big");
  v = open_volume ("v");
  assert_int_equal (cow_volume_extents (big, 1 << 20, 0, 1000, 0,
                                        count_extent, &nr), 0);
  assert_int_equal (nr, 1);
  memset (chunk, 1, sizeof chunk);
  for (i = 0; r == 0 && i < 70; i++)
    r = cow_volume_pwrite (v, chunk, K, (uint64_t) i * K, 0);
  assert_int_equal (r, -ENOSPC);        /* in the end, and not never */
  assert_int_equal (cow_volume_trim (v, 8 * K, 0, 0), 0);
  assert_int_equal (cow_volume_pwrite (v, chunk, K, 0, 0), 0);
  assert_int_equal (cow_volume_pwrite (big, "x", 1,
                                       (uint64_t) INT64_MAX - 1, COW_FUA), 0);
  cow_volume_close (v);
  cow_volume_close (big);
  end_pool ();
}

/* New records, too, count against the bound of the cache. */
static void
test_cache_bound (void **state)
{
  struct local_pool *p;
  struct cow_volume *v;
  static char block[B];
  uint64_t i;

  new_pool (0, 1 << 20);
  p = LOCAL_POOL (pool);
  assert_int_equal (cow_volume_create (pool, "v", UINT64_C (1) << 40, 0,
                                       NULL), 0);
  v = open_volume ("v");
  memset (block, 1, sizeof block);
  for (i = 0; i < 20000; i++)
    assert_int_equal (cow_volume_pwrite (v, block, B, i << 22, 0), 0);
  assert_int_equal (cow_volume_flush (v), 0);
  assert_true (p->cache.bytes < 3 << 20);
  cow_volume_close (v);
  end_pool ();
}

/* What is removed while somebody looks at it shows until he closes. */
static void
test_removed_while_open (void **state)
{
  struct cow_volume *v, *s;
  const char *name = "v@s";
  static char block[B], back[B];
  struct cow_error err;

  new_pool (0, 0);
  assert_int_equal (cow_volume_create (pool, "v", 1 << 20, 0, NULL), 0);
  v = open_volume ("v");
  memset (block, 7, sizeof block);
  assert_int_equal (cow_volume_pwrite (v, block, B, 0, 0), 0);
  assert_int_equal (cow_snapshot_create (pool, &name, 1, 0, NULL), 0);
  assert_int_equal (cow_volume_trim (v, 1 << 20, 0, 0), 0);
  s = open_volume ("v@s");
  assert_int_equal (cow_volume_pwrite (s, block, B, 0, 0), -EROFS);
  assert_int_equal (cow_volume_remove (pool, "v@s", 0, NULL), 0);
  assert_int_equal (cow_volume_pread (s, back, B, 0), 0);
  assert_memory_equal (block, back, B);
  cow_volume_close (s);

  assert_int_equal (cow_volume_remove (pool, "v", 0, &err), -EBUSY);
  assert_string_equal (err.code, "busy");
  assert_int_equal (cow_volume_remove (pool, "v", COW_FORCE, NULL), 0);
  assert_int_equal (cow_volume_pread (v, back, B, 0), -ESHUTDOWN);
  assert_int_equal (cow_volume_pwrite (v, back, B, 0, COW_FUA), -ESHUTDOWN);
  cow_volume_close (v);
  end_pool ();
}

/* Several snapshots are taken together or not at all. */
static void
test_group_snapshot (void **state)
{
  const char *good[] = { "a@g", "b@g" }, *bad[] = { "a@h", "c@h" };
  struct cow_volume_info info;

  new_pool (0, 0);
  assert_int_equal (cow_volume_create (pool, "a", 1 << 20, 0, NULL), 0);
  assert_int_equal (cow_volume_create (pool, "b", 1 << 20, 0, NULL), 0);
  assert_int_equal (cow_snapshot_create (pool, good, 2, 0, NULL), 0);
  assert_int_equal (cow_snapshot_create (pool, good, 2, 0, NULL), -EEXIST);
  assert_int_equal (cow_snapshot_create (pool, bad, 2, 0, NULL), -ENOENT);
  assert_int_equal (cow_volume_info (pool, "a@g", &info, NULL), 0);
  assert_int_equal (cow_volume_info (pool, "b@g", &info, NULL), 0);
  assert_int_equal (cow_volume_info (pool, "a@h", &info, NULL), -ENOENT);
  end_pool ();
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_shared_new_chunk),
    cmocka_unit_test (test_largest_volume),
    cmocka_unit_test (test_cache_bound),
    cmocka_unit_test (test_removed_while_open),
    cmocka_unit_test (test_group_snapshot),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
