/* SPDX-License-Identifier: BSD-3-Clause */
/* The metadata store: meta.db, SQLite in WAL mode with synchronous=FULL.
 *
 * Connections: one that commits, a few that load (each under its own mutex),
 * one that checkpoints.  A load sees the last commit; the cache keeps what
 * is newer.  All errors are -errno: -ENOSPC for a full disk, -EIO otherwise,
 * logged with SQLite's text.
 */
#ifndef COW_STORE_H
#define COW_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "types.h"

struct cow_store;

#define STORE_FORMAT_VERSION 1

/* What the pool table holds. */
struct store_pool {
  char uuid[37];
  uint64_t chunk_size;          /* bytes */
  uint64_t capacity;            /* bytes; 0: no limit of its own */
  char device[256];             /* path when made, "" : data file */
  uint64_t created;
  uint64_t incompat, ro_compat, compat; /* feature bits */
  uint64_t next_node, next_volume;
  uint64_t generation;          /* number of the last commit */
  uint64_t clean;               /* closed cleanly */
};

struct store_volume {
  uint64_t id, parent;          /* parent 0: a volume, else of whom */
  char name[130];
  uint64_t size;
  uint64_t root;                /* node id or 0 */
  unsigned level;               /* of the root */
  uint64_t created;
  unsigned flags;               /* VOL_* */
};

#define VOL_THICK   1u
#define VOL_DELETED 2u          /* gone by name, root not yet released */
#define VOL_DAMAGED 4u
#define VOL_FLAGS   7u

enum store_kind { STORE_NODE, STORE_CHUNK_COUNTS, STORE_NODE_COUNTS };

/* Make dir/meta.db (it must not exist) holding pool. */
int cow_store_create (const char *dir, const struct store_pool *pool,
                      struct cow_error *err);
/* readonly: for check beside a server; loads only. */
int cow_store_open (const char *dir, bool readonly, struct cow_store **s,
                    struct store_pool *pool, struct cow_error *err);
/* Checkpoints and closes. */
void cow_store_close (struct cow_store *s);

/* Run fn for each row; its non-zero return ends the scan and is returned. */
int cow_store_each_volume (struct cow_store *s,
                           int (*fn) (void *, const struct store_volume *),
                           void *opaque, struct cow_error *err);
int cow_store_each_region (struct cow_store *s,
                           int (*fn) (void *, uint64_t page, unsigned used,
                                      unsigned free_spans), void *opaque);
int cow_store_each_queued (struct cow_store *s,
                           int (*fn) (void *, uint64_t id, unsigned level),
                           void *opaque);
int cow_store_each_record (struct cow_store *s, enum store_kind kind,
                           int (*fn) (void *, uint64_t id, const void *data,
                                      size_t len), void *opaque);

/* Load one record into buf (PACK_MAX).  *len is 0 where there is none. */
int cow_store_load (struct cow_store *s, enum store_kind kind, uint64_t id,
                    void *buf, size_t *len);

/* One transaction at a time, by one thread at a time. */
int cow_store_begin (struct cow_store *s);
int cow_store_put (struct cow_store *s, enum store_kind kind, uint64_t id,
                   const void *data, size_t len);
int cow_store_delete (struct cow_store *s, enum store_kind kind, uint64_t id);
int cow_store_put_region (struct cow_store *s, uint64_t page, unsigned used,
                          unsigned free_spans);
int cow_store_put_volume (struct cow_store *s, const struct store_volume *v);
int cow_store_delete_volume (struct cow_store *s, uint64_t id);
int cow_store_put_queued (struct cow_store *s, uint64_t id, unsigned level);
int cow_store_delete_queued (struct cow_store *s, uint64_t id);
int cow_store_put_pool (struct cow_store *s, const char *key, uint64_t v);
/* Record, on its own, whether the pool is closed cleanly. */
int cow_store_set_clean (struct cow_store *s, bool clean);
int cow_store_commit (struct cow_store *s);
void cow_store_rollback (struct cow_store *s);

/* Copy committed frames from the log to the database; blocks on I/O, never
 * a committer.  Any thread.
 */
void cow_store_checkpoint (struct cow_store *s);
uint64_t cow_store_bytes (struct cow_store *s);
/* Whole-database integrity check of SQLite itself: text of the first
 * problem, or "" ; -errno where it cannot run.
 */
int cow_store_integrity (struct cow_store *s, char *text, size_t len);
/* The pool record as the read transaction sees it. */
int cow_store_read_pool (struct cow_store *s, struct store_pool *pool,
                         struct cow_error *err);
/* Hold one snapshot across several scans (check). */
int cow_store_read_begin (struct cow_store *s);
void cow_store_read_end (struct cow_store *s);

#endif /* COW_STORE_H */
