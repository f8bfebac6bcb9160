/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies as people and as programs read them.  The same JSON objects are
 * printed either way; a list of columns says how for people.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "cowshed.h"
#include "size.h"

uint64_t
json_u64 (json_t *object, const char *key)
{
  json_int_t n = json_integer_value (json_object_get (object, key));

  return n < 0 ? 0 : (uint64_t) n;
}

static char *
time_text (time_t when)
{
  char buf[64];
  struct tm tm;

  if (when == 0 || localtime_r (&when, &tm) == NULL
      || strftime (buf, sizeof buf, "%Y-%m-%d %H:%M:%S", &tm) == 0)
    return text_format ("-");
  return text_format ("%s", buf);
}

static char *
string_text (json_t *value)
{
  const char *text = json_string_value (value);
  char *copy;

  if (text == NULL)
    return json_is_array (value)
      ? text_format ("%zu", json_array_size (value))
      : json_is_integer (value)
      ? text_format ("%" JSON_INTEGER_FORMAT, json_integer_value (value))
      : text_format ("-");
  /* What comes from a server goes to a terminal. */
  copy = text_format ("%s", *text ? text : "-");
  for (char *p = copy; *p; p++)
    if ((unsigned char) *p < ' ' || *p == 127)
      *p = '?';
  return copy;
}

char *
json_text (json_t *object, const char *key, enum column_kind kind)
{
  json_t *value = json_object_get (object, key);
  uint64_t n = json_u64 (object, key);
  char buf[64];

  if (value == NULL || json_is_null (value))
    return text_format ("-");
  switch (kind) {
  case COLUMN_SIZE:
    return text_format ("%s", cow_size_format (n, buf, sizeof buf));
  case COLUMN_TIME:
    return time_text ((time_t) n);
  case COLUMN_FLAG:
    return text_format ("%s", json_is_true (value) ? "yes" : "no");
  case COLUMN_PERCENT:
    return text_format ("%" PRIu64 "%%", n);
  case COLUMN_TEXT:
  case COLUMN_NUMBER:
    break;
  }
  return string_text (value);
}

#define MAX_COLUMNS 16

static bool
aligned_right (const struct column *c)
{
  return c->kind == COLUMN_SIZE || c->kind == COLUMN_NUMBER
    || c->kind == COLUMN_PERCENT;
}

static void
print_cell (const struct column *c, const char *text, int width)
{
  bool last = c[1].title == NULL;

  if (aligned_right (c))
    printf ("%*s", width, text);
  else
    printf ("%-*s", last ? 0 : width, text);
  fputs (last ? "\n" : "  ", stdout);
}

static void
column_widths (json_t *rows, const struct column *columns, int *widths)
{
  size_t i;
  json_t *row;

  for (int c = 0; columns[c].title; c++) {
    widths[c] = (int) strlen (columns[c].title);
    json_array_foreach (rows, i, row) {
      CLEANUP_FREE char *text = json_text (row, columns[c].key,
                                           columns[c].kind);

      if ((int) strlen (text) > widths[c])
        widths[c] = (int) strlen (text);
    }
  }
}

void
print_table (json_t *rows, const struct column *columns)
{
  int widths[MAX_COLUMNS];
  size_t i;
  json_t *row;

  if (json_array_size (rows) == 0)
    return;
  column_widths (rows, columns, widths);
  for (int c = 0; columns[c].title; c++)
    print_cell (&columns[c], columns[c].title, widths[c]);
  json_array_foreach (rows, i, row) {
    for (int c = 0; columns[c].title; c++) {
      CLEANUP_FREE char *text = json_text (row, columns[c].key,
                                           columns[c].kind);

      print_cell (&columns[c], text, widths[c]);
    }
  }
}

void
print_record (json_t *object, const struct column *columns)
{
  for (const struct column *c = columns; c->title; c++) {
    CLEANUP_FREE char *text = json_text (object, c->key, c->kind);

    if (json_object_get (object, c->key) == NULL)
      continue;
    if (c->kind == COLUMN_SIZE)
      printf ("%-12s %s (%" PRIu64 " bytes)\n", c->title, text,
              json_u64 (object, c->key));
    else
      printf ("%-12s %s\n", c->title, text);
  }
}

void
print_json (json_t *value)
{
  json_dumpf (value, stdout, JSON_INDENT (2));
  putchar ('\n');
}

/* Rows of maps: there may be millions, so they are written as they come. */
static bool first_row;

void
print_rows_begin (const struct session *s, const char *list)
{
  first_row = true;
  if (s->json)
    printf ("{\"%s\": [", list);
}

static const char *
row_kind (json_t *row)
{
  json_t *present = json_object_get (row, "present");

  if (json_is_true (json_object_get (row, "zero")))
    return json_is_false (present) ? "hole" : "zero";
  return "data";
}

void
print_rows_item (const struct session *s, json_t *row)
{
  if (s->json) {
    fputs (first_row ? "\n" : ",\n", stdout);
    json_dumpf (row, stdout, 0);
  }
  else {
    if (first_row)
      printf ("%20s %20s  %s\n", "START", "LENGTH", "TYPE");
    printf ("%20" PRIu64 " %20" PRIu64 "  %s\n", json_u64 (row, "start"),
            json_u64 (row, "length"), row_kind (row));
  }
  first_row = false;
}

void
print_rows_end (const struct session *s)
{
  if (s->json)
    puts (first_row ? "]}" : "\n]}");
}
