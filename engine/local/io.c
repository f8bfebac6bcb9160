/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing.
 *
 * A request is cut at leaf boundaries; each piece is looked up, carried out
 * on the data file and, if the map changes, installed.
 *
 * Write: data into the chunk first, then the map.  Plan: for each entry
 * decide between its own chunk (in place; only if the whole path and the
 * chunk are exclusive) and a new one.  Data: ragged edge blocks are filled
 * from their source, so that only whole blocks become present.  Install:
 * under the exclusive map lock every entry must be as it was planned, else
 * the piece starts again.  A crash before the commit that holds the install
 * leaves the old map, which does not refer to the new chunks.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "changes.h"
#include "cleanup.h"
#include "counts.h"
#include "data.h"
#include "epoch.h"
#include "io.h"
#include "log.h"
#include "space.h"
#include "tree.h"

/* Where a run of bytes is. */
struct segment {
  uint64_t file_offset;         /* 0: a hole */
  size_t len;
};

/* Blocks after which clearing lets others at the map lock. */
#define CLEAR_STRIDE (UINT64_C (16) * LEAF_ENTRIES * BLOCKS_PER_CHUNK)

#define MAX_SEGMENTS (LEAF_ENTRIES * BLOCKS_PER_CHUNK)

/* ---- Reading ---- */

struct read_plan {
  struct segment seg[MAX_SEGMENTS];
  unsigned nr;
};

static void
add_segment (struct read_plan *plan, uint64_t file_offset, size_t len)
{
  struct segment *last = plan->nr ? &plan->seg[plan->nr - 1] : NULL;

  if (last && ((file_offset == 0 && last->file_offset == 0) ||
               (file_offset && last->file_offset &&
                last->file_offset + last->len == file_offset)))
    last->len += len;
  else
    plan->seg[plan->nr++] = (struct segment) { file_offset, len };
}

/* The blocks of one entry that [start, start+len) inside its chunk needs. */
static void
plan_entry (const struct local_pool *p, struct read_plan *plan,
            const struct entry *e, uint64_t start, uint64_t len)
{
  while (len > 0) {
    unsigned b = start >> p->block_shift;
    uint64_t n = ((uint64_t) (b + 1) << p->block_shift) - start;
    uint64_t at = 0;

    if (n > len)
      n = len;
    if (e->present & (1u << b))
      at = ((uint64_t) e->own << p->chunk_shift) + start;
    else if (e->omask & (1u << b))
      at = ((uint64_t) e->origin << p->chunk_shift) + start;
    add_segment (plan, at, n);
    start += n;
    len -= n;
  }
}

/* Plan the part of [offset, offset+len) that the first leaf (or hole) at
 * offset covers; *done is how much.
 */
static int
plan_read (struct local_pool *p, const struct local_volume *v, uint64_t len,
           uint64_t offset, struct read_plan *plan, uint64_t *done,
           struct miss *miss)
{
  uint64_t index = offset >> p->chunk_shift, span;
  struct object *leaf;
  int r = cow_tree_lookup (p, &v->row, index, &leaf, &span, NULL, miss);

  if (r < 0)
    return r;
  *done = 0;
  if (leaf == NULL) {
    uint64_t end = (index + span) << p->chunk_shift;

    if (end == 0 || end >> p->chunk_shift != index + span)
      end = UINT64_MAX;
    *done = end - offset < len ? end - offset : len;
    add_segment (plan, 0, *done);
    return 0;
  }
  while (*done < len && (index & (LEAF_ENTRIES - 1)) + 1 <= LEAF_ENTRIES) {
    uint64_t start = (offset + *done) & (p->chunk_size - 1);
    uint64_t n = p->chunk_size - start;
    unsigned i = index & (LEAF_ENTRIES - 1);

    if (n > len - *done)
      n = len - *done;
    plan_entry (p, plan, &leaf->entry[i], start, n);
    *done += n;
    index++;
    if (i == LEAF_ENTRIES - 1)
      break;
  }
  return 0;
}

/* Run a look-up under the shared map lock, loading what it misses. */
static int
plan_read_loading (struct local_pool *p, const struct local_volume *v,
                   uint64_t len, uint64_t offset, struct read_plan *plan,
                   uint64_t *done)
{
  struct miss miss;
  int r;

  do {
    plan->nr = 0;
    pthread_rwlock_rdlock (&p->map_lock);
    r = plan_read (p, v, len, offset, plan, done, &miss);
    pthread_rwlock_unlock (&p->map_lock);
    if (r != -EAGAIN)
      return r;
    r = cow_cache_load (p, &miss);
  } while (r == 0);
  return r;
}

static int
read_segments (struct local_pool *p, const struct read_plan *plan, char *buf)
{
  unsigned i;
  int r = 0;

  for (i = 0; r == 0 && i < plan->nr; i++) {
    const struct segment *s = &plan->seg[i];

    if (s->file_offset == 0)
      memset (buf, 0, s->len);
    else
      r = cow_data_pread (p->data_fd, buf, s->len, s->file_offset);
    buf += s->len;
  }
  return r;
}

static int
damage (struct local_volume *v, int r, uint64_t offset)
{
  if (r == -EIO) {
    cow_log (COW_LOG_ERROR, "pool %s: volume %s (id %llu): I/O error at "
             "offset %llu", v->obj.pool->name, v->row.name,
             (unsigned long long) v->row.id, (unsigned long long) offset);
  }
  return r;
}

int
cow_io_pread (struct cow_object *o, void *buf, size_t len, uint64_t offset)
{
  struct local_pool *p = LOCAL_POOL (o->pool);
  struct local_volume *v = LOCAL_VOLUME (o);
  struct read_plan plan;
  uint64_t epoch = cow_epoch_enter (&p->epoch), done;
  int r = 0;

  while (r == 0 && len > 0) {
    r = plan_read_loading (p, v, len, offset, &plan, &done);
    if (r == 0)
      r = read_segments (p, &plan, buf);
    if (r == 0) {
      buf = (char *) buf + done;
      len -= done;
      offset += done;
    }
  }
  cow_epoch_leave (&p->epoch, epoch);
  return r == 0 ? 0 : damage (v, r, offset);
}

int
cow_io_cache (struct cow_object *o, uint64_t len, uint64_t offset)
{
  struct local_pool *p = LOCAL_POOL (o->pool);
  struct read_plan plan;
  uint64_t epoch = cow_epoch_enter (&p->epoch), done;
  unsigned i;
  int r = 0;

  while (r == 0 && len > 0) {
    r = plan_read_loading (p, LOCAL_VOLUME (o), len, offset, &plan, &done);
    for (i = 0; r == 0 && i < plan.nr; i++)
      if (plan.seg[i].file_offset)
        posix_fadvise (p->data_fd, plan.seg[i].file_offset, plan.seg[i].len,
                       POSIX_FADV_WILLNEED);
    if (r == 0) {
      len -= done;
      offset += done;
    }
  }
  cow_epoch_leave (&p->epoch, epoch);
  return r;
}

/* ---- Writing ---- */

/* One entry's part of a write. */
struct piece {
  uint64_t index;               /* chunk number in the volume */
  struct entry before;
  struct entry_write w;
  chunk_t fresh;                /* held for us, or none */
  bool joined;                  /* fresh is in v->pending */
  bool installed;               /* the map says so now */
  unsigned mask;                /* blocks touched */
  uint32_t start, len;          /* bytes in the chunk */
};

struct write_plan {
  struct piece piece[LEAF_ENTRIES];
  unsigned nr;
  bool need_chunks;             /* some piece needs a new chunk */
  bool need_install;
};

static unsigned
blocks_touched (const struct local_pool *p, uint32_t start, uint32_t len)
{
  unsigned first = start >> p->block_shift;
  unsigned last = (start + len - 1) >> p->block_shift;

  return ((2u << last) - 1) & ~((1u << first) - 1);
}

/* ---- Joining a chunk that another writer is filling ---- */

static struct pending *
find_pending (struct local_volume *v, uint64_t index)
{
  unsigned i;

  for (i = 0; i < NR_PENDING; i++)
    if (v->pending[i].users && v->pending[i].index == index)
      return &v->pending[i];
  return NULL;
}

/* Share a chunk that is being filled for the same piece of the volume.  Not
 * where a write may have to copy blocks into it, which could overwrite what
 * another has written.
 */
static bool
join_pending (struct local_volume *v, struct piece *pc)
{
  struct pending *pe = find_pending (v, pc->index);

  if (pe == NULL || pe->installed || pc->before.origin)
    return false;
  pe->users++;
  pc->fresh = pe->chunk;
  pc->joined = true;
  return true;
}

static void
add_pending (struct local_volume *v, struct piece *pc)
{
  unsigned i;

  if (pc->before.origin || find_pending (v, pc->index))
    return;
  for (i = 0; i < NR_PENDING; i++)
    if (v->pending[i].users == 0) {
      v->pending[i] = (struct pending) { pc->index, pc->fresh, 1, false };
      pc->joined = true;
      return;
    }
}

/* Done with a piece's new chunk: it is free if no map took it.  map_lock
 * exclusive.
 */
static void
drop_fresh (struct local_pool *p, struct local_volume *v, struct piece *pc)
{
  bool installed = pc->installed;

  if (pc->fresh.n == 0)
    return;
  if (pc->joined) {
    struct pending *pe = find_pending (v, pc->index);

    installed = pe->installed = pe->installed || pc->installed;
    if (--pe->users > 0)
      installed = true;
  }
  if (!installed)
    cow_space_release (p, pc->fresh);
  pc->fresh = CHUNK_NONE;
  pc->joined = false;
}

static void
drop_all_fresh_locked (struct local_pool *p, struct local_volume *v,
                       struct write_plan *plan)
{
  unsigned i;

  for (i = 0; i < plan->nr; i++)
    drop_fresh (p, v, &plan->piece[i]);
}

static void
drop_all_fresh (struct local_pool *p, struct local_volume *v,
                struct write_plan *plan)
{
  unsigned i;

  for (i = 0; i < plan->nr && plan->piece[i].fresh.n == 0; i++)
    ;
  if (i == plan->nr)
    return;                     /* all in place, or given up already */
  pthread_rwlock_wrlock (&p->map_lock);
  drop_all_fresh_locked (p, v, plan);
  pthread_rwlock_unlock (&p->map_lock);
}

/* ---- Plan ---- */

/* Cut [offset, offset+len), which lies in one leaf, into pieces. */
static void
cut_pieces (const struct local_pool *p, uint64_t len, uint64_t offset,
            struct write_plan *plan)
{
  plan->nr = 0;
  while (len > 0) {
    struct piece *pc = &plan->piece[plan->nr++];
    uint64_t start = offset & (p->chunk_size - 1);
    uint64_t n = p->chunk_size - start < len ? p->chunk_size - start : len;

    memset (pc, 0, sizeof *pc);
    pc->index = offset >> p->chunk_shift;
    pc->start = start;
    pc->len = n;
    pc->mask = blocks_touched (p, start, n);
    offset += n;
    len -= n;
  }
}

/* Decide for every piece; with allocate, under the exclusive map lock. */
static int
plan_write (struct local_pool *p, struct local_volume *v, bool allocate,
            struct write_plan *plan, struct miss *miss)
{
  struct object *leaf;
  uint64_t span;
  bool path, own;
  unsigned i;
  int r = cow_tree_lookup (p, &v->row, plan->piece[0].index, &leaf, &span,
                           &path, miss);

  plan->need_chunks = plan->need_install = false;
  for (i = 0; r == 0 && i < plan->nr; i++) {
    struct piece *pc = &plan->piece[i];

    if (pc->fresh.n)
      continue;                 /* planned before a page was missing */
    memset (&pc->before, 0, sizeof pc->before);
    if (leaf)
      pc->before = leaf->entry[pc->index & (LEAF_ENTRIES - 1)];
    own = false;
    if (path && pc->before.own)
      r = cow_chunk_exclusive (p, CHUNK (pc->before.own), &own, miss);
    if (r == 0 && !own && allocate && !join_pending (v, pc)) {
      r = cow_space_alloc (p, v, pc->index, leaf, &pc->fresh, miss);
      if (r == 0)
        add_pending (v, pc);
    }
    if (r < 0)
      break;
    cow_entry_plan_write (&pc->before, pc->mask, own, pc->fresh.n, &pc->w);
    if (!pc->w.in_place)
      plan->need_chunks = true;
    if (!cow_entry_equal (&pc->before, &pc->w.after))
      plan->need_install = true;
  }
  for (i = 0; r == 0 && i < plan->nr; i++)
    if (plan->piece[i].fresh.n)
      plan->need_chunks = plan->need_install = true;
  return r;
}

static int
plan_write_loading (struct local_pool *p, struct local_volume *v,
                    struct write_plan *plan)
{
  bool allocate = false;
  struct miss miss;
  int r;

  for (;;) {
    if (allocate)
      pthread_rwlock_wrlock (&p->map_lock);
    else
      pthread_rwlock_rdlock (&p->map_lock);
    r = plan_write (p, v, allocate, plan, &miss);
    pthread_rwlock_unlock (&p->map_lock);
    if (r == 0 && (allocate || !plan->need_chunks))
      return 0;
    if (r == 0)
      allocate = true;
    else if (r != -EAGAIN || (r = cow_cache_load (p, &miss)) < 0)
      return r;
  }
}

/* ---- Data ---- */

/* A run of neighbouring bytes in the data file, gathered for one pwritev. */
struct gather {
  struct local_pool *p;
  struct iovec iov[LEAF_ENTRIES * 3];
  int nr;
  uint64_t start, end;
};

static int
gather_flush (struct gather *g)
{
  int r = 0;

  if (g->nr > 0)
    r = cow_data_pwritev (g->p->data_fd, g->iov, g->nr, g->start);
  g->nr = 0;
  return r;
}

static int
gather_add (struct gather *g, const void *buf, size_t len, uint64_t at)
{
  int r = 0;

  if (len == 0)
    return 0;
  if (g->nr > 0 && (g->end != at || g->nr == LEAF_ENTRIES * 3))
    r = gather_flush (g);
  if (g->nr == 0)
    g->start = at;
  g->iov[g->nr++] = (struct iovec) { (void *) buf, len };
  g->end = at + len;
  return r;
}

int
cow_io_copy_blocks (struct local_pool *p, uint64_t from, uint64_t to,
                    unsigned mask)
{
  CLEANUP_FREE char *buf = malloc (p->chunk_size);
  unsigned b, n;
  int r = 0;

  if (buf == NULL)
    return -ENOMEM;
  for (b = 0; r == 0 && b < BLOCKS_PER_CHUNK; b += n) {
    uint64_t at = (uint64_t) b << p->block_shift;
    struct iovec iov;

    for (n = 1; b + n < BLOCKS_PER_CHUNK &&
           (mask >> (b + n) & 1) == (mask >> b & 1); n++)
      ;
    if (!(mask & (1u << b)))
      continue;
    iov = (struct iovec) { buf, (size_t) n << p->block_shift };
    r = cow_data_pread (p->data_fd, buf, iov.iov_len,
                        (from << p->chunk_shift) + at);
    if (r == 0)
      r = cow_data_pwritev (p->data_fd, &iov, 1,
                            (to << p->chunk_shift) + at);
  }
  return r;
}

/* A ragged edge: the block's old content in a new buffer. */
static int
read_block (struct local_pool *p, const struct entry *e, unsigned b,
            char **buf)
{
  struct read_plan plan = { .nr = 0 };
  int r;

  *buf = malloc (p->block_size);
  if (*buf == NULL)
    return -ENOMEM;
  plan_entry (p, &plan, e, (uint64_t) b << p->block_shift, p->block_size);
  r = read_segments (p, &plan, *buf);
  if (r < 0) {
    free (*buf);
    *buf = NULL;
  }
  return r;
}

struct edges {
  char *buf[2];                 /* first and last block, where ragged */
};

/* Add one piece's bytes, the ragged blocks at its ends filled up. */
static int
gather_piece (struct gather *g, const struct piece *pc, const char *data,
              struct edges *edges)
{
  struct local_pool *p = g->p;
  uint64_t bmask = p->block_size - 1;
  uint64_t base = (pc->w.in_place ? (uint64_t) pc->before.own : pc->fresh.n)
    << p->chunk_shift;
  uint32_t at = pc->start, left = pc->len;
  int r = 0;

  while (r == 0 && left > 0) {
    unsigned b = at >> p->block_shift;
    uint32_t in = at & bmask, n = p->block_size - in;
    char **edge;

    if (n > left)
      n = left;
    if (n == p->block_size) {   /* all whole blocks at once */
      n = left & ~bmask;
      r = gather_add (g, data, n, base + at);
    }
    else if (pc->w.in_place && (pc->before.present & (1u << b)))
      r = gather_add (g, data, n, base + at);
    else {
      edge = edges->buf[0] ? &edges->buf[1] : &edges->buf[0];
      r = read_block (p, &pc->before, b, edge);
      if (r == 0) {
        memcpy (*edge + in, data, n);
        r = gather_add (g, *edge, p->block_size, base + at - in);
      }
    }
    at += n;
    data += n;
    left -= n;
  }
  return r;
}

static int
write_data (struct local_pool *p, const struct write_plan *plan,
            const char *data)
{
  struct gather g = { .p = p, .nr = 0 };
  struct edges edges = { { NULL, NULL } };
  unsigned i;
  int r = 0;

  for (i = 0; r == 0 && i < plan->nr; i++) {
    const struct piece *pc = &plan->piece[i];

    if (pc->w.copy_mask)
      r = cow_io_copy_blocks (p, pc->w.copy_from, pc->fresh.n, pc->w.copy_mask);
    if (r == 0)
      r = gather_piece (&g, pc, data, &edges);
    data += pc->len;
  }
  if (r == 0)
    r = gather_flush (&g);
  free (edges.buf[0]);
  free (edges.buf[1]);
  return r;
}

/* ---- Install ---- */

/* Whether the piece may be installed over entry e, which is now in the map;
 * pc->w.after is adapted where another writer installed the chunk we share.
 */
static int
recheck (struct local_pool *p, struct local_volume *v, struct piece *pc,
         const struct entry *e, bool path_exclusive, struct miss *miss)
{
  const struct pending *pe = pc->joined ? find_pending (v, pc->index) : NULL;
  bool own = false;
  int r;

  /* Another writer installed the chunk we share, and it has gone from the
   * map since (a trim): it is on its way to being free, even if the entry
   * looks as it did when we planned.
   */
  if (pe && pe->installed && e->own != pc->fresh.n)
    return -ESTALE;
  if (!pc->w.in_place && cow_entry_equal (e, &pc->before)) {
    if (pc->w.copy_mask == 0 || !path_exclusive)
      return 0;
    /* Blocks were copied.  If the old chunk has become ours alone since (its
     * other user was deleted), another writer may have changed them in place.
     */
    r = cow_chunk_exclusive (p, CHUNK (e->own), &own, miss);
    return r < 0 ? r : own ? -ESTALE : 0;
  }
  if (!(pc->w.in_place && cow_entry_equal (e, &pc->before)) &&
      !(pc->joined && e->own == pc->fresh.n))
    return -ESTALE;
  r = cow_chunk_exclusive (p, CHUNK (e->own), &own, miss);
  if (r < 0)
    return r;
  if (!own || !path_exclusive)
    return -ESTALE;
  cow_entry_plan_write (e, pc->mask, true, 0, &pc->w);
  return 0;
}

/* Install one piece: one complete step. */
static int
install_piece (struct local_pool *p, struct local_volume *v,
               struct piece *pc, struct miss *miss)
{
  static const struct entry empty;
  unsigned i = pc->index & (LEAF_ENTRIES - 1);
  struct object *leaf;
  struct pending *pe;
  uint64_t span;
  bool path;
  int r = cow_tree_lookup (p, &v->row, pc->index, &leaf, &span, &path, miss);

  if (r == 0)
    r = recheck (p, v, pc, leaf ? &leaf->entry[i] : &empty, path, miss);
  if (r == 0)
    r = cow_tree_own_leaf (p, v, pc->index, &leaf, miss);
  if (r < 0)
    return r;
  if (!pc->w.in_place) {
    /* set_entry's own check comes too late for the count below. */
    r = pc->before.own ? cow_chunk_need (p, CHUNK (pc->before.own), miss) : 0;
    if (r == 0 && pc->before.origin)
      r = cow_chunk_need (p, CHUNK (pc->before.origin), miss);
    if (r == 0)
      r = cow_cache_dirty (p, leaf);
    if (r == 0)
      r = cow_chunk_install (p, pc->fresh, miss);
    if (r < 0)
      return r;
    if (pc->joined && (pe = find_pending (v, pc->index)) != NULL)
      pe->installed = true;
  }
  r = cow_tree_set_entry (p, leaf, i, &pc->w.after, miss);
  if (r == 0)
    pc->installed = true;
  return r;
}

static int
install (struct local_pool *p, struct local_volume *v,
         struct write_plan *plan)
{
  struct miss miss;
  unsigned i = 0;
  int r = 0;

  while (i < plan->nr && r == 0) {
    pthread_rwlock_wrlock (&p->map_lock);
    for (; r == 0 && i < plan->nr; i++) {
      struct piece *pc = &plan->piece[i];

      if (pc->fresh.n || !cow_entry_equal (&pc->before, &pc->w.after))
        r = install_piece (p, v, pc, &miss);
      if (r < 0)
        break;
    }
    if (r == 0)
      drop_all_fresh_locked (p, v, plan);
    pthread_rwlock_unlock (&p->map_lock);
    if (r == -EAGAIN)
      r = cow_cache_load (p, &miss);
  }
  return r;
}

/* Write a range within one leaf. */
static int
write_leaf (struct local_pool *p, struct local_volume *v, const char *data,
            uint64_t len, uint64_t offset)
{
  struct write_plan plan;
  int r;

  do {
    cut_pieces (p, len, offset, &plan);
    r = plan_write_loading (p, v, &plan);
    if (r == 0)
      r = write_data (p, &plan, data);
    if (r == 0 && plan.need_install)
      r = install (p, v, &plan);
    drop_all_fresh (p, v, &plan);
  } while (r == -ESTALE);
  return r;
}

int
cow_io_pwrite (struct cow_object *o, const void *data, size_t len,
               uint64_t offset)
{
  struct local_pool *p = LOCAL_POOL (o->pool);
  uint64_t epoch, leaf_bytes = p->chunk_size * LEAF_ENTRIES;
  int r = cow_pool_read_only (p) ? -EROFS : 0;

  epoch = cow_epoch_enter (&p->epoch);
  while (r == 0 && len > 0) {
    uint64_t n = leaf_bytes - (offset & (leaf_bytes - 1));

    if (n > len)
      n = len;
    r = write_leaf (p, LOCAL_VOLUME (o), data, n, offset);
    data = (const char *) data + n;
    len -= n;
    offset += n;
  }
  cow_epoch_leave (&p->epoch, epoch);
  if (r == -EMLINK || r == -EFBIG || r == -EDQUOT)
    r = -ENOSPC;
  return r == 0 ? 0 : damage (LOCAL_VOLUME (o), r, offset);
}

/* ---- Zero and trim ---- */

/* Zero part of one block, if it holds anything. */
static int
zero_edge (struct cow_object *o, uint64_t len, uint64_t offset, bool *changed)
{
  struct local_pool *p = LOCAL_POOL (o->pool);
  CLEANUP_FREE char *zeros = NULL;
  struct read_plan plan;
  uint64_t done;
  int r;

  if (len == 0)
    return 0;
  r = plan_read_loading (p, LOCAL_VOLUME (o), len, offset, &plan, &done);
  if (r < 0 || (plan.nr == 1 && plan.seg[0].file_offset == 0))
    return r;
  zeros = calloc (1, len);
  if (zeros == NULL)
    return -ENOMEM;
  *changed = true;
  return cow_io_pwrite (o, zeros, len, offset);
}

/* Clear whole blocks [start, end). */
static int
clear_blocks (struct local_pool *p, struct local_volume *v, uint64_t start,
              uint64_t end, bool *changed)
{
  uint64_t last = (v->obj.size + p->block_size - 1) >> p->block_shift;
  struct miss miss;
  uint64_t next;
  int r;

  while (start < end) {
    pthread_rwlock_wrlock (&p->map_lock);
    do {
      r = cow_tree_clear_step (p, v, start, end, last, &next, changed, &miss);
      if (r == 0)
        start = next;
    } while (r == 0 && start < end && start % CLEAR_STRIDE);
    pthread_rwlock_unlock (&p->map_lock);
    if (r == -EAGAIN)
      r = cow_cache_load (p, &miss);
    if (r < 0)
      return r;
  }
  return 0;
}

/* The whole blocks inside a range, where the volume's ragged end counts as
 * one.
 */
static void
whole_blocks (const struct cow_object *o, uint64_t len, uint64_t offset,
              uint64_t *start, uint64_t *end)
{
  const struct local_pool *p = LOCAL_POOL (o->pool);
  uint64_t to = offset + len;

  *start = (offset + p->block_size - 1) >> p->block_shift;
  *end = to == o->size ? (to + p->block_size - 1) >> p->block_shift
    : to >> p->block_shift;
}

/* Zero [offset, offset+len); with lenient a full pool leaves the edges. */
static int
zero_range (struct cow_object *o, uint64_t len, uint64_t offset,
            bool lenient, bool *changed)
{
  struct local_pool *p = LOCAL_POOL (o->pool);
  uint64_t start, end, head_end, tail_start;
  int r, r2;

  *changed = false;
  if (cow_pool_read_only (p))
    return -EROFS;
  whole_blocks (o, len, offset, &start, &end);
  if (start > end || (start == end && offset + len <
                      start << p->block_shift)) {
    r = zero_edge (o, len, offset, changed);    /* inside one block */
    return lenient && r == -ENOSPC ? 0 : r;
  }
  head_end = start << p->block_shift;
  tail_start = end << p->block_shift;
  r = zero_edge (o, head_end - offset, offset, changed);
  if (r == 0 || lenient) {
    r2 = clear_blocks (p, LOCAL_VOLUME (o), start, end, changed);
    r = r2 < 0 || !lenient ? r2 : r;
  }
  if ((r == 0 || lenient) && tail_start < offset + len) {
    r2 = zero_edge (o, offset + len - tail_start, tail_start, changed);
    r = r2 < 0 ? r2 : r;
  }
  /* What was cut is freed after the next flush or commit, so that freeing
   * does not get in the way of a client that goes on cutting.
   */
  return lenient && r == -ENOSPC ? 0 : r;
}

/* Fully provisioned zeros: plain writes. */
static int
write_zeros (struct cow_object *o, uint64_t len, uint64_t offset)
{
  size_t size = 1 << 20;
  CLEANUP_FREE char *zeros = calloc (1, size);
  int r = zeros ? 0 : -ENOMEM;

  while (r == 0 && len > 0) {
    size_t n = len < size ? len : size;

    r = cow_io_pwrite (o, zeros, n, offset);
    len -= n;
    offset += n;
  }
  return r;
}

int
cow_io_zero (struct cow_object *o, uint64_t len, uint64_t offset,
             unsigned flags, bool *changed)
{
  if (!(flags & COW_NO_HOLE))
    return zero_range (o, len, offset, false, changed);
  if (flags & COW_FAST)
    return -ENOTSUP;
  *changed = true;
  return write_zeros (o, len, offset);
}

int
cow_io_trim (struct cow_object *o, uint64_t len, uint64_t offset,
             bool *changed)
{
  return zero_range (o, len, offset, true, changed);
}
