/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests without HTTP: paths, queries, fields, the table of routes, and the
 * head of an HTTP request without a connection.
 */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api-internal.h"
#include "http-parse.h"
#include "test-util.h"

/* ---- Paths and queries ---- */

static void
decodes (const char *text, const char *expected)
{
  char *out = cow_percent_decode (text, strlen (text));

  if (expected == NULL)
    assert_null (out);
  else
    assert_string_equal (out, expected);
  free (out);
}

static void
test_percent_decode (void **state)
{
  decodes ("", "");
  decodes ("a+b", "a+b");
  decodes ("a%2Bb%2fc", "a+b/c");
  decodes ("%2541", "%41");
  decodes ("%C3%a9", "\xc3\xa9");
  decodes ("%", NULL);
  decodes ("%4", NULL);
  decodes ("%zz", NULL);
  decodes ("%0g", NULL);
  decodes ("a%00b", NULL);
}

static void
matches (const char *pattern, const char *path, int expected,
         const char *value)
{
  char *param;

  assert_int_equal (cow_path_match (pattern, path, &param), expected);
  if (value)
    assert_string_equal (param, value);
  else
    assert_null (param);
  free (param);
}

static void
test_path_match (void **state)
{
  matches ("/v1/pools", "/v1/pools", 0, NULL);
  matches ("/v1/pools", "/v1/pools/", -ENOENT, NULL);
  matches ("/v1/pools", "/v1/pool", -ENOENT, NULL);
  matches ("/v1/pools", "//v1/pools", -ENOENT, NULL);
  matches ("/v1/pools", "*", -ENOENT, NULL);
  matches ("/v1/pools", "", -ENOENT, NULL);
  matches ("/v/{name}", "/v/a", 0, "a");
  matches ("/v/{name}", "/v/a%2Fb%40c", 0, "a/b@c");
  matches ("/v/{name}", "/v/", -ENOENT, NULL);
  matches ("/v/{name}", "/v/a/b", -ENOENT, NULL);
  matches ("/v/{name}", "/v/%zz", -EINVAL, NULL);
  matches ("/v/{name}/map", "/v/a/map", 0, "a");
  matches ("/v/{name}/map", "/v/a", -ENOENT, NULL);
  matches ("/v/{name}/map", "/v//map", -ENOENT, NULL);
}

static void
test_query (void **state)
{
  json_t *query;

  assert_int_equal (cow_query_parse ("a=1&&b=x%26y+z&c&d=", &query, NULL), 0);
  assert_int_equal (json_object_size (query), 4);
  assert_string_equal (json_string_value (json_object_get (query, "b")),
                       "x&y+z");
  assert_string_equal (json_string_value (json_object_get (query, "c")), "");
  json_decref (query);
  assert_int_equal (cow_query_parse ("", &query, NULL), 0);
  assert_int_equal (json_object_size (query), 0);
  json_decref (query);
  assert_int_equal (cow_query_parse ("a=1&a=1", &query, NULL), -EINVAL);
  assert_int_equal (cow_query_parse ("a=%", &query, NULL), -EINVAL);
  assert_int_equal (cow_query_parse ("%xx", &query, NULL), -EINVAL);
  assert_int_equal (cow_query_parse ("a=%ff", &query, NULL), -EINVAL);
}

/* ---- The table ---- */

static int
handler (struct request *rq)
{
  return 200;
}

static const struct route sample = {
  "POST", "/sample", handler, "for this test",
  { { "size", FIELD_SIZE, IN_BODY | IN_QUERY, "" },
    { "flag", FIELD_FLAG, IN_BODY | IN_QUERY, "" },
    { "number", FIELD_NUMBER, IN_BODY | IN_QUERY, "" },
    { "text", FIELD_TEXT, IN_BODY | REQUIRED, "" },
    { "texts", FIELD_TEXTS, IN_BODY, "" } }
};

/* Check body (JSON without its braces) beside a valid text. */
static int
check_body (const char *members, struct request *rq)
{
  char text[400];
  json_t *body;
  int r;

  memset (rq, 0, sizeof *rq);
  rq->route = &sample;
  snprintf (text, sizeof text, "{\"text\":\"t\"%s%s}", *members ? "," : "",
            members);
  body = json_loads (text, 0, NULL);
  assert_non_null (body);
  r = cow_fields_check (rq, NULL, body);
  json_decref (body);
  return r;
}

static void
size_is (const char *value, uint64_t expected)
{
  struct request rq;
  char member[100];

  snprintf (member, sizeof member, "\"size\":%s", value);
  assert_int_equal (check_body (member, &rq), 0);
  assert_int_equal (cow_field_number (&rq, "size", 77), expected);
  json_decref (rq.args);
}

static void
body_refused (const char *members)
{
  struct request rq;

  if (check_body (members, &rq) != -EINVAL)
    fail_msg ("not refused: %s", members);
  assert_int_equal (cow_error_status (&rq.err), 400);
  json_decref (rq.args);
}

static void
test_sizes (void **state)
{
  static const char *const bad[] = {
    "20.0", "1e9", "-1", "null", "true", "[]", "{}", "1.5", "\"x\"", "\"\"",
    "\"-1\"", "\" 1\"", "\"9223372036854775808\"", "[1]",
  };
  char member[100];

  size_is ("0", 0);
  size_is ("-0", 0);
  size_is ("9007199254740993", UINT64_C (9007199254740993));
  size_is ("9223372036854775807", INT64_MAX);
  size_is ("\"10\"", 10);
  size_is ("\"1.5G\"", 1610612736);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    snprintf (member, sizeof member, "\"size\":%s", bad[i]);
    body_refused (member);
  }
}

static void
test_fields (void **state)
{
  struct request rq;

  assert_int_equal (check_body ("\"flag\":true,\"texts\":[\"a\"]", &rq), 0);
  assert_int_equal (cow_field_flag (&rq, "flag", 8), 8);
  assert_int_equal (cow_field_flag (&rq, "absent", 8), 0);
  assert_false (cow_field_given (&rq, "number"));
  assert_int_equal (cow_field_number (&rq, "number", 5), 5);
  json_decref (rq.args);
  body_refused ("\"flag\":1");
  body_refused ("\"flag\":\"true\"");
  body_refused ("\"flag\":null");
  body_refused ("\"number\":\"1\"");
  body_refused ("\"number\":-1");
  body_refused ("\"texts\":[1]");
  body_refused ("\"texts\":\"a\"");
  body_refused ("\"froce\":true");
}

static void
test_query_fields (void **state)
{
  struct request rq = { .route = &sample };
  json_t *query = json_pack ("{s:s, s:s, s:s}", "size", "1K", "flag", "",
                             "number", "12");
  json_t *body = json_pack ("{s:s}", "text", "t");

  assert_int_equal (cow_fields_check (&rq, query, body), 0);
  assert_int_equal (cow_field_number (&rq, "size", 0), 1024);
  assert_int_equal (cow_field_number (&rq, "number", 0), 12);
  assert_int_equal (cow_field_flag (&rq, "flag", 1), 1);
  json_decref (rq.args);

  json_object_set_new (body, "size", json_integer (1)); /* in both */
  assert_int_equal (cow_fields_check (&rq, query, body), -EINVAL);
  json_decref (rq.args);
  json_object_del (body, "size");
  json_object_set_new (query, "text", json_string ("t")); /* body only */
  assert_int_equal (cow_fields_check (&rq, query, body), -EINVAL);
  json_decref (rq.args);
  json_decref (query);
  json_decref (body);
}

static void
test_required (void **state)
{
  struct request rq = { .route = &sample };
  json_t *list = json_array ();

  assert_int_equal (cow_fields_check (&rq, NULL, NULL), -EINVAL);
  assert_non_null (strstr (rq.err.message, "\"text\""));
  json_decref (rq.args);
  assert_int_equal (cow_fields_check (&rq, NULL, list), -EINVAL);
  json_decref (rq.args);
  json_decref (list);
}

/* Every row is complete, and no two rows are for the same request. */
static void
test_table (void **state)
{
  for (const struct route *r = cow_routes; r->method; r++) {
    assert_int_equal (r->path[0], '/');
    assert_non_null (r->handler);
    assert_true (r->summary[0]);
    for (const struct field *f = r->fields; f->name; f++) {
      assert_true (f < r->fields + sizeof r->fields / sizeof r->fields[0] - 1);
      assert_true (f->flags & (IN_BODY | IN_QUERY));
      assert_true (f->summary[0]);
    }
    for (const struct route *s = cow_routes; s < r; s++)
      assert_false (strcmp (r->method, s->method) == 0 &&
                    strcmp (r->path, s->path) == 0);
  }
}

static void
test_allowed (void **state)
{
  char buf[64];

  cow_api_allowed ("/v1/volumes", buf, sizeof buf);
  assert_string_equal (buf, "GET, POST");
  cow_api_allowed ("/v1/volumes/a%2Fb", buf, sizeof buf);
  assert_string_equal (buf, "GET, PATCH, DELETE");
  cow_api_allowed ("/nothing", buf, sizeof buf);
  assert_string_equal (buf, "");
}

static void
test_statuses (void **state)
{
  static const struct { const char *code; int status; } rows[] = {
    { "not-found", 404 }, { "exists", 409 }, { "busy", 409 },
    { "has-snapshots", 409 }, { "invalid-name", 400 },
    { "invalid-anything", 400 }, { "no-space", 507 }, { "read-only", 403 },
    { "damaged", 500 }, { "unheard-of", 500 },
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct cow_error err;

    cow_error_set (&err, 1, rows[i].code, "x");
    assert_int_equal (cow_error_status (&err), rows[i].status);
  }
}

/* ---- On a pool ---- */

struct fixture {
  char *dir;
  struct cow_pool *pool;
  struct cow_api *api;
};

static int
set_up (void **state)
{
  static struct fixture f;
  const struct cow_pool_options options = { 0 };
  struct cow_init_options init = { 0 };

  init.dir = f.dir = make_temp_dir ();
  if (cow_pool_init (&init, NULL) < 0 ||
      cow_pool_open (f.dir, &options, &f.pool, NULL) < 0 ||
      cow_api_new (&f.pool, 1, &f.api) < 0)
    return -1;
  *state = &f;
  return 0;
}

static int
tear_down (void **state)
{
  struct fixture *f = *state;
  int r = cow_pool_close (f->pool);

  cow_api_free (f->api);
  remove_tree (f->dir);
  free (f->dir);
  return r;
}

/* Carry out a request; the reply, whose status must be as expected. */
static json_t *
request (struct fixture *f, int expected, const char *method,
         const char *path, const char *body_text)
{
  json_t *body = body_text ? json_loads (body_text, 0, NULL) : NULL, *reply;
  int status = cow_api_call (f->api, method, path, NULL, body, &reply);

  if (status != expected)
    fail_msg ("%s %s: status %d, not %d", method, path, status, expected);
  assert_true (json_is_object (reply));
  if (status >= 400)
    assert_true (json_is_string (json_object_get
                                 (json_object_get (reply, "error"),
                                  "message")));
  json_decref (body);
  return reply;
}

static void
expect (struct fixture *f, int expected, const char *method,
        const char *path, const char *body_text)
{
  json_decref (request (f, expected, method, path, body_text));
}

static void
test_life_of_a_volume (void **state)
{
  struct fixture *f = *state;

  expect (f, 201, "POST", "/v1/volumes", "{\"name\":\"v\",\"size\":\"1M\"}");
  expect (f, 409, "POST", "/v1/volumes", "{\"name\":\"v\",\"size\":1}");
  expect (f, 201, "POST", "/v1/volumes/v/snapshots", "{\"name\":\"s\"}");
  expect (f, 409, "POST", "/v1/volumes/v/snapshots", "{\"name\":\"v@s\"}");
  expect (f, 201, "POST", "/v1/volumes", "{\"name\":\"c\",\"source\":\"v@s\"}");
  expect (f, 200, "PATCH", "/v1/volumes/c", "{\"size\":2097152}");
  expect (f, 400, "PATCH", "/v1/volumes/c", "{\"size\":1}");
  expect (f, 200, "PATCH", "/v1/volumes/c", "{\"size\":1,\"shrink\":true}");
  expect (f, 200, "PATCH", "/v1/volumes/c", "{\"name\":\"d\"}");
  expect (f, 404, "GET", "/v1/volumes/c", NULL);
  expect (f, 200, "PATCH", "/v1/volumes/v", "{\"rollback\":\"s\"}");
  expect (f, 409, "DELETE", "/v1/volumes/v", NULL);
  expect (f, 200, "DELETE", "/v1/volumes/v%40s", NULL);
  expect (f, 200, "DELETE", "/v1/volumes/v", NULL);
  expect (f, 404, "DELETE", "/v1/volumes/v", NULL);
  expect (f, 200, "DELETE", "/v1/volumes/d", "{\"force\":true}");
}

static void
test_exact_size (void **state)
{
  struct fixture *f = *state;
  json_t *reply;

  expect (f, 201, "POST", "/v1/volumes",
          "{\"name\":\"big\",\"size\":9007199254740993}");
  reply = request (f, 200, "GET", "/v1/volumes/big", NULL);
  assert_int_equal (json_integer_value (json_object_get (reply, "size")),
                    INT64_C (9007199254740993));
  json_decref (reply);
  expect (f, 200, "DELETE", "/v1/volumes/big", NULL);
}

static void
write_pattern (struct fixture *f, const char *name, uint64_t offset)
{
  struct cow_volume *v;
  char block[4096];

  memset (block, 'x', sizeof block);
  assert_int_equal (cow_volume_open (f->pool, name, 0, &v, NULL), 0);
  assert_int_equal (cow_volume_pwrite (v, block, sizeof block, offset, 0), 0);
  cow_volume_close (v);
}

/* Rows adjoin, pages too, and all of the volume is covered. */
static void
test_map_pages (void **state)
{
  struct fixture *f = *state;
  uint64_t at = 0, nr_data = 0;
  bool more = true;

  expect (f, 201, "POST", "/v1/volumes", "{\"name\":\"m\",\"size\":1048577}");
  for (unsigned i = 0; i < 8; i++)
    write_pattern (f, "m", 65536 * i + 4096);
  while (more) {
    json_t *query = json_pack ("{s:s, s:o}", "limit", "3", "offset",
                               json_sprintf ("%llu",
                                             (unsigned long long) at));
    json_t *reply, *row, *next;
    size_t i;

    assert_int_equal (cow_api_call (f->api, "GET", "/v1/volumes/m/map",
                                    query, NULL, &reply), 200);
    json_array_foreach (json_object_get (reply, "map"), i, row) {
      assert_int_equal (json_integer_value (json_object_get (row, "start")),
                        at);
      at += json_integer_value (json_object_get (row, "length"));
      nr_data += json_is_true (json_object_get (row, "data"));
    }
    next = json_object_get (reply, "next");
    more = next != NULL;
    if (more)
      assert_int_equal (json_integer_value (next), at);
    json_decref (reply);
    json_decref (query);
  }
  assert_int_equal (at, 1048577);
  assert_int_equal (nr_data, 8);
  expect (f, 200, "DELETE", "/v1/volumes/m", NULL);
}

static void
test_zero_and_trim (void **state)
{
  struct fixture *f = *state;

  expect (f, 201, "POST", "/v1/volumes", "{\"name\":\"z\",\"size\":65536}");
  expect (f, 201, "POST", "/v1/volumes/z/snapshots", "{\"name\":\"s\"}");
  write_pattern (f, "z", 0);
  expect (f, 200, "POST", "/v1/zero", "{\"destination\":\"z:100+2K\"}");
  expect (f, 200, "POST", "/v1/trim", "{\"destination\":\"z\"}");
  expect (f, 400, "POST", "/v1/zero", "{\"destination\":\"z:1+64K\"}");
  expect (f, 400, "POST", "/v1/trim", "{\"destination\":\"z:65537\"}");
  expect (f, 403, "POST", "/v1/trim", "{\"destination\":\"z@s\"}");
  expect (f, 404, "POST", "/v1/zero", "{\"destination\":\"y\"}");
  expect (f, 200, "DELETE", "/v1/volumes/z", "{\"snapshots\":true}");
}

static void
test_several_snapshots (void **state)
{
  struct fixture *f = *state;

  expect (f, 201, "POST", "/v1/volumes", "{\"name\":\"a\",\"size\":4096}");
  expect (f, 201, "POST", "/v1/volumes", "{\"name\":\"b\",\"size\":4096}");
  expect (f, 404, "POST", "/v1/snapshots", "{\"names\":[\"a@s\",\"n@s\"]}");
  expect (f, 404, "GET", "/v1/volumes/a@s", NULL);
  expect (f, 201, "POST", "/v1/snapshots", "{\"names\":[\"a@s\",\"b@s\"]}");
  expect (f, 200, "GET", "/v1/volumes/a@s", NULL);
  expect (f, 400, "POST", "/v1/snapshots", "{\"names\":[]}");
  expect (f, 400, "POST", "/v1/snapshots", "{\"names\":[\"a\"]}");
  expect (f, 200, "DELETE", "/v1/volumes/a", "{\"snapshots\":true}");
  expect (f, 200, "DELETE", "/v1/volumes/b", "{\"snapshots\":true}");
}

static void
test_refusals (void **state)
{
  struct fixture *f = *state;

  expect (f, 404, "GET", "/nothing", NULL);
  expect (f, 404, "GET", "//", NULL);
  expect (f, 405, "PUT", "/v1/volumes", NULL);
  expect (f, 400, "GET", "/v1/volumes/%zz", NULL);
  expect (f, 400, "GET", "/v1/volumes/a%2Fb%2Fc", NULL);
  expect (f, 404, "GET", "/v1/volumes/elsewhere%2Fv", NULL);
  expect (f, 404, "GET", "/v1/jobs/123456", NULL);
  expect (f, 400, "GET", "/v1/jobs/x", NULL);
  expect (f, 400, "POST", "/v1/volumes", "[]");
  expect (f, 400, "POST", "/v1/volumes", NULL);
}

/* ---- HTTP heads ---- */

static int
parse_head (const char *text, struct http_head *head)
{
  static char buf[1000];

  strcpy (buf, text);
  return cow_http_parse_head (buf, head);
}

static void
test_heads (void **state)
{
  struct http_head h;

  assert_int_equal (parse_head ("GET /a?b=c HTTP/1.1\r\nHost: x", &h), 0);
  assert_string_equal (h.method, "GET");
  assert_string_equal (h.path, "/a");
  assert_string_equal (h.query, "b=c");
  assert_true (h.keep_alive && !h.chunked && !h.has_length);
  assert_int_equal (parse_head ("GET http://h/a HTTP/1.0", &h), 0);
  assert_string_equal (h.path, "/a");
  assert_false (h.keep_alive);
  assert_int_equal (parse_head ("GET http://h HTTP/1.1", &h), 0);
  assert_string_equal (h.path, "/");
  assert_int_equal (parse_head ("GET // HTTP/1.1", &h), 0);
  assert_string_equal (h.path, "//");
  assert_int_equal (parse_head ("POST / HTTP/1.1\r\nconTENT-length:  12 \r\n"
                                "Connection: close\r\n"
                                "Expect: 100-continue", &h), 0);
  assert_true (h.has_length && h.expect_continue && !h.keep_alive);
  assert_int_equal (h.length, 12);
}

static void
test_bad_heads (void **state)
{
  static const struct { const char *text; int status; } bad[] = {
    { "", 400 }, { "GET", 400 }, { "GET /", 400 }, { "GET  HTTP/1.1", 400 },
    { "G(T / HTTP/1.1", 400 }, { "GET / HTTP/2.0", 505 },
    { "GET / FTP/1.1", 400 }, { "GET /\x01 HTTP/1.1", 400 },
    { "GET / HTTP/1.1\r\nnone", 400 }, { "GET / HTTP/1.1\r\na : b", 400 },
    { "GET / HTTP/1.1\r\na: b\r\n c", 400 },
    { "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1", 400 },
    { "GET / HTTP/1.1\r\nContent-Length: -1", 400 },
    { "GET / HTTP/1.1\r\nContent-Length:", 400 },
    { "GET / HTTP/1.1\r\nContent-Length: 18446744073709551616", 400 },
    { "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
      400 },
    { "GET / HTTP/1.1\r\nTransfer-Encoding: gzip", 501 },
    { "GET / HTTP/1.1\r\nExpect: miracles", 417 },
  };

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct http_head h;

    if (parse_head (bad[i].text, &h) != bad[i].status)
      fail_msg ("not refused with %d: %s", bad[i].status, bad[i].text);
  }
}

static void
test_chunk_sizes (void **state)
{
  uint64_t n;

  assert_int_equal (cow_http_parse_chunk ("1aF", &n), 0);
  assert_int_equal (n, 0x1af);
  assert_int_equal (cow_http_parse_chunk ("0 ;name=value", &n), 0);
  assert_int_equal (n, 0);
  assert_int_equal (cow_http_parse_chunk ("", &n), 400);
  assert_int_equal (cow_http_parse_chunk ("-1", &n), 400);
  assert_int_equal (cow_http_parse_chunk ("1g", &n), 400);
  assert_int_equal (cow_http_parse_chunk ("fffffffffffffffff", &n), 400);
}

static void
test_tokens (void **state)
{
  assert_true (cow_http_token_ok ("Bearer secret", "secret"));
  assert_true (cow_http_token_ok ("bearer  secret", "secret"));
  assert_false (cow_http_token_ok ("Bearer secre", "secret"));
  assert_false (cow_http_token_ok ("Bearer secretsecret", "secret"));
  assert_false (cow_http_token_ok ("Bearer ", "secret"));
  assert_false (cow_http_token_ok ("Basic secret", "secret"));
  assert_false (cow_http_token_ok (NULL, "secret"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_percent_decode),
    cmocka_unit_test (test_path_match),
    cmocka_unit_test (test_query),
    cmocka_unit_test (test_sizes),
    cmocka_unit_test (test_fields),
    cmocka_unit_test (test_query_fields),
    cmocka_unit_test (test_required),
    cmocka_unit_test (test_table),
    cmocka_unit_test (test_allowed),
    cmocka_unit_test (test_statuses),
    cmocka_unit_test (test_life_of_a_volume),
    cmocka_unit_test (test_exact_size),
    cmocka_unit_test (test_map_pages),
    cmocka_unit_test (test_zero_and_trim),
    cmocka_unit_test (test_several_snapshots),
    cmocka_unit_test (test_refusals),
    cmocka_unit_test (test_heads),
    cmocka_unit_test (test_bad_heads),
    cmocka_unit_test (test_chunk_sizes),
    cmocka_unit_test (test_tokens),
  };

  return cmocka_run_group_tests (tests, set_up, tear_down);
}
