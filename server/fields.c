/* SPDX-License-Identifier: BSD-3-Clause */
/* What a request brings, checked against its route's fields.
 *
 * Bodies are typed strictly: a size is an integer that is not negative, or
 * text as cow_size_parse takes it; 20.0, null and true are none.  Queries are
 * text by nature and converted.  A field that the route does not have is an
 * error that names it, so that a misspelt "froce" does not pass unnoticed.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "api-internal.h"
#include "size.h"

static const char *const type_names[] = {
  [FIELD_TEXT] = "a string",
  [FIELD_TEXTS] = "a list of strings",
  [FIELD_SIZE] = "a size: bytes as an integer from 0 to 2^63-1, or a string "
    "as \"64K\" or \"1.5G\"",
  [FIELD_NUMBER] = "an integer that is not negative",
  [FIELD_FLAG] = "true or false",
};

static int
bad_field (struct request *rq, const struct field *f)
{
  const char *code = f->type == FIELD_SIZE ? "invalid-size" :
    "invalid-field";

  return cow_error_set (&rq->err, EINVAL, code,
                        "field \"%s\": expected %s", f->name,
                        type_names[f->type]);
}

static const struct field *
find_field (const struct route *route, const char *name)
{
  for (const struct field *f = route->fields; f->name; f++)
    if (strcmp (f->name, name) == 0)
      return f;
  return NULL;
}

/* ---- Conversion: a new reference, or NULL where value does not fit ---- */

static json_t *
convert_size (json_t *value)
{
  uint64_t bytes;

  if (json_is_integer (value) && json_integer_value (value) >= 0)
    return json_incref (value);
  if (!json_is_string (value) ||
      cow_size_parse (json_string_value (value), &bytes) < 0)
    return NULL;
  return json_integer ((json_int_t) bytes);
}

/* Digits only, and only in a query. */
static json_t *
convert_number (json_t *value, bool from_text)
{
  const char *text = json_string_value (value);
  uint64_t n;

  if (!from_text)
    return json_is_integer (value) && json_integer_value (value) >= 0 ?
      json_incref (value) : NULL;
  if (text[strspn (text, "0123456789")] || cow_size_parse (text, &n) < 0)
    return NULL;
  return json_integer ((json_int_t) n);
}

static json_t *
convert_flag (json_t *value, bool from_text)
{
  static const char *const yes[] = { "", "1", "true", "yes", "on" };
  static const char *const no[] = { "0", "false", "no", "off" };

  if (!from_text)
    return json_is_boolean (value) ? json_incref (value) : NULL;
  for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
    if (strcmp (json_string_value (value), yes[i]) == 0)
      return json_true ();
  for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
    if (strcmp (json_string_value (value), no[i]) == 0)
      return json_false ();
  return NULL;
}

static json_t *
convert_texts (json_t *value)
{
  json_t *item;
  size_t i;

  if (!json_is_array (value))
    return NULL;
  json_array_foreach (value, i, item)
    if (!json_is_string (item))
      return NULL;
  return json_incref (value);
}

static json_t *
convert (const struct field *f, json_t *value, bool from_text)
{
  switch (f->type) {
  case FIELD_TEXT:
    return json_is_string (value) ? json_incref (value) : NULL;
  case FIELD_TEXTS:
    return convert_texts (value);
  case FIELD_SIZE:
    return convert_size (value);
  case FIELD_NUMBER:
    return convert_number (value, from_text);
  case FIELD_FLAG:
    return convert_flag (value, from_text);
  }
  return NULL;
}

static int
unknown_field (struct request *rq, const char *name, const char *where)
{
  char quoted[100];

  return cow_error_set (&rq->err, EINVAL, "invalid-field",
                        "unknown field %s in the %s of %s %s",
                        cow_text_quote (name, quoted, sizeof quoted), where,
                        rq->route->method, rq->route->path);
}

/* Take over what one of the two places has. */
static int
take_fields (struct request *rq, json_t *object, unsigned where)
{
  bool query = where == IN_QUERY;
  const char *name;
  json_t *value, *converted;

  json_object_foreach (object, name, value) {
    const struct field *f = find_field (rq->route, name);

    if (f == NULL || !(f->flags & where))
      return unknown_field (rq, name, query ? "query" : "body");
    if (json_object_get (rq->args, name))
      return cow_error_set (&rq->err, EINVAL, "invalid-field", "field \"%s\" "
                            "is given both in the query and in the body",
                            name);
    converted = convert (f, value, query);
    if (converted == NULL)
      return bad_field (rq, f);
    json_object_set_new (rq->args, name, converted);
  }
  return 0;
}

int
cow_fields_check (struct request *rq, json_t *query, json_t *body)
{
  int r;

  rq->args = json_object ();
  if (rq->args == NULL)
    return cow_error_set (&rq->err, ENOMEM, "no-memory", "out of memory");
  if (body && !json_is_object (body))
    return cow_error_set (&rq->err, EINVAL, "invalid-request",
                          "the body must be a JSON object");
  r = take_fields (rq, query, IN_QUERY);
  if (r == 0)
    r = take_fields (rq, body, IN_BODY);
  for (const struct field *f = rq->route->fields; r == 0 && f->name; f++)
    if ((f->flags & REQUIRED) && !cow_field_given (rq, f->name))
      r = cow_error_set (&rq->err, EINVAL, "invalid-request",
                         "field \"%s\" is missing (%s)", f->name, f->summary);
  return r;
}

/* ---- Access ---- */

bool
cow_field_given (const struct request *rq, const char *name)
{
  return json_object_get (rq->args, name) != NULL;
}

const char *
cow_field_text (const struct request *rq, const char *name)
{
  return json_string_value (json_object_get (rq->args, name));
}

uint64_t
cow_field_number (const struct request *rq, const char *name,
                  uint64_t if_absent)
{
  json_t *value = json_object_get (rq->args, name);

  return value ? (uint64_t) json_integer_value (value) : if_absent;
}

unsigned
cow_field_flag (const struct request *rq, const char *name, unsigned flag)
{
  return json_is_true (json_object_get (rq->args, name)) ? flag : 0;
}

unsigned
cow_field_sync (const struct request *rq)
{
  return json_is_false (json_object_get (rq->args, "sync")) ? COW_NOSYNC : 0;
}
