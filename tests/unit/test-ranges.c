/* SPDX-License-Identifier: BSD-3-Clause */
/* In-flight ranges: who may go beside whom, and in which turn. */
#include <config.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "epoch.h"
#include "ranges.h"

static void
test_conflicts (void **state)
{
  struct cow_ranges rs;
  struct cow_range a, b, c;

  cow_ranges_init (&rs);
  cow_range_lock (&rs, &a, 0, 100, false);
  assert_true (cow_range_trylock (&rs, &b, 50, 150, false));
  assert_false (cow_range_trylock (&rs, &c, 99, 200, true));
  assert_true (cow_range_trylock (&rs, &c, 150, 200, true));
  cow_range_unlock (&rs, &a);
  cow_range_unlock (&rs, &b);
  assert_false (cow_range_trylock (&rs, &a, 199, 201, false));
  assert_true (cow_range_trylock (&rs, &a, 200, 201, false));
  cow_range_unlock (&rs, &a);
  cow_range_unlock (&rs, &c);
  cow_ranges_destroy (&rs);
}

/* Many threads add to cells under exclusive ranges of random width: any two
 * in one cell at a time would lose an addition.
 */
#define CELLS 32
#define ROUNDS 3000

static struct cow_ranges shared;
static volatile unsigned cell[CELLS];

static void *
adder (void *seed)
{
  unsigned s = (unsigned) (uintptr_t) seed, i, k, from, to;
  struct cow_range r;

  for (i = 0; i < ROUNDS; i++) {
    from = rand_r (&s) % CELLS;
    to = from + 1 + rand_r (&s) % (CELLS - from);
    cow_range_lock (&shared, &r, from, to, true);
    for (k = from; k < to; k++)
      cell[k]++;
    cow_range_unlock (&shared, &r);
  }
  return NULL;
}

static void
test_exclusion (void **state)
{
  pthread_t t[4];
  unsigned i, k, s, from, to, want[CELLS] = { 0 };

  cow_ranges_init (&shared);
  for (i = 0; i < 4; i++)
    assert_int_equal (pthread_create (&t[i], NULL, adder,
                                      (void *) (uintptr_t) (i + 1)), 0);
  for (i = 0; i < 4; i++)
    pthread_join (t[i], NULL);
  for (i = 0; i < 4; i++)
    for (s = i + 1, k = 0; k < ROUNDS; k++) {
      from = rand_r (&s) % CELLS;
      to = from + 1 + rand_r (&s) % (CELLS - from);
      for (; from < to; from++)
        want[from]++;
    }
  for (k = 0; k < CELLS; k++)
    assert_int_equal (cell[k], want[k]);
  cow_ranges_destroy (&shared);
}

static void
test_epoch (void **state)
{
  struct epoch e = { .lock = PTHREAD_MUTEX_INITIALIZER, .current = 2 };
  uint64_t in, later, stamp;

  in = cow_epoch_enter (&e);
  stamp = cow_epoch_stamp (&e);
  assert_false (cow_epoch_passed (&e, stamp));
  later = cow_epoch_enter (&e);         /* does not hold the stamp up */
  cow_epoch_leave (&e, in);
  assert_int_equal (cow_epoch_passed (&e, stamp), later > stamp);
  cow_epoch_leave (&e, later);
  assert_true (cow_epoch_passed (&e, stamp));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_conflicts),
    cmocka_unit_test (test_exclusion),
    cmocka_unit_test (test_epoch),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
