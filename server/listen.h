/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening sockets of the control server. */
#ifndef COW_LISTEN_H
#define COW_LISTEN_H

#include <stddef.h>
#include <sys/stat.h>

#include "error.h"

#define LISTEN_BACKLOG 512

/* A Unix socket at path with mode 0600, listening; the descriptor or
 * -errno.  A socket file that nobody answers at is replaced; -EADDRINUSE
 * where somebody does, -ENAMETOOLONG over 107 bytes, -EEXIST where there is
 * something else than a socket.  st tells the new file from a later one.
 */
int cow_listen_unix (const char *path, struct stat *st,
                     struct cow_error *err);

/* Remove the socket file unless another one took its place. */
void cow_unlisten_unix (const char *path, const struct stat *st);

/* Sockets for all addresses of "HOST:PORT" or "[ADDRESS]:PORT", at most max;
 * their number or -errno.
 */
int cow_listen_tcp (const char *where, int *fds, size_t max,
                    struct cow_error *err);

#endif /* COW_LISTEN_H */
