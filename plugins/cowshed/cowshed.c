/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of the plugin and its table of callbacks.
 *
 * Pools have threads and locks, so they are opened after nbdkit has gone to
 * the background, and closed when the last client has gone.
 */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "log.h"
#include "plugin.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

static struct cow_server *server;

static void
log_line (enum cow_log_level level, const char *line)
{
  if (level >= COW_LOG_WARNING)
    nbdkit_error ("%s", line);
  else
    nbdkit_debug ("%s", line);
}

static void
cowshed_load (void)
{
  cow_log_set (log_line);
}

static void
close_pools (void)
{
  while (nr_pools > 0) {
    struct cow_pool *pool = pools[--nr_pools];
    const char *name = nbdkit_strdup_intern (cow_pool_name (pool));
    int r = cow_pool_close (pool);

    if (r < 0)
      nbdkit_error ("pool %s: the last commit failed: %s",
                    name ? name : "?", strerror (-r));
  }
  free (pools);
  pools = NULL;
}

static void
log_event (void *opaque, const char *kind, const char *pool,
           const char *volume, const char *message)
{
  cow_log (COW_LOG_WARNING, "%s: pool %s%s%s: %s", kind, pool,
           volume && *volume ? ", volume " : "", volume ? volume : "",
           message);
}

static int
open_pools (void)
{
  struct cow_error err = { 0 };

  config.options.event = log_event;
  pools = calloc (config.nr_specs, sizeof *pools);
  if (pools == NULL) {
    nbdkit_error ("calloc: %m");
    return -1;
  }
  for (size_t i = 0; i < config.nr_specs; i++) {
    int r = cow_pool_open (config.specs[i], &config.options, &pools[i],
                           &err);

    if (r < 0) {
      nbdkit_error ("pool=%s: %s", config.specs[i],
                    err.message[0] ? err.message : strerror (-r));
      return -1;
    }
    nr_pools++;
  }
  return 0;
}

static int
start_server (void)
{
  const struct cow_server_config sc = {
    .pools = pools,
    .nr_pools = nr_pools,
    .socket_path = config.no_control ? NULL : config.control,
    .listen = config.control_listen,
    .token_file = config.control_token_file,
  };
  struct cow_error err = { 0 };
  int r = 0;

  if (sc.socket_path || sc.listen)
    r = cow_server_start (&sc, &server, &err);
  if (r < 0) {
    nbdkit_error ("%s", err.message[0] ? err.message : strerror (-r));
    return -1;
  }
  return 0;
}

/* A failure ends nbdkit without .cleanup. */
/* Under `cowshed serve`, end when the supervisor is killed.  With sockets
 * that are passed to it nbdkit asks for SIGTERM then, on which it would wait
 * for its clients, with nobody left to end the wait, and keep the pool's
 * lock.  The pool stands a kill.
 */
static void
die_with_supervisor (void)
{
  const char *pid = getenv ("COWSHED_SUPERVISOR");

  if (pid && strtol (pid, NULL, 10) == getppid ())
    prctl (PR_SET_PDEATHSIG, SIGKILL);
}

static int
cowshed_after_fork (void)
{
  die_with_supervisor ();
  if (open_pools () == -1 || start_server () == -1) {
    close_pools ();
    return -1;
  }
  return 0;
}

static void
cowshed_cleanup (void)
{
  cow_server_stop (server);
  server = NULL;
  close_pools ();
}

static void
cowshed_unload (void)
{
  config_free ();
  cow_log_set (NULL);
}

static void
cowshed_dump_plugin (void)
{
  printf ("cowshed_version=%s\n", PACKAGE_VERSION);
  printf ("cowshed_pools=local\n");
}

/* ---- The same for every export ---- */

static int
always (void *handle)
{
  return 1;
}

static int
never (void *handle)
{
  return 0;
}

static int
native_fua (void *handle)
{
  return NBDKIT_FUA_NATIVE;
}

static int
native_cache (void *handle)
{
  return NBDKIT_CACHE_NATIVE;
}

static struct nbdkit_plugin plugin = {
  .name = "cowshed",
  .longname = "Cowshed thin copy-on-write volumes",
  .version = PACKAGE_VERSION,
  .description = "Serve thin volumes, their snapshots and clones from a "
    "pool.",
  .load = cowshed_load,
  .unload = cowshed_unload,
  .config = config_set,
  .config_complete = config_complete,
  .config_help = config_help,
  .magic_config_key = "pool",
  .get_ready = config_get_ready,
  .after_fork = cowshed_after_fork,
  .cleanup = cowshed_cleanup,
  .dump_plugin = cowshed_dump_plugin,

  .list_exports = exports_list,
  .default_export = exports_default,
  .export_description = handle_description,
  .open = handle_open,
  .close = handle_close,

  .get_size = handle_size,
  .block_size = handle_block_size,
  .can_write = handle_writable,
  .can_flush = always,
  .is_rotational = never,
  .can_trim = handle_can_trim,
  .can_zero = handle_writable,
  .can_fast_zero = handle_can_fast_zero,
  .can_fua = native_fua,
  .can_multi_conn = always,
  .can_extents = handle_can_extents,
  .can_cache = native_cache,

  .pread = handle_pread,
  .pwrite = handle_pwrite,
  .flush = handle_flush,
  .trim = handle_trim,
  .zero = handle_zero,
  .extents = handle_extents,
  .cache = handle_cache,
};

NBDKIT_REGISTER_PLUGIN (plugin)
