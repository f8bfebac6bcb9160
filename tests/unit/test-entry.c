/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of map entries against a plain model: which chunk supplies each
 * block, before and after.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "entry.h"

#define FRESH 99

static uint64_t
source (const struct entry *e, unsigned b)
{
  if (e->present & (1u << b))
    return e->own;
  return e->omask & (1u << b) ? e->origin : 0;
}

static struct entry
random_entry (void)
{
  struct entry e = { .own = 1 + random () % 5 };

  e.present = random ();
  e.origin = 10 + random () % 5;
  e.omask = random () & ~e.present;
  if (random () % 3 == 0)
    e.omask = 0;
  if (random () % 5 == 0)
    e.present = 0;
  cow_entry_normalise (&e);
  return e;
}

static void
test_normal_form (void **state)
{
  unsigned i;

  for (i = 0; i < 20000; i++) {
    struct entry e = random_entry ();

    assert_true (cow_entry_valid (&e, 100));
    assert_false (e.own && cow_entry_valid (&e, e.own));
  }
}

static void
test_clear (void **state)
{
  unsigned i, b;

  for (i = 0; i < 20000; i++) {
    struct entry e = random_entry (), after;
    unsigned mask = random () & ALL_BLOCKS;

    after = cow_entry_clear (e, mask);
    assert_true (cow_entry_valid (&after, 100));
    for (b = 0; b < BLOCKS_PER_CHUNK; b++)
      assert_int_equal (source (&after, b),
                        mask & (1u << b) ? 0 : source (&e, b));
  }
}

/* After a write the written blocks come from the chunk that was written,
 * the others from where they came before, or are copies in the new chunk.
 */
static void
test_write (void **state)
{
  unsigned i, b;

  for (i = 0; i < 50000; i++) {
    struct entry e = random_entry ();
    unsigned mask = 1 + random () % ALL_BLOCKS;
    bool exclusive = random () & 1;
    struct entry_write w;
    uint64_t target;

    cow_entry_plan_write (&e, mask, exclusive, FRESH, &w);
    assert_true (cow_entry_valid (&w.after, 100));
    assert_int_equal (w.in_place, exclusive && e.own != 0);
    target = w.in_place ? e.own : FRESH;
    assert_int_equal (w.copy_mask & mask, 0);
    for (b = 0; b < BLOCKS_PER_CHUNK; b++) {
      unsigned bit = 1u << b;
      uint64_t now = source (&w.after, b);

      if (mask & bit)
        assert_int_equal (now, target);
      else if (w.copy_mask & bit) {
        assert_int_equal (now, FRESH);
        assert_int_equal (source (&e, b), w.copy_from);
      }
      else
        assert_int_equal (now, source (&e, b));
    }
  }
}

/* With three chunks in play the smaller side is copied. */
static void
test_copies_smaller_side (void **state)
{
  struct entry e = { .own = 1, .present = 0x00ff, .origin = 2,
                     .omask = 0x0100 };
  struct entry_write w;

  cow_entry_plan_write (&e, 0x8000, false, FRESH, &w);
  assert_int_equal (w.copy_mask, 0x0100);
  assert_int_equal (w.copy_from, 2);
  assert_int_equal (w.after.origin, 1);
  cow_entry_plan_write (&e, 0x00fe, false, FRESH, &w);
  assert_int_equal (__builtin_popcount (w.copy_mask), 1);
  /* Nothing to copy when the write covers one side. */
  cow_entry_plan_write (&e, 0x00ff, false, FRESH, &w);
  assert_int_equal (w.copy_mask, 0);
  assert_int_equal (w.after.origin, 2);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_normal_form),
    cmocka_unit_test (test_clear),
    cmocka_unit_test (test_write),
    cmocka_unit_test (test_copies_smaller_side),
  };

  srandom (20);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
