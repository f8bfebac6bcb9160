/* SPDX-License-Identifier: BSD-3-Clause */
/* Stored records: what is packed comes back; what was changed is refused. */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pack.h"

#define NR_CHUNKS (UINT64_C (1) << 30)

static void
random_leaf (struct entry *e)
{
  unsigned i;

  memset (e, 0, LEAF_ENTRIES * sizeof *e);
  for (i = 0; i < LEAF_ENTRIES; i++) {
    if (random () % 4 == 0)
      continue;
    e[i].own = random () % 3 ? 1000 + i : 1 + random ();
    e[i].own &= NR_CHUNKS - 1;
    e[i].own += e[i].own == 0;
    e[i].present = random () % 2 ? ALL_BLOCKS : 1 + random () % ALL_BLOCKS;
    if (random () % 3 == 0 && e[i].present != ALL_BLOCKS) {
      e[i].origin = (e[i].own + 5) & (NR_CHUNKS - 1);
      e[i].origin += e[i].origin == 0;
      e[i].omask = ALL_BLOCKS & ~e[i].present;
    }
  }
}

static void
test_leaf (void **state)
{
  struct entry e[LEAF_ENTRIES], back[LEAF_ENTRIES];
  char buf[PACK_MAX];
  const char *why;
  unsigned i;

  for (i = 0; i < 3000; i++) {
    size_t len;

    random_leaf (e);
    len = cow_pack_leaf (7, e, buf);
    assert_true (len <= PACK_MAX);
    assert_int_equal (cow_unpack_leaf (buf, len, 7, NR_CHUNKS, back, &why),
                      0);
    assert_memory_equal (e, back, sizeof e);
    assert_int_equal (cow_pack_peek_level (buf, len), 0);
    assert_int_equal (cow_unpack_leaf (buf, len, 8, NR_CHUNKS, back, &why),
                      -EIO);
  }
}

static void
test_sequential_leaf_is_small (void **state)
{
  struct entry e[LEAF_ENTRIES] = { { 0 } };
  char buf[PACK_MAX];
  unsigned i;

  for (i = 0; i < LEAF_ENTRIES; i++) {
    e[i].own = 123456 + i;
    e[i].present = ALL_BLOCKS;
  }
  assert_true (cow_pack_leaf (1, e, buf) < 40);
}

static void
test_inner (void **state)
{
  uint64_t child[INNER_CHILDREN], back[INNER_CHILDREN];
  char buf[PACK_MAX];
  const char *why;
  unsigned i, k;

  for (i = 0; i < 1000; i++) {
    size_t len;

    for (k = 0; k < INNER_CHILDREN; k++)
      child[k] = random () % 3 ? 0 : random () % 2 ? 5000 + k
        : (UINT64_C (1) << 61) - 1 - random ();
    len = cow_pack_inner (9, 3, child, buf);
    assert_true (len <= PACK_MAX);
    assert_int_equal (cow_unpack_inner (buf, len, 9, 3, UINT64_C (1) << 62,
                                        back, &why), 0);
    assert_memory_equal (child, back, sizeof child);
    assert_int_equal (cow_unpack_inner (buf, len, 9, 2, UINT64_C (1) << 62,
                                        back, &why), -EIO);
  }
}

static void
test_counts (void **state)
{
  uint32_t count[COUNTS_PER_PAGE], back[COUNTS_PER_PAGE];
  char buf[PACK_MAX];
  const char *why;
  unsigned i, k;

  for (i = 0; i < 500; i++) {
    size_t len;

    for (k = 0; k < COUNTS_PER_PAGE; k++)
      count[k] = i % 2 ? random () % COUNT_MAX : random () % 2;
    count[5] = COUNT_HELD;      /* is stored as free */
    len = cow_pack_counts (PACK_CHUNK_COUNTS, 3, count, buf);
    count[5] = 0;
    assert_true (len <= PACK_MAX);
    assert_int_equal (cow_unpack_counts (buf, len, PACK_CHUNK_COUNTS, 3, back,
                                         &why), 0);
    assert_memory_equal (count, back, sizeof count);
    assert_int_equal (cow_unpack_counts (buf, len, PACK_NODE_COUNTS, 3, back,
                                         &why), -EIO);
  }
}

/* Every flipped bit and every truncation is refused, with a reason. */
static void
test_damage (void **state)
{
  struct entry e[LEAF_ENTRIES], back[LEAF_ENTRIES];
  char buf[PACK_MAX];
  size_t len, i;

  random_leaf (e);
  len = cow_pack_leaf (7, e, buf);
  for (i = 0; i < len * 8; i++) {
    const char *why = NULL;

    buf[i / 8] ^= 1 << i % 8;
    assert_int_equal (cow_unpack_leaf (buf, len, 7, NR_CHUNKS, back, &why),
                      -EIO);
    assert_non_null (why);
    buf[i / 8] ^= 1 << i % 8;
  }
  for (i = 0; i < len; i++) {
    const char *why = NULL;

    assert_int_equal (cow_unpack_leaf (buf, i, 7, NR_CHUNKS, back, &why),
                      -EIO);
    assert_non_null (why);
  }
}

/* Right checksum, wrong content: entries beyond the pool or not normal. */
static void
test_wrong_values (void **state)
{
  struct entry e[LEAF_ENTRIES] = { { 0 } }, back[LEAF_ENTRIES];
  char buf[PACK_MAX];
  const char *why;
  size_t len;

  e[3].own = NR_CHUNKS;
  e[3].present = 1;
  len = cow_pack_leaf (1, e, buf);
  assert_int_equal (cow_unpack_leaf (buf, len, 1, NR_CHUNKS, back, &why),
                    -EIO);
  e[3].own = 5;
  e[3].origin = 6;
  e[3].omask = 1;
  len = cow_pack_leaf (1, e, buf);
  assert_int_equal (cow_unpack_leaf (buf, len, 1, NR_CHUNKS, back, &why),
                    -EIO);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_leaf),
    cmocka_unit_test (test_sequential_leaf_is_small),
    cmocka_unit_test (test_inner),
    cmocka_unit_test (test_counts),
    cmocka_unit_test (test_damage),
    cmocka_unit_test (test_wrong_values),
  };

  srandom (21);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
