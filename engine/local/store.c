/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cleanup.h"
#include "log.h"
#include "pack.h"
#include "store.h"

#define NR_LOADERS 4
#define VACUUM_COMMITS 256
/* For an administrator's sqlite3 that writes; nobody else does. */
#define BUSY_TIMEOUT_MS 10000
/* Frames in the log from which a restart is forced. */
#define WAL_RESTART_PAGES 1024

static const char schema[] =
  "CREATE TABLE pool (key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
  "CREATE TABLE volumes (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL,"
  " name TEXT NOT NULL, size INTEGER NOT NULL, root INTEGER NOT NULL,"
  " level INTEGER NOT NULL, created INTEGER NOT NULL,"
  " flags INTEGER NOT NULL, sum INTEGER NOT NULL);"
  "CREATE TABLE nodes (id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
  "CREATE TABLE chunk_counts (id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
  "CREATE TABLE node_counts (id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
  "CREATE TABLE regions (id INTEGER PRIMARY KEY, used INTEGER NOT NULL,"
  " free_spans INTEGER NOT NULL);"
  "CREATE TABLE delete_queue (id INTEGER PRIMARY KEY,"
  " level INTEGER NOT NULL);";

static const char *const table_of[] = {
  [STORE_NODE] = "nodes",
  [STORE_CHUNK_COUNTS] = "chunk_counts",
  [STORE_NODE_COUNTS] = "node_counts",
};

enum { ST_BEGIN, ST_COMMIT, ST_ROLLBACK, ST_PUT0, ST_PUT1, ST_PUT2, ST_DEL0,
       ST_DEL1, ST_DEL2, ST_REGION, ST_VOLUME, ST_DELVOLUME, ST_QUEUE,
       ST_DELQUEUE, ST_POOL, NR_STATEMENTS };

static const char *const statements[NR_STATEMENTS] = {
  [ST_BEGIN] = "BEGIN IMMEDIATE",
  [ST_COMMIT] = "COMMIT",
  [ST_ROLLBACK] = "ROLLBACK",
  [ST_PUT0] = "INSERT OR REPLACE INTO nodes VALUES (?,?)",
  [ST_PUT1] = "INSERT OR REPLACE INTO chunk_counts VALUES (?,?)",
  [ST_PUT2] = "INSERT OR REPLACE INTO node_counts VALUES (?,?)",
  [ST_DEL0] = "DELETE FROM nodes WHERE id=?",
  [ST_DEL1] = "DELETE FROM chunk_counts WHERE id=?",
  [ST_DEL2] = "DELETE FROM node_counts WHERE id=?",
  [ST_REGION] = "INSERT OR REPLACE INTO regions VALUES (?,?,?)",
  [ST_VOLUME] = "INSERT OR REPLACE INTO volumes VALUES (?,?,?,?,?,?,?,?,?)",
  [ST_DELVOLUME] = "DELETE FROM volumes WHERE id=?",
  [ST_QUEUE] = "INSERT OR REPLACE INTO delete_queue VALUES (?,?)",
  [ST_DELQUEUE] = "DELETE FROM delete_queue WHERE id=?",
  [ST_POOL] = "INSERT OR REPLACE INTO pool VALUES (?,?)",
};

struct loader {
  pthread_mutex_t lock;
  sqlite3 *db;
  sqlite3_stmt *select[3];
};

struct cow_store {
  char *path;
  sqlite3 *writer;              /* NULL: read-only */
  sqlite3_stmt *st[NR_STATEMENTS];
  struct loader loaders[NR_LOADERS];
  unsigned nr_loaders, next_loader;
  unsigned nr_commits;          /* the committer's */
  int wal_pages;                /* after the last commit; the committer's */
  pthread_mutex_t ckpt_lock;
  sqlite3 *ckpt;
};

static int note_wal_pages (void *opaque, sqlite3 *db, const char *name,
                           int pages);

/* Translate and log what db reports. */
static int
store_error (sqlite3 *db, int rc, const char *doing)
{
  int system_errno = sqlite3_system_errno (db);
  bool full = (rc & 0xff) == SQLITE_FULL ||
    ((rc & 0xff) == SQLITE_IOERR &&
     (system_errno == ENOSPC || system_errno == EDQUOT));

  cow_log (full ? COW_LOG_WARNING : COW_LOG_ERROR, "meta.db: %s: %s (%d%s%s)",
           doing, sqlite3_errmsg (db), rc, system_errno ? ", " : "",
           system_errno ? strerror (system_errno) : "");
  if ((rc & 0xff) == SQLITE_NOMEM)
    return -ENOMEM;
  if ((rc & 0xff) == SQLITE_BUSY)
    return -EBUSY;
  return full ? -ENOSPC : -EIO;
}

static int
exec (sqlite3 *db, const char *sql)
{
  int rc = sqlite3_exec (db, sql, NULL, NULL, NULL);

  return rc == SQLITE_OK ? 0 : store_error (db, rc, sql);
}

static int
open_connection (const char *path, int flags, sqlite3 **db)
{
  int rc = sqlite3_open_v2 (path, db, flags | SQLITE_OPEN_NOMUTEX, NULL);

  if (rc != SQLITE_OK) {
    int r = *db ? store_error (*db, rc, "open") : -ENOMEM;

    sqlite3_close (*db);
    *db = NULL;
    return r;
  }
  sqlite3_extended_result_codes (*db, 1);
  sqlite3_busy_timeout (*db, BUSY_TIMEOUT_MS);
  return exec (*db, "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
               "PRAGMA cache_size=-4096; PRAGMA trusted_schema=OFF;"
               "PRAGMA cell_size_check=ON;");
}

static int
step_done (sqlite3_stmt *st, const char *doing)
{
  int rc = sqlite3_step (st);

  sqlite3_reset (st);
  return rc == SQLITE_DONE || rc == SQLITE_ROW ? 0
    : store_error (sqlite3_db_handle (st), rc, doing);
}

/* ---- Create and open ---- */

static int
put_pool_text (sqlite3 *db, const char *key, const char *text)
{
  sqlite3_stmt *st;
  int r, rc = sqlite3_prepare_v2 (db, statements[ST_POOL], -1, &st, NULL);

  if (rc != SQLITE_OK)
    return store_error (db, rc, "prepare");
  sqlite3_bind_text (st, 1, key, -1, SQLITE_STATIC);
  sqlite3_bind_text (st, 2, text, -1, SQLITE_STATIC);
  r = step_done (st, "write the pool record");
  sqlite3_finalize (st);
  return r;
}

static int
put_pool_all (sqlite3 *db, const struct store_pool *p)
{
  struct { const char *key; uint64_t value; } numbers[] = {
    { "format", STORE_FORMAT_VERSION }, { "chunk_size", p->chunk_size },
    { "capacity", p->capacity }, { "created", p->created },
    { "incompat", p->incompat }, { "ro_compat", p->ro_compat },
    { "compat", p->compat }, { "next_node", p->next_node },
    { "next_volume", p->next_volume }, { "generation", p->generation },
    { "clean", 1 },
  };
  char text[32];
  size_t i;
  int r = put_pool_text (db, "uuid", p->uuid);

  if (r == 0)
    r = put_pool_text (db, "device", p->device);
  for (i = 0; r == 0 && i < sizeof numbers / sizeof numbers[0]; i++) {
    snprintf (text, sizeof text, "%llu",
              (unsigned long long) numbers[i].value);
    r = put_pool_text (db, numbers[i].key, text);
  }
  return r;
}

int
cow_store_create (const char *dir, const struct store_pool *pool,
                  struct cow_error *err)
{
  CLEANUP_FREE char *path = NULL;
  CLEANUP_CLOSE int fd = -1;
  sqlite3 *db = NULL;
  int r;

  if (asprintf (&path, "%s/meta.db", dir) < 0)
    return -ENOMEM;
  /* SQLite would use 0644; its log takes the mode of the database. */
  fd = open (path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd == -1)
    return cow_error_set (err, errno, errno == ENOSPC ? "no-space"
                          : "io-error", "cannot create %s: %s", path,
                          strerror (errno));
  r = open_connection (path, SQLITE_OPEN_READWRITE, &db);
  if (r == 0)
    r = exec (db, "PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL;"
              "PRAGMA journal_mode=WAL; BEGIN IMMEDIATE;");
  if (r == 0)
    r = exec (db, schema);
  if (r == 0)
    r = put_pool_all (db, pool);
  if (r == 0)
    r = exec (db, "COMMIT");
  /* Closing would do it too, but would not say if it could not. */
  if (r == 0) {
    int rc = sqlite3_wal_checkpoint_v2 (db, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                        NULL, NULL);

    if (rc != SQLITE_OK)
      r = store_error (db, rc, "checkpoint");
  }
  sqlite3_close (db);
  if (r < 0)
    return cow_error_set (err, -r, r == -ENOSPC ? "no-space" : "io-error",
                          "cannot create %s: %s", path, strerror (-r));
  return 0;
}

static int
read_pool (sqlite3 *db, const char *path, struct store_pool *p,
           struct cow_error *err)
{
  struct { const char *key; uint64_t *value; bool seen; } numbers[] = {
    { "chunk_size", &p->chunk_size, false },
    { "capacity", &p->capacity, false },
    { "created", &p->created, false }, { "incompat", &p->incompat, false },
    { "ro_compat", &p->ro_compat, false }, { "compat", &p->compat, false },
    { "next_node", &p->next_node, false },
    { "next_volume", &p->next_volume, false },
    { "generation", &p->generation, false }, { "clean", &p->clean, false },
  };
  uint64_t format = 0;
  sqlite3_stmt *st;
  size_t i;
  int rc;

  memset (p, 0, sizeof *p);
  rc = sqlite3_prepare_v2 (db, "SELECT key, value FROM pool", -1, &st, NULL);
  if (rc == SQLITE_OK) {
    while ((rc = sqlite3_step (st)) == SQLITE_ROW) {
      const char *key = (const char *) sqlite3_column_text (st, 0);
      const char *text = (const char *) sqlite3_column_text (st, 1);

      if (key == NULL || text == NULL)
        continue;
      if (strcmp (key, "format") == 0)
        format = strtoull (text, NULL, 10);
      if (strcmp (key, "uuid") == 0)
        snprintf (p->uuid, sizeof p->uuid, "%s", text);
      if (strcmp (key, "device") == 0)
        snprintf (p->device, sizeof p->device, "%s", text);
      for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp (key, numbers[i].key) == 0) {
          *numbers[i].value = strtoull (text, NULL, 10);
          numbers[i].seen = true;
        }
    }
    sqlite3_finalize (st);
  }
  if (rc != SQLITE_DONE)
    return cow_error_set (err, EIO, "damaged",
                          "%s is damaged or not a pool's metadata: %s", path,
                          sqlite3_errmsg (db));
  if (format > STORE_FORMAT_VERSION || p->incompat != 0)
    return cow_error_set (err, ENOTSUP, "unsupported-format",
                          "%s has format %llu with features 0x%llx; this "
                          "version of cowshed knows format %d with features "
                          "0x0: a newer version is needed", path,
                          (unsigned long long) format,
                          (unsigned long long) p->incompat,
                          STORE_FORMAT_VERSION);
  for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    if (!numbers[i].seen || format == 0 || p->uuid[0] == 0)
      return cow_error_set (err, EIO, "damaged",
                            "%s is damaged: its pool record lacks '%s'",
                            path, !numbers[i].seen ? numbers[i].key
                            : format == 0 ? "format" : "uuid");
  if (p->chunk_size < 4096 || p->chunk_size > 1048576 ||
      (p->chunk_size & (p->chunk_size - 1)) || p->next_node == 0 ||
      p->next_volume == 0)
    return cow_error_set (err, EIO, "damaged",
                          "%s is damaged: its pool record has impossible "
                          "values (chunk size %llu)", path,
                          (unsigned long long) p->chunk_size);
  return 0;
}

static int
open_loader (struct cow_store *s, struct loader *l)
{
  unsigned k;
  char sql[80];
  int r = open_connection (s->path, SQLITE_OPEN_READONLY, &l->db);

  if (r < 0)
    return r;
  pthread_mutex_init (&l->lock, NULL);
  s->nr_loaders++;
  for (k = 0; k < 3; k++) {
    snprintf (sql, sizeof sql, "SELECT data FROM %s WHERE id=?", table_of[k]);
    r = sqlite3_prepare_v3 (l->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                            &l->select[k], NULL);
    if (r != SQLITE_OK)
      return store_error (l->db, r, "prepare");
  }
  return 0;
}

static int
open_writer (struct cow_store *s)
{
  unsigned i;
  int r = open_connection (s->path, SQLITE_OPEN_READWRITE, &s->writer);

  if (r == 0)
    r = exec (s->writer, "PRAGMA journal_mode=WAL");
  if (r == 0)
    sqlite3_wal_hook (s->writer, note_wal_pages, s);
  if (r == 0)
    r = open_connection (s->path, SQLITE_OPEN_READWRITE, &s->ckpt);
  for (i = 0; r == 0 && i < NR_STATEMENTS; i++) {
    int rc = sqlite3_prepare_v3 (s->writer, statements[i], -1,
                                 SQLITE_PREPARE_PERSISTENT, &s->st[i], NULL);

    if (rc != SQLITE_OK)
      r = store_error (s->writer, rc, "prepare");
  }
  return r;
}

/* First of all, on a connection that changes nothing: what does it hold? */
static int
read_pool_alone (const char *path, struct store_pool *pool,
                 struct cow_error *err)
{
  sqlite3 *db = NULL;
  int r = open_connection (path, SQLITE_OPEN_READONLY, &db);

  if (r < 0)
    return cow_error_set (err, -r, r == -EIO ? "damaged" : "io-error",
                          "%s is not a pool's metadata or cannot be opened: "
                          "%s", path, strerror (-r));
  r = read_pool (db, path, pool, err);
  sqlite3_close (db);
  return r;
}

int
cow_store_open (const char *dir, bool readonly, struct cow_store **out,
                struct store_pool *pool, struct cow_error *err)
{
  struct cow_store *s = calloc (1, sizeof *s);
  struct stat st;
  unsigned i;
  int r;

  if (s == NULL || asprintf (&s->path, "%s/meta.db", dir) < 0) {
    free (s);
    return -ENOMEM;
  }
  pthread_mutex_init (&s->ckpt_lock, NULL);
  if (stat (s->path, &st) == -1) {
    r = cow_error_set (err, errno, errno == ENOENT ? "not-found" : "io-error",
                       "%s holds no pool: %s: %s", dir, s->path,
                       strerror (errno));
    goto fail;
  }
  r = read_pool_alone (s->path, pool, err);
  if (r < 0)
    goto fail;
  r = readonly ? 0 : open_writer (s);
  for (i = 0; r == 0 && i < (readonly ? 1 : NR_LOADERS); i++)
    r = open_loader (s, &s->loaders[i]);
  if (r < 0) {
    cow_error_set (err, -r, r == -EIO ? "damaged" : "io-error",
                   "%s is damaged or cannot be opened (see the log)",
                   s->path);
    goto fail;
  }
  *out = s;
  return 0;

 fail:
  cow_store_close (s);
  return r;
}

void
cow_store_close (struct cow_store *s)
{
  unsigned i, k;

  for (i = 0; i < NR_STATEMENTS; i++)
    sqlite3_finalize (s->st[i]);
  for (i = 0; i < s->nr_loaders; i++) {
    for (k = 0; k < 3; k++)
      sqlite3_finalize (s->loaders[i].select[k]);
    sqlite3_close (s->loaders[i].db);
    pthread_mutex_destroy (&s->loaders[i].lock);
  }
  sqlite3_close (s->ckpt);
  sqlite3_close (s->writer);    /* the last connection checkpoints */
  pthread_mutex_destroy (&s->ckpt_lock);
  free (s->path);
  free (s);
}

/* ---- Scans ---- */

static int
scan (struct cow_store *s, const char *sql, int (*row) (void *, sqlite3_stmt *),
      void *opaque)
{
  struct loader *l = &s->loaders[0];
  sqlite3_stmt *st;
  int r = 0, rc;

  pthread_mutex_lock (&l->lock);
  rc = sqlite3_prepare_v2 (l->db, sql, -1, &st, NULL);
  if (rc == SQLITE_OK) {
    while (r == 0 && (rc = sqlite3_step (st)) == SQLITE_ROW)
      r = row (opaque, st);
    sqlite3_finalize (st);
  }
  if (r == 0 && rc != SQLITE_DONE)
    r = store_error (l->db, rc, sql);
  pthread_mutex_unlock (&l->lock);
  return r;
}

static int64_t
volume_sum (const struct store_volume *v)
{
  char text[400];
  int n = snprintf (text, sizeof text, "%llu/%llu/%s/%llu/%llu/%u/%llu/%u",
                    (unsigned long long) v->id,
                    (unsigned long long) v->parent, v->name,
                    (unsigned long long) v->size,
                    (unsigned long long) v->root, v->level,
                    (unsigned long long) v->created, v->flags);

  return (int64_t) XXH3_64bits (text, n);
}

struct volume_scan {
  int (*fn) (void *, const struct store_volume *);
  void *opaque;
  struct cow_error *err;
};

static int
volume_row (void *opaque, sqlite3_stmt *st)
{
  struct volume_scan *vs = opaque;
  struct store_volume v = { 0 };
  const char *name = (const char *) sqlite3_column_text (st, 2);

  v.id = sqlite3_column_int64 (st, 0);
  v.parent = sqlite3_column_int64 (st, 1);
  snprintf (v.name, sizeof v.name, "%s", name ? name : "");
  v.size = sqlite3_column_int64 (st, 3);
  v.root = sqlite3_column_int64 (st, 4);
  v.level = sqlite3_column_int64 (st, 5);
  v.created = sqlite3_column_int64 (st, 6);
  v.flags = sqlite3_column_int64 (st, 7);
  if (volume_sum (&v) != sqlite3_column_int64 (st, 8) || v.level > MAX_LEVEL)
    return cow_error_set (vs->err, EIO, "damaged",
                          "meta.db is damaged: the record of volume '%.60s' "
                          "(id %llu) does not match its checksum",
                          v.name, (unsigned long long) v.id);
  return vs->fn (vs->opaque, &v);
}

int
cow_store_each_volume (struct cow_store *s,
                       int (*fn) (void *, const struct store_volume *),
                       void *opaque, struct cow_error *err)
{
  struct volume_scan vs = { fn, opaque, err };

  return scan (s, "SELECT id, parent, name, size, root, level, created, flags,"
               " sum FROM volumes ORDER BY parent, id", volume_row, &vs);
}

struct region_scan {
  int (*fn) (void *, uint64_t, unsigned, unsigned);
  void *opaque;
};

static int
region_row (void *opaque, sqlite3_stmt *st)
{
  struct region_scan *rs = opaque;

  return rs->fn (rs->opaque, sqlite3_column_int64 (st, 0),
                 sqlite3_column_int64 (st, 1), sqlite3_column_int64 (st, 2));
}

int
cow_store_each_region (struct cow_store *s,
                       int (*fn) (void *, uint64_t, unsigned, unsigned),
                       void *opaque)
{
  struct region_scan rs = { fn, opaque };

  return scan (s, "SELECT id, used, free_spans FROM regions ORDER BY id",
               region_row, &rs);
}

struct queue_scan {
  int (*fn) (void *, uint64_t, unsigned);
  void *opaque;
};

static int
queue_row (void *opaque, sqlite3_stmt *st)
{
  struct queue_scan *qs = opaque;

  return qs->fn (qs->opaque, sqlite3_column_int64 (st, 0),
                 sqlite3_column_int64 (st, 1));
}

int
cow_store_each_queued (struct cow_store *s,
                       int (*fn) (void *, uint64_t, unsigned), void *opaque)
{
  struct queue_scan qs = { fn, opaque };

  return scan (s, "SELECT id, level FROM delete_queue ORDER BY id", queue_row,
               &qs);
}

struct record_scan {
  int (*fn) (void *, uint64_t, const void *, size_t);
  void *opaque;
};

static int
record_row (void *opaque, sqlite3_stmt *st)
{
  struct record_scan *rs = opaque;

  return rs->fn (rs->opaque, sqlite3_column_int64 (st, 0),
                 sqlite3_column_blob (st, 1), sqlite3_column_bytes (st, 1));
}

int
cow_store_each_record (struct cow_store *s, enum store_kind kind,
                       int (*fn) (void *, uint64_t, const void *, size_t),
                       void *opaque)
{
  struct record_scan rs = { fn, opaque };
  char sql[80];

  snprintf (sql, sizeof sql, "SELECT id, data FROM %s ORDER BY id",
            table_of[kind]);
  return scan (s, sql, record_row, &rs);
}

int
cow_store_load (struct cow_store *s, enum store_kind kind, uint64_t id,
                void *buf, size_t *len)
{
  unsigned n = __atomic_fetch_add (&s->next_loader, 1, __ATOMIC_RELAXED);
  struct loader *l = &s->loaders[n % s->nr_loaders];
  sqlite3_stmt *st;
  int rc, r = 0;

  *len = 0;
  pthread_mutex_lock (&l->lock);
  st = l->select[kind];
  sqlite3_bind_int64 (st, 1, id);
  rc = sqlite3_step (st);
  if (rc == SQLITE_ROW) {
    size_t n_bytes = sqlite3_column_bytes (st, 0);

    if (n_bytes > PACK_MAX) {
      cow_log (COW_LOG_ERROR, "meta.db: %s %llu: record of %zu bytes, at most "
               "%d expected", table_of[kind], (unsigned long long) id,
               n_bytes, PACK_MAX);
      r = -EIO;
    }
    else if (n_bytes > 0) {
      memcpy (buf, sqlite3_column_blob (st, 0), n_bytes);
      *len = n_bytes;
    }
  }
  else if (rc != SQLITE_DONE)
    r = store_error (l->db, rc, "load");
  sqlite3_reset (st);
  pthread_mutex_unlock (&l->lock);
  return r;
}

/* ---- Transactions ---- */

int
cow_store_begin (struct cow_store *s)
{
  return step_done (s->st[ST_BEGIN], "begin");
}

int
cow_store_put (struct cow_store *s, enum store_kind kind, uint64_t id,
               const void *data, size_t len)
{
  sqlite3_stmt *st = s->st[ST_PUT0 + kind];

  sqlite3_bind_int64 (st, 1, id);
  sqlite3_bind_blob (st, 2, data, len, SQLITE_STATIC);
  return step_done (st, "write a record");
}

int
cow_store_delete (struct cow_store *s, enum store_kind kind, uint64_t id)
{
  sqlite3_bind_int64 (s->st[ST_DEL0 + kind], 1, id);
  return step_done (s->st[ST_DEL0 + kind], "delete a record");
}

int
cow_store_put_region (struct cow_store *s, uint64_t page, unsigned used,
                      unsigned free_spans)
{
  sqlite3_stmt *st = s->st[ST_REGION];

  sqlite3_bind_int64 (st, 1, page);
  sqlite3_bind_int64 (st, 2, used);
  sqlite3_bind_int64 (st, 3, free_spans);
  return step_done (st, "write a region");
}

int
cow_store_put_volume (struct cow_store *s, const struct store_volume *v)
{
  sqlite3_stmt *st = s->st[ST_VOLUME];

  sqlite3_bind_int64 (st, 1, v->id);
  sqlite3_bind_int64 (st, 2, v->parent);
  sqlite3_bind_text (st, 3, v->name, -1, SQLITE_STATIC);
  sqlite3_bind_int64 (st, 4, v->size);
  sqlite3_bind_int64 (st, 5, v->root);
  sqlite3_bind_int64 (st, 6, v->level);
  sqlite3_bind_int64 (st, 7, v->created);
  sqlite3_bind_int64 (st, 8, v->flags);
  sqlite3_bind_int64 (st, 9, volume_sum (v));
  return step_done (st, "write a volume");
}

int
cow_store_delete_volume (struct cow_store *s, uint64_t id)
{
  sqlite3_bind_int64 (s->st[ST_DELVOLUME], 1, id);
  return step_done (s->st[ST_DELVOLUME], "delete a volume");
}

int
cow_store_put_queued (struct cow_store *s, uint64_t id, unsigned level)
{
  sqlite3_bind_int64 (s->st[ST_QUEUE], 1, id);
  sqlite3_bind_int64 (s->st[ST_QUEUE], 2, level);
  return step_done (s->st[ST_QUEUE], "write the delete queue");
}

int
cow_store_delete_queued (struct cow_store *s, uint64_t id)
{
  sqlite3_bind_int64 (s->st[ST_DELQUEUE], 1, id);
  return step_done (s->st[ST_DELQUEUE], "shorten the delete queue");
}

int
cow_store_put_pool (struct cow_store *s, const char *key, uint64_t v)
{
  char text[32];

  snprintf (text, sizeof text, "%llu", (unsigned long long) v);
  sqlite3_bind_text (s->st[ST_POOL], 1, key, -1, SQLITE_STATIC);
  sqlite3_bind_text (s->st[ST_POOL], 2, text, -1, SQLITE_TRANSIENT);
  return step_done (s->st[ST_POOL], "write the pool record");
}

int
cow_store_set_clean (struct cow_store *s, bool clean)
{
  int r = cow_store_begin (s);

  if (r == 0)
    r = cow_store_put_pool (s, "clean", clean);
  if (r == 0)
    r = cow_store_commit (s);
  if (r < 0)
    cow_store_rollback (s);
  return r;
}

int
cow_store_commit (struct cow_store *s)
{
  int r = 0;

  /* Give free pages of the database back, now and then a few. */
  if (++s->nr_commits % VACUUM_COMMITS == 0)
    r = exec (s->writer, "PRAGMA incremental_vacuum(512)");
  if (r == 0)
    r = step_done (s->st[ST_COMMIT], "commit");
  if (r < 0)
    return r;
  /* Passive checkpoints beside a steady committer never let the log start
   * again, so beyond a limit this thread, the only writer, does it.  That
   * it may fail (a reader in the way, a full disk) only means a longer log.
   */
  if (s->wal_pages > WAL_RESTART_PAGES) {
    pthread_mutex_lock (&s->ckpt_lock);
    sqlite3_busy_timeout (s->writer, 0);
    sqlite3_wal_checkpoint_v2 (s->writer, NULL, SQLITE_CHECKPOINT_RESTART,
                               NULL, NULL);
    sqlite3_busy_timeout (s->writer, BUSY_TIMEOUT_MS);
    pthread_mutex_unlock (&s->ckpt_lock);
  }
  return 0;
}

static int
note_wal_pages (void *opaque, sqlite3 *db, const char *name, int pages)
{
  struct cow_store *s = opaque;

  s->wal_pages = pages;
  return SQLITE_OK;
}

void
cow_store_rollback (struct cow_store *s)
{
  if (!sqlite3_get_autocommit (s->writer))
    step_done (s->st[ST_ROLLBACK], "roll back");
}

void
cow_store_checkpoint (struct cow_store *s)
{
  pthread_mutex_lock (&s->ckpt_lock);
  sqlite3_wal_checkpoint_v2 (s->ckpt, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL,
                             NULL);
  pthread_mutex_unlock (&s->ckpt_lock);
}

uint64_t
cow_store_bytes (struct cow_store *s)
{
  CLEANUP_FREE char *wal = NULL;
  struct stat st;
  uint64_t bytes = 0;

  if (stat (s->path, &st) == 0)
    bytes += st.st_size;
  if (asprintf (&wal, "%s-wal", s->path) >= 0 && stat (wal, &st) == 0)
    bytes += st.st_size;
  return bytes;
}

static int
integrity_row (void *opaque, sqlite3_stmt *st)
{
  const char *text = (const char *) sqlite3_column_text (st, 0);

  if (text && strcmp (text, "ok") != 0)
    snprintf (opaque, 300, "%s", text);
  return 0;
}

int
cow_store_integrity (struct cow_store *s, char *text, size_t len)
{
  char found[300] = "";
  int r = scan (s, "PRAGMA integrity_check(1)", integrity_row, found);

  snprintf (text, len, "%s", found);
  return r;
}

int
cow_store_read_pool (struct cow_store *s, struct store_pool *pool,
                     struct cow_error *err)
{
  return read_pool (s->loaders[0].db, s->path, pool, err);
}

int
cow_store_read_begin (struct cow_store *s)
{
  return exec (s->loaders[0].db, "BEGIN; SELECT count(*) FROM pool");
}

void
cow_store_read_end (struct cow_store *s)
{
  exec (s->loaders[0].db, "COMMIT");
}
