/* SPDX-License-Identifier: BSD-3-Clause */
/* The generic half of a volume: handles, argument checks, structure lock
 * and in-flight ranges, zero detection.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "pool-ops.h"

/* How often a write that found no space waits for deletions. */
#define SPACE_RETRIES 3
#define SLOW_PIECE (UINT64_C (32) << 20)

void
cow_rwlock_init (pthread_rwlock_t *lock)
{
  pthread_rwlockattr_t attr;

  pthread_rwlockattr_init (&attr);
  pthread_rwlockattr_setkind_np (&attr,
                                 PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init (lock, &attr);
  pthread_rwlockattr_destroy (&attr);
}

/* ---- Handles ---- */

int
cow_volume_open (struct cow_pool *pool, const char *name, unsigned flags,
                 struct cow_volume **out, struct cow_error *err)
{
  struct cow_volume *v = calloc (1, sizeof *v);
  bool rw = !(flags & COW_RDONLY);
  int r;

  if (v == NULL)
    return cow_error_set (err, ENOMEM, "no-memory", "out of memory");
  r = pool->ops->get (pool, name, rw, &v->object, &v->incarnation, err);
  if (r < 0) {
    free (v);
    return r;
  }
  pthread_rwlock_rdlock (&v->object->structure);
  v->readonly = !rw || v->object->readonly;
  v->size = v->object->size;
  pthread_rwlock_unlock (&v->object->structure);
  *out = v;
  return 0;
}

void
cow_volume_close (struct cow_volume *v)
{
  if (v == NULL)
    return;
  v->object->pool->ops->put (v->object,
                             !v->readonly && !v->object->readonly);
  free (v);
}

uint64_t
cow_volume_size (const struct cow_volume *v)
{
  return v->size;
}

bool
cow_volume_readonly (const struct cow_volume *v)
{
  return v->readonly;
}

struct cow_pool *
cow_volume_pool (const struct cow_volume *v)
{
  return v->object->pool;
}

/* ---- Data operations ---- */

static bool
shut_down (const struct cow_volume *v)
{
  return __atomic_load_n (&v->object->incarnation, __ATOMIC_ACQUIRE) !=
    v->incarnation;
}

/* Enter a data operation: hold the structure lock shared and the range. */
static int
enter (struct cow_volume *v, struct cow_range *range, uint64_t len,
       uint64_t offset, bool ragged_exclusive)
{
  struct cow_object *o = v->object;
  uint64_t mask = o->pool->block_size - 1;
  bool ragged;

  pthread_rwlock_rdlock (&o->structure);
  if (shut_down (v)) {
    pthread_rwlock_unlock (&o->structure);
    return -ESHUTDOWN;
  }
  ragged = ragged_exclusive &&
    ((offset & mask) || (((offset + len) & mask) && offset + len != o->size));
  if (ragged)
    cow_range_lock (&o->ranges, range, offset & ~mask,
                    (offset + len + mask) & ~mask, true);
  else
    cow_range_lock (&o->ranges, range, offset, offset + len, false);
  return 0;
}

static void
leave (struct cow_volume *v, struct cow_range *range)
{
  cow_range_unlock (&v->object->ranges, range);
  pthread_rwlock_unlock (&v->object->structure);
}

static bool
in_size (const struct cow_volume *v, uint64_t len, uint64_t offset)
{
  return offset <= v->size && len <= v->size - offset;
}

int
cow_volume_pread (struct cow_volume *v, void *buf, size_t len,
                  uint64_t offset)
{
  struct cow_range range;
  int r;

  if (!in_size (v, len, offset))
    return -EINVAL;
  if (len == 0)
    return 0;
  r = enter (v, &range, len, offset, false);
  if (r < 0)
    return r;
  r = v->object->pool->ops->pread (v->object, buf, len, offset);
  leave (v, &range);
  return r;
}

static bool
all_zero (const char *buf, size_t len)
{
  /* The first bytes decide nearly always; then the buffer against itself. */
  size_t head = len < 16 ? len : 16, i;

  for (i = 0; i < head; i++)
    if (buf[i])
      return false;
  return len <= 16 || memcmp (buf, buf + 16, len - 16) == 0;
}

/* Write [offset, offset+len) of buf, whole blocks of zeros as holes. */
static int
write_detecting (struct cow_object *o, const char *buf, size_t len,
                 uint64_t offset)
{
  const struct cow_pool_ops *ops = o->pool->ops;
  uint64_t bs = o->pool->block_size;
  size_t done = 0, run;
  bool changed;
  int r = 0;

  while (r == 0 && done < len) {
    bool zero = false;

    for (run = 0; done + run < len; ) {
      size_t n = bs - ((offset + done + run) & (bs - 1));
      bool z;

      if (n > len - done - run)
        n = len - done - run;
      z = n == bs && all_zero (buf + done + run, n);
      if (run == 0)
        zero = z;
      else if (z != zero)
        break;
      run += n;
    }
    r = zero ? ops->zero (o, run, offset + done, 0, &changed)
      : ops->pwrite (o, buf + done, run, offset + done);
    done += run;
  }
  return r;
}

/* Run op with the locks held; where it lacks space, drop them, have space
 * made and try again a bounded number of times.
 */
struct data_op {
  const void *buf;
  uint64_t len, offset;
  unsigned flags;
  enum { OP_WRITE, OP_ZERO, OP_TRIM } kind;
  bool changed;
};

static int
run_op (struct cow_object *o, struct data_op *op)
{
  const struct cow_pool_ops *ops = o->pool->ops;

  switch (op->kind) {
  case OP_WRITE:
    op->changed = true;
    return op->flags & COW_DETECT_ZEROES
      ? write_detecting (o, op->buf, op->len, op->offset)
      : ops->pwrite (o, op->buf, op->len, op->offset);
  case OP_ZERO:
    return ops->zero (o, op->len, op->offset, op->flags, &op->changed);
  default:
    return ops->trim (o, op->len, op->offset, &op->changed);
  }
}

static int
change_once (struct cow_volume *v, struct data_op *op)
{
  struct cow_range range;
  unsigned tries;
  int r = 0;

  if (op->len == 0)
    return 0;
  for (tries = 0; tries <= SPACE_RETRIES; tries++) {
    v->object->pool->ops->admit (v->object->pool);
    r = enter (v, &range, op->len, op->offset, true);
    if (r < 0)
      return r;
    r = run_op (v->object, op);
    leave (v, &range);
    if (r != -ENOSPC || v->object->pool->ops->reclaim (v->object->pool) < 0)
      break;
  }
  return r;
}

/* Zeros that are written take time: in pieces, so that a snapshot need not
 * wait for all of them.
 */
static int
change (struct cow_volume *v, struct data_op *op)
{
  uint64_t left = op->len;
  bool slow = op->kind == OP_ZERO && (op->flags & COW_NO_HOLE);
  int r;

  do {
    op->len = slow && left > SLOW_PIECE ? SLOW_PIECE : left;
    r = change_once (v, op);
    op->offset += op->len;
    left -= op->len;
  } while (r == 0 && left > 0);
  if (r == 0 && (op->flags & COW_FUA))
    r = v->object->pool->ops->flush (v->object->pool);
  return r;
}

int
cow_volume_pwrite (struct cow_volume *v, const void *buf, size_t len,
                   uint64_t offset, unsigned flags)
{
  struct data_op op = { .kind = OP_WRITE, .buf = buf, .len = len,
                        .offset = offset, .flags = flags };

  if (v->readonly)
    return -EROFS;
  if (!in_size (v, len, offset))
    return -ENOSPC;
  return change (v, &op);
}

int
cow_volume_zero (struct cow_volume *v, uint64_t len, uint64_t offset,
                 unsigned flags)
{
  struct data_op op = { .kind = OP_ZERO, .len = len, .offset = offset,
                        .flags = flags };

  if (v->readonly)
    return -EROFS;
  if (!in_size (v, len, offset))
    return -EINVAL;
  return change (v, &op);
}

int
cow_volume_trim (struct cow_volume *v, uint64_t len, uint64_t offset,
                 unsigned flags)
{
  struct data_op op = { .kind = OP_TRIM, .len = len, .offset = offset,
                        .flags = flags };

  if (v->readonly)
    return -EROFS;
  if (!in_size (v, len, offset))
    return -EINVAL;
  return change (v, &op);
}

int
cow_volume_flush (struct cow_volume *v)
{
  return cow_pool_flush (v->object->pool);
}

int
cow_volume_cache (struct cow_volume *v, uint64_t len, uint64_t offset)
{
  struct cow_range range;
  int r;

  if (!in_size (v, len, offset))
    return -EINVAL;
  r = enter (v, &range, len, offset, false);
  if (r < 0)
    return r;
  r = v->object->pool->ops->cache (v->object, len, offset);
  leave (v, &range);
  return r;
}

int
cow_volume_extents (struct cow_volume *v, uint64_t len, uint64_t offset,
                    size_t max, unsigned flags,
                    int (*fn) (void *, const struct cow_extent *),
                    void *opaque)
{
  struct cow_range range;
  int r;

  if (!in_size (v, len, offset))
    return -EINVAL;
  if (len == 0 || max == 0)
    return 0;
  r = enter (v, &range, len, offset, false);
  if (r < 0)
    return r;
  r = v->object->pool->ops->extents (v->object, len, offset, max, flags, fn,
                                     opaque);
  leave (v, &range);
  return r;
}

int
cow_volume_diff (struct cow_volume *a, struct cow_volume *b, uint64_t len,
                 uint64_t offset, size_t max,
                 int (*fn) (void *, const struct cow_extent *), void *opaque)
{
  struct cow_object *first = a->object, *second = b->object;
  int r;

  if (a->object->pool != b->object->pool)
    return -EXDEV;
  if (!in_size (b, len, offset))
    return -EINVAL;
  if (len == 0 || max == 0 || first == second)
    return 0;
  /* Structure locks in one order for everyone. */
  if (first->id > second->id) {
    first = b->object;
    second = a->object;
  }
  pthread_rwlock_rdlock (&first->structure);
  pthread_rwlock_rdlock (&second->structure);
  if (shut_down (a) || shut_down (b))
    r = -ESHUTDOWN;
  else
    r = b->object->pool->ops->diff (a->object, b->object, len, offset, max,
                                    fn, opaque);
  pthread_rwlock_unlock (&second->structure);
  pthread_rwlock_unlock (&first->structure);
  return r;
}

/* ---- Pools ---- */

const char *
cow_pool_name (const struct cow_pool *pool)
{
  return pool->name;
}

const char *
cow_pool_dir (const struct cow_pool *pool)
{
  return pool->dir;
}

int
cow_pool_close (struct cow_pool *pool)
{
  return pool->ops->close (pool);
}

void
cow_pool_stat (struct cow_pool *pool, struct cow_pool_stat *st)
{
  pool->ops->stat (pool, st);
}

int
cow_pool_flush (struct cow_pool *pool)
{
  return pool->ops->flush (pool);
}

int
cow_volume_list (struct cow_pool *pool,
                 int (*fn) (void *, const struct cow_volume_info *),
                 void *opaque)
{
  return pool->ops->list (pool, fn, opaque);
}

int
cow_volume_info (struct cow_pool *pool, const char *name,
                 struct cow_volume_info *info, struct cow_error *err)
{
  return pool->ops->info (pool, name, info, err);
}

int
cow_volume_create (struct cow_pool *pool, const char *name, uint64_t size,
                   unsigned flags, struct cow_error *err)
{
  return pool->ops->create (pool, name, size, flags, err);
}

int
cow_volume_remove (struct cow_pool *pool, const char *name, unsigned flags,
                   struct cow_error *err)
{
  return pool->ops->remove (pool, name, flags, err);
}

int
cow_volume_rename (struct cow_pool *pool, const char *from, const char *to,
                   unsigned flags, struct cow_error *err)
{
  return pool->ops->rename (pool, from, to, flags, err);
}

int
cow_volume_resize (struct cow_pool *pool, const char *name, uint64_t size,
                   unsigned flags, struct cow_error *err)
{
  return pool->ops->resize (pool, name, size, flags, err);
}

int
cow_snapshot_create (struct cow_pool *pool, const char *const *names,
                     size_t nr_names, unsigned flags, struct cow_error *err)
{
  return pool->ops->snapshot (pool, names, nr_names, flags, err);
}

int
cow_volume_clone (struct cow_pool *pool, const char *source, const char *name,
                  unsigned flags, struct cow_error *err)
{
  return pool->ops->clone (pool, source, name, flags, err);
}

int
cow_volume_rollback (struct cow_pool *pool, const char *snapshot,
                     unsigned flags, struct cow_error *err)
{
  return pool->ops->rollback (pool, snapshot, flags, err);
}

int
cow_job_list (struct cow_pool *pool,
              int (*fn) (void *, const struct cow_job_info *), void *opaque)
{
  return pool->ops->jobs (pool, fn, opaque);
}

int
cow_job_wait (struct cow_pool *pool, uint64_t id, unsigned timeout_ms,
              struct cow_job_info *job)
{
  return pool->ops->job_wait (pool, id, timeout_ms, job);
}

int
cow_job_cancel (struct cow_pool *pool, uint64_t id)
{
  return pool->ops->job_cancel (pool, id);
}
