/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cleanup.h"
#include "listen.h"

/* ---- Unix ---- */

/* Does anybody answer at sa?  A full backlog is an answer too. */
static bool
is_alive (const struct sockaddr_un *sa)
{
  CLEANUP_CLOSE int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
                                 SOCK_NONBLOCK, 0);

  if (fd < 0)
    return true;                /* unknown: leave it alone */
  return connect (fd, (const struct sockaddr *) sa, sizeof *sa) == 0 ||
    errno != ECONNREFUSED;
}

/* Something is at sa: 0 when it was a dead socket and is gone. */
static int
remove_stale (const struct sockaddr_un *sa, struct cow_error *err)
{
  struct stat st;

  if (lstat (sa->sun_path, &st) < 0)
    return errno == ENOENT ? 0 :
      cow_error_set (err, errno, "io-error", "control socket %s: %s",
                     sa->sun_path, strerror (errno));
  if (!S_ISSOCK (st.st_mode))
    return cow_error_set (err, EEXIST, "exists", "control socket %s: there "
                          "is a file that is no socket", sa->sun_path);
  if (is_alive (sa))
    return cow_error_set (err, EADDRINUSE, "busy", "control socket %s: "
                          "another server answers there", sa->sun_path);
  unlink (sa->sun_path);
  return 0;
}

static int
bind_unix (int fd, const struct sockaddr_un *sa, struct cow_error *err)
{
  int r = bind (fd, (const struct sockaddr *) sa, sizeof *sa);

  if (r < 0 && errno == EADDRINUSE) {
    r = remove_stale (sa, err);
    if (r < 0)
      return r;
    r = bind (fd, (const struct sockaddr *) sa, sizeof *sa);
  }
  if (r < 0)
    return cow_error_set (err, errno, "io-error", "control socket %s: %s",
                          sa->sun_path, strerror (errno));
  return 0;
}

int
cow_listen_unix (const char *path, struct stat *st, struct cow_error *err)
{
  struct sockaddr_un sa = { .sun_family = AF_UNIX };
  int fd, r;

  if (strlen (path) >= sizeof sa.sun_path)
    return cow_error_set (err, ENAMETOOLONG, "invalid-path", "control "
                          "socket %s: the path has %zu bytes, and at most "
                          "%zu fit", path, strlen (path),
                          sizeof sa.sun_path - 1);
  strcpy (sa.sun_path, path);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return cow_error_set (err, errno, "io-error", "control socket: %s",
                          strerror (errno));
  r = bind_unix (fd, &sa, err);
  /* Nobody can connect between bind and listen, so the mode is never wider
   * than it should be.
   */
  if (r == 0 && (chmod (path, 0600) < 0 || lstat (path, st) < 0 ||
                 listen (fd, LISTEN_BACKLOG) < 0)) {
    r = cow_error_set (err, errno, "io-error", "control socket %s: %s",
                       sa.sun_path, strerror (errno));
    unlink (path);
  }
  if (r < 0) {
    close (fd);
    return r;
  }
  return fd;
}

void
cow_unlisten_unix (const char *path, const struct stat *st)
{
  struct stat now;

  if (lstat (path, &now) == 0 && now.st_dev == st->st_dev &&
      now.st_ino == st->st_ino)
    unlink (path);
}

/* ---- TCP ---- */

static int
bad_address (const char *where, const char *why, struct cow_error *err)
{
  return cow_error_set (err, EINVAL, "invalid-address",
                        "control-listen=%s: %s", where, why);
}

/* Split in place: "[::1]:80" and "localhost:80". */
static int
split_address (char *text, const char **host, const char **port)
{
  char *colon = strrchr (text, ':');
  size_t len;

  if (colon == NULL || colon[1] == '\0' ||
      colon[1 + strspn (colon + 1, "0123456789")])
    return -EINVAL;
  *colon = '\0';
  *port = colon + 1;
  len = strlen (text);
  if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
    text[len - 1] = '\0';
    text++;
  }
  else if (strchr (text, ':'))
    return -EINVAL;
  *host = text;
  return *text ? 0 : -EINVAL;
}

static int
listen_address (const struct addrinfo *ai)
{
  const int one = 1;
  int saved_errno;
  int fd = socket (ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                   0);

  if (fd < 0)
    return -errno;
  setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (ai->ai_family == AF_INET6)
    setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  if (bind (fd, ai->ai_addr, ai->ai_addrlen) == 0 &&
      listen (fd, LISTEN_BACKLOG) == 0)
    return fd;
  saved_errno = errno;
  close (fd);
  return -saved_errno;
}

int
cow_listen_tcp (const char *where, int *fds, size_t max,
                struct cow_error *err)
{
  const struct addrinfo hints = { .ai_flags = AI_PASSIVE,
                                  .ai_socktype = SOCK_STREAM };
  CLEANUP_FREE char *text = strdup (where);
  const char *host, *port;
  struct addrinfo *list;
  int n = 0, r;

  if (text == NULL || split_address (text, &host, &port) < 0)
    return bad_address (where, "expected HOST:PORT or [ADDRESS]:PORT", err);
  r = getaddrinfo (host, port, &hints, &list);
  if (r != 0)
    return bad_address (where, gai_strerror (r), err);
  for (struct addrinfo *ai = list; ai && (size_t) n < max;
       ai = ai->ai_next) {
    r = listen_address (ai);
    if (r >= 0)
      fds[n++] = r;
  }
  freeaddrinfo (list);
  if (n == 0)
    return cow_error_set (err, -r, -r == EADDRINUSE ? "busy" : "io-error",
                          "control-listen=%s: %s", where, strerror (-r));
  return n;
}
