/* SPDX-License-Identifier: BSD-3-Clause */
/* What the plugin's files share. */
#ifndef COW_PLUGIN_H
#define COW_PLUGIN_H

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "names.h"
#include "server.h"
#include "volume.h"

/* ---- Configuration (config.c) ---- */

struct config {
  char **specs;                 /* "[NAME:]DIR", DIR absolute */
  size_t nr_specs;
  struct cow_pool_options options;
  bool no_control;
  char *control;                /* path, NULL: in the first pool */
  char *control_listen;
  char *control_token_file;
  char *default_name;           /* NULL: none */
  bool offload, detect_zeroes;
};
extern struct config config;

/* One line per parameter; made from the same table as config_set. */
extern const char config_help[];

int config_set (const char *key, const char *value);
int config_complete (void);
int config_get_ready (void);
void config_free (void);

/* ---- Pools and exports (exports.c) ---- */

extern struct cow_pool **pools;
extern size_t nr_pools;

/* The pool called name, the first one for ""; NULL where there is none. */
struct cow_pool *find_pool (const char *name);

int exports_list (int readonly, int is_tls, struct nbdkit_exports *exports);
const char *exports_default (int readonly, int is_tls);

/* ---- One client's view of one export (handle.c) ---- */

struct handle {
  struct cow_volume *volume;    /* what is read and written */
  struct cow_volume *from;      /* a diff view's A, else NULL */
  char *name;                   /* as the client gave it */
  atomic_int last_error;        /* logged already */
};

void *handle_open (int readonly);
void handle_close (void *handle);
const char *handle_description (void *handle);
int64_t handle_size (void *handle);
int handle_block_size (void *handle, uint32_t *minimum, uint32_t *preferred,
                       uint32_t *maximum);
int handle_writable (void *handle);
int handle_can_trim (void *handle);
int handle_can_fast_zero (void *handle);
int handle_can_extents (void *handle);

int handle_pread (void *handle, void *buf, uint32_t count, uint64_t offset,
                  uint32_t flags);
int handle_pwrite (void *handle, const void *buf, uint32_t count,
                   uint64_t offset, uint32_t flags);
int handle_zero (void *handle, uint32_t count, uint64_t offset,
                 uint32_t flags);
int handle_trim (void *handle, uint32_t count, uint64_t offset,
                 uint32_t flags);
int handle_flush (void *handle, uint32_t flags);
int handle_cache (void *handle, uint32_t count, uint64_t offset,
                  uint32_t flags);
int handle_extents (void *handle, uint32_t count, uint64_t offset,
                    uint32_t flags, struct nbdkit_extents *extents);

#endif /* COW_PLUGIN_H */
