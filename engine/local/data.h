/* SPDX-License-Identifier: BSD-3-Clause */
/* The data file or device: chunk n is at n * chunk size; chunk 0 starts with
 * a header that ties data and metadata together.
 */
#ifndef COW_DATA_H
#define COW_DATA_H

#include <stddef.h>
#include <sys/uio.h>

#include "error.h"
#include "local.h"

/* Header, little-endian: 0 magic "COWSHED\0", 8 version u32 (1), 12 zero
 * u32, 16 chunk size u64, 24 uuid (36 characters and a zero byte), 61 zeros,
 * 4088 XXH3-64 of bytes 0..4087.
 */
#define DATA_HEADER_SIZE 4096

int cow_data_write_header (int fd, const char *uuid, uint64_t chunk_size);
/* 0, -ENOENT (no header at all), -EIO (damaged), with uuid filled in. */
int cow_data_read_header (int fd, char *uuid, uint64_t *chunk_size);

/* All of it or -errno; short transfers are continued.  Only blocks that were
 * written whole are ever read, so the file's end inside a read is -EIO: the
 * file was cut.
 */
int cow_data_pread (int fd, void *buf, size_t len, uint64_t offset);
int cow_data_preadv (int fd, struct iovec *iov, int n, uint64_t offset);
int cow_data_pwritev (int fd, struct iovec *iov, int n, uint64_t offset);

/* Give the space of [offset, offset+len) back; advisory on devices. */
int cow_data_punch (const struct local_pool *p, uint64_t len,
                    uint64_t offset);

#endif /* COW_DATA_H */
