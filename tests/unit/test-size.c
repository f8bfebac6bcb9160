/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "size.h"

static void
parses (const char *text, uint64_t expected)
{
  uint64_t n = 12345;

  assert_int_equal (cow_size_parse (text, &n), 0);
  assert_int_equal (n, expected);
}

static void
refuses (const char *text, int expected)
{
  uint64_t n;

  if (cow_size_parse (text, &n) != expected)
    fail_msg ("\"%s\" was not refused with %d", text, expected);
}

static void
test_parse_plain (void **state)
{
  parses ("0", 0);
  parses ("00", 0);
  parses ("1", 1);
  parses ("512", 512);
  parses ("512b", 512);
  parses ("9223372036854775807", INT64_MAX);
}

static void
test_parse_suffixes (void **state)
{
  static const char suffixes[] = "KMGTP";

  for (unsigned i = 0; suffixes[i]; i++) {
    char upper[] = { '3', suffixes[i], 0 };
    char lower[] = { '3', suffixes[i] | 0x20, 0 };

    parses (upper, (uint64_t) 3 << (10 * (i + 1)));
    parses (lower, (uint64_t) 3 << (10 * (i + 1)));
  }
  parses ("7E", (uint64_t) 7 << 60);
}

static void
test_parse_fractions (void **state)
{
  parses ("1.5G", 1610612736);
  parses ("0.5K", 512);
  parses ("1.0M", 1 << 20);
  parses ("0.1K", 102);
  parses ("7.9999E", UINT64_C (9223256744704315123));
  parses ("1.00000000000000000000000000001K", 1024);
}

static void
test_parse_refuses (void **state)
{
  static const char *const bad[] = {
    "", " ", "-1", "+1", " 1", "1 ", "1KB", "1KiB", "K", ".5K", "1.K", "1.5",
    "1.5b", "0x10", "1e9", "1,5G", "1..5G", "1.5.5G", "nan", "inf", "1Z",
    "1\n", "\xd9\xa1",
  };

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    refuses (bad[i], -EINVAL);
}

static void
test_parse_too_large (void **state)
{
  refuses ("9223372036854775808", -ERANGE);
  refuses ("18446744073709551616", -ERANGE);
  refuses ("99999999999999999999999999", -ERANGE);
  refuses ("99999999999999999999999999K", -ERANGE);
  refuses ("8E", -ERANGE);
  refuses ("16E", -ERANGE);
  refuses ("8192P", -ERANGE);
  refuses ("99999999999999999999x", -EINVAL);
}

static void
formats (uint64_t n, const char *expected)
{
  char buf[32];

  assert_string_equal (cow_size_format (n, buf, sizeof buf), expected);
}

static void
test_format (void **state)
{
  formats (0, "0");
  formats (512, "512");
  formats (1023, "1023");
  formats (1024, "1K");
  formats (1025, "1K");
  formats (1536, "1.5K");
  formats (65536, "64K");
  formats (1610612736, "1.5G");
  formats (1181116006, "1.1G");
  formats (1084227584, "1.01G");
  formats (1048575, "1M");
  formats (((uint64_t) 1 << 40) - 1, "1T");
  formats (INT64_MAX, "8E");
  formats (UINT64_MAX, "16E");
}

static void
test_format_short_buffer (void **state)
{
  char buf[4] = "xxx";

  assert_string_equal (cow_size_format (1610612736, buf, sizeof buf), "1.5");
}

/* What is formatted without loss reads back as itself. */
static void
test_round_trip (void **state)
{
  for (unsigned shift = 0; shift < 63; shift++) {
    uint64_t n = (uint64_t) 1 << shift, back;
    char buf[32];

    assert_int_equal (cow_size_parse (cow_size_format (n, buf, sizeof buf),
                                      &back), 0);
    assert_int_equal (back, n);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_parse_plain),
    cmocka_unit_test (test_parse_suffixes),
    cmocka_unit_test (test_parse_fractions),
    cmocka_unit_test (test_parse_refuses),
    cmocka_unit_test (test_parse_too_large),
    cmocka_unit_test (test_format),
    cmocka_unit_test (test_format_short_buffer),
    cmocka_unit_test (test_round_trip),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
