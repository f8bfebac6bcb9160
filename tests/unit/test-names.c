/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "names.h"

/* n times c, then tail. */
static const char *
repeat (char c, size_t n, const char *tail)
{
  static char buf[8192];

  memset (buf, c, n);
  strcpy (buf + n, tail);
  return buf;
}

static void
test_names (void **state)
{
  static const char *const good[] = {
    "a", "0", "A.b_c-d", "snapshot1", "con", "data.mdb", "lock", "a..b", "a.",
  };
  static const char *const bad[] = {
    "", ".", "..", "-r", "_a", "a/b", "a@b", "a b", "a+b", "a:b", "a\nb",
    "a%41", "\xc3\xa9", "\xf0\x9f\x98\x80", "a\xff",
  };

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    assert_true (cow_name_valid (good[i]));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_false (cow_name_valid (bad[i]));
  assert_true (cow_name_valid (repeat ('a', 128, "")));
  assert_false (cow_name_valid (repeat ('a', 129, "")));
  assert_true (cow_snap_name_valid ("a.b"));
  assert_false (cow_snap_name_valid ("a..b"));
  assert_false (cow_snap_name_valid ("a.."));
}

static void
test_objects (void **state)
{
  struct cow_spec s;
  char buf[2 * COW_NAME_MAX + 2];

  assert_int_equal (cow_spec_parse ("vm1", 0, &s, NULL), 0);
  assert_string_equal (s.pool, "");
  assert_string_equal (s.volume, "vm1");
  assert_string_equal (s.snap, "");
  assert_false (s.is_diff || s.has_offset || s.has_length);
  assert_string_equal (cow_spec_object (&s, buf), "vm1");

  assert_int_equal (cow_spec_parse ("p/vm1@a.b", 0, &s, NULL), 0);
  assert_string_equal (s.pool, "p");
  assert_string_equal (s.snap, "a.b");
  assert_string_equal (cow_spec_object (&s, buf), "vm1@a.b");
}

static void
test_longest (void **state)
{
  char text[3 * (COW_NAME_MAX + 1) + 1], name[COW_NAME_MAX + 1];
  char buf[2 * COW_NAME_MAX + 2];
  struct cow_spec s;

  strcpy (name, repeat ('x', COW_NAME_MAX, ""));
  strcpy (text, name);
  strcat (text, "/");
  strcat (text, name);
  strcat (text, "@");
  strcat (text, name);
  assert_int_equal (cow_spec_parse (text, 0, &s, NULL), 0);
  assert_string_equal (cow_spec_object (&s, buf),
                       text + COW_NAME_MAX + 1);
}

static void
test_diffs (void **state)
{
  struct cow_spec s;

  assert_int_equal (cow_spec_parse ("p/v@a..b", COW_SPEC_DIFF, &s, NULL), 0);
  assert_true (s.is_diff);
  assert_string_equal (s.snap, "a");
  assert_string_equal (s.snap_to, "b");
  assert_int_equal (cow_spec_parse ("v@a..", COW_SPEC_DIFF, &s, NULL), 0);
  assert_true (s.is_diff);
  assert_string_equal (s.snap_to, "");
  assert_int_equal (cow_spec_parse ("v@a", COW_SPEC_DIFF, &s, NULL), 0);
  assert_false (s.is_diff);
  assert_int_equal (cow_spec_parse ("v@a..b", 0, &s, NULL), -EINVAL);
  assert_int_equal (cow_spec_parse ("v@..b", COW_SPEC_DIFF, &s, NULL),
                    -EINVAL);
  assert_int_equal (cow_spec_parse ("v@a...", COW_SPEC_DIFF, &s, NULL),
                    -EINVAL);
  assert_int_equal (cow_spec_parse ("v@a..b..c", COW_SPEC_DIFF, &s, NULL),
                    -EINVAL);
}

static void
test_ranges (void **state)
{
  struct cow_spec s;

  assert_int_equal (cow_spec_parse ("v:4096", COW_SPEC_RANGE, &s, NULL), 0);
  assert_true (s.has_offset && !s.has_length);
  assert_int_equal (s.offset, 4096);
  assert_int_equal (cow_spec_parse ("p/v@s:1G+1.5K", COW_SPEC_RANGE, &s,
                                    NULL), 0);
  assert_true (s.has_offset && s.has_length);
  assert_int_equal (s.offset, 1 << 30);
  assert_int_equal (s.length, 1536);
  assert_string_equal (s.snap, "s");
  assert_int_equal (cow_spec_parse ("v:0+9223372036854775807",
                                    COW_SPEC_RANGE, &s, NULL), 0);
}

static void
refuses (const char *text, unsigned flags, const char *code)
{
  struct cow_error err = { 0 };
  struct cow_spec s;

  assert_int_equal (cow_spec_parse (text, flags, &s, &err), -EINVAL);
  assert_int_equal (err.errnum, EINVAL);
  assert_string_equal (err.code, code);
  for (const char *p = err.message; *p; p++)
    assert_in_range (*p, ' ', '~');
}

static void
test_bad_ranges (void **state)
{
  static const char *const bad[] = {
    "v:", "v:x", "v:-1", "v:0+", "v:0+x", "v:+1", "v:0+1+2", "v:0:1",
    "v:1+9223372036854775807", "v:9223372036854775808", "v:0 +1",
    "v:00000000000000000000000000000000000000000000000000000000000000000001",
  };

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    refuses (bad[i], COW_SPEC_RANGE, "invalid-range");
  refuses ("v:0+1", 0, "invalid-name");
}

static void
test_bad_names (void **state)
{
  static const char *const bad[] = {
    "", "/", "/v", "v/", "a/b/c", "@", "@s", "v@", "v@@s", "v@s@t", "v@s/t",
    "v\n", "\xff\xfe", "v@a..b", "p/", "p/@s", "v@-s", "../v", "v@..",
  };

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    refuses (bad[i], 0, "invalid-name");
  refuses (repeat ('a', 129, ""), 0, "invalid-name");
  refuses (repeat ('a', 4096, ""), 0, "invalid-name");
  refuses (repeat ('a', 129, "/v"), 0, "invalid-name");
}

static void
test_quote (void **state)
{
  char buf[16];

  assert_string_equal (cow_text_quote ("ab", buf, sizeof buf), "\"ab\"");
  assert_string_equal (cow_text_quote ("\n\xff", buf, sizeof buf),
                       "\"\\x0a\\xff\"");
  assert_string_equal (cow_text_quote ("0123456789abcdef", buf, sizeof buf),
                       "\"0123456789...\"");
  for (size_t len = 16; len < 64; len++) {
    char *exact = malloc (len);   /* for the address sanitizer */

    cow_text_quote (repeat ('\n', 100, ""), exact, len);
    assert_in_range (strlen (exact), 6, len - 1);
    free (exact);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_names),
    cmocka_unit_test (test_objects),
    cmocka_unit_test (test_longest),
    cmocka_unit_test (test_diffs),
    cmocka_unit_test (test_ranges),
    cmocka_unit_test (test_bad_ranges),
    cmocka_unit_test (test_bad_names),
    cmocka_unit_test (test_quote),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
