/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of exports and the empty name. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plugin.h"
#include "size.h"

/* nbdkit refuses a longer list as a whole, so it is cut here. */
#define EXPORTS_MAX 10000

struct cow_pool **pools;
size_t nr_pools;

struct cow_pool *
find_pool (const char *name)
{
  if (*name == '\0')
    return pools[0];
  for (size_t i = 0; i < nr_pools; i++)
    if (strcmp (cow_pool_name (pools[i]), name) == 0)
      return pools[i];
  return NULL;
}

/* ---- List ---- */

struct listing {
  struct nbdkit_exports *exports;
  struct cow_pool *pool;
  size_t nr;
};

static int
list_one (void *opaque, const struct cow_volume_info *info)
{
  struct listing *l = opaque;
  char name[3 * COW_NAME_MAX + 8], text[128], size[32];

  if (l->nr >= EXPORTS_MAX)
    return 1;
  snprintf (name, sizeof name, "%s%s%s",
            l->pool == pools[0] ? "" : cow_pool_name (l->pool),
            l->pool == pools[0] ? "" : "/", info->name);
  snprintf (text, sizeof text, "%s%s, %s%s",
            info->thick ? "thick " : "",
            info->is_snapshot ? "snapshot, read-only" : "volume",
            cow_size_format (info->size, size, sizeof size),
            info->damaged ? ", damaged" : "");
  l->nr++;
  return nbdkit_add_export (l->exports, name, text);
}

int
exports_list (int readonly, int is_tls, struct nbdkit_exports *exports)
{
  struct listing l = { .exports = exports };
  int r = 0;

  for (size_t i = 0; r == 0 && i < nr_pools; i++) {
    l.pool = pools[i];
    r = cow_volume_list (l.pool, list_one, &l);
  }
  if (l.nr >= EXPORTS_MAX)
    nbdkit_debug ("the list of exports ends after %d", EXPORTS_MAX);
  if (r < -1)                   /* not from nbdkit_add_export */
    nbdkit_error ("cannot list the volumes: %s", strerror (-r));
  return r < 0 ? -1 : 0;
}

/* ---- Default ---- */

struct only {
  size_t nr;
  struct cow_volume_info info;
};

static int
count_volume (void *opaque, const struct cow_volume_info *info)
{
  struct only *only = opaque;

  if (info->is_snapshot)
    return 0;
  only->info = *info;
  return ++only->nr > 1;
}

/* "" where there is none: opening that name then says why. */
const char *
exports_default (int readonly, int is_tls)
{
  struct only only = { 0 };

  if (config.default_name)
    return config.default_name;
  cow_volume_list (pools[0], count_volume, &only);
  return only.nr == 1 ? nbdkit_strdup_intern (only.info.name) : "";
}
