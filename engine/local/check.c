/* SPDX-License-Identifier: BSD-3-Clause */
/* Check: count every reference by walking all trees and compare with what
 * is stored.  Reads only meta.db and the data file's header and length, in one
 * read transaction, so it works beside a server, which it sees as of the
 * last commit.
 *
 * Repair (with the pool's lock) writes what the walk counted: count pages,
 * region summaries; removes records that nothing refers to; and marks the
 * volumes that refer to a damaged record, which from then on open read-only
 * and give EIO where the record would be needed.  A damaged record itself
 * is never guessed at.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <linux/fs.h>
#include <unistd.h>

#include "cleanup.h"
#include "data.h"
#include "pack.h"
#include "space.h"
#include "store.h"
#include "volume.h"

#define FAULTS_KEPT 1000
#define NO_LIMIT (UINT64_C (1) << 62)

/* ---- A map from numbers to what the walk found ---- */

struct found {
  uint64_t id;                  /* 0: empty */
  uint32_t refs;
  uint8_t level;
  bool seen, damaged;
};

struct found_map {
  struct found *slot;
  size_t nr_slots, nr;
};

static struct found *
found_slot (struct found_map *m, uint64_t id)
{
  size_t i = (id * UINT64_C (0x9e3779b97f4a7c15)) >> 20;

  i &= m->nr_slots - 1;
  while (m->slot[i].id != 0 && m->slot[i].id != id)
    i = (i + 1) & (m->nr_slots - 1);
  return &m->slot[i];
}

/* The entry of id, made if missing; NULL without memory. */
static struct found *
found_get (struct found_map *m, uint64_t id)
{
  struct found *f;

  if (m->nr * 2 >= m->nr_slots) {
    struct found_map bigger = { .nr_slots = m->nr_slots ? m->nr_slots * 2
                                : 1024 };
    size_t i;

    bigger.slot = calloc (bigger.nr_slots, sizeof *bigger.slot);
    if (bigger.slot == NULL)
      return NULL;
    for (i = 0; i < m->nr_slots; i++)
      if (m->slot[i].id)
        *found_slot (&bigger, m->slot[i].id) = m->slot[i];
    bigger.nr = m->nr;
    free (m->slot);
    *m = bigger;
  }
  f = found_slot (m, id);
  if (f->id == 0) {
    f->id = id;
    m->nr++;
  }
  return f;
}

/* What is known of id without making an entry. */
static struct found
found_look (struct found_map *m, uint64_t id)
{
  static const struct found none;

  return m->nr_slots ? *found_slot (m, id) : none;
}

/* ---- The run ---- */

struct visit {
  uint64_t id;
  unsigned level;
};

struct checker {
  struct cow_store *store;
  struct store_pool conf;
  struct cow_check_result *result;
  struct found_map nodes, chunks;
  struct visit *stack;
  size_t nr_stack, room_stack;
  struct store_volume *volume;  /* all rows */
  size_t nr_volumes;
  struct { uint64_t id; unsigned level; } *queue;
  size_t nr_queue;
  uint64_t queued;              /* the queued node being walked, or 0 */
  struct found_map regions;     /* page + 1 -> used, level: unused */
  bool repair;
  uint64_t nr_chunks;           /* bound on chunk numbers */
  uint64_t data_size;
  char owner[300];              /* the volume being walked */
  bool owner_damaged;
  uint64_t done;
  void (*progress) (void *, uint64_t, uint64_t);
  void *opaque;
  int error;                    /* in callbacks */
};

static void fault (struct checker *c, const char *where, const char *fmt, ...)
  __attribute__ ((format (printf, 3, 4)));

static void
fault (struct checker *c, const char *where, const char *fmt, ...)
{
  struct cow_check_result *r = c->result;
  struct cow_check_fault *bigger, *f;
  va_list ap;

  r->faults_total++;
  if (r->nr_faults >= FAULTS_KEPT)
    return;
  bigger = realloc (r->faults, (r->nr_faults + 1) * sizeof *bigger);
  if (bigger == NULL)
    return;
  r->faults = bigger;
  f = &r->faults[r->nr_faults++];
  memset (f, 0, sizeof *f);
  snprintf (f->where, sizeof f->where, "%s", where);
  va_start (ap, fmt);
  vsnprintf (f->what, sizeof f->what, fmt, ap);
  va_end (ap);
}

static void
last_fault_lasts (struct checker *c)
{
  if (c->result->nr_faults > 0)
    c->result->faults[c->result->nr_faults - 1].lasting = true;
}

static int
push (struct checker *c, uint64_t id, unsigned level)
{
  if (c->nr_stack == c->room_stack) {
    size_t room = c->room_stack ? c->room_stack * 2 : 1024;
    struct visit *bigger = realloc (c->stack, room * sizeof *bigger);

    if (bigger == NULL)
      return -ENOMEM;
    c->stack = bigger;
    c->room_stack = room;
  }
  c->stack[c->nr_stack++] = (struct visit) { id, level };
  return 0;
}

/* One reference to node id at level was found. */
static int
refer_node (struct checker *c, uint64_t id, unsigned level)
{
  struct found *f = found_get (&c->nodes, id);

  if (f == NULL)
    return -ENOMEM;
  f->refs++;
  if (f->damaged)
    c->owner_damaged = true;
  if (f->seen) {
    if (f->level != level)
      fault (c, c->owner, "node %llu is used at level %u and at level %u",
             (unsigned long long) id, f->level, level);
    return 0;
  }
  f->seen = true;
  f->level = level;
  return push (c, id, level);
}

static int
refer_chunk (struct checker *c, uint64_t chunk)
{
  struct found *f;

  if (chunk == 0)
    return 0;
  f = found_get (&c->chunks, chunk);
  if (f == NULL)
    return -ENOMEM;
  if (f->refs++ == 0 && chunk * c->conf.chunk_size >= c->data_size)
    fault (c, c->owner, "chunk %llu lies beyond the end of the data (%llu "
           "bytes)", (unsigned long long) chunk,
           (unsigned long long) c->data_size);
  return 0;
}

static int
visit_leaf (struct checker *c, uint64_t id, const void *buf, size_t len,
            const char **why)
{
  struct entry e[LEAF_ENTRIES];
  unsigned i;
  int r = cow_unpack_leaf (buf, len, id, c->nr_chunks, e, why);

  for (i = 0; r == 0 && i < LEAF_ENTRIES; i++) {
    r = refer_chunk (c, e[i].own);
    if (r == 0)
      r = refer_chunk (c, e[i].origin);
  }
  return r;
}

static int
visit_inner (struct checker *c, uint64_t id, unsigned level, const void *buf,
             size_t len, const char **why)
{
  uint64_t child[INNER_CHILDREN];
  unsigned i;
  int r = cow_unpack_inner (buf, len, id, level, c->conf.next_node, child,
                            why);

  for (i = 0; r == 0 && i < INNER_CHILDREN; i++)
    if (child[i])
      r = refer_node (c, child[i], level - 1);
  return r;
}

/* Visit all nodes on the stack. */
static int
walk (struct checker *c)
{
  char buf[PACK_MAX];
  size_t len;
  int r = 0;

  while (r == 0 && c->nr_stack > 0) {
    struct visit v = c->stack[--c->nr_stack];
    const char *why = "record is missing";

    r = cow_store_load (c->store, STORE_NODE, v.id, buf, &len);
    if (r < 0)
      return r;                 /* not damage of this record alone */
    if (len == 0)
      r = -EIO;
    else
      r = v.level == 0 ? visit_leaf (c, v.id, buf, len, &why)
        : visit_inner (c, v.id, v.level, buf, len, &why);
    if (r == -EIO) {
      struct found *f = found_get (&c->nodes, v.id);

      if (f)
        f->damaged = true;
      c->owner_damaged = true;
      fault (c, c->owner, "node %llu (level %u): %s",
             (unsigned long long) v.id, v.level, why);
      if (v.id != c->queued)    /* that one is simply forgotten */
        last_fault_lasts (c);
      r = 0;
    }
    if (c->progress && ++c->done % 1000 == 0)
      c->progress (c->opaque, c->done, 0);
  }
  return r;
}

/* ---- The roots ---- */

static int
collect_volume (void *opaque, const struct store_volume *v)
{
  struct checker *c = opaque;
  struct store_volume *bigger =
    realloc (c->volume, (c->nr_volumes + 1) * sizeof *bigger);

  if (bigger == NULL)
    return -ENOMEM;
  c->volume = bigger;
  c->volume[c->nr_volumes++] = *v;
  return 0;
}

static int
collect_queued (void *opaque, uint64_t id, unsigned level)
{
  struct checker *c = opaque;
  void *bigger = realloc (c->queue, (c->nr_queue + 1) * sizeof *c->queue);

  if (bigger == NULL)
    return -ENOMEM;
  c->queue = bigger;
  c->queue[c->nr_queue].id = id;
  c->queue[c->nr_queue++].level = level;
  return 0;
}

static const char *
volume_name (const struct checker *c, const struct store_volume *v, char *buf,
             size_t len)
{
  size_t i;

  for (i = 0; v->parent && i < c->nr_volumes; i++)
    if (c->volume[i].id == v->parent) {
      snprintf (buf, len, "volume %s@%s", c->volume[i].name, v->name);
      return buf;
    }
  snprintf (buf, len, "volume %s", v->name);
  return buf;
}

static int
walk_volumes (struct checker *c)
{
  size_t i;
  int r = 0;

  for (i = 0; r == 0 && i < c->nr_volumes; i++) {
    struct store_volume *v = &c->volume[i];

    volume_name (c, v, c->owner, sizeof c->owner);
    c->owner_damaged = false;
    if (v->root >= c->conf.next_node) {
      fault (c, c->owner, "its root, node %llu, is out of range",
             (unsigned long long) v->root);
      c->owner_damaged = true;
    }
    else if (v->root)
      r = refer_node (c, v->root, v->level);
    if (r == 0)
      r = walk (c);
    if (c->owner_damaged)
      v->flags |= VOL_DAMAGED;
  }
  return r;
}

/* Queued nodes have no parent; their children still count. */
static int
walk_queue (struct checker *c)
{
  size_t i, before;
  int r = 0;

  snprintf (c->owner, sizeof c->owner, "the delete queue");
  before = c->chunks.nr;
  for (i = 0; r == 0 && i < c->nr_queue; i++) {
    struct found *f;

    if (c->queue[i].level > MAX_LEVEL) {
      fault (c, c->owner, "node %llu has level %u",
             (unsigned long long) c->queue[i].id, c->queue[i].level);
      continue;
    }
    c->queued = c->queue[i].id;
    r = refer_node (c, c->queue[i].id, c->queue[i].level);
    if (r == 0)
      r = walk (c);
    f = found_get (&c->nodes, c->queue[i].id);
    if (f && --f->refs > 0)
      fault (c, c->owner, "node %llu is to be freed, but %u references to it "
             "were found", (unsigned long long) f->id, f->refs);
  }
  c->result->leaked += (c->chunks.nr - before) * c->conf.chunk_size;
  return r;
}

/* ---- Counts ---- */

struct page_check {
  struct checker *c;
  struct found_map *found;
  enum store_kind kind;
  struct found_map pages;       /* seen, by page + 1 */
};

static void
compare_page (struct page_check *pc, uint64_t page, const uint32_t *count)
{
  struct checker *c = pc->c;
  const char *what = pc->kind == STORE_NODE_COUNTS ? "node" : "chunk";
  unsigned i;

  for (i = 0; i < COUNTS_PER_PAGE; i++) {
    uint64_t n = page * COUNTS_PER_PAGE + i;
    uint32_t refs = n ? found_look (pc->found, n).refs : 0;
    char where[64];

    if (n == 0 && pc->kind == STORE_CHUNK_COUNTS)
      refs = 1;                 /* the header */
    if (count[i] == refs)
      continue;
    snprintf (where, sizeof where, "%s %llu", what, (unsigned long long) n);
    fault (c, where, "its count is %u, but %u references were found",
           count[i], refs);
  }
}

static void
compare_region (struct checker *c, uint64_t page, const uint32_t *count)
{
  unsigned used, spans;
  struct found stored = found_look (&c->regions, page + 1);
  char where[64];

  cow_space_summarise (count, &used, &spans);
  if (stored.id == 0 && used == 0)
    return;
  if (stored.id && stored.refs == ((used << 16) | spans))
    return;
  snprintf (where, sizeof where, "region %llu", (unsigned long long) page);
  fault (c, where, "its summary says %u chunks in use, its count page %u",
         stored.refs >> 16, used);
}

static int
check_page (void *opaque, uint64_t page, const void *data, size_t len)
{
  struct page_check *pc = opaque;
  uint32_t count[COUNTS_PER_PAGE];
  const char *why = "";
  char where[64];

  if (found_get (&pc->pages, page + 1) == NULL)
    return -ENOMEM;
  if (cow_unpack_counts (data, len, pc->kind == STORE_CHUNK_COUNTS
                         ? PACK_CHUNK_COUNTS : PACK_NODE_COUNTS, page, count,
                         &why) < 0) {
    snprintf (where, sizeof where, "%s count page %llu",
              pc->kind == STORE_CHUNK_COUNTS ? "chunk" : "node",
              (unsigned long long) page);
    fault (pc->c, where, "%s", why);
    return 0;
  }
  compare_page (pc, page, count);
  if (pc->kind == STORE_CHUNK_COUNTS)
    compare_region (pc->c, page, count);
  return 0;
}

/* References whose count page does not exist at all. */
static void
check_missing_pages (struct page_check *pc)
{
  size_t i;

  for (i = 0; i < pc->found->nr_slots; i++) {
    struct found *f = &pc->found->slot[i];
    char where[64];

    if (f->id == 0 || f->refs == 0 ||
        found_look (&pc->pages, (f->id >> COUNTS_SHIFT) + 1).id)
      continue;
    snprintf (where, sizeof where, "%s %llu",
              pc->kind == STORE_NODE_COUNTS ? "node" : "chunk",
              (unsigned long long) f->id);
    fault (pc->c, where, "it has %u references and no count", f->refs);
  }
}

static int
check_counts (struct checker *c, enum store_kind kind)
{
  struct page_check pc = {
    .c = c, .kind = kind,
    .found = kind == STORE_NODE_COUNTS ? &c->nodes : &c->chunks,
  };
  int r = cow_store_each_record (c->store, kind, check_page, &pc);

  if (r == 0)
    check_missing_pages (&pc);
  free (pc.pages.slot);
  return r;
}

static int
collect_region (void *opaque, uint64_t page, unsigned used, unsigned spans)
{
  struct checker *c = opaque;
  struct found *f = found_get (&c->regions, page + 1);

  if (f == NULL)
    return -ENOMEM;
  f->refs = (used << 16) | (spans & 0xffff);
  return 0;
}

/* Node records that no tree and no queue entry uses. */
static int
check_orphan (void *opaque, uint64_t id, const void *data, size_t len)
{
  struct checker *c = opaque;
  struct found *f;
  char where[64];

  if (id && found_look (&c->nodes, id).id)
    return 0;
  snprintf (where, sizeof where, "node %llu", (unsigned long long) id);
  fault (c, where, "nothing refers to it");
  if (id == 0 || !c->repair)
    return 0;
  f = found_get (&c->nodes, id);
  if (f == NULL)
    return -ENOMEM;
  f->refs = 0;
  f->damaged = f->seen = false; /* to be deleted */
  return 0;
}

/* ---- Data ---- */

static int
check_data (struct checker *c, const char *dir, struct cow_error *err)
{
  CLEANUP_FREE char *path = NULL;
  CLEANUP_CLOSE int fd = -1;
  const char *shown;
  uint64_t chunk_size;
  struct stat st;
  char uuid[37];
  int r;

  if (asprintf (&path, "%s/data", dir) < 0)
    return -ENOMEM;
  shown = c->conf.device[0] ? c->conf.device : path;
  fd = open (shown, O_RDONLY | O_CLOEXEC);
  if (fd == -1 || fstat (fd, &st) == -1)
    return cow_error_set (err, errno, "io-error", "cannot open the pool's "
                          "data %s: %s", shown, strerror (errno));
  c->data_size = st.st_size;
  if (S_ISBLK (st.st_mode) && ioctl (fd, BLKGETSIZE64, &c->data_size) == -1)
    return cow_error_set (err, errno, "io-error", "%s: %s", shown,
                          strerror (errno));
  r = cow_data_read_header (fd, uuid, &chunk_size);
  if (r < 0)
    fault (c, shown, "its header is missing or damaged");
  else if (strcmp (uuid, c->conf.uuid) != 0)
    fault (c, shown, "it belongs to pool %s, meta.db to pool %s", uuid,
           c->conf.uuid);
  return 0;
}

/* ---- Which volumes does damage touch? ---- */

/* Whether the tree of one volume holds a damaged node: shared nodes were
 * visited on behalf of the first volume that has them, so look again.
 */
static int
tree_damaged (struct checker *c, const struct store_volume *v, bool *damaged)
{
  char buf[PACK_MAX];
  uint64_t child[INNER_CHILDREN];
  const char *why;
  size_t len;
  unsigned i;
  int r = v->root && v->root < c->conf.next_node
    ? push (c, v->root, v->level) : 0;

  while (r == 0 && c->nr_stack > 0) {
    struct visit n = c->stack[--c->nr_stack];

    if (found_look (&c->nodes, n.id).damaged)
      *damaged = true;
    else if (n.level > 0) {
      r = cow_store_load (c->store, STORE_NODE, n.id, buf, &len);
      if (r == 0)
        r = cow_unpack_inner (buf, len, n.id, n.level, c->conf.next_node,
                              child, &why);
      for (i = 0; r == 0 && i < INNER_CHILDREN; i++)
        if (child[i])
          r = push (c, child[i], n.level - 1);
    }
  }
  return r;
}

static int
mark_damaged_volumes (struct checker *c)
{
  bool any = false;
  size_t i;
  int r = 0;

  for (i = 0; i < c->nodes.nr_slots; i++)
    any = any || c->nodes.slot[i].damaged;
  for (i = 0; any && r == 0 && i < c->nr_volumes; i++) {
    bool damaged = false;

    r = tree_damaged (c, &c->volume[i], &damaged);
    if (damaged)
      c->volume[i].flags |= VOL_DAMAGED;
  }
  return r;
}

/* ---- Repair ---- */

static int
repair_pages (struct checker *c, enum store_kind kind)
{
  struct found_map *m = kind == STORE_NODE_COUNTS ? &c->nodes : &c->chunks;
  struct found_map pages = { 0 };
  char buf[PACK_MAX];
  size_t i, k;
  int r = 0;

  /* All pages that are stored or have references. */
  for (i = 0; i < m->nr_slots; i++)
    if (m->slot[i].id &&
        found_get (&pages, (m->slot[i].id >> COUNTS_SHIFT) + 1) == NULL)
      return -ENOMEM;
  if (kind == STORE_CHUNK_COUNTS && found_get (&pages, 1) == NULL)
    return -ENOMEM;
  for (i = 0; r == 0 && i < pages.nr_slots; i++) {
    uint32_t count[COUNTS_PER_PAGE] = { 0 };
    uint64_t page = pages.slot[i].id - 1;
    unsigned used, spans;

    if (pages.slot[i].id == 0)
      continue;
    for (k = 0; k < COUNTS_PER_PAGE; k++) {
      uint64_t n = page * COUNTS_PER_PAGE + k;

      count[k] = n ? found_look (m, n).refs
        : kind == STORE_CHUNK_COUNTS;
    }
    r = cow_store_put (c->store, kind, page, buf,
                       cow_pack_counts (kind == STORE_NODE_COUNTS
                                        ? PACK_NODE_COUNTS
                                        : PACK_CHUNK_COUNTS, page, count,
                                        buf));
    if (r == 0 && kind == STORE_CHUNK_COUNTS) {
      cow_space_summarise (count, &used, &spans);
      r = cow_store_put_region (c->store, page, used, spans);
    }
  }
  free (pages.slot);
  return r;
}

static int
collect_page (void *opaque, uint64_t page, const void *data, size_t len)
{
  struct found_map *pages = opaque;

  return found_get (pages, page + 1) ? 0 : -ENOMEM;
}

/* Drop the stored pages; those that are needed are written anew. */
static int
delete_pages (struct checker *c, enum store_kind kind)
{
  struct found_map pages = { 0 };
  size_t i;
  int r = cow_store_each_record (c->store, kind, collect_page, &pages);

  for (i = 0; r == 0 && i < pages.nr_slots; i++) {
    uint64_t page = pages.slot[i].id - 1;

    if (pages.slot[i].id == 0)
      continue;
    r = cow_store_delete (c->store, kind, page);
    if (r == 0 && kind == STORE_CHUNK_COUNTS)
      r = cow_store_put_region (c->store, page, 0,
                                page == 0 ? 0xfffe : 0xffff);
  }
  free (pages.slot);
  return r;
}

static int
repair (struct checker *c)
{
  size_t i;
  int r = cow_store_begin (c->store);

  if (r < 0)
    return r;
  for (i = 0; r == 0 && i < c->nr_volumes; i++)
    r = cow_store_put_volume (c->store, &c->volume[i]);
  /* From the queue goes what is damaged, which can never be freed, and what
   * is in use after all.
   */
  for (i = 0; r == 0 && i < c->nr_queue; i++) {
    struct found f = found_look (&c->nodes, c->queue[i].id);

    if (f.damaged || f.refs > 0)
      r = cow_store_delete_queued (c->store, c->queue[i].id);
    if (r == 0 && f.damaged && f.refs == 0)
      r = cow_store_delete (c->store, STORE_NODE, c->queue[i].id);
  }
  for (i = 0; r == 0 && i < c->nodes.nr_slots; i++)
    if (c->nodes.slot[i].id && !c->nodes.slot[i].seen)
      r = cow_store_delete (c->store, STORE_NODE, c->nodes.slot[i].id);
  if (r == 0)
    r = delete_pages (c, STORE_NODE_COUNTS);
  if (r == 0)
    r = delete_pages (c, STORE_CHUNK_COUNTS);
  if (r == 0)
    r = repair_pages (c, STORE_NODE_COUNTS);
  if (r == 0)
    r = repair_pages (c, STORE_CHUNK_COUNTS);
  if (r == 0)
    r = cow_store_commit (c->store);
  if (r < 0) {
    cow_store_rollback (c->store);
    return r;
  }
  for (i = 0; i < c->result->nr_faults; i++)
    c->result->faults[i].repaired = !c->result->faults[i].lasting;
  c->result->repaired = c->result->faults_total > 0;
  return 0;
}

/* ---- All of it ---- */

static int
run (struct checker *c, const char *dir, struct cow_error *err)
{
  char text[300];
  int r = cow_store_integrity (c->store, text, sizeof text);

  if (r < 0 || text[0])
    fault (c, "meta.db", "SQLite's own check says: %s",
           text[0] ? text : "it cannot be read");
  c->nr_chunks = NO_LIMIT;
  r = check_data (c, dir, err);
  if (r == 0)
    r = cow_store_each_volume (c->store, collect_volume, c, err);
  if (r == -EIO) {
    fault (c, "meta.db", "%s", err && err->errnum ? err->message
           : "the table of volumes cannot be read");
    return 0;
  }
  if (r == 0)
    r = cow_store_each_queued (c->store, collect_queued, c);
  if (r == 0)
    r = cow_store_each_region (c->store, collect_region, c);
  if (r == 0)
    r = walk_volumes (c);
  if (r == 0)
    r = walk_queue (c);
  if (r == 0)
    r = cow_store_each_record (c->store, STORE_NODE, check_orphan, c);
  if (r == 0)
    r = check_counts (c, STORE_NODE_COUNTS);
  if (r == 0)
    r = check_counts (c, STORE_CHUNK_COUNTS);
  if (r == -EIO) {
    fault (c, "meta.db", "a table cannot be read to its end");
    r = 0;
  }
  else if (r == 0 && c->repair && c->result->faults_total > 0) {
    r = mark_damaged_volumes (c);
    if (r == 0)
      r = repair (c);
  }
  return r;
}

static int
lock_for_repair (const char *dir, struct cow_error *err)
{
  CLEANUP_FREE char *path = NULL;
  int fd;

  if (asprintf (&path, "%s/lock", dir) < 0)
    return -ENOMEM;
  fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd == -1)
    return cow_error_set (err, errno, "io-error", "cannot open %s: %s", path,
                          strerror (errno));
  if (flock (fd, LOCK_EX | LOCK_NB) == 0)
    return fd;
  close (fd);
  return cow_error_set (err, EBUSY, "pool-busy",
                        "pool %s is in use; it can be repaired only while "
                        "nothing has it open", dir);
}

int
cow_pool_check (const char *dir, bool do_repair,
                struct cow_check_result *result,
                void (*progress) (void *, uint64_t, uint64_t), void *opaque,
                struct cow_error *err)
{
  struct checker c = { .result = result, .repair = do_repair,
                       .progress = progress, .opaque = opaque };
  struct cow_error local = { 0 };
  CLEANUP_CLOSE int lock = -1;
  int r = 0;

  memset (result, 0, sizeof *result);
  if (err == NULL)
    err = &local;
  err->errnum = 0;
  if (do_repair) {
    lock = lock_for_repair (dir, err);
    if (lock < 0)
      return lock;
  }
  r = cow_store_open (dir, !do_repair, &c.store, &c.conf, err);
  if (r < 0)
    return r;
  if (!do_repair)
    r = cow_store_read_begin (c.store);
  if (r == 0)
    r = cow_store_read_pool (c.store, &c.conf, err);
  if (r == 0)
    r = run (&c, dir, err);
  if (!do_repair)
    cow_store_read_end (c.store);
  cow_store_close (c.store);
  free (c.nodes.slot);
  free (c.chunks.slot);
  free (c.regions.slot);
  free (c.stack);
  free (c.volume);
  free (c.queue);
  if (r < 0 && err->errnum == 0)
    cow_error_set (err, -r, "io-error", "the check of %s failed: %s", dir,
                   strerror (-r));
  return r;
}

void
cow_check_result_free (struct cow_check_result *result)
{
  free (result->faults);
  result->faults = NULL;
  result->nr_faults = 0;
}
