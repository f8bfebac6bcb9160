/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "data.h"
#include "log.h"

#define DATA_VERSION 1

struct disk_data_header {
  char magic[8];
  uint32_t version, zero;
  uint64_t chunk_size;
  char uuid[40];
  char reserved[4024];
  uint64_t checksum;
};

_Static_assert (sizeof (struct disk_data_header) == DATA_HEADER_SIZE,
                "data header");

static const char magic[8] = "COWSHED";

int
cow_data_write_header (int fd, const char *uuid, uint64_t chunk_size)
{
  struct disk_data_header h = { .version = htole32 (DATA_VERSION),
                                .chunk_size = htole64 (chunk_size) };
  struct iovec iov = { &h, sizeof h };

  memcpy (h.magic, magic, sizeof magic);
  strncpy (h.uuid, uuid, 36);
  h.checksum = htole64 (XXH3_64bits (&h, sizeof h - sizeof h.checksum));
  return cow_data_pwritev (fd, &iov, 1, 0);
}

int
cow_data_read_header (int fd, char *uuid, uint64_t *chunk_size)
{
  struct disk_data_header h;
  int r = cow_data_pread (fd, &h, sizeof h, 0);

  if (r < 0)
    return r;
  if (memcmp (h.magic, magic, sizeof magic) != 0)
    return -ENOENT;
  if (le64toh (h.checksum) != XXH3_64bits (&h, sizeof h - sizeof h.checksum)
      || le32toh (h.version) != DATA_VERSION)
    return -EIO;
  memcpy (uuid, h.uuid, 36);
  uuid[36] = 0;
  *chunk_size = le64toh (h.chunk_size);
  return 0;
}

/* Take n bytes off the front of an iovec. */
static void
advance (struct iovec **iov, int *nr, size_t n)
{
  while (*nr > 0 && n >= (*iov)->iov_len) {
    n -= (*iov)->iov_len;
    ++*iov;
    --*nr;
  }
  if (*nr > 0) {
    (*iov)->iov_base = (char *) (*iov)->iov_base + n;
    (*iov)->iov_len -= n;
  }
}

int
cow_data_preadv (int fd, struct iovec *iov, int n, uint64_t offset)
{
  while (n > 0) {
    ssize_t r = preadv (fd, iov, n, offset);

    if (r == -1 && errno == EINTR)
      continue;
    if (r == -1)
      return -errno;
    if (r == 0) {
      cow_log (COW_LOG_ERROR, "the data ends before byte %llu, which a map "
               "refers to", (unsigned long long) offset);
      return -EIO;
    }
    offset += r;
    advance (&iov, &n, r);
  }
  return 0;
}

int
cow_data_pread (int fd, void *buf, size_t len, uint64_t offset)
{
  struct iovec iov = { buf, len };

  return cow_data_preadv (fd, &iov, 1, offset);
}

int
cow_data_pwritev (int fd, struct iovec *iov, int n, uint64_t offset)
{
  while (n > 0) {
    ssize_t r = pwritev (fd, iov, n, offset);

    if (r == -1 && errno == EINTR)
      continue;
    if (r <= 0)
      return r == 0 ? -EIO : -errno;
    offset += r;
    advance (&iov, &n, r);
  }
  return 0;
}

int
cow_data_punch (const struct local_pool *p, uint64_t len, uint64_t offset)
{
  if (p->is_device) {
    uint64_t range[2] = { offset, len };

    /* Many devices cannot: the chunks are reused all the same. */
    ioctl (p->data_fd, BLKDISCARD, range);
    return 0;
  }
  if (fallocate (p->data_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                 offset, len) == -1)
    return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
  return 0;
}
