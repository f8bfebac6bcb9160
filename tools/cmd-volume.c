/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on volumes and snapshots as wholes. */
#include <config.h>

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "cleanup.h"
#include "cowshed.h"

/* ---- ls, info ---- */

static const struct column ls_columns[] = {
  { "NAME", "name", COLUMN_TEXT },
  { "SIZE", "size", COLUMN_SIZE },
  { "CREATED", "created", COLUMN_TIME },
  { NULL }
};

static const struct column ls_long_columns[] = {
  { "NAME", "name", COLUMN_TEXT },
  { "SIZE", "size", COLUMN_SIZE },
  { "ALLOCATED", "allocated", COLUMN_SIZE },
  { "EXCLUSIVE", "exclusive", COLUMN_SIZE },
  { "SHARED", "shared", COLUMN_SIZE },
  { "RESERVED", "reserved", COLUMN_SIZE },
  { "CREATED", "created", COLUMN_TIME },
  { NULL }
};

static const struct column info_columns[] = {
  { "name", "name", COLUMN_TEXT },
  { "pool", "pool", COLUMN_TEXT },
  { "size", "size", COLUMN_SIZE },
  { "allocated", "allocated", COLUMN_SIZE },
  { "exclusive", "exclusive", COLUMN_SIZE },
  { "shared", "shared", COLUMN_SIZE },
  { "reserved", "reserved", COLUMN_SIZE },
  { "thick", "thick", COLUMN_FLAG },
  { "read-only", "readonly", COLUMN_FLAG },
  { "damaged", "damaged", COLUMN_FLAG },
  { "created", "created", COLUMN_TIME },
  { "snapshots", "snapshots", COLUMN_NUMBER },
  { NULL }
};

static bool
several_pools (json_t *volumes)
{
  const char *first = NULL;
  json_t *row;
  size_t i;

  json_array_foreach (volumes, i, row) {
    const char *pool = json_string_value (json_object_get (row, "pool"));

    if (first && pool && strcmp (first, pool) != 0)
      return true;
    first = pool;
  }
  return false;
}

/* With several pools a name says its own, as it is typed in a command. */
static void
qualify_names (json_t *volumes)
{
  json_t *row;
  size_t i;

  json_array_foreach (volumes, i, row)
    json_object_set_new (row, "name", json_sprintf
                         ("%s/%s", json_string_value
                          (json_object_get (row, "pool")),
                          json_string_value
                          (json_object_get (row, "name"))));
}

int
cmd_ls (struct session *s)
{
  bool details = session_option (s, "long") != NULL;
  json_t *query = json_object (), *reply, *volumes;
  int status;

  if (details)
    json_object_set_new (query, "details", json_string ("1"));
  if (s->nr_args)
    json_object_set_new (query, "pool", json_string (s->args[0]));
  status = backend_call (s, "GET", "/v1/volumes", query, NULL, &reply);
  if (status != STATUS_OK)
    return status;
  volumes = json_object_get (reply, "volumes");
  if (s->json)
    print_json (reply);
  else {
    if (several_pools (volumes))
      qualify_names (volumes);
    print_table (volumes, details ? ls_long_columns : ls_columns);
  }
  json_decref (reply);
  return status;
}

static int
get_volume (struct session *s, const char *name, json_t **reply)
{
  CLEANUP_FREE char *path = volume_path (name, "");

  return backend_call (s, "GET", path, NULL, NULL, reply);
}

int
cmd_info (struct session *s)
{
  json_t *reply;
  int status = parse_object (s, s->args[0]);

  if (status == STATUS_OK)
    status = get_volume (s, s->args[0], &reply);
  if (status != STATUS_OK)
    return status;
  if (s->json)
    print_json (reply);
  else
    print_record (reply, info_columns);
  json_decref (reply);
  return status;
}

/* ---- create, rm, rename, resize ---- */

int
cmd_create (struct session *s)
{
  uint64_t size;
  int status = parse_volume (s, s->args[0]);

  if (status == STATUS_OK)
    status = parse_size (s, "SIZE", s->args[1], &size);
  if (status != STATUS_OK)
    return status;
  return backend_do (s, "POST", "/v1/volumes", NULL, json_pack
                     ("{s:s, s:I, s:b}", "name", s->args[0],
                      "size", (json_int_t) size,
                      "thick", (int) (session_option (s, "thick") != NULL)));
}

int
cmd_rm (struct session *s)
{
  CLEANUP_FREE char *path = volume_path (s->args[0], "");
  json_t *query = json_object ();
  int status = parse_object (s, s->args[0]);

  if (session_option (s, "snapshots"))
    json_object_set_new (query, "snapshots", json_string ("1"));
  if (session_option (s, "force"))
    json_object_set_new (query, "force", json_string ("1"));
  if (status == STATUS_OK)
    return backend_do (s, "DELETE", path, query, NULL);
  json_decref (query);
  return status;
}

int
cmd_rename (struct session *s)
{
  CLEANUP_FREE char *path = volume_path (s->args[0], "");
  int status = parse_object (s, s->args[0]);

  if (status == STATUS_OK)
    status = parse_object (s, s->args[1]);
  if (status != STATUS_OK)
    return status;
  return backend_do (s, "PATCH", path, NULL,
                     json_pack ("{s:s}", "name", s->args[1]));
}

/* SIZE, or +SIZE on top of the present one. */
static int
new_size (struct session *s, uint64_t *size)
{
  const char *text = s->args[1];
  bool relative = text[0] == '+';
  json_t *reply;
  uint64_t old;
  int status = parse_size (s, "SIZE", text + relative, size);

  if (status != STATUS_OK || !relative)
    return status;
  status = get_volume (s, s->args[0], &reply);
  if (status != STATUS_OK)
    return status;
  old = json_u64 (reply, "size");
  json_decref (reply);
  if (*size > INT64_MAX - old)
    return fail_usage (s, "SIZE is too large: %s", text);
  *size += old;
  return STATUS_OK;
}

int
cmd_resize (struct session *s)
{
  CLEANUP_FREE char *path = volume_path (s->args[0], "");
  uint64_t size;
  int status = parse_volume (s, s->args[0]);

  if (status == STATUS_OK)
    status = new_size (s, &size);
  if (status != STATUS_OK)
    return status;
  return backend_do (s, "PATCH", path, NULL, json_pack
                     ("{s:I, s:b, s:b}", "size", (json_int_t) size,
                      "shrink", (int) (session_option (s, "shrink") != NULL),
                      "force", (int) (session_option (s, "force") != NULL)));
}

/* ---- snap, clone, rollback ---- */

int
cmd_snap (struct session *s)
{
  json_t *names = json_array ();

  for (int i = 0; i < s->nr_args; i++) {
    int status = parse_snapshot (s, s->args[i]);

    if (status != STATUS_OK) {
      json_decref (names);
      return status;
    }
    json_array_append_new (names, json_string (s->args[i]));
  }
  return backend_do (s, "POST", "/v1/snapshots", NULL,
                     json_pack ("{s:o}", "names", names));
}

int
cmd_clone (struct session *s)
{
  int status = parse_object (s, s->args[0]);

  if (status == STATUS_OK)
    status = parse_volume (s, s->args[1]);
  if (status != STATUS_OK)
    return status;
  return backend_do (s, "POST", "/v1/volumes", NULL,
                     json_pack ("{s:s, s:s}", "name", s->args[1],
                                "source", s->args[0]));
}

int
cmd_rollback (struct session *s)
{
  CLEANUP_FREE char *path = NULL;
  CLEANUP_FREE char *volume = NULL;
  int status = parse_snapshot (s, s->args[0]);

  if (status != STATUS_OK)
    return status;
  volume = text_format ("%.*s", (int) strcspn (s->args[0], "@"), s->args[0]);
  path = volume_path (volume, "");
  return backend_do (s, "PATCH", path, NULL, json_pack
                     ("{s:s, s:b}", "rollback", strchr (s->args[0], '@') + 1,
                      "force", (int) (session_option (s, "force") != NULL)));
}
