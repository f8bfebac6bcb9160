/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes as people type and read them. */
#ifndef COW_SIZE_H
#define COW_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* Parse a size: digits, then optionally one of the qemu-img suffixes
 * b K M G T P E (either case, powers of 1024).  A fraction is allowed with a
 * suffix ("1.5G").  No sign, no spaces, no other text.  0, -EINVAL (not a
 * size) or -ERANGE (over 2^63-1).
 */
int cow_size_parse (const char *text, uint64_t *bytes);

/* "0", "512", "64K", "1.5G": the shortest form with at most two decimals.
 * Returns buf.
 */
const char *cow_size_format (uint64_t bytes, char *buf, size_t len);

#endif /* COW_SIZE_H */
