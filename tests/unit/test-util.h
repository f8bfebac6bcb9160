/* SPDX-License-Identifier: BSD-3-Clause */
/* What the larger unit tests share: a generator that gives the same numbers
 * everywhere, and temporary directories.
 */
#ifndef COW_TEST_UTIL_H
#define COW_TEST_UTIL_H

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* splitmix64 */
struct rng {
  uint64_t state;
};

static inline uint64_t
rng_next (struct rng *r)
{
  uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* 0 .. n-1; 0 for n == 0 */
static inline uint64_t
rng_below (struct rng *r, uint64_t n)
{
  return n ? rng_next (r) % n : 0;
}

static inline int
rng_percent (struct rng *r, unsigned percent)
{
  return rng_below (r, 100) < percent;
}

static inline void
rng_fill (struct rng *r, uint8_t *buf, size_t len)
{
  while (len) {
    uint64_t v = rng_next (r) | 0x0101010101010101u; /* no zero byte */
    size_t n = len < sizeof v ? len : sizeof v;

    memcpy (buf, &v, n);
    buf += n;
    len -= n;
  }
}

static inline uint64_t
env_number (const char *name, uint64_t otherwise)
{
  const char *s = getenv (name);

  return s && *s ? strtoull (s, NULL, 0) : otherwise;
}

static inline int64_t
now_ms (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static inline void
pause_ms (unsigned ms)
{
  struct timespec ts = { ms / 1000, (long) (ms % 1000) * 1000000 };

  nanosleep (&ts, NULL);
}

/* A new directory; the caller removes it with remove_tree and frees it. */
static inline char *
make_temp_dir (void)
{
  const char *base = getenv ("TMPDIR");
  char *path;

  if (asprintf (&path, "%s/cowshed-unit.XXXXXX",
                base && *base ? base : "/tmp") == -1 ||
      mkdtemp (path) == NULL) {
    perror ("temporary directory");
    exit (99);
  }
  return path;
}

static inline int
remove_entry (const char *path, const struct stat *st, int type,
              struct FTW *ftw)
{
  return remove (path);
}

static inline void
remove_tree (const char *path)
{
  nftw (path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif /* COW_TEST_UTIL_H */
