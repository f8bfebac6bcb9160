/* SPDX-License-Identifier: BSD-3-Clause */
/* Read, write, zero and trim of a local volume (pool-ops.h). */
#ifndef COW_IO_H
#define COW_IO_H

#include "local.h"

int cow_io_pread (struct cow_object *o, void *buf, size_t len,
                  uint64_t offset);
int cow_io_pwrite (struct cow_object *o, const void *buf, size_t len,
                   uint64_t offset);
int cow_io_zero (struct cow_object *o, uint64_t len, uint64_t offset,
                 unsigned flags, bool *changed);
int cow_io_trim (struct cow_object *o, uint64_t len, uint64_t offset,
                 bool *changed);
int cow_io_cache (struct cow_object *o, uint64_t len, uint64_t offset);

/* Copy whole blocks from one chunk to the same places of another. */
int cow_io_copy_blocks (struct local_pool *p, uint64_t from, uint64_t to,
                        unsigned mask);

#endif /* COW_IO_H */
