/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <endian.h>
#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "pack.h"

#define PACK_VERSION 1

struct disk_header {
  uint32_t kind;
  uint16_t version;
  uint16_t level;
  uint64_t id;
  uint64_t checksum;
};

_Static_assert (sizeof (struct disk_header) == 24, "record header");

/* ---- Writing ---- */

struct writer {
  uint8_t *start, *p;
};

static void
put_varint (struct writer *w, uint64_t v)
{
  while (v >= 0x80) {
    *w->p++ = (uint8_t) v | 0x80;
    v >>= 7;
  }
  *w->p++ = (uint8_t) v;
}

static void
start_record (struct writer *w, void *out, uint32_t kind, unsigned level,
              uint64_t id)
{
  struct disk_header h = {
    .kind = htole32 (kind), .version = htole16 (PACK_VERSION),
    .level = htole16 (level), .id = htole64 (id),
  };

  memcpy (out, &h, sizeof h);
  w->start = out;
  w->p = w->start + sizeof h;
}

static size_t
end_record (struct writer *w)
{
  size_t len = w->p - w->start;
  uint64_t sum = htole64 (XXH3_64bits (w->start, len));

  memcpy (w->start + offsetof (struct disk_header, checksum), &sum,
          sizeof sum);
  return len;
}

static bool
leaf_continues (const struct entry *first, unsigned k, const struct entry *e)
{
  return e->own == first->own + k &&
    e->present == first->present && e->omask == first->omask &&
    e->origin == (first->origin ? first->origin + k : 0) && e->own != 0;
}

size_t
cow_pack_leaf (uint64_t id, const struct entry *e, void *out)
{
  struct writer w;
  unsigned i = 0, gap_start = 0;

  start_record (&w, out, PACK_LEAF, 0, id);
  while (i < LEAF_ENTRIES) {
    unsigned n;

    if (cow_entry_empty (&e[i])) {
      i++;
      continue;
    }
    for (n = 1; i + n < LEAF_ENTRIES && leaf_continues (&e[i], n, &e[i + n]);
         n++)
      ;
    put_varint (&w, i - gap_start);
    put_varint (&w, n);
    put_varint (&w, e[i].own);
    put_varint (&w, e[i].present);
    put_varint (&w, e[i].origin);
    put_varint (&w, e[i].omask);
    i += n;
    gap_start = i;
  }
  return end_record (&w);
}

size_t
cow_pack_inner (uint64_t id, unsigned level, const uint64_t *child, void *out)
{
  struct writer w;
  unsigned i = 0, gap_start = 0;

  start_record (&w, out, PACK_INNER, level, id);
  while (i < INNER_CHILDREN) {
    unsigned n;

    if (child[i] == 0) {
      i++;
      continue;
    }
    for (n = 1; i + n < INNER_CHILDREN && child[i + n] == child[i] + n; n++)
      ;
    put_varint (&w, i - gap_start);
    put_varint (&w, n);
    put_varint (&w, child[i]);
    i += n;
    gap_start = i;
  }
  return end_record (&w);
}

size_t
cow_pack_counts (uint32_t kind, uint64_t page, const uint32_t *counts,
                 void *out)
{
  struct writer w;
  unsigned i, n, last = COUNTS_PER_PAGE;

#define STORED(i) (counts[i] == COUNT_HELD ? 0 : counts[i])
  start_record (&w, out, kind, 0, page);
  while (last > 0 && STORED (last - 1) == 0)
    last--;
  for (i = 0; i < last; i += n) {
    for (n = 1; i + n < last && STORED (i + n) == STORED (i); n++)
      ;
    put_varint (&w, n);
    put_varint (&w, STORED (i));
  }
#undef STORED
  return end_record (&w);
}

/* ---- Reading ---- */

struct reader {
  const uint8_t *p, *end;
  const char **why;
};

static int
bad (struct reader *r, const char *why)
{
  *r->why = why;
  return -EIO;
}

static int
get_varint (struct reader *r, uint64_t *v)
{
  unsigned shift;

  *v = 0;
  for (shift = 0; shift < 63; shift += 7) {
    uint8_t b;

    if (r->p == r->end)
      return bad (r, "record ends inside a number");
    b = *r->p++;
    *v |= (uint64_t) (b & 0x7f) << shift;
    if ((b & 0x80) == 0)
      return 0;
  }
  return bad (r, "number too long");
}

static int
check_header (struct reader *r, const void *data, size_t len, uint32_t kind,
              unsigned level, uint64_t id)
{
  struct disk_header h, zeroed;
  XXH3_state_t state;

  if (data == NULL || len < sizeof h)
    return bad (r, "record shorter than its header");
  if (len > PACK_MAX)
    return bad (r, "record too long");
  memcpy (&h, data, sizeof h);
  zeroed = h;
  zeroed.checksum = 0;
  XXH3_64bits_reset (&state);
  XXH3_64bits_update (&state, &zeroed, sizeof zeroed);
  XXH3_64bits_update (&state, (const uint8_t *) data + sizeof h,
                      len - sizeof h);
  if (XXH3_64bits_digest (&state) != le64toh (h.checksum))
    return bad (r, "checksum does not match");
  if (le32toh (h.kind) != kind)
    return bad (r, "record of another kind");
  if (le16toh (h.version) != PACK_VERSION)
    return bad (r, "record of an unknown version");
  if (le64toh (h.id) != id)
    return bad (r, "record of another id");
  if (le16toh (h.level) != level)
    return bad (r, "record of another level");
  r->p = (const uint8_t *) data + sizeof h;
  r->end = (const uint8_t *) data + len;
  return 0;
}

/* One {gap, length} pair within limit. */
static int
get_run (struct reader *r, unsigned limit, unsigned *pos, unsigned *n)
{
  uint64_t gap, len;

  if (get_varint (r, &gap) || get_varint (r, &len))
    return -EIO;
  if (gap > limit - *pos || len == 0 || len > limit - *pos - gap)
    return bad (r, "run beyond the end of the record");
  *pos += gap;
  *n = len;
  return 0;
}

static int
get_leaf_run (struct reader *r, uint64_t nr_chunks, struct entry *e,
              unsigned n)
{
  uint64_t own, present, origin, omask;
  unsigned k;

  if (get_varint (r, &own) || get_varint (r, &present) ||
      get_varint (r, &origin) || get_varint (r, &omask))
    return -EIO;
  if (own > MAX_CHUNK_NR - n || origin > MAX_CHUNK_NR - n ||
      present > ALL_BLOCKS || omask > ALL_BLOCKS)
    return bad (r, "entry out of range");
  for (k = 0; k < n; k++) {
    e[k].own = own + k;
    e[k].present = present;
    e[k].origin = origin ? origin + k : 0;
    e[k].omask = omask;
    if (own == 0 || !cow_entry_valid (&e[k], nr_chunks))
      return bad (r, "entry not in normal form or beyond the pool's end");
  }
  return 0;
}

int
cow_unpack_leaf (const void *data, size_t len, uint64_t id,
                 uint64_t nr_chunks, struct entry *e, const char **why)
{
  struct reader r = { .why = why };
  unsigned pos = 0, n;

  memset (e, 0, LEAF_ENTRIES * sizeof *e);
  if (check_header (&r, data, len, PACK_LEAF, 0, id))
    return -EIO;
  while (r.p < r.end) {
    if (get_run (&r, LEAF_ENTRIES, &pos, &n) ||
        get_leaf_run (&r, nr_chunks, &e[pos], n))
      return -EIO;
    pos += n;
  }
  return 0;
}

int
cow_unpack_inner (const void *data, size_t len, uint64_t id, unsigned level,
                  uint64_t next_node, uint64_t *child, const char **why)
{
  struct reader r = { .why = why };
  unsigned pos = 0, n, k;
  uint64_t first;

  memset (child, 0, INNER_CHILDREN * sizeof *child);
  if (check_header (&r, data, len, PACK_INNER, level, id))
    return -EIO;
  while (r.p < r.end) {
    if (get_run (&r, INNER_CHILDREN, &pos, &n) || get_varint (&r, &first))
      return -EIO;
    if (first == 0 || first >= next_node || n > next_node - first)
      return bad (&r, "child id out of range");
    for (k = 0; k < n; k++)
      child[pos + k] = first + k;
    pos += n;
  }
  return 0;
}

int
cow_unpack_counts (const void *data, size_t len, uint32_t kind, uint64_t page,
                   uint32_t *counts, const char **why)
{
  struct reader r = { .why = why };
  unsigned pos = 0;
  uint64_t n, value;

  memset (counts, 0, COUNTS_PER_PAGE * sizeof *counts);
  if (check_header (&r, data, len, kind, 0, page))
    return -EIO;
  while (r.p < r.end) {
    if (get_varint (&r, &n) || get_varint (&r, &value))
      return -EIO;
    if (n == 0 || n > COUNTS_PER_PAGE - pos)
      return bad (&r, "run beyond the end of the page");
    if (value > COUNT_MAX)
      return bad (&r, "count out of range");
    for (; n > 0; n--)
      counts[pos++] = value;
  }
  return 0;
}

int
cow_pack_peek_level (const void *data, size_t len)
{
  struct disk_header h;

  if (data == NULL || len < sizeof h)
    return -1;
  memcpy (&h, data, sizeof h);
  if (le32toh (h.kind) != PACK_LEAF && le32toh (h.kind) != PACK_INNER)
    return -1;
  return le16toh (h.level);
}
