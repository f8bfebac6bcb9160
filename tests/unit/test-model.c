/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a pool beside a plain array for each object.
 *
 * The model knows nothing of chunks: an object is a name, a size and its
 * bytes.  After each operation the pool must agree with it.  An operation
 * that fails for space leaves, in each 512-byte sector (or smaller block)
 * that it was to change, the old or the new content, which the model adopts.
 *
 * Everything follows from the seed, so a fault is replayed with the line
 * that is printed:
 *
 *   COWSHED_MODEL_CONFIG=N COWSHED_MODEL_SEED=S COWSHED_MODEL_OPS=M
 *
 * On a fault the last operations are printed, oldest first.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "volume.h"
#include "test-util.h"

#define SECTOR 512
#define MAX_OBJECTS 28
#define NAME_LEN 64
#define TRACE_LINES 60
#define CHECK_EVERY 2500

struct config {
  const char *what;
  uint64_t chunk, capacity, cache;
  uint64_t max_size;
  unsigned ops_percent;         /* of the operations of a configuration */
};

static const struct config configs[] = {
  { "64 KiB chunks", 64 << 10, 0, 0, (2 << 20) + 777, 100 },
  { "4 KiB chunks, 256-byte blocks", 4 << 10, 0, 0, 300 << 10, 100 },
  { "1 MiB chunks", 1 << 20, 0, 0, (5 << 20) + 1, 60 },
  { "tiny metadata cache", 4 << 10, 0, 64 << 10, (2 << 20) - 1, 100 },
  { "small pool", 64 << 10, 6 << 20, 0, (2 << 20) + 511, 100 },
  { "small pool, small chunks", 4 << 10, 1 << 20, 64 << 10, 500000, 100 },
};
#define NR_CONFIGS (sizeof configs / sizeof configs[0])

struct object {
  char name[NAME_LEN];
  bool snapshot;
  bool reserved;                /* thick: a write must not lack space */
  uint64_t size;
  uint8_t *data;
  uint64_t age;                 /* order of creation, for snapshots */
  struct cow_volume *h;         /* open handle or NULL */
};

static const struct config *cfg;
static uint64_t seed, op_number, nr_made;
static struct rng rng;
static char *dir;
static struct cow_pool *pool;
static struct object objects[MAX_OBJECTS];
static size_t nr_objects;
static uint8_t *scratch, *payload;
static size_t scratch_size;
static char trace_lines[TRACE_LINES][240];
static uint64_t trace_next, nr_enospc;

/* ---- Trace and failure ---- */

static void __attribute__ ((format (printf, 1, 2)))
trace (const char *fmt, ...)
{
  char *line = trace_lines[trace_next++ % TRACE_LINES];
  int n = snprintf (line, sizeof trace_lines[0], "%7" PRIu64 " ", op_number);
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (line + n, sizeof trace_lines[0] - n, fmt, ap);
  va_end (ap);
}

static void __attribute__ ((format (printf, 1, 2), noreturn))
fault (const char *fmt, ...)
{
  va_list ap;
  uint64_t i = trace_next > TRACE_LINES ? trace_next - TRACE_LINES : 0;

  printf ("last operations:\n");
  for (; i < trace_next; ++i)
    printf ("%s\n", trace_lines[i % TRACE_LINES]);
  printf ("FAULT at operation %" PRIu64 ": ", op_number);
  va_start (ap, fmt);
  vprintf (fmt, ap);
  va_end (ap);
  printf ("\nreplay: COWSHED_MODEL_CONFIG=%zu COWSHED_MODEL_SEED=%" PRIu64
          " COWSHED_MODEL_OPS=%" PRIu64 "\n",
          (size_t) (cfg - configs), seed, op_number + 1);
  fflush (stdout);
  if (env_number ("COWSHED_MODEL_ABORT", 0))
    abort ();
  if (!env_number ("COWSHED_MODEL_KEEP", 0))
    remove_tree (dir);
  _exit (1);
}

static const char *
err_text (int r, const struct cow_error *err)
{
  static char text[700];

  snprintf (text, sizeof text, "%s (%s: %s)", strerror (-r), err->code,
            err->message);
  return text;
}

static void
log_line (enum cow_log_level level, const char *line)
{
  if (level >= COW_LOG_WARNING)
    trace ("  log: %s", line);
  if (level == COW_LOG_ERROR)
    fault ("logged: %s", line);
}

/* ---- Objects ---- */

static bool
pool_is_small (void)
{
  return cfg->capacity != 0;
}

static struct object *
find_object (const char *name)
{
  for (size_t i = 0; i < nr_objects; ++i)
    if (strcmp (objects[i].name, name) == 0)
      return &objects[i];
  return NULL;
}

static struct object *
add_object (const char *name, uint64_t size, const uint8_t *data)
{
  struct object *o = &objects[nr_objects++];

  memset (o, 0, sizeof *o);
  snprintf (o->name, sizeof o->name, "%s", name);
  o->snapshot = strchr (name, '@') != NULL;
  o->size = size;
  o->age = nr_made++;
  o->data = calloc (1, size ? size : 1);
  if (o->data == NULL)
    abort ();
  if (data)
    memcpy (o->data, data, size);
  return o;
}

static void
close_handle (struct object *o)
{
  if (o->h)
    cow_volume_close (o->h);
  o->h = NULL;
}

static void
drop_object (struct object *o)
{
  close_handle (o);
  free (o->data);
  *o = objects[--nr_objects];
  memset (&objects[nr_objects], 0, sizeof *o);
}

static bool
is_snapshot_of (const struct object *s, const struct object *v)
{
  size_t n = strlen (v->name);

  return s->snapshot && strncmp (s->name, v->name, n) == 0 &&
    s->name[n] == '@';
}

static unsigned
count_snapshots (const struct object *v)
{
  unsigned n = 0;

  for (size_t i = 0; i < nr_objects; ++i)
    n += is_snapshot_of (&objects[i], v);
  return n;
}

/* A random object: any, or a volume only; NULL where there is none. */
static struct object *
pick (bool volumes_only)
{
  size_t start = rng_below (&rng, nr_objects);

  for (size_t i = 0; i < nr_objects; ++i) {
    struct object *o = &objects[(start + i) % nr_objects];

    if (!volumes_only || !o->snapshot)
      return o;
  }
  return NULL;
}

static struct cow_volume *
handle (struct object *o)
{
  struct cow_error err = { 0 };
  int r;

  if (o->h == NULL) {
    r = cow_volume_open (pool, o->name, o->snapshot ? COW_RDONLY : 0, &o->h,
                         &err);
    if (r < 0)
      fault ("open %s: %s", o->name, err_text (r, &err));
  }
  if (cow_volume_size (o->h) != o->size)
    fault ("%s has size %" PRIu64 " instead of %" PRIu64, o->name,
           cow_volume_size (o->h), o->size);
  return o->h;
}

static void
random_name (char *name)
{
  do
    snprintf (name, NAME_LEN, "v%u", (unsigned) rng_below (&rng, 100));
  while (find_object (name));
}

static uint64_t
random_size (void)
{
  uint64_t chunks = cfg->max_size / cfg->chunk;

  switch (rng_below (&rng, 8)) {
  case 0: return rng_below (&rng, 3) ? 1 + rng_below (&rng, 5000) : 0;
  case 1: return cfg->max_size;
  case 2: return (1 + rng_below (&rng, chunks)) * cfg->chunk;
  case 3: return (1 + rng_below (&rng, chunks)) * cfg->chunk - 1;
  case 4: return rng_below (&rng, chunks) * cfg->chunk + 1;
  default: return rng_below (&rng, cfg->max_size);
  }
}

/* A range within size, mostly short, often aligned to something. */
static void
random_range (uint64_t size, uint64_t *offset, uint64_t *len)
{
  uint64_t block = cfg->chunk / 16, unit;

  *offset = rng_below (&rng, size + 1);
  switch (rng_below (&rng, 6)) {
  case 0: *len = rng_below (&rng, 1024); break;
  case 1: *len = block; break;
  case 2: *len = rng_below (&rng, 3 * cfg->chunk); break;
  case 3: *len = cfg->chunk; break;
  case 4: *len = rng_percent (&rng, 20) ? size : rng_below (&rng, size / 4);
    break;
  default: *len = rng_below (&rng, 4 * block); break;
  }
  switch (rng_below (&rng, 4)) {
  case 0: unit = cfg->chunk; break;
  case 1: unit = block; break;
  case 2: unit = SECTOR; break;
  default: unit = 1;
  }
  *offset -= *offset % unit;
  if (rng_percent (&rng, 70) && *len > unit)
    *len -= *len % unit;
  if (*len > size - *offset)
    *len = size - *offset;
}

/* ---- Agreement ---- */

static void
compare (const struct object *o, const uint8_t *got, const uint8_t *want,
         uint64_t offset, uint64_t len, const char *when)
{
  if (memcmp (got, want, len) == 0)
    return;
  for (uint64_t i = 0; i < len; ++i)
    if (got[i] != want[i])
      fault ("%s: %s at %" PRIu64 " (chunk %" PRIu64 " + %" PRIu64
             "): found %02x, expected %02x", when, o->name, offset + i,
             (offset + i) / cfg->chunk, (offset + i) % cfg->chunk, got[i],
             want[i]);
}

static void
read_range (struct object *o, uint64_t offset, uint64_t len)
{
  int r = cow_volume_pread (handle (o), scratch, len, offset);

  if (r < 0)
    fault ("read %s %" PRIu64 "+%" PRIu64 ": %s", o->name, offset, len,
           strerror (-r));
}

static void
verify (struct object *o, uint64_t offset, uint64_t len, const char *when)
{
  read_range (o, offset, len);
  compare (o, scratch, o->data + offset, offset, len, when);
}

static void
verify_all (const char *when)
{
  for (size_t i = 0; i < nr_objects; ++i)
    verify (&objects[i], 0, objects[i].size, when);
}

/* What a failed or a ragged operation left: each sector of the range (block,
 * where these are smaller) old or as in want.  The model takes over what is
 * there.
 */
static void
adopt (struct object *o, const uint8_t *want, uint64_t offset, uint64_t len,
       const char *when)
{
  uint64_t at = offset, n, block = cfg->chunk / 16;
  uint64_t unit = block < SECTOR ? block : SECTOR;

  read_range (o, 0, o->size);
  compare (o, scratch, o->data, 0, offset, when);
  compare (o, scratch + offset + len, o->data + offset + len, offset + len,
           o->size - offset - len, when);
  for (; at < offset + len; at += n) {
    n = unit - at % unit;
    if (n > offset + len - at)
      n = offset + len - at;
    if (memcmp (scratch + at, o->data + at, n) != 0 &&
        memcmp (scratch + at, want + (at - offset), n) != 0)
      fault ("%s: sector at %" PRIu64 " of %s is neither old nor new", when,
             at, o->name);
  }
  memcpy (o->data + offset, scratch + offset, len);
}

struct walk {
  const struct object *o;
  const uint8_t *base;          /* of a diff: what a holds, or NULL */
  uint64_t base_size;
  uint64_t at, end;
  size_t nr, max;
  unsigned last_flags;
};

static bool
all_zero (const uint8_t *p, uint64_t len)
{
  return len == 0 || (p[0] == 0 && memcmp (p, p + 1, len - 1) == 0);
}

static int
see_extent (void *opaque, const struct cow_extent *e)
{
  struct walk *w = opaque;

  if (e->length == 0 || e->offset != w->at || e->length > w->end - w->at)
    fault ("extent %" PRIu64 "+%" PRIu64 " of %s where %" PRIu64
           " was to follow, end %" PRIu64, e->offset, e->length, w->o->name,
           w->at, w->end);
  if (++w->nr > w->max)
    fault ("more than %zu extents", w->max);
  if (w->nr > 1 && e->flags == w->last_flags)
    fault ("neighbouring extents with the same flags at %" PRIu64,
           e->offset);
  if (e->flags & (COW_EXTENT_HOLE | COW_EXTENT_ZERO) &&
      !all_zero (w->o->data + e->offset, e->length))
    fault ("extent %" PRIu64 "+%" PRIu64 " of %s is flagged %u but has data",
           e->offset, e->length, w->o->name, e->flags);
  w->at += e->length;
  w->last_flags = e->flags;
  return 0;
}

/* What a diff leaves out must be equal. */
static void
check_same (const struct walk *w, uint64_t from, uint64_t to)
{
  for (uint64_t i = from; i < to; ++i) {
    uint8_t was = i < w->base_size ? w->base[i] : 0;

    if (was != w->o->data[i])
      fault ("diff to %s leaves out offset %" PRIu64 ": %02x became %02x",
             w->o->name, i, was, w->o->data[i]);
  }
}

static int
see_difference (void *opaque, const struct cow_extent *e)
{
  struct walk *w = opaque;

  if (e->length == 0 || e->offset < w->at ||
      e->offset + e->length > w->end)
    fault ("diff extent %" PRIu64 "+%" PRIu64 " outside %" PRIu64 "..%"
           PRIu64, e->offset, e->length, w->at, w->end);
  if (++w->nr > w->max)
    fault ("more than %zu extents of a diff", w->max);
  check_same (w, w->at, e->offset);
  if (e->flags & COW_EXTENT_ZERO &&
      !all_zero (w->o->data + e->offset, e->length))
    fault ("diff extent %" PRIu64 "+%" PRIu64 " of %s is flagged zero but "
           "has data", e->offset, e->length, w->o->name);
  w->at = e->offset + e->length;
  return 0;
}

/* ---- Data operations ---- */

static void
op_write (void)
{
  struct object *o = pick (true);
  uint64_t offset, len;
  unsigned flags = 0;
  int r;

  if (o == NULL)
    return;
  random_range (o->size, &offset, &len);
  rng_fill (&rng, payload, len);
  if (rng_percent (&rng, 15) && len) { /* some zeros in the middle */
    uint64_t z = rng_below (&rng, len);

    memset (payload + z, 0, rng_below (&rng, len - z + 1));
  }
  if (rng_percent (&rng, 3))
    flags |= COW_FUA;
  if (rng_percent (&rng, 40))
    flags |= COW_DETECT_ZEROES;
  r = cow_volume_pwrite (handle (o), payload, len, offset, flags);
  trace ("write %s %" PRIu64 "+%" PRIu64 " flags %u = %d", o->name, offset,
         len, flags, r);
  if (r == 0) {
    memcpy (o->data + offset, payload, len);
    return;
  }
  if (r != -ENOSPC || !pool_is_small ())
    fault ("write %s: %s", o->name, strerror (-r));
  if (o->reserved)
    fault ("write to the thick volume %s lacks space", o->name);
  nr_enospc++;
  adopt (o, payload, offset, len, "after a failed write");
}

static void
op_read (void)
{
  struct object *o = pick (false);
  uint64_t offset, len;

  if (o == NULL)
    return;
  random_range (o->size, &offset, &len);
  trace ("read %s %" PRIu64 "+%" PRIu64, o->name, offset, len);
  verify (o, offset, len, "read");
}

static void
op_zero (void)
{
  struct object *o = pick (true);
  uint64_t offset, len;
  unsigned flags = 0;
  int r;

  if (o == NULL)
    return;
  random_range (o->size, &offset, &len);
  if (rng_percent (&rng, 3))
    flags |= COW_FUA;
  if (rng_percent (&rng, 30))
    flags |= COW_NO_HOLE;
  if (rng_percent (&rng, 30))
    flags |= COW_FAST;
  r = cow_volume_zero (handle (o), len, offset, flags);
  trace ("zero %s %" PRIu64 "+%" PRIu64 " flags %u = %d", o->name, offset,
         len, flags, r);
  memset (payload, 0, len);
  if (r == 0)
    memset (o->data + offset, 0, len);
  else if (r == -ENOTSUP && flags & COW_FAST)
    verify (o, 0, o->size, "after a refused fast zero");
  else if (r == -ENOSPC && pool_is_small ()) {
    if (o->reserved)
      fault ("zero of the thick volume %s lacks space", o->name);
    nr_enospc++;
    adopt (o, payload, offset, len, "after a failed zero");
  }
  else
    fault ("zero %s: %s", o->name, strerror (-r));
}

static void
op_trim (void)
{
  struct object *o = pick (true);
  uint64_t offset, len, block = cfg->chunk / 16, head, tail;
  unsigned flags = rng_percent (&rng, 3) ? COW_FUA : 0;
  int r;

  if (o == NULL)
    return;
  random_range (o->size, &offset, &len);
  r = cow_volume_trim (handle (o), len, offset, flags);
  trace ("trim %s %" PRIu64 "+%" PRIu64 " flags %u = %d", o->name, offset,
         len, flags, r);
  if (r < 0)
    fault ("trim %s: %s", o->name, strerror (-r));
  if (!pool_is_small ()) {
    memset (o->data + offset, 0, len);
    return;
  }
  /* Whole blocks are zero; ragged edges may have kept their content. */
  head = (offset + block - 1) / block * block;
  tail = (offset + len) / block * block;
  if (head < tail)
    memset (o->data + head, 0, tail - head);
  memset (payload, 0, len);
  adopt (o, payload, offset, len, "after a trim");
}

static void
op_flush (void)
{
  struct object *o = pick (true);
  int r = o && rng_percent (&rng, 70) ? cow_volume_flush (handle (o)) :
    cow_pool_flush (pool);

  trace ("flush = %d", r);
  /* What writes were granted must not lack space later, but for the
   * metadata of a small pool.
   */
  if (r < 0)
    fault ("flush: %s", strerror (-r));
}

static void
op_cache (void)
{
  struct object *o = pick (false);
  uint64_t offset, len;
  int r;

  if (o == NULL)
    return;
  random_range (o->size, &offset, &len);
  r = cow_volume_cache (handle (o), len, offset);
  trace ("cache %s %" PRIu64 "+%" PRIu64 " = %d", o->name, offset, len, r);
  if (r < 0)
    fault ("cache: %s", strerror (-r));
}

static void
op_extents (void)
{
  struct object *o = pick (false);
  struct walk w = { 0 };
  uint64_t offset, len;
  int r;

  if (o == NULL)
    return;
  random_range (o->size, &offset, &len);
  w = (struct walk) { .o = o, .at = offset, .end = offset + len,
    .max = rng_percent (&rng, 30) ? 1 + rng_below (&rng, 4) : 100000 };
  r = cow_volume_extents (handle (o), len, offset, w.max, 0, see_extent, &w);
  trace ("extents %s %" PRIu64 "+%" PRIu64 " max %zu = %d (%zu)", o->name,
         offset, len, w.max, r, w.nr);
  if (r < 0)
    fault ("extents: %s", strerror (-r));
  if (w.at != w.end && w.nr < w.max)
    fault ("extents of %s end at %" PRIu64 " instead of %" PRIu64, o->name,
           w.at, w.end);
  if (len && w.nr == 0)
    fault ("no extent for %" PRIu64 "+%" PRIu64, offset, len);
}

static void
op_diff (void)
{
  struct object *a = pick (false), *b = pick (false);
  struct walk w;
  uint64_t offset, len;
  int r;

  if (a == NULL)
    return;
  random_range (b->size, &offset, &len);
  if (rng_percent (&rng, 50)) {
    offset = 0;
    len = b->size;
  }
  w = (struct walk) { .o = b, .base = a->data, .base_size = a->size,
    .at = offset, .end = offset + len,
    .max = rng_percent (&rng, 20) ? 1 + rng_below (&rng, 4) : 100000 };
  r = cow_volume_diff (handle (a), handle (b), len, offset, w.max,
                       see_difference, &w);
  trace ("diff %s %s %" PRIu64 "+%" PRIu64 " max %zu = %d (%zu to %" PRIu64
         ")", a->name, b->name, offset, len, w.max, r, w.nr, w.at);
  if (r < 0)
    fault ("diff: %s", strerror (-r));
  if (a == b && w.nr)
    fault ("%s differs from itself", a->name);
  if (w.nr < w.max)
    check_same (&w, w.at, w.end);
}

static void
op_close_handle (void)
{
  struct object *o = pick (false);

  if (o)
    close_handle (o);
}

/* ---- Control operations ---- */

static unsigned
control_flags (void)
{
  return rng_percent (&rng, 85) ? COW_NOSYNC : 0;
}

/* True where r says that it was done; -ENOSPC in a small pool is a refusal
 * that changed nothing.
 */
static bool
done (int r, const struct cow_error *err, const char *what, const char *name)
{
  if (r == 0)
    return true;
  if (r == -ENOSPC && pool_is_small ()) {
    nr_enospc++;
    return false;
  }
  fault ("%s %s: %s", what, name, err_text (r, err));
}

static void
op_create (void)
{
  struct cow_error err = { 0 };
  char name[NAME_LEN];
  uint64_t size = random_size ();
  unsigned flags = control_flags ();
  int r;

  if (nr_objects == MAX_OBJECTS)
    return;
  random_name (name);
  if (rng_percent (&rng, 15))
    flags |= COW_THICK;
  r = cow_volume_create (pool, name, size, flags, &err);
  trace ("create %s %" PRIu64 " flags %u = %d", name, size, flags, r);
  if (r == -ENOTSUP && flags & COW_THICK) /* not every kind of pool can */
    return;
  if (done (r, &err, "create", name))
    add_object (name, size, NULL)->reserved = flags & COW_THICK;
}

static void
op_snapshot (void)
{
  struct cow_error err = { 0 };
  char names[3][NAME_LEN];
  const char *list[3];
  struct object *from[3];
  size_t n = 0, want = rng_percent (&rng, 30) ? 3 : 1;
  int r;

  for (size_t i = 0; i < want && nr_objects + n < MAX_OBJECTS; ++i) {
    struct object *v = pick (true);
    bool again = false;

    if (v == NULL)
      return;
    for (size_t j = 0; j < n; ++j)
      again |= from[j] == v;
    snprintf (names[n], NAME_LEN, "%.20s@s%u", v->name,
              (unsigned) rng_below (&rng, 1000));
    if (again || find_object (names[n]))
      continue;
    from[n] = v;
    list[n] = names[n];
    n++;
  }
  if (n == 0)
    return;
  r = cow_snapshot_create (pool, list, n, control_flags (), &err);
  trace ("snapshot %s (of %zu) = %d", list[0], n, r);
  if (!done (r, &err, "snapshot", list[0]))
    return;
  for (size_t i = 0; i < n; ++i) {
    struct object *s = add_object (names[i], from[i]->size, from[i]->data);
    struct walk w = { .o = from[i], .base = s->data, .base_size = s->size,
      .end = s->size, .max = 100000 };

    r = cow_volume_diff (handle (s), handle (from[i]), s->size, 0, w.max,
                         see_difference, &w);
    if (r < 0 || w.nr)
      fault ("a new snapshot differs: %d, %zu extents", r, w.nr);
  }
}

static void
op_clone (void)
{
  struct cow_error err = { 0 };
  struct object *o = pick (false);
  char name[NAME_LEN];
  int r;

  if (o == NULL || nr_objects == MAX_OBJECTS)
    return;
  random_name (name);
  r = cow_volume_clone (pool, o->name, name, control_flags (), &err);
  trace ("clone %s %s = %d", o->name, name, r);
  if (done (r, &err, "clone", name))
    add_object (name, o->size, o->data);
}

/* The handle was cut off by force. */
static void
expect_shutdown (struct object *o, const char *what)
{
  uint8_t byte = 0;
  int r;

  if (o->h == NULL)
    return;
  if (cow_volume_size (o->h)) {
    r = cow_volume_pread (o->h, &byte, 1, 0);
    if (r != -ESHUTDOWN)
      fault ("read after a forced %s of %s: %d instead of ESHUTDOWN", what,
             o->name, r);
    r = cow_volume_pwrite (o->h, &byte, 1, 0, 0);
    if (r != -ESHUTDOWN)
      fault ("write after a forced %s of %s: %d instead of ESHUTDOWN", what,
             o->name, r);
  }
  close_handle (o);
}

/* Whether to leave a writer's handle open and force the operation; the
 * plain attempt must then be refused.
 */
static bool
try_with_handle (struct object *o)
{
  if (!o->snapshot && rng_percent (&rng, 30)) {
    handle (o);
    return true;
  }
  close_handle (o);
  return false;
}

static void
op_rollback (void)
{
  struct cow_error err = { 0 };
  struct object *s = pick (false), *v;
  char name[NAME_LEN];
  unsigned flags = control_flags ();
  bool open;
  int r;

  if (s == NULL || !s->snapshot)
    return;
  snprintf (name, sizeof name, "%s", s->name);
  *strchr (name, '@') = '\0';
  v = find_object (name);
  if (v == NULL)
    fault ("the model lost %s", name);
  open = try_with_handle (v);
  if (open) {
    r = cow_volume_rollback (pool, s->name, flags, &err);
    if (r != -EBUSY)
      fault ("rollback of the open volume %s: %d instead of EBUSY", name, r);
    flags |= COW_FORCE;
  }
  r = cow_volume_rollback (pool, s->name, flags, &err);
  trace ("rollback %s flags %u = %d", s->name, flags, r);
  if (!done (r, &err, "rollback", s->name))
    return;
  if (open)
    expect_shutdown (v, "rollback");
  free (v->data);
  v->size = s->size;
  v->reserved = false;
  v->data = malloc (v->size ? v->size : 1);
  memcpy (v->data, s->data, v->size);
  verify (v, 0, v->size, "after rollback");
}

static void
drop_snapshots (const char *name)
{
  struct object v;

  snprintf (v.name, sizeof v.name, "%s", name);
  for (size_t i = 0; i < nr_objects;)
    if (is_snapshot_of (&objects[i], &v))
      drop_object (&objects[i]);
    else
      i++;
}

static void
op_remove (void)
{
  struct cow_error err = { 0 };
  struct object *o = pick (false);
  unsigned flags = control_flags ();
  char name[NAME_LEN];
  bool open;
  int r;

  if (o == NULL)
    return;
  snprintf (name, sizeof name, "%s", o->name);
  open = try_with_handle (o);
  if (!o->snapshot && count_snapshots (o)) {
    r = cow_volume_remove (pool, name, flags | COW_FORCE, &err);
    if (r != -EBUSY && r != -ENOTEMPTY && r != -EEXIST)
      fault ("remove of %s, which has snapshots: %d", name, r);
    flags |= COW_SNAPSHOTS;
    for (size_t i = 0; i < nr_objects; ++i)
      if (is_snapshot_of (&objects[i], o))
        close_handle (&objects[i]);
  }
  if (open) {
    r = cow_volume_remove (pool, name, flags, &err);
    if (r != -EBUSY)
      fault ("remove of the open volume %s: %d instead of EBUSY", name, r);
    flags |= COW_FORCE;
  }
  r = cow_volume_remove (pool, name, flags, &err);
  trace ("remove %s flags %u = %d", name, flags, r);
  /* Deletion works in a full pool too. */
  if (r < 0)
    fault ("remove %s: %s", name, err_text (r, &err));
  if (open)
    expect_shutdown (o, "remove");
  drop_object (o);
  if (strchr (name, '@') == NULL)
    drop_snapshots (name);
}

static void
rename_snapshots (const char *from, const char *to)
{
  struct object v;

  snprintf (v.name, sizeof v.name, "%s", from);
  for (size_t i = 0; i < nr_objects; ++i)
    if (is_snapshot_of (&objects[i], &v)) {
      char snap[NAME_LEN];

      snprintf (snap, sizeof snap, "%s", strchr (objects[i].name, '@'));
      snprintf (objects[i].name, NAME_LEN, "%.20s%.40s", to, snap);
    }
}

static void
op_rename (void)
{
  struct cow_error err = { 0 };
  struct object *o = pick (false);
  char from[NAME_LEN], to[NAME_LEN];
  int r;

  if (o == NULL)
    return;
  snprintf (from, sizeof from, "%s", o->name);
  if (o->snapshot) {
    snprintf (to, sizeof to, "%.*s@r%u",
              (int) (strchr (from, '@') - from), from,
              (unsigned) rng_below (&rng, 1000));
    if (find_object (to))
      return;
  }
  else
    random_name (to);
  r = cow_volume_rename (pool, from, to, control_flags (), &err);
  trace ("rename %s %s = %d", from, to, r);
  if (!done (r, &err, "rename", from))
    return;
  if (!o->snapshot)
    rename_snapshots (from, to);
  snprintf (o->name, sizeof o->name, "%s", to);
}

static void
op_resize (void)
{
  struct cow_error err = { 0 };
  struct object *o = pick (true);
  uint64_t size = random_size ();
  unsigned flags = control_flags ();
  uint8_t *data;
  bool open = false;
  int r;

  if (o == NULL)
    return;
  if (size < o->size) {
    r = cow_volume_resize (pool, o->name, size, flags, &err);
    if (r >= 0)
      fault ("%s shrank without being asked to", o->name);
    flags |= COW_SHRINK;
    open = try_with_handle (o);
    if (open) {
      r = cow_volume_resize (pool, o->name, size, flags, &err);
      if (r != -EBUSY)
        fault ("shrinking the open volume %s: %d instead of EBUSY", o->name,
               r);
      flags |= COW_FORCE;
    }
  }
  r = cow_volume_resize (pool, o->name, size, flags, &err);
  trace ("resize %s %" PRIu64 " to %" PRIu64 " flags %u = %d", o->name,
         o->size, size, flags, r);
  if (!done (r, &err, "resize", o->name))
    return;
  if (open)
    expect_shutdown (o, "shrink");
  if (o->h && cow_volume_size (o->h) != o->size)
    fault ("an open handle changed its size");
  close_handle (o);
  data = calloc (1, size ? size : 1);
  memcpy (data, o->data, size < o->size ? size : o->size);
  free (o->data);
  o->data = data;
  o->size = size;
}

/* Things that must be refused and change nothing. */
static void
op_misuse (void)
{
  struct cow_error err = { 0 };
  struct object *o = pick (false);
  struct cow_volume *h;
  const char *missing = "v1@none";
  uint8_t byte = 1;
  int r = 0;

  if (o == NULL)
    return;
  switch (rng_below (&rng, 7)) {
  case 0:
    r = cow_volume_create (pool, "bad/name", 1, 0, &err);
    break;
  case 1:
    r = o->snapshot ? cow_snapshot_create (pool,
                                           (const char *[]) { o->name }, 1,
                                           0, &err) :
      cow_volume_create (pool, o->name, 1, 0, &err);
    if (r != -EEXIST)
      fault ("making %s twice: %d instead of EEXIST", o->name, r);
    break;
  case 2:
    r = cow_volume_open (pool, missing, 0, &h, &err);
    if (r != -ENOENT)
      fault ("opening %s: %d instead of ENOENT", missing, r);
    break;
  case 3:
    r = cow_volume_clone (pool, o->name, "@", 0, &err);
    break;
  case 4:
    r = cow_volume_pread (handle (o), &byte, 1, o->size);
    if (r != -EINVAL)
      fault ("read past the end: %d instead of EINVAL", r);
    err.message[0] = 'x';
    break;
  case 5:
    r = o->snapshot ? cow_volume_pwrite (handle (o), &byte, 1, 0, 0) :
      cow_volume_pwrite (handle (o), &byte, 1, o->size, 0);
    if (r != (o->snapshot ? -EROFS : -ENOSPC) &&
        !(o->snapshot && o->size == 0))
      fault ("a write that must fail to %s: %d", o->name, r);
    err.message[0] = 'x';
    break;
  default:
    r = cow_volume_rollback (pool, missing, 0, &err);
    break;
  }
  trace ("misuse on %s = %d", o->name, r);
  if (r >= 0 || err.message[0] == '\0')
    fault ("misuse gave %d and the message '%s'", r, err.message);
}

static void
op_info (void)
{
  struct cow_error err = { 0 };
  struct cow_volume_info info;
  struct object *o = pick (false);
  struct cow_pool_stat st;
  int r;

  if (o == NULL)
    return;
  r = cow_volume_info (pool, o->name, &info, &err);
  trace ("info %s = %d", o->name, r);
  if (r < 0)
    fault ("info %s: %s", o->name, err_text (r, &err));
  if (strcmp (info.name, o->name) != 0 || info.size != o->size ||
      info.is_snapshot != o->snapshot || info.damaged)
    fault ("info of %s is of %s, size %" PRIu64 ", damaged %d", o->name,
           info.name, info.size, info.damaged);
  if (!o->snapshot && info.nr_snapshots != count_snapshots (o))
    fault ("%s has %u snapshots instead of %u", o->name, info.nr_snapshots,
           count_snapshots (o));
  if (info.allocated != info.exclusive + info.shared)
    fault ("%s: allocated %" PRIu64 " is not exclusive %" PRIu64
           " + shared %" PRIu64, o->name, info.allocated, info.exclusive,
           info.shared);
  cow_pool_stat (pool, &st);
  if (info.allocated > st.used || st.used > st.capacity)
    fault ("allocated %" PRIu64 ", used %" PRIu64 ", capacity %" PRIu64,
           info.allocated, st.used, st.capacity);
}

static int
see_listed (void *opaque, const struct cow_volume_info *info)
{
  size_t *n = opaque;
  struct object *o = find_object (info->name);

  if (o == NULL)
    fault ("the list has %s, which does not exist", info->name);
  if (info->size != o->size || info->is_snapshot != o->snapshot)
    fault ("the list has %s with size %" PRIu64 " instead of %" PRIu64,
           info->name, info->size, o->size);
  ++*n;
  return 0;
}

static void
op_list (void)
{
  size_t n = 0;

  trace ("list");
  if (cow_volume_list (pool, see_listed, &n) != 0 || n != nr_objects)
    fault ("%zu objects are listed instead of %zu", n, nr_objects);
}

/* ---- Whole-pool operations ---- */

static void
open_pool (void)
{
  struct cow_pool_options o = { .metadata_cache_bytes = cfg->cache };
  struct cow_error err = { 0 };
  int r = cow_pool_open (dir, &o, &pool, &err);

  if (r < 0)
    fault ("open the pool: %s", err_text (r, &err));
}

static void
close_pool (void)
{
  int r;

  for (size_t i = 0; i < nr_objects; ++i)
    close_handle (&objects[i]);
  r = cow_pool_close (pool);
  pool = NULL;
  if (r < 0)
    fault ("close the pool: %s", strerror (-r));
}

static void
check_pool (const char *when)
{
  struct cow_check_result result = { 0 };
  struct cow_error err = { 0 };
  int r = cow_pool_check (dir, false, &result, NULL, NULL, &err);

  trace ("check %s = %d, %" PRIu64 " faults", when, r,
         result.faults_total);
  if (r < 0)
    fault ("check %s: %s", when, err_text (r, &err));
  if (result.faults_total)
    fault ("check %s found %" PRIu64 " faults, the first: %s: %s", when,
           result.faults_total, result.faults[0].where,
           result.faults[0].what);
  cow_check_result_free (&result);
}

static void
op_reopen (void)
{
  trace ("close and open the pool");
  close_pool ();
  if (rng_percent (&rng, 50))
    check_pool ("while closed");
  open_pool ();
  op_list ();
}

/* With nothing left, all space comes back and can be used again. */
static void
remove_everything (void)
{
  struct cow_pool_stat st;
  int64_t deadline = now_ms () + 60000;

  while (nr_objects) {
    struct cow_error err = { 0 };
    struct object *o = pick (true);
    char name[NAME_LEN];
    int r;

    close_handle (o);
    snprintf (name, sizeof name, "%s", o->name);
    for (size_t i = 0; i < nr_objects; ++i)
      close_handle (&objects[i]);
    r = cow_volume_remove (pool, name, COW_SNAPSHOTS | COW_NOSYNC, &err);
    trace ("remove %s = %d", name, r);
    if (r < 0)
      fault ("remove %s: %s", name, err_text (r, &err));
    drop_object (o);
    drop_snapshots (name);
  }
  do {
    if (cow_pool_flush (pool) < 0)
      fault ("flush after removing everything");
    cow_pool_stat (pool, &st);
    if (now_ms () > deadline)
      fault ("with nothing left %" PRIu64 " bytes are used, %" PRIu64
             " reserved, %" PRIu64 " nodes deleting", st.used, st.reserved,
             st.deleting);
    if (st.used || st.deleting)
      pause_ms (5);
  } while (st.used || st.deleting);
  if (st.reserved)
    fault ("with nothing left %" PRIu64 " bytes are reserved", st.reserved);
}

/* ---- The run ---- */

static const struct op {
  unsigned weight;
  void (*fn) (void);
} ops[] = {
  { 300, op_write }, { 200, op_read }, { 80, op_zero }, { 80, op_trim },
  { 10, op_flush }, { 10, op_cache }, { 60, op_extents }, { 40, op_diff },
  { 40, op_close_handle }, { 25, op_create }, { 40, op_snapshot },
  { 40, op_clone }, { 15, op_rollback }, { 55, op_remove },
  { 20, op_rename }, { 40, op_resize }, { 20, op_misuse }, { 15, op_info },
  { 5, op_list }, { 2, op_reopen },
};

static void
one_operation (void)
{
  unsigned total = 0, at;

  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; ++i)
    total += ops[i].weight;
  at = rng_below (&rng, total);
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; ++i) {
    if (at < ops[i].weight) {
      ops[i].fn ();
      return;
    }
    at -= ops[i].weight;
  }
}

static void
init_pool (void)
{
  struct cow_init_options o = { .chunk_size = cfg->chunk,
    .capacity = cfg->capacity };
  struct cow_error err = { 0 };
  char *base = make_temp_dir ();
  int r;

  if (asprintf (&dir, "%s", base) == -1)
    abort ();
  free (base);
  o.dir = dir;
  r = cow_pool_init (&o, &err);
  if (r < 0)
    fault ("init: %s", err_text (r, &err));
  open_pool ();
}

static void
run_config (size_t n, uint64_t nr_ops)
{
  int64_t start = now_ms ();

  cfg = &configs[n];
  rng.state = seed + n;
  trace_next = nr_enospc = nr_made = 0;
  scratch_size = cfg->max_size + 1;
  scratch = malloc (scratch_size);
  payload = malloc (scratch_size);
  printf ("config %zu (%s): COWSHED_MODEL_SEED=%" PRIu64
          " COWSHED_MODEL_OPS=%" PRIu64 "\n", n, cfg->what, seed, nr_ops);
  fflush (stdout);
  init_pool ();
  for (op_number = 0; op_number < nr_ops; ++op_number) {
    one_operation ();
    if (op_number % CHECK_EVERY == CHECK_EVERY - 1) {
      verify_all ("full comparison");
      if (cow_pool_flush (pool) < 0)
        fault ("flush");
      check_pool ("while open");
    }
  }
  verify_all ("at the end");
  close_pool ();
  check_pool ("at the end");
  open_pool ();
  verify_all ("after the last restart");
  remove_everything ();
  close_pool ();
  check_pool ("of the empty pool");
  printf ("  %" PRIu64 " operations, %" PRIu64 " lacked space, %.1f s\n",
          nr_ops, nr_enospc, (now_ms () - start) / 1000.0);
  remove_tree (dir);
  free (dir);
  free (scratch);
  free (payload);
}

int
main (void)
{
  uint64_t nr_ops = env_number ("COWSHED_MODEL_OPS", 22000);
  uint64_t only = env_number ("COWSHED_MODEL_CONFIG", NR_CONFIGS);

  seed = env_number ("COWSHED_MODEL_SEED",
                     (uint64_t) time (NULL) * 1000003 + getpid ());
  cow_log_set (log_line);
  for (size_t i = 0; i < NR_CONFIGS; ++i)
    if (only == NR_CONFIGS)
      run_config (i, nr_ops * configs[i].ops_percent / 100);
    else if (only == i)
      run_config (i, nr_ops);
  return 0;
}
