/* SPDX-License-Identifier: BSD-3-Clause */
/* The stored form of leaves, inner nodes and count pages.
 *
 * Every record starts with a 24-byte header (little-endian):
 *
 *   0  4  kind: "CWLF", "CWIN", "CWCC" (chunk counts), "CWCN" (node counts)
 *   4  2  format version, 1
 *   6  2  level (leaf 0; count pages 0)
 *   8  8  the record's own id (node id or page number)
 *  16  8  XXH3-64 of the whole record with this field zero
 *
 * followed by runs, numbers as LEB128 varints:
 *
 *   leaf    {gap, length, own, present, origin, omask}: gap empty entries,
 *           then length entries whose own (and origin, where not 0) rise
 *           by one from entry to entry and whose masks are the same
 *   inner   {gap, length, child}: children that rise by one
 *   counts  {length, value}, up to 1024 values; the rest is 0
 *
 * Decoding validates everything, so what it returns can be trusted; it
 * never reads beyond len.  Pure functions.
 */
#ifndef COW_PACK_H
#define COW_PACK_H

#include <stddef.h>

#include "entry.h"
#include "types.h"

#define PACK_LEAF   0x464c5743u
#define PACK_INNER  0x4e495743u
#define PACK_CHUNK_COUNTS 0x43435743u
#define PACK_NODE_COUNTS  0x4e435743u

/* Room for the worst case of any record. */
#define PACK_MAX 8192

size_t cow_pack_leaf (uint64_t id, const struct entry *e, void *out);
size_t cow_pack_inner (uint64_t id, unsigned level, const uint64_t *child,
                       void *out);
size_t cow_pack_counts (uint32_t kind, uint64_t page, const uint32_t *counts,
                        void *out);

/* 0, or -EIO with *why a static text: what is wrong. */
int cow_unpack_leaf (const void *data, size_t len, uint64_t id,
                     uint64_t nr_chunks, struct entry *e, const char **why);
int cow_unpack_inner (const void *data, size_t len, uint64_t id,
                      unsigned level, uint64_t next_node, uint64_t *child,
                      const char **why);
int cow_unpack_counts (const void *data, size_t len, uint32_t kind,
                       uint64_t page, uint32_t *counts, const char **why);

/* The level in a node record's header without validation, or -1. */
int cow_pack_peek_level (const void *data, size_t len);

#endif /* COW_PACK_H */
