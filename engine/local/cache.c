/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "log.h"
#include "pack.h"

#define MIN_BUCKETS 1024

static size_t
payload_size (enum object_kind kind, unsigned level)
{
  if (kind == OBJ_NODE)
    return level == 0 ? LEAF_ENTRIES * sizeof (struct entry)
      : INNER_CHILDREN * sizeof (uint64_t);
  return COUNTS_PER_PAGE * sizeof (uint32_t);
}

static size_t
object_size (enum object_kind kind, unsigned level)
{
  return offsetof (struct object, entry) + payload_size (kind, level);
}

static size_t
hash (enum object_kind kind, uint64_t id, size_t nr_buckets)
{
  uint64_t h = (id * 4 + kind) * UINT64_C (0x9e3779b97f4a7c15);

  return (h >> 32) & (nr_buckets - 1);
}

int
cow_cache_init (struct local_pool *p, uint64_t limit_bytes)
{
  struct cache *c = &p->cache;

  c->nr_buckets = MIN_BUCKETS;
  c->bucket = calloc (c->nr_buckets, sizeof *c->bucket);
  c->limit_bytes = limit_bytes;
  return c->bucket ? 0 : -ENOMEM;
}

static void
free_object (struct object *o)
{
  free (o->snapshot);
  free (o);
}

void
cow_cache_destroy (struct local_pool *p)
{
  struct cache *c = &p->cache;
  size_t i;

  for (i = 0; c->bucket && i < c->nr_buckets; i++)
    while (c->bucket[i]) {
      struct object *o = c->bucket[i];

      c->bucket[i] = o->hash_next;
      free_object (o);
    }
  free (c->bucket);
  c->bucket = NULL;
}

static struct object *
find (struct cache *c, enum object_kind kind, uint64_t id)
{
  struct object *o = c->bucket[hash (kind, id, c->nr_buckets)];

  while (o && (o->id != id || o->kind != kind))
    o = o->hash_next;
  return o;
}

struct object *
cow_cache_get (struct local_pool *p, enum object_kind kind, uint64_t id,
               unsigned level, struct miss *miss)
{
  struct object *o = find (&p->cache, kind, id);

  if (o == NULL) {
    *miss = (struct miss) { .kind = kind, .level = level, .id = id,
                            .commits = p->commits };
    return NULL;
  }
  if (!__atomic_load_n (&o->referenced, __ATOMIC_RELAXED))
    __atomic_store_n (&o->referenced, true, __ATOMIC_RELAXED);
  return o;
}

/* Double the table; without memory chains just get longer. */
static void
grow_table (struct cache *c)
{
  size_t nr = c->nr_buckets * 2, i;
  struct object **bucket = calloc (nr, sizeof *bucket);

  if (bucket == NULL)
    return;
  for (i = 0; i < c->nr_buckets; i++)
    while (c->bucket[i]) {
      struct object *o = c->bucket[i];
      size_t h = hash (o->kind, o->id, nr);

      c->bucket[i] = o->hash_next;
      o->hash_next = bucket[h];
      bucket[h] = o;
    }
  free (c->bucket);
  c->bucket = bucket;
  c->nr_buckets = nr;
}

/* Also read without the lock, as a hint (cow_cache_trim). */
static void
set_bytes (struct cache *c, uint64_t bytes)
{
  __atomic_store_n (&c->bytes, bytes, __ATOMIC_RELAXED);
}

static void
insert (struct cache *c, struct object *o)
{
  size_t h;

  if (c->nr_objects >= c->nr_buckets)
    grow_table (c);
  h = hash (o->kind, o->id, c->nr_buckets);
  o->hash_next = c->bucket[h];
  c->bucket[h] = o;
  /* Just behind the hand: it comes by last. */
  if (c->hand) {
    o->clock_next = c->hand;
    o->clock_prev = c->hand->clock_prev;
    o->clock_prev->clock_next = o;
    o->clock_next->clock_prev = o;
  }
  else
    c->hand = o->clock_next = o->clock_prev = o;
  c->nr_objects++;
  set_bytes (c, c->bytes + object_size (o->kind, o->level));
}

static void
take_out (struct cache *c, struct object *o)
{
  struct object **link = &c->bucket[hash (o->kind, o->id, c->nr_buckets)];

  while (*link != o)
    link = &(*link)->hash_next;
  *link = o->hash_next;
  if (o->clock_next == o)
    c->hand = NULL;
  else {
    if (c->hand == o)
      c->hand = o->clock_next;
    o->clock_prev->clock_next = o->clock_next;
    o->clock_next->clock_prev = o->clock_prev;
  }
  c->nr_objects--;
  set_bytes (c, c->bytes - object_size (o->kind, o->level));
}

/* Let clean records go until the cache fits; a bounded number of steps, so
 * that a cache full of dirty ones does not hold the lock for long.
 */
static void
evict (struct cache *c)
{
  unsigned steps = 64;

  while (c->bytes > c->limit_bytes && c->hand && steps-- > 0) {
    struct object *o = c->hand;

    c->hand = o->clock_next;
    if (o->dirty || o->frozen || o->nr_held > 0)
      continue;
    if (o->referenced) {
      o->referenced = false;
      continue;
    }
    take_out (c, o);
    free_object (o);
  }
}

/* Creating records never lets others go, since a step may be using them;
 * so between steps.
 */
void
cow_cache_trim (struct local_pool *p)
{
  struct cache *c = &p->cache;

  if (__atomic_load_n (&c->bytes, __ATOMIC_RELAXED) <= c->limit_bytes)
    return;
  pthread_rwlock_wrlock (&p->map_lock);
  evict (c);
  pthread_rwlock_unlock (&p->map_lock);
}

static int
unpack (struct local_pool *p, const void *buf, size_t len, struct object *o,
        const char **why)
{
  if (o->kind != OBJ_NODE) {
    if (len == 0)
      return 0;                 /* never stored: all zero */
    return cow_unpack_counts (buf, len, o->kind == OBJ_CHUNK_COUNTS
                              ? PACK_CHUNK_COUNTS : PACK_NODE_COUNTS, o->id,
                              o->count, why);
  }
  if (len == 0) {
    *why = "record is missing";
    return -EIO;
  }
  return o->level == 0
    ? cow_unpack_leaf (buf, len, o->id, p->space.nr_chunks, o->entry, why)
    : cow_unpack_inner (buf, len, o->id, o->level, UINT64_C (1) << 62,
                        o->child, why);
}

/* A commit ended since the miss: the record may be gone for good reason, and
 * the step finds that out when it looks again.
 */
static bool
outdated (struct local_pool *p, const struct miss *miss)
{
  bool yes;

  pthread_rwlock_rdlock (&p->map_lock);
  yes = p->commits != miss->commits;
  pthread_rwlock_unlock (&p->map_lock);
  return yes;
}

int
cow_cache_load (struct local_pool *p, const struct miss *miss)
{
  struct object *o = calloc (1, object_size (miss->kind, miss->level));
  const char *why = "";
  char buf[PACK_MAX];
  size_t len;
  int r;

  if (o == NULL)
    return -ENOMEM;
  o->id = miss->id;
  o->kind = miss->kind;
  o->level = miss->level;
  o->referenced = true;

  r = cow_store_load (p->store, (enum store_kind) miss->kind, miss->id, buf,
                      &len);
  if (r == 0)
    r = unpack (p, buf, len, o, &why);
  if (r < 0 && outdated (p, miss)) {
    free (o);
    return 0;
  }
  if (r < 0) {
    if (*why)
      cow_log (COW_LOG_ERROR, "pool %s: meta.db: %s %llu: %s",
               p->pool.name, miss->kind == OBJ_NODE ? "node" :
               miss->kind == OBJ_CHUNK_COUNTS ? "chunk count page" :
               "node count page", (unsigned long long) miss->id, why);
    free (o);
    return r;
  }

  /* A commit that ended meanwhile may have stored a newer version that has
   * left the cache since: then what was read is old, and the step that
   * missed it loads again.
   */
  pthread_rwlock_wrlock (&p->map_lock);
  if (p->commits == miss->commits && find (&p->cache, o->kind, o->id) == NULL) {
    insert (&p->cache, o);
    evict (&p->cache);
    o = NULL;
  }
  pthread_rwlock_unlock (&p->map_lock);
  free (o);
  return 0;
}

/* Also read without the lock, as a hint (cow_commit_admit). */
static void
set_dirty_bytes (struct cache *c, uint64_t bytes)
{
  __atomic_store_n (&c->dirty_bytes, bytes, __ATOMIC_RELAXED);
}

static void
append_dirty (struct cache *c, struct object *o)
{
  o->dirty = true;
  o->dirty_next = NULL;
  o->dirty_prev = c->dirty_last;
  if (c->dirty_last)
    c->dirty_last->dirty_next = o;
  else
    c->dirty_first = o;
  c->dirty_last = o;
  set_dirty_bytes (c, c->dirty_bytes + object_size (o->kind, o->level));
}

static void
detach_dirty (struct cache *c, struct object *o)
{
  if (o->dirty_prev)
    o->dirty_prev->dirty_next = o->dirty_next;
  else
    c->dirty_first = o->dirty_next;
  if (o->dirty_next)
    o->dirty_next->dirty_prev = o->dirty_prev;
  else
    c->dirty_last = o->dirty_prev;
  o->dirty = false;
  set_dirty_bytes (c, c->dirty_bytes - object_size (o->kind, o->level));
}

struct object *
cow_cache_create (struct local_pool *p, enum object_kind kind, uint64_t id,
                  unsigned level)
{
  struct object *o = calloc (1, object_size (kind, level));

  if (o == NULL)
    return NULL;
  o->id = id;
  o->kind = kind;
  o->level = level;
  o->referenced = true;
  insert (&p->cache, o);
  append_dirty (&p->cache, o);
  p->open.any = true;
  return o;
}

int
cow_cache_dirty (struct local_pool *p, struct object *o)
{
  if (o->frozen && o->snapshot == NULL) {
    size_t n = payload_size (o->kind, o->level);

    o->snapshot = malloc (n);
    if (o->snapshot == NULL)
      return -ENOMEM;
    memcpy (o->snapshot, o->entry, n);
  }
  if (!o->dirty)
    append_dirty (&p->cache, o);
  p->open.any = true;
  return 0;
}

void
cow_cache_remove (struct local_pool *p, struct object *o)
{
  take_out (&p->cache, o);
  if (o->dirty)
    detach_dirty (&p->cache, o);
  if (o->frozen)
    o->dead = true;             /* the committer frees it */
  else
    free_object (o);
}

int
cow_cache_freeze (struct local_pool *p, struct object ***objects, size_t *nr)
{
  struct cache *c = &p->cache;
  struct object *o;
  size_t n = 0;

  for (o = c->dirty_first; o; o = o->dirty_next)
    n++;
  *nr = n;
  *objects = malloc ((n + 1) * sizeof **objects);
  if (*objects == NULL)
    return -ENOMEM;
  for (n = 0; (o = c->dirty_first) != NULL; n++) {
    detach_dirty (c, o);
    o->frozen = true;
    (*objects)[n] = o;
  }
  return 0;
}

void
cow_cache_thaw (struct local_pool *p, struct object **objects, size_t nr,
                bool committed)
{
  size_t i;

  for (i = 0; i < nr; i++) {
    struct object *o = objects[i];

    o->frozen = false;
    free (o->snapshot);
    o->snapshot = NULL;
    if (o->dead)
      free_object (o);
    else if (!committed && !o->dirty)
      append_dirty (&p->cache, o);
  }
  evict (&p->cache);
}

const void *
cow_cache_frozen_payload (const struct object *o)
{
  return o->snapshot ? o->snapshot : (const void *) o->entry;
}
