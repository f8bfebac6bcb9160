/* SPDX-License-Identifier: BSD-3-Clause */
/* The text is cut from its ends: the pool before '/', the range after ':',
 * then the snapshot after '@'.  None of these characters may stand in a
 * name, so the order does not matter to what is accepted.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "names.h"
#include "size.h"

/* Longest text that is worth looking at: three names, marks and numbers. */
#define SPEC_MAX (4 * COW_NAME_MAX + 64)

#define NAME_RULE "a name is a letter or digit, then at most 127 letters, " \
  "digits or any of ._-"

static bool
is_alnum (char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
    (c >= '0' && c <= '9');
}

static bool
name_ok (const char *name, size_t len)
{
  if (len == 0 || len > COW_NAME_MAX || !is_alnum (name[0]))
    return false;
  for (size_t i = 1; i < len; i++)
    if (!is_alnum (name[i]) && !strchr ("._-", name[i]))
      return false;
  return true;
}

static bool
snap_ok (const char *name, size_t len)
{
  return name_ok (name, len) && memmem (name, len, "..", 2) == NULL;
}

bool
cow_name_valid (const char *name)
{
  return name_ok (name, strlen (name));
}

bool
cow_snap_name_valid (const char *name)
{
  return snap_ok (name, strlen (name));
}

const char *
cow_text_quote (const char *text, char *buf, size_t len)
{
  size_t n = 0;

  buf[n++] = '"';
  for (; *text; text++) {
    unsigned char c = *text;
    bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';

    if (n + (plain ? 1 : 4) + sizeof "...\"" > len) {
      memcpy (buf + n, "...", 3);
      n += 3;
      break;
    }
    if (plain)
      buf[n++] = c;
    else
      n += sprintf (buf + n, "\\x%02x", c);
  }
  buf[n++] = '"';
  buf[n] = '\0';
  return buf;
}

static int
bad_name (const char *text, const char *expected, struct cow_error *err)
{
  char quoted[200];

  return cow_error_set (err, EINVAL, "invalid-name", "bad name %s: %s",
                        cow_text_quote (text, quoted, sizeof quoted),
                        expected);
}

static int
bad_range (const char *text, const char *expected, struct cow_error *err)
{
  char quoted[200];

  return cow_error_set (err, EINVAL, "invalid-range", "bad range %s: %s",
                        cow_text_quote (text, quoted, sizeof quoted),
                        expected);
}

/* Copy [from, to), which was found valid, into a field of a spec. */
static void
take (char *field, const char *from, const char *to)
{
  memcpy (field, from, to - from);
  field[to - from] = '\0';
}

static int
parse_pool (const char **p, struct cow_spec *spec)
{
  const char *slash = strchr (*p, '/');

  if (slash == NULL)
    return 0;
  if (!name_ok (*p, slash - *p))
    return -EINVAL;
  take (spec->pool, *p, slash);
  *p = slash + 1;
  return 0;
}

/* "A", "A..B" or "A..", between the '@' and end. */
static int
parse_snap (const char *p, const char *end, unsigned flags,
            struct cow_spec *spec)
{
  const char *dots = memmem (p, end - p, "..", 2);

  if (dots && (flags & COW_SPEC_DIFF)) {
    const char *to = dots + 2;

    if (to < end && !snap_ok (to, end - to))
      return -EINVAL;
    take (spec->snap_to, to, end);
    spec->is_diff = true;
    end = dots;
  }
  if (!snap_ok (p, end - p))
    return -EINVAL;
  take (spec->snap, p, end);
  return 0;
}

static int
parse_number (const char *p, const char *end, uint64_t *number)
{
  char text[64];

  if ((size_t) (end - p) >= sizeof text)
    return -EINVAL;
  take (text, p, end);
  return cow_size_parse (text, number);
}

/* "OFF" or "OFF+LEN"; their sum is a position too. */
static int
parse_range (const char *p, struct cow_spec *spec)
{
  const char *plus = strchr (p, '+');
  const char *end = p + strlen (p);
  int r;

  spec->has_offset = true;
  r = parse_number (p, plus ? plus : end, &spec->offset);
  if (r < 0 || plus == NULL)
    return r;
  spec->has_length = true;
  r = parse_number (plus + 1, end, &spec->length);
  if (r < 0)
    return r;
  return spec->length > (uint64_t) INT64_MAX - spec->offset ? -ERANGE : 0;
}

static const char *
expected_name (unsigned flags)
{
  if (flags & COW_SPEC_DIFF)
    return "expected [POOL/]VOLUME[@SNAP] or [POOL/]VOLUME@A..[B]; "
      NAME_RULE;
  return "expected [POOL/]VOLUME[@SNAP]; " NAME_RULE;
}

int
cow_spec_parse (const char *text, unsigned flags, struct cow_spec *spec,
                struct cow_error *err)
{
  const char *p = text, *colon, *at, *end;
  int r;

  memset (spec, 0, sizeof *spec);
  if (strnlen (text, SPEC_MAX + 1) > SPEC_MAX)
    return bad_name (text, "it is too long", err);
  if (parse_pool (&p, spec) < 0)
    return bad_name (text, expected_name (flags), err);
  colon = flags & COW_SPEC_RANGE ? strchr (p, ':') : NULL;
  end = colon ? colon : p + strlen (p);
  at = memchr (p, '@', end - p);
  if (!name_ok (p, (at ? at : end) - p))
    return bad_name (text, expected_name (flags), err);
  take (spec->volume, p, at ? at : end);
  if (at && parse_snap (at + 1, end, flags, spec) < 0)
    return bad_name (text, expected_name (flags), err);
  r = colon ? parse_range (colon + 1, spec) : 0;
  if (r == -ERANGE)
    return bad_range (text, "it ends beyond 2^63-1", err);
  if (r < 0)
    return bad_range (text, "expected OFFSET or OFFSET+LENGTH after ':', "
                      "in bytes or with one of the suffixes KMGTPE", err);
  return 0;
}

const char *
cow_spec_object (const struct cow_spec *spec, char *buf)
{
  size_t len = strlen (spec->volume);

  memcpy (buf, spec->volume, len + 1);
  if (spec->snap[0]) {
    buf[len++] = '@';
    memcpy (buf + len, spec->snap, strlen (spec->snap) + 1);
  }
  return buf;
}
