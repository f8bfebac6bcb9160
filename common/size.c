/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "size.h"

#define SIZE_LIMIT ((uint64_t) INT64_MAX)

/* The power of two a suffix stands for, or -1. */
static int
suffix_shift (char c)
{
  static const char letters[] = "bkmgtpe";
  const char *p;

  if (c >= 'A' && c <= 'Z')
    c += 'a' - 'A';
  p = c ? strchr (letters, c) : NULL;
  return p ? 10 * (int) (p - letters) : -1;
}

static int
parse_whole (const char **text, uint64_t *whole)
{
  const char *p = *text;

  *whole = 0;
  if (*p < '0' || *p > '9')
    return -EINVAL;
  for (; *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow (*whole, 10, whole) ||
        __builtin_add_overflow (*whole, (uint64_t) (*p - '0'), whole))
      return -ERANGE;
  *text = p;
  return 0;
}

/* ".5" as a count of 1/2^60: far more than a suffix can show.  Digits past
 * the 18th cannot change a size that is rounded down.
 */
static int
parse_fraction (const char **text, uint64_t *fraction)
{
  const char *p = *text;
  unsigned __int128 digits = 0, scale = 1;

  *fraction = 0;
  if (*p != '.')
    return 0;
  if (*++p < '0' || *p > '9')
    return -EINVAL;
  for (; *p >= '0' && *p <= '9'; p++)
    if (scale < (unsigned __int128) 1000000000000000000) {
      digits = digits * 10 + (unsigned) (*p - '0');
      scale *= 10;
    }
  *fraction = (uint64_t) ((digits << 60) / scale);
  *text = p;
  return 0;
}

int
cow_size_parse (const char *text, uint64_t *bytes)
{
  uint64_t whole, fraction;
  bool has_fraction;
  int shift = 0, r;

  r = parse_whole (&text, &whole);
  if (r == -EINVAL)
    return r;
  if (r == -ERANGE)             /* still say which kind of wrong it is */
    return text[strspn (text, "0123456789.bBkKmMgGtTpPeE")] ? -EINVAL : r;
  has_fraction = *text == '.';
  if (parse_fraction (&text, &fraction) < 0)
    return -EINVAL;
  if (*text)
    shift = suffix_shift (*text++);
  if (shift < 0 || *text || (has_fraction && shift == 0))
    return -EINVAL;
  if (whole > SIZE_LIMIT >> shift)
    return -ERANGE;
  whole <<= shift;
  fraction >>= 60 - shift;
  if (fraction > SIZE_LIMIT - whole)
    return -ERANGE;
  *bytes = whole + fraction;
  return 0;
}

/* rest / 2^shift in hundredths, to the nearest. */
static uint64_t
rounded_hundredths (uint64_t rest, unsigned shift)
{
  unsigned __int128 n = (unsigned __int128) rest * 100;

  if (shift == 0)
    return 0;
  return (uint64_t) ((n + ((uint64_t) 1 << (shift - 1))) >> shift);
}

const char *
cow_size_format (uint64_t bytes, char *buf, size_t len)
{
  static const char letters[] = "\0KMGTPE";
  unsigned unit = 0;
  uint64_t whole, hundredths;
  int n;

  while (unit < 6 && bytes >> (10 * (unit + 1)))
    unit++;
  whole = bytes >> (10 * unit);
  hundredths = rounded_hundredths (bytes - (whole << (10 * unit)), 10 * unit);
  if (hundredths == 100) {      /* rounded up to the next whole */
    hundredths = 0;
    whole++;
  }
  if (whole == 1024 && unit < 6) {
    whole = 1;
    unit++;
  }
  n = snprintf (buf, len, "%" PRIu64, whole);
  if (hundredths && n > 0 && (size_t) n < len)
    n += snprintf (buf + n, len - n, hundredths % 10 ? ".%02u" : ".%u",
                   (unsigned) (hundredths % 10 ? hundredths
                               : hundredths / 10));
  if (unit && n > 0 && (size_t) n < len)
    snprintf (buf + n, len - n, "%c", letters[unit]);
  return buf;
}
