/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening an export, and the data requests on it.
 *
 * nbdkit 1.32's own emulation of a zero request that is longer than 64 MiB
 * writes every piece at the first offset, so .zero never leaves one to it:
 * with offload=off it writes the zeros here.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"
#include "size.h"

#define PAYLOAD_MAX (64 << 20)
#define EXTENTS_MAX 32768       /* in one reply: 256 KiB */
#define ZEROS_SIZE (1 << 20)

/* ---- Open ---- */

static bool
is_offload (const char *name)
{
  return strcmp (name, "@offload") == 0 ||
    strncmp (name, "@offload/", 9) == 0;
}

static int
refuse_name (const char *name)
{
  char quoted[300];

  cow_text_quote (name, quoted, sizeof quoted);
  if (is_offload (name))
    nbdkit_error ("export %s: the offload channel is not supported in this "
                  "build", quoted);
  else if (*name == '\0')
    nbdkit_error ("the empty export name has no meaning here: give "
                  "default=NAME, or name a volume");
  else
    return 0;
  errno = ENOENT;
  return -1;
}

static int
open_object (struct handle *h, struct cow_pool *pool,
             const struct cow_spec *spec, unsigned flags,
             struct cow_volume **v)
{
  char name[2 * COW_NAME_MAX + 2], quoted[300];
  struct cow_error err = { 0 };
  int r = cow_volume_open (pool, cow_spec_object (spec, name), flags, v,
                           &err);

  if (r == 0)
    return 0;
  nbdkit_error ("export %s: %s",
                cow_text_quote (h->name, quoted, sizeof quoted),
                err.message[0] ? err.message : strerror (-r));
  errno = -r;
  return -1;
}

/* VOLUME@A..B: read B, compare with A. */
static int
open_diff (struct handle *h, struct cow_pool *pool,
           const struct cow_spec *spec)
{
  struct cow_spec to = *spec;

  memcpy (to.snap, spec->snap_to, sizeof to.snap);
  if (open_object (h, pool, spec, COW_RDONLY, &h->from) == -1)
    return -1;
  return open_object (h, pool, &to, COW_RDONLY, &h->volume);
}

static int
open_name (struct handle *h, bool readonly)
{
  struct cow_error err = { 0 };
  struct cow_spec spec;
  struct cow_pool *pool;

  if (refuse_name (h->name) == -1)
    return -1;
  if (cow_spec_parse (h->name, COW_SPEC_DIFF, &spec, &err) < 0) {
    nbdkit_error ("unknown export: %s", err.message);
    errno = ENOENT;
    return -1;
  }
  pool = find_pool (spec.pool);
  if (pool == NULL) {
    nbdkit_error ("export %s: there is no pool %s", h->name, spec.pool);
    errno = ENOENT;
    return -1;
  }
  if (spec.is_diff)
    return open_diff (h, pool, &spec);
  return open_object (h, pool, &spec, readonly ? COW_RDONLY : 0,
                      &h->volume);
}

void *
handle_open (int readonly)
{
  const char *name = nbdkit_export_name ();
  struct handle *h;

  if (name && *name == '\0')
    name = exports_default (readonly, 0);
  if (name == NULL)
    return NULL;
  h = calloc (1, sizeof *h);
  if (h)
    h->name = strdup (name);
  if (h == NULL || h->name == NULL) {
    nbdkit_error ("out of memory");
    free (h);
    return NULL;
  }
  if (open_name (h, readonly) == -1) {
    handle_close (h);
    return NULL;
  }
  return h;
}

void
handle_close (void *handle)
{
  struct handle *h = handle;

  cow_volume_close (h->volume);
  cow_volume_close (h->from);
  free (h->name);
  free (h);
}

/* ---- What it is and can do ---- */

const char *
handle_description (void *handle)
{
  const struct handle *h = handle;
  const char *kind = h->from ? "changes, read-only" :
    strchr (h->name, '@') ? "snapshot, read-only" : "volume";
  char size[32];

  return nbdkit_printf_intern ("%s, %s", kind, cow_size_format
                               (cow_volume_size (h->volume), size,
                                sizeof size));
}

int64_t
handle_size (void *handle)
{
  const struct handle *h = handle;

  return (int64_t) cow_volume_size (h->volume);
}

/* Anything from one byte works; a block is what costs no reading. */
int
handle_block_size (void *handle, uint32_t *minimum, uint32_t *preferred,
                   uint32_t *maximum)
{
  const struct handle *h = handle;
  struct cow_pool_stat st;

  cow_pool_stat (cow_volume_pool (h->volume), &st);
  *minimum = 1;
  *preferred = st.block_size < 512 ? 512 : (uint32_t) st.block_size;
  *maximum = PAYLOAD_MAX;
  return 0;
}

int
handle_writable (void *handle)
{
  const struct handle *h = handle;

  return h->from == NULL && !cow_volume_readonly (h->volume);
}

int
handle_can_trim (void *handle)
{
  return config.offload && handle_writable (handle);
}

int
handle_can_fast_zero (void *handle)
{
  return config.offload && handle_writable (handle);
}

int
handle_can_extents (void *handle)
{
  return config.offload;
}

/* ---- Errors ---- */

/* Only these reach a client as themselves; others would turn into EINVAL,
 * which blames the client.
 */
static int
client_errno (int errnum)
{
  switch (errnum) {
  case EPERM: case EROFS: case EIO: case ENOMEM: case ENOSPC: case EDQUOT:
  case EFBIG: case ESHUTDOWN:
    return errnum;
  case EACCES: case EBADF:
    return EPERM;
  default:
    return EIO;
  }
}

/* Every failed request ends here.  A client that goes on writing to a full
 * pool should not fill the log too: repeats are for -v only.
 */
static int
fail (struct handle *h, int r, const char *op, uint64_t count,
      uint64_t offset)
{
  int errnum = client_errno (-r);
  bool again = atomic_exchange (&h->last_error, errnum) == errnum;

  if (again)
    nbdkit_debug ("%s: %s of %llu bytes at %llu: %s", h->name, op,
                  (unsigned long long) count, (unsigned long long) offset,
                  strerror (-r));
  else
    nbdkit_error ("%s: %s of %llu bytes at %llu: %s", h->name, op,
                  (unsigned long long) count, (unsigned long long) offset,
                  strerror (-r));
  nbdkit_set_error (errnum);
  return -1;
}

/* ---- Data ---- */

int
handle_pread (void *handle, void *buf, uint32_t count, uint64_t offset,
              uint32_t flags)
{
  struct handle *h = handle;
  int r = cow_volume_pread (h->volume, buf, count, offset);

  return r < 0 ? fail (h, r, "read", count, offset) : 0;
}

static unsigned
fua (uint32_t flags)
{
  return flags & NBDKIT_FLAG_FUA ? COW_FUA : 0;
}

int
handle_pwrite (void *handle, const void *buf, uint32_t count,
               uint64_t offset, uint32_t flags)
{
  struct handle *h = handle;
  int r = cow_volume_pwrite (h->volume, buf, count, offset, fua (flags) |
                             (config.detect_zeroes ? COW_DETECT_ZEROES : 0));

  return r < 0 ? fail (h, r, "write", count, offset) : 0;
}

/* offload=off */
static int
write_zeros (struct handle *h, uint64_t count, uint64_t offset,
             unsigned flags)
{
  static const char zeros[ZEROS_SIZE];
  int r = 0;

  while (r == 0 && count > 0) {
    size_t n = count < sizeof zeros ? count : sizeof zeros;

    r = cow_volume_pwrite (h->volume, zeros, n, offset, flags);
    count -= n;
    offset += n;
  }
  return r;
}

int
handle_zero (void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
  struct handle *h = handle;
  unsigned f = fua (flags);
  int r;

  if (flags & NBDKIT_FLAG_FAST_ZERO)
    f |= COW_FAST;
  if (!(flags & NBDKIT_FLAG_MAY_TRIM))
    f |= COW_NO_HOLE;
  if (config.offload)
    r = cow_volume_zero (h->volume, count, offset, f);
  else
    r = write_zeros (h, count, offset, fua (flags));
  if ((r == -ENOTSUP || r == -EOPNOTSUPP) && (f & COW_FAST)) {
    nbdkit_set_error (ENOTSUP);
    return -1;
  }
  return r < 0 ? fail (h, r, "zero", count, offset) : 0;
}

int
handle_trim (void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
  struct handle *h = handle;
  int r = cow_volume_trim (h->volume, count, offset, fua (flags));

  return r < 0 ? fail (h, r, "trim", count, offset) : 0;
}

int
handle_flush (void *handle, uint32_t flags)
{
  struct handle *h = handle;
  int r = cow_volume_flush (h->volume);

  return r < 0 ? fail (h, r, "flush", 0, 0) : 0;
}

int
handle_cache (void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
  struct handle *h = handle;
  int r = cow_volume_cache (h->volume, count, offset);

  return r < 0 ? fail (h, r, "cache", count, offset) : 0;
}

/* ---- Block status ---- */

/* nbdkit_add_extent has reported its own failure; -1 passes through. */
static int
add_extent (void *opaque, const struct cow_extent *e)
{
  uint32_t type = 0;

  if (e->flags & COW_EXTENT_HOLE)
    type |= NBDKIT_EXTENT_HOLE;
  if (e->flags & COW_EXTENT_ZERO)
    type |= NBDKIT_EXTENT_ZERO;
  return nbdkit_add_extent (opaque, e->offset, e->length, type);
}

struct diff_walk {
  struct nbdkit_extents *extents;
  uint64_t at;                  /* reported up to here */
  size_t nr;
};

static int
diff_add (struct diff_walk *w, uint64_t end, uint32_t type)
{
  uint64_t at = w->at;

  w->at = end;
  return at < end ? nbdkit_add_extent (w->extents, at, end - at, type) : 0;
}

/* What may differ is data, even where it reads as zero; what cannot differ
 * is a hole but not zero: "contents unknown", so that no client takes
 * unchanged for zero.
 */
static int
add_difference (void *opaque, const struct cow_extent *e)
{
  struct diff_walk *w = opaque;

  w->nr++;
  if (diff_add (w, e->offset, NBDKIT_EXTENT_HOLE) == -1)
    return -1;
  return diff_add (w, e->offset + e->length, 0);
}

static int
diff_extents (struct handle *h, uint64_t count, uint64_t offset, size_t max,
              struct nbdkit_extents *extents)
{
  struct diff_walk w = { .extents = extents, .at = offset };
  int r = cow_volume_diff (h->from, h->volume, count, offset, max,
                           add_difference, &w);

  if (r == 0 && w.nr < max)     /* it reached the end */
    r = diff_add (&w, offset + count, NBDKIT_EXTENT_HOLE);
  return r;
}

int
handle_extents (void *handle, uint32_t count, uint64_t offset,
                uint32_t flags, struct nbdkit_extents *extents)
{
  struct handle *h = handle;
  size_t max = flags & NBDKIT_FLAG_REQ_ONE ? 1 : EXTENTS_MAX;
  int r;

  if (h->from)
    r = diff_extents (h, count, offset, max, extents);
  else
    r = cow_volume_extents (h->volume, count, offset, max, 0, add_extent,
                            extents);
  return r < 0 ? fail (h, r == -1 ? -EIO : r, "block status", count, offset)
    : 0;
}
