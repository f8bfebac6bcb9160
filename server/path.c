/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths and queries as they stand in a request line.  Everything is decoded
 * exactly once and after splitting, so that "%2F" in a name is no separator
 * and "%2541" is the text "%41".
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api-internal.h"
#include "cleanup.h"

static int
hex_digit (char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/* The byte behind a '%', or -1; a zero byte would cut the text. */
static int
decode_escape (const char *p, const char *end)
{
  int high, low;

  if (end - p < 3)
    return -1;
  high = hex_digit (p[1]);
  low = hex_digit (p[2]);
  return high < 0 || low < 0 || high + low == 0 ? -1 : high << 4 | low;
}

char *
cow_percent_decode (const char *text, size_t len)
{
  const char *p = text, *end = text + len;
  char *out = malloc (len + 1), *q = out;

  if (out == NULL)
    return NULL;
  while (p < end) {
    if (*p == '%') {
      int c = decode_escape (p, end);

      if (c < 0) {
        free (out);
        errno = EINVAL;
        return NULL;
      }
      *q++ = (char) c;
      p += 3;
    }
    else
      *q++ = *p++;
  }
  *q = '\0';
  return out;
}

int
cow_path_match (const char *pattern, const char *path, char **param)
{
  const char *value = NULL;
  size_t value_len = 0;

  *param = NULL;
  while (*pattern && *path) {
    if (*pattern == '{') {
      pattern = strchr (pattern, '}') + 1;
      value = path;
      value_len = strcspn (path, "/");
      path += value_len;
      if (value_len == 0)
        return -ENOENT;
    }
    else if (*pattern++ != *path++)
      return -ENOENT;
  }
  if (*pattern || *path)
    return -ENOENT;
  if (value) {
    *param = cow_percent_decode (value, value_len);
    if (*param == NULL)
      return -errno;
  }
  return 0;
}

/* ---- Queries ---- */

static int
bad_query (struct cow_error *err, const char *what, const char *text)
{
  char quoted[128];

  return cow_error_set (err, EINVAL, "invalid-query", "%s in the query: %s",
                        what, cow_text_quote (text, quoted, sizeof quoted));
}

static int
parse_pair (const char *text, size_t len, json_t *query,
            struct cow_error *err)
{
  const char *equals = memchr (text, '=', len);
  size_t key_len = equals ? (size_t) (equals - text) : len;
  CLEANUP_FREE char *key = cow_percent_decode (text, key_len);
  CLEANUP_FREE char *value = NULL;

  if (equals)
    value = cow_percent_decode (equals + 1, len - key_len - 1);
  else
    value = strdup ("");
  if (key == NULL || value == NULL)
    return bad_query (err, "bad percent escape", text);
  if (json_object_get (query, key))
    return bad_query (err, "repeated parameter", key);
  if (json_object_set_new (query, key, json_string (value)) < 0)
    return bad_query (err, "text that is not UTF-8", text);
  return 0;
}

int
cow_query_parse (const char *text, json_t **query, struct cow_error *err)
{
  int r = 0;

  *query = json_object ();
  if (*query == NULL)
    return cow_error_set (err, ENOMEM, "no-memory", "out of memory");
  while (*text && r == 0) {
    size_t len = strcspn (text, "&");

    if (len)
      r = parse_pair (text, len, *query, err);
    text += len + (text[len] == '&');
  }
  if (r < 0) {
    json_decref (*query);
    *query = NULL;
  }
  return r;
}
