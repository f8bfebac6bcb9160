/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests about what is in a volume: maps, zero and trim. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api-internal.h"

#define ROWS_DEFAULT 4096
#define ROWS_MAX 65536          /* some 10 MiB of JSON */

/* ---- A page of rows ---- */

struct page {
  struct request *rq;
  const char *list;
  uint64_t offset, length;
  uint64_t limit;
  uint64_t nr_rows, end;        /* of the last row */
};

/* Take offset, length and limit from the query; size is what is there. */
static int
page_begin (struct page *p, struct request *rq, const char *list,
            uint64_t size)
{
  p->rq = rq;
  p->list = list;
  p->offset = cow_field_number (rq, "offset", 0);
  p->length = cow_field_number (rq, "length", UINT64_MAX);
  p->limit = cow_field_number (rq, "limit", ROWS_DEFAULT);
  if (p->offset > size)
    return cow_error_set (&rq->err, EINVAL, "invalid-range", "offset %"
                          PRIu64 " is beyond the size %" PRIu64, p->offset,
                          size);
  if (p->length > size - p->offset)
    p->length = size - p->offset;
  if (p->limit == 0 || p->limit > ROWS_MAX)
    return cow_error_set (&rq->err, EINVAL, "invalid-field",
                          "field \"limit\": expected 1 to %d", ROWS_MAX);
  return cow_result_append (rq, list, NULL);
}

static int
page_add (struct page *p, const struct cow_extent *e, json_t *row)
{
  json_object_set_new (row, "start", json_integer ((json_int_t) e->offset));
  json_object_set_new (row, "length", json_integer ((json_int_t) e->length));
  p->nr_rows++;
  p->end = e->offset + e->length;
  return cow_result_append (p->rq, p->list, row);
}

/* Say where to go on, unless the page reached the end. */
static void
page_end (struct page *p)
{
  if (p->nr_rows >= p->limit && p->end < p->offset + p->length)
    json_object_set_new (p->rq->result, "next",
                         json_integer ((json_int_t) p->end));
}

/* ---- map ---- */

static int
map_row (void *opaque, const struct cow_extent *e)
{
  bool hole = e->flags & COW_EXTENT_HOLE, zero = e->flags & COW_EXTENT_ZERO;
  json_t *row = json_object ();
  int r = page_add (opaque, e, row);

  if (r < 0)
    return r;
  json_object_set_new (row, "depth", json_integer (0));
  json_object_set_new (row, "present", json_boolean (!hole));
  json_object_set_new (row, "zero", json_boolean (zero));
  json_object_set_new (row, "data", json_boolean (!hole && !zero));
  if (!hole && !zero)
    json_object_set_new (row, "offset",
                         json_integer ((json_int_t) e->data_offset));
  return 0;
}

static int
open_object (struct request *rq, struct cow_pool *pool,
             const struct cow_spec *spec, unsigned flags,
             struct cow_volume **v)
{
  char name[2 * COW_NAME_MAX + 2];

  return cow_volume_open (pool, cow_spec_object (spec, name), flags, v,
                          &rq->err);
}

int
cow_route_map (struct request *rq)
{
  struct page page = { 0 };
  struct cow_spec spec;
  struct cow_pool *pool;
  struct cow_volume *v;
  int r = cow_api_spec (rq, rq->param, 0, &spec, &pool);

  if (r == 0)
    r = open_object (rq, pool, &spec, COW_RDONLY, &v);
  if (r < 0)
    return r;
  r = page_begin (&page, rq, "map", cow_volume_size (v));
  if (r == 0 && page.length)
    r = cow_volume_extents (v, page.length, page.offset, page.limit,
                            COW_EXTENTS_PHYSICAL, map_row, &page);
  cow_volume_close (v);
  page_end (&page);
  return r < 0 ? r : 200;
}

/* ---- diff ---- */

static int
diff_row (void *opaque, const struct cow_extent *e)
{
  json_t *row = json_object ();
  int r = page_add (opaque, e, row);

  if (r == 0)
    json_object_set_new (row, "zero",
                         json_boolean (e->flags & COW_EXTENT_ZERO));
  return r;
}

/* "SNAP", or the same with its volume as the JSON names have it. */
static int
parse_side (struct request *rq, const char *field, struct cow_spec *spec)
{
  const char *text = cow_field_text (rq, field);
  const char *at = strchr (text, '@');
  char quoted[100];

  if (at && (size_t) (at - text) == strlen (spec->volume) &&
      strncmp (text, spec->volume, at - text) == 0)
    text = at + 1;
  if (!cow_snap_name_valid (text))
    return cow_error_set (&rq->err, EINVAL, "invalid-name", "field \"%s\": "
                          "expected a snapshot of %s and not %s", field,
                          spec->volume,
                          cow_text_quote (text, quoted, sizeof quoted));
  strcpy (spec->snap, text);    /* valid, so it fits */
  return 0;
}

static int
parse_sides (struct request *rq, struct cow_spec *from, struct cow_spec *to,
             struct cow_pool **pool)
{
  int r = cow_api_spec (rq, rq->param, 0, to, pool);

  if (r < 0)
    return r;
  *from = *to;
  if (cow_field_given (rq, "to") && to->snap[0])
    return cow_error_set (&rq->err, EINVAL, "invalid-request", "the path "
                          "names a snapshot and \"to\" is given as well");
  if (cow_field_given (rq, "to") && *cow_field_text (rq, "to"))
    r = parse_side (rq, "to", to);
  return r < 0 ? r : parse_side (rq, "from", from);
}

static int
diff_page (struct request *rq, struct cow_volume *a, struct cow_volume *b)
{
  struct page page = { 0 };
  int r = page_begin (&page, rq, "diff", cow_volume_size (b));

  if (r == 0 && page.length)
    r = cow_volume_diff (a, b, page.length, page.offset, page.limit,
                         diff_row, &page);
  page_end (&page);
  return r;
}

int
cow_route_diff (struct request *rq)
{
  struct cow_spec from, to;
  struct cow_pool *pool;
  struct cow_volume *a, *b;
  int r = parse_sides (rq, &from, &to, &pool);

  if (r == 0)
    r = open_object (rq, pool, &from, COW_RDONLY, &a);
  if (r < 0)
    return r;
  r = open_object (rq, pool, &to, COW_RDONLY, &b);
  if (r == 0) {
    r = diff_page (rq, a, b);
    cow_volume_close (b);
  }
  cow_volume_close (a);
  return r < 0 ? r : 200;
}

/* ---- zero, trim ---- */

/* Open the destination for writing and find the range's end. */
static int
open_destination (struct request *rq, struct cow_spec *spec,
                  struct cow_volume **v)
{
  struct cow_pool *pool;
  uint64_t size;
  int r = cow_api_spec (rq, cow_field_text (rq, "destination"),
                        COW_SPEC_RANGE, spec, &pool);

  if (r == 0)
    r = open_object (rq, pool, spec, 0, v);
  if (r < 0)
    return r;
  size = cow_volume_size (*v);
  if (!spec->has_length && spec->offset <= size)
    spec->length = size - spec->offset;
  if (spec->offset > size || spec->length > size - spec->offset)
    r = cow_error_set (&rq->err, EINVAL, "invalid-range", "%" PRIu64 "+%"
                       PRIu64 " is not within %s, whose size is %" PRIu64,
                       spec->offset, spec->length, spec->volume, size);
  else if (cow_volume_readonly (*v))
    r = cow_error_set (&rq->err, EROFS, "read-only", "%s%s%s is read-only",
                       spec->volume, spec->snap[0] ? "@" : "", spec->snap);
  if (r < 0)
    cow_volume_close (*v);
  return r;
}

static int
wipe (struct request *rq, const char *key, unsigned flags,
      int (*operation) (struct cow_volume *v, uint64_t len, uint64_t offset,
                        unsigned flags))
{
  struct cow_spec spec;
  struct cow_volume *v;
  int r = open_destination (rq, &spec, &v);

  if (r < 0)
    return r;
  if (cow_field_sync (rq) == 0)
    flags |= COW_FUA;
  r = operation (v, spec.length, spec.offset, flags);
  cow_volume_close (v);
  if (r < 0)
    return cow_error_from_errno (&rq->err, r, spec.volume);
  json_object_set_new (rq->result, key,
                       json_integer ((json_int_t) spec.length));
  return 200;
}

int
cow_route_zero (struct request *rq)
{
  return wipe (rq, "zeroed", cow_field_flag (rq, "thick", COW_NO_HOLE),
               cow_volume_zero);
}

int
cow_route_trim (struct request *rq)
{
  if (cow_field_flag (rq, "thick", 1))
    return cow_error_set (&rq->err, EINVAL, "invalid-field", "a trim gives "
                          "space back and cannot be thick: use zero");
  return wipe (rq, "trimmed", 0, cow_volume_trim);
}
