/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on what volumes hold: zero, trim, map, diff. */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "cowshed.h"

/* ---- zero, trim ---- */

#define PIECES 50
#define MIN_PIECE (UINT64_C (1) << 30)

/* One of the two, and how far it has come. */
struct wipe {
  const char *path, *done_key;  /* route; counter in its reply */
  char object[3 * COW_NAME_MAX]; /* [POOL/]VOLUME */
  uint64_t offset, length;
  uint64_t counted;
  uint64_t job;                 /* not waited for; 0: none */
};

static int
wipe_parse (struct session *s, struct wipe *w)
{
  struct cow_spec spec;
  int status = parse_spec (s, s->args[0], COW_SPEC_RANGE, &spec);

  if (status != STATUS_OK)
    return status;
  if (spec.snap[0])
    return fail_usage (s, "a snapshot cannot be changed: %s", s->args[0]);
  if (spec.has_offset != spec.has_length)
    return fail_usage (s, "expected VOLUME:OFFSET+LENGTH: %s", s->args[0]);
  snprintf (w->object, sizeof w->object, "%s%s%s", spec.pool,
            spec.pool[0] ? "/" : "", spec.volume);
  w->offset = spec.offset;
  w->length = spec.length;
  return spec.has_offset ? STATUS_OK : -1;
}

/* Without a range it is the whole volume. */
static int
wipe_range (struct session *s, struct wipe *w)
{
  CLEANUP_FREE char *path = NULL;
  json_t *reply;
  int status = wipe_parse (s, w);

  if (status >= 0)
    return status;
  path = volume_path (w->object, "");
  status = backend_call (s, "GET", path, NULL, NULL, &reply);
  if (status != STATUS_OK)
    return status;
  w->length = json_u64 (reply, "size");
  json_decref (reply);
  return STATUS_OK;
}

static json_t *
wipe_body (const struct session *s, const struct wipe *w, uint64_t done,
           uint64_t len)
{
  json_t *body = json_object ();

  json_object_set_new (body, "destination", json_sprintf
                       ("%s:%" PRIu64 "+%" PRIu64, w->object,
                        w->offset + done, len));
  if (session_option (s, "thick"))
    json_object_set_new (body, "thick", json_true ());
  return body;
}

static int
wipe_piece (struct session *s, struct wipe *w, uint64_t done, uint64_t len)
{
  json_t *reply;
  int status = backend_call (s, "POST", w->path, NULL,
                             wipe_body (s, w, done, len), &reply);

  if (status != STATUS_OK)
    return status;
  w->counted += json_u64 (reply, w->done_key);
  w->job = json_u64 (reply, "job");
  json_decref (reply);
  if (w->job == 0 || session_option (s, "no-wait"))
    return STATUS_OK;
  status = job_follow (s, w->job, s->cmd->name, NULL);
  w->job = 0;
  return status;
}

static void
wipe_report (const struct session *s, const struct wipe *w)
{
  json_t *reply;

  if (!s->json) {
    if (w->job)
      printf ("job %" PRIu64 "\n", w->job);
    return;
  }
  reply = json_pack ("{s:I}", w->done_key, (json_int_t) w->counted);
  if (w->job)
    json_object_set_new (reply, "job", json_integer ((json_int_t) w->job));
  print_json (reply);
  json_decref (reply);
}

/* One request, but where somebody looks at a bar: then about PIECES of them,
 * of at least MIN_PIECE bytes.
 */
static uint64_t
wipe_step (const struct session *s, const struct wipe *w, bool bar)
{
  uint64_t step = w->length / PIECES / MIN_PIECE * MIN_PIECE;

  if (!bar || session_option (s, "no-wait"))
    return UINT64_MAX;
  return step < MIN_PIECE ? MIN_PIECE : step;
}

static int
wipe (struct session *s, struct wipe *w)
{
  uint64_t step, done = 0;
  struct progress p;
  int status = wipe_range (s, w);

  if (status != STATUS_OK)
    return status;
  progress_begin (&p, s->cmd->name, true);
  step = wipe_step (s, w, p.on);
  do {
    uint64_t len = w->length - done < step ? w->length - done : step;

    status = wipe_piece (s, w, done, len);
    done += len;
    progress_update (&p, done, w->length);
  } while (status == STATUS_OK && done < w->length);
  progress_end (&p);
  if (status == STATUS_OK)
    wipe_report (s, w);
  return status;
}

int
cmd_zero (struct session *s)
{
  struct wipe w = { .path = "/v1/zero", .done_key = "zeroed" };

  return wipe (s, &w);
}

int
cmd_trim (struct session *s)
{
  struct wipe w = { .path = "/v1/trim", .done_key = "trimmed" };

  return wipe (s, &w);
}

/* ---- map, diff ---- */

/* Fields in which two rows must agree to be one. */
static const char *const row_marks[] = {
  "depth", "present", "zero", "data"
};

/* Does b go on where a ends?  Pages may cut an extent in two. */
static bool
row_continues (json_t *a, json_t *b)
{
  uint64_t len = json_u64 (a, "length");

  if (json_u64 (a, "start") + len != json_u64 (b, "start"))
    return false;
  for (size_t i = 0; i < sizeof row_marks / sizeof row_marks[0]; i++) {
    json_t *x = json_object_get (a, row_marks[i]);
    json_t *y = json_object_get (b, row_marks[i]);

    if (x != y && !json_equal (x, y))
      return false;
  }
  if (!json_object_get (a, "offset") && !json_object_get (b, "offset"))
    return true;
  return json_object_get (a, "offset") && json_object_get (b, "offset")
    && json_u64 (a, "offset") + len == json_u64 (b, "offset");
}

/* Print the rows of a page but the last, which stays in *held. */
static void
print_page (struct session *s, json_t *rows, json_t **held)
{
  json_t *row;
  size_t i;

  json_array_foreach (rows, i, row) {
    if (*held && row_continues (*held, row)) {
      uint64_t len = json_u64 (*held, "length") + json_u64 (row, "length");

      json_object_set_new (*held, "length", json_integer ((json_int_t) len));
      continue;
    }
    if (*held)
      print_rows_item (s, *held);
    json_decref (*held);
    *held = json_incref (row);
  }
}

/* All pages of a list; the query's "offset" moves on.  Takes query over. */
static int
print_pages (struct session *s, const char *path, const char *list,
             json_t *query)
{
  json_t *reply, *held = NULL;
  bool begun = false;
  uint64_t offset = 0, next = 0;
  int status = STATUS_OK;

  do {
    offset = next;
    json_object_set_new (query, "offset", json_sprintf ("%" PRIu64, offset));
    status = backend_call (s, "GET", path, json_incref (query), NULL, &reply);
    if (status != STATUS_OK)
      break;
    if (!begun)
      print_rows_begin (s, list);
    begun = true;
    print_page (s, json_object_get (reply, list), &held);
    next = json_u64 (reply, "next");
    json_decref (reply);
  } while (next > offset);
  if (held)
    print_rows_item (s, held);
  if (begun)
    print_rows_end (s);
  json_decref (held);
  json_decref (query);
  return status;
}

int
cmd_map (struct session *s)
{
  CLEANUP_FREE char *path = volume_path (s->args[0], "/map");
  int status = parse_object (s, s->args[0]);

  if (status != STATUS_OK)
    return status;
  return print_pages (s, path, "map", json_object ());
}

/* The two arguments of diff: both name one volume. */
static int
parse_diff (struct session *s, struct cow_spec *a, struct cow_spec *b)
{
  int status = parse_spec (s, s->args[0], 0, a);

  if (status != STATUS_OK)
    return status;
  if (a->snap[0] == '\0')
    return fail_usage (s, "expected VOLUME@SNAP: %s", s->args[0]);
  *b = *a;
  b->snap[0] = '\0';
  if (s->nr_args == 2)
    status = parse_spec (s, s->args[1], 0, b);
  if (status == STATUS_OK && (strcmp (a->pool, b->pool) != 0
                              || strcmp (a->volume, b->volume) != 0))
    return fail_usage (s, "%s and %s are not of one volume", s->args[0],
                       s->args[1]);
  return status;
}

int
cmd_diff (struct session *s)
{
  CLEANUP_FREE char *path = NULL;
  CLEANUP_FREE char *name = NULL;
  struct cow_spec a, b;
  json_t *query;
  int status = parse_diff (s, &a, &b);

  if (status != STATUS_OK)
    return status;
  name = text_format ("%s%s%s", a.pool, a.pool[0] ? "/" : "", a.volume);
  path = volume_path (name, "/diff");
  query = json_pack ("{s:s}", "from", a.snap);
  if (b.snap[0])
    json_object_set_new (query, "to", json_string (b.snap));
  return print_pages (s, path, "diff", query);
}
