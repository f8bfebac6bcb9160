/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters.  nbdkit changes to / when it goes to the background, so every
 * path is made absolute while it is parsed.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cleanup.h"
#include "plugin.h"
#include "size.h"

#define CACHE_MIN (1 << 20)
#define COMMIT_MAX_S 3600

struct config config = { .offload = true, .detect_zeroes = true };

/* ---- Values ---- */

static int
set_text (char **field, const char *text)
{
  *field = strdup (text);
  if (*field == NULL) {
    nbdkit_error ("strdup: %m");
    return -1;
  }
  return 0;
}

static int
set_path (char **field, const char *key, const char *value)
{
  if (*value == '\0') {
    nbdkit_error ("%s is empty: expected a path", key);
    return -1;
  }
  *field = nbdkit_absolute_path (value);
  return *field ? 0 : -1;
}

static int
set_switch (bool *field, const char *key, const char *value)
{
  int r = nbdkit_parse_bool (value);

  if (r == -1) {                /* it has named the value */
    nbdkit_error ("%s=%s: expected on or off", key, value);
    return -1;
  }
  *field = r;
  return 0;
}

static int
set_number (unsigned *field, const char *key, const char *value,
            unsigned min, unsigned max)
{
  char *end;
  unsigned long n;

  errno = 0;
  n = strtoul (value, &end, 10);
  if (*value < '0' || *value > '9' || *end || errno || n < min || n > max) {
    nbdkit_error ("%s=%s: expected a number from %u to %u", key, value, min,
                  max);
    return -1;
  }
  *field = n;
  return 0;
}

/* ---- One function per parameter ---- */

static bool
is_rbd (const char *value)
{
  const char *colon = strchr (value, ':');

  return strncmp (value, "rbd:", 4) == 0 ||
    (colon && strncmp (colon + 1, "rbd:", 4) == 0);
}

/* Keep NAME: where it was written; else the engine takes the name from the
 * directory, for which "." must have been resolved.
 */
static char *
absolute_spec (const char *value)
{
  CLEANUP_FREE char *name = NULL;
  CLEANUP_FREE char *dir = NULL;
  CLEANUP_FREE char *full = NULL;
  struct cow_error err = { 0 };
  char *spec;
  int r;

  if (cow_pool_split (value, &name, &dir, &err) < 0) {
    name = dir = NULL;          /* nothing of it is ours */
    nbdkit_error ("pool=%s: %s", value, err.message);
    return NULL;
  }
  full = nbdkit_realpath (dir);
  if (full == NULL)
    return NULL;
  if (strncmp (value, name, strlen (name)) == 0 &&
      value[strlen (name)] == ':' &&
      strncmp (value + strlen (name) + 1, dir, strlen (dir)) == 0)
    r = asprintf (&spec, "%s:%s", name, full);
  else
    r = asprintf (&spec, "%s", full);
  if (r < 0) {
    nbdkit_error ("asprintf: %m");
    return NULL;
  }
  return spec;
}

static int
set_pool (const char *key, const char *value)
{
  char **specs, *spec;

  if (is_rbd (value)) {
    nbdkit_error ("%s=%s: Ceph pools are not supported in this build", key,
                  value);
    return -1;
  }
  spec = absolute_spec (value);
  if (spec == NULL)
    return -1;
  specs = realloc (config.specs, (config.nr_specs + 1) * sizeof *specs);
  if (specs == NULL) {
    free (spec);
    nbdkit_error ("realloc: %m");
    return -1;
  }
  specs[config.nr_specs++] = spec;
  config.specs = specs;
  return 0;
}

static int
check_socket_path (const char *path)
{
  static const struct sockaddr_un sa;

  if (strlen (path) < sizeof sa.sun_path)
    return 0;
  nbdkit_error ("control=%s: the path has %zu bytes, and at most %zu fit "
                "into the address of a socket: give a shorter one", path,
                strlen (path), sizeof sa.sun_path - 1);
  return -1;
}

static int
set_control (const char *key, const char *value)
{
  if (strcmp (value, "none") == 0) {
    config.no_control = true;
    return 0;
  }
  if (set_path (&config.control, key, value) == -1)
    return -1;
  return check_socket_path (config.control);
}

static int
set_control_listen (const char *key, const char *value)
{
  const char *colon = strrchr (value, ':');

  if (colon == NULL || colon == value || colon[1] == '\0' ||
      colon[1 + strspn (colon + 1, "0123456789")]) {
    nbdkit_error ("%s=%s: expected HOST:PORT or [ADDRESS]:PORT", key, value);
    return -1;
  }
  return set_text (&config.control_listen, value);
}

static int
set_token_file (const char *key, const char *value)
{
  return set_path (&config.control_token_file, key, value);
}

static int
set_default (const char *key, const char *value)
{
  struct cow_error err = { 0 };
  struct cow_spec spec;

  if (cow_spec_parse (value, COW_SPEC_DIFF, &spec, &err) < 0) {
    nbdkit_error ("%s=%s: %s", key, value, err.message);
    return -1;
  }
  return set_text (&config.default_name, value);
}

static int
set_offload (const char *key, const char *value)
{
  return set_switch (&config.offload, key, value);
}

/* Checked now, so that a configuration stays valid when the channel comes. */
static int
set_offload_channel (const char *key, const char *value)
{
  if (strcmp (value, "scoped") == 0 || strcmp (value, "all") == 0 ||
      strcmp (value, "off") == 0)
    return 0;
  nbdkit_error ("%s=%s: expected scoped, all or off", key, value);
  return -1;
}

static int
set_detect_zeroes (const char *key, const char *value)
{
  return set_switch (&config.detect_zeroes, key, value);
}

static int
set_metadata_cache (const char *key, const char *value)
{
  uint64_t bytes;

  if (cow_size_parse (value, &bytes) < 0 || bytes < CACHE_MIN) {
    nbdkit_error ("%s=%s: expected a size of at least 1M", key, value);
    return -1;
  }
  config.options.metadata_cache_bytes = bytes;
  return 0;
}

static int
set_warn_at (const char *key, const char *value)
{
  return set_number (&config.options.warn_at_percent, key, value, 1, 100);
}

static int
set_critical_at (const char *key, const char *value)
{
  return set_number (&config.options.critical_at_percent, key, value, 1,
                     100);
}

static int
set_commit_interval (const char *key, const char *value)
{
  unsigned seconds;

  if (set_number (&seconds, key, value, 1, COMMIT_MAX_S) == -1)
    return -1;
  config.options.commit_interval_ms = 1000 * seconds;
  return 0;
}

/* ---- The table ---- */

/* X (key, how values look, function, may be repeated, text) */
#define PARAMETERS(X)                                                   \
  X ("pool", "[NAME:]DIR", set_pool, true,                              \
     "a pool, made with \"cowshed init\"; may be repeated")             \
  X ("control", "PATH|none", set_control, false,                        \
     "Unix socket of the control server (DIR/control.sock)")            \
  X ("control-listen", "HOST:PORT", set_control_listen, false,          \
     "control server on TCP as well")                                   \
  X ("control-token-file", "FILE", set_token_file, false,               \
     "bearer token that control-listen asks for")                       \
  X ("default", "NAME", set_default, false,                             \
     "volume for the empty export name")                                \
  X ("offload", "on|off", set_offload, false,                           \
     "native zero, trim and block status (on)")                         \
  X ("offload-channel", "scoped|all|off", set_offload_channel, false,   \
     "which @offload exports TCP clients may open (scoped)")            \
  X ("detect-zeroes", "on|off", set_detect_zeroes, false,               \
     "whole blocks of zeros that are written become holes (on)")        \
  X ("metadata-cache", "SIZE", set_metadata_cache, false,               \
     "bound on cached map nodes (256M)")                                \
  X ("warn-at", "PCT", set_warn_at, false,                              \
     "pool fill that raises a warning (80)")                            \
  X ("critical-at", "PCT", set_critical_at, false,                      \
     "pool fill that is critical (95)")                                 \
  X ("commit-interval", "SECONDS", set_commit_interval, false,          \
     "longest time a change stays uncommitted without a flush (5)")

#define HELP_LINE(key, form, set, repeated, text) \
  key "=" form "\n    " text "\n"
const char config_help[] = PARAMETERS (HELP_LINE);

#define TABLE_ROW(key, form, set, repeated, text) { key, set, repeated },
static const struct {
  const char *key;
  int (*set) (const char *key, const char *value);
  bool repeated;
} parameters[] = { PARAMETERS (TABLE_ROW) };

#define NR_PARAMETERS (sizeof parameters / sizeof parameters[0])

static bool given[NR_PARAMETERS];

int
config_set (const char *key, const char *value)
{
  for (size_t i = 0; i < NR_PARAMETERS; i++)
    if (strcmp (parameters[i].key, key) == 0) {
      if (given[i] && !parameters[i].repeated) {
        nbdkit_error ("%s=%s: the parameter %s is given twice", key, value,
                      key);
        return -1;
      }
      given[i] = true;
      return parameters[i].set (key, value);
    }
  nbdkit_error ("unknown parameter %s=%s: see nbdkit-cowshed-plugin(1)", key,
                value);
  return -1;
}

/* ---- Checks across parameters ---- */

static int
check_percentages (void)
{
  const struct cow_pool_options *o = &config.options;
  unsigned warn = o->warn_at_percent ? o->warn_at_percent : 80;
  unsigned critical = o->critical_at_percent ? o->critical_at_percent : 95;

  if (warn <= critical)
    return 0;
  nbdkit_error ("warn-at=%u is above critical-at=%u", warn, critical);
  return -1;
}

static int
check_control (void)
{
  if (config.control_listen && config.control_token_file == NULL) {
    nbdkit_error ("control-listen=%s requires control-token-file",
                  config.control_listen);
    return -1;
  }
  if (config.control_token_file && config.control_listen == NULL) {
    nbdkit_error ("control-token-file=%s has no use without control-listen",
                  config.control_token_file);
    return -1;
  }
  return 0;
}

/* The name and directory of a pool; NULL where memory is short. */
static char *
spec_name (size_t i, char **dir)
{
  char *name;

  if (cow_pool_split (config.specs[i], &name, dir, NULL) < 0) {
    *dir = NULL;
    return NULL;
  }
  return name;
}

static int
check_pools_differ (void)
{
  for (size_t i = 1; i < config.nr_specs; i++)
    for (size_t j = 0; j < i; j++) {
      CLEANUP_FREE char *dir_i = NULL;
      CLEANUP_FREE char *dir_j = NULL;
      CLEANUP_FREE char *name_i = spec_name (i, &dir_i);
      CLEANUP_FREE char *name_j = spec_name (j, &dir_j);

      if (dir_i && dir_j && strcmp (dir_i, dir_j) == 0) {
        nbdkit_error ("pool=%s: the directory %s is given twice",
                      config.specs[i], dir_i);
        return -1;
      }
      if (name_i && name_j && strcmp (name_i, name_j) == 0) {
        nbdkit_error ("pools %s and %s are both called %s: tell them apart "
                      "with pool=NAME:DIR", dir_j, dir_i, name_i);
        return -1;
      }
    }
  return 0;
}

/* The default place is known only now. */
static int
complete_control (void)
{
  CLEANUP_FREE char *dir = NULL;
  CLEANUP_FREE char *name = spec_name (0, &dir);

  if (config.no_control || config.control)
    return 0;
  if (name == NULL || asprintf (&config.control, "%s/control.sock",
                                dir) < 0) {
    config.control = NULL;
    nbdkit_error ("asprintf: %m");
    return -1;
  }
  return check_socket_path (config.control);
}

int
config_complete (void)
{
  if (config.nr_specs == 0) {
    nbdkit_error ("the parameter pool=DIR is missing: expected the directory "
                  "of a pool, made with \"cowshed init\"");
    return -1;
  }
  if (!config.offload)
    config.detect_zeroes = false;
  if (check_percentages () == -1 || check_control () == -1 ||
      check_pools_differ () == -1)
    return -1;
  return complete_control ();
}

/* ---- What can be seen without opening anything ---- */

static int
check_pool_dir (size_t i)
{
  CLEANUP_FREE char *dir = NULL;
  CLEANUP_FREE char *name = spec_name (i, &dir);
  CLEANUP_FREE char *db = NULL;
  struct stat st;

  if (name == NULL || asprintf (&db, "%s/meta.db", dir) < 0) {
    nbdkit_error ("asprintf: %m");
    return -1;
  }
  if (stat (dir, &st) == -1) {
    nbdkit_error ("pool=%s: %m", config.specs[i]);
    return -1;
  }
  if (!S_ISDIR (st.st_mode)) {
    nbdkit_error ("pool=%s: expected a directory", config.specs[i]);
    return -1;
  }
  if (stat (db, &st) == -1 && errno == ENOENT) {
    nbdkit_error ("pool=%s: the directory holds no pool: make one with "
                  "\"cowshed init\"", config.specs[i]);
    return -1;
  }
  return 0;
}

int
config_get_ready (void)
{
  for (size_t i = 0; i < config.nr_specs; i++)
    if (check_pool_dir (i) == -1)
      return -1;
  if (config.control_token_file &&
      access (config.control_token_file, R_OK) == -1) {
    nbdkit_error ("control-token-file=%s: %m", config.control_token_file);
    return -1;
  }
  return 0;
}

void
config_free (void)
{
  for (size_t i = 0; i < config.nr_specs; i++)
    free (config.specs[i]);
  free (config.specs);
  free (config.control);
  free (config.control_listen);
  free (config.control_token_file);
  free (config.default_name);
}
