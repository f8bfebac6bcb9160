/* SPDX-License-Identifier: BSD-3-Clause */
/* The listening sockets of "cowshed serve".
 *
 * They belong to the supervisor and outlive each nbdkit: while that is being
 * restarted, clients that connect wait in the backlog and are not refused.
 * nbdkit gets them by systemd's socket activation protocol (LISTEN_PID and
 * LISTEN_FDS, descriptors from 3 on); so do we, where systemd starts us.
 */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cleanup.h"
#include "cowshed.h"
#include "serve.h"

#define FIRST_FD 3
#define DEFAULT_PORT "10809"

static void
add_fd (struct sockets *sockets, int fd)
{
  int *grown = memory_alloc ((sockets->nr + 1) * sizeof *grown);

  if (sockets->nr)
    memcpy (grown, sockets->fd, sockets->nr * sizeof *grown);
  free (sockets->fd);
  grown[sockets->nr++] = fd;
  sockets->fd = grown;
}

void
sockets_close (struct sockets *sockets)
{
  for (size_t i = 0; i < sockets->nr; i++)
    close (sockets->fd[i]);
  for (size_t i = 0; i < sockets->unlink.nr; i++)
    unlink (sockets->unlink.item[i]);
  free (sockets->fd);
  words_free (&sockets->uris);
  words_free (&sockets->unlink);
  memset (sockets, 0, sizeof *sockets);
}

/* ---- Unix ---- */

/* A socket file that nobody listens on was left by a server that died.
 * 0 when the path is free, -EADDRINUSE or another -errno.
 */
static int
remove_stale (const struct sockaddr_un *sa)
{
  CLEANUP_CLOSE int fd = -1;
  struct stat st;

  if (lstat (sa->sun_path, &st) < 0)
    return errno == ENOENT ? 0 : -errno;
  if (!S_ISSOCK (st.st_mode))
    return -EEXIST;
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -errno;
  if (connect (fd, (const struct sockaddr *) sa, sizeof *sa) == 0)
    return -EADDRINUSE;
  if (errno != ECONNREFUSED)
    return -errno;
  return unlink (sa->sun_path) < 0 ? -errno : 0;
}

static int
listen_unix (const char *path, int *fd)
{
  struct sockaddr_un sa = { .sun_family = AF_UNIX };
  int r;

  if (strlen (path) >= sizeof sa.sun_path)
    return -ENAMETOOLONG;
  memcpy (sa.sun_path, path, strlen (path) + 1);
  r = remove_stale (&sa);
  if (r < 0)
    return r;
  *fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (*fd < 0)
    return -errno;
  if (bind (*fd, (struct sockaddr *) &sa, sizeof sa) == 0
      && listen (*fd, SOMAXCONN) == 0)
    return 0;
  r = -errno;
  close (*fd);
  return r;
}

static const char *
unix_reason (int r)
{
  switch (r) {
  case -EADDRINUSE:
    return "a server is listening there already";
  case -EEXIST:
    return "something that is not a socket is there";
  case -ENAMETOOLONG:
    return "the path of a socket may have 107 bytes at most";
  default:
    return strerror (-r);
  }
}

static int
open_unix (struct session *s, const struct serve_plan *plan,
           struct sockets *sockets)
{
  for (size_t i = 0; i < plan->unix_paths.nr; i++) {
    const char *path = plan->unix_paths.item[i];
    CLEANUP_FREE char *full = NULL;
    CLEANUP_FREE char *encoded = NULL;
    CLEANUP_FREE char *uri = NULL;
    int fd, r = listen_unix (path, &fd);

    if (r < 0)
      return fail (s, "cannot listen on %s: %s", path, unix_reason (r));
    add_fd (sockets, fd);
    full = realpath (path, NULL);
    words_add (&sockets->unlink, full ? full : path);
    encoded = percent_encode (full ? full : path, "/");
    uri = text_format ("nbd%s+unix:///?socket=%s", plan->tls ? "s" : "",
                       encoded);
    words_add (&sockets->uris, uri);
  }
  return STATUS_OK;
}

/* ---- TCP ---- */

static int
listen_address (const struct addrinfo *ai)
{
  int one = 1, saved_errno;
  int fd = socket (ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC,
                   ai->ai_protocol);

  if (fd < 0)
    return -1;
  setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  /* :: and 0.0.0.0 are two sockets. */
  if (ai->ai_family == AF_INET6)
    setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  if (bind (fd, ai->ai_addr, ai->ai_addrlen) == 0
      && listen (fd, SOMAXCONN) == 0)
    return fd;
  saved_errno = errno;
  close (fd);
  errno = saved_errno;
  return -1;
}

/* The port that was bound, which matters where 0 was asked for. */
static unsigned
bound_port (int fd)
{
  struct sockaddr_storage ss;
  socklen_t len = sizeof ss;

  if (getsockname (fd, (struct sockaddr *) &ss, &len) < 0)
    return 0;
  return ntohs (ss.ss_family == AF_INET6
                ? ((struct sockaddr_in6 *) &ss)->sin6_port
                : ((struct sockaddr_in *) &ss)->sin_port);
}

/* The address that a client on this machine can use. */
static void
add_tcp_uri (const struct serve_plan *plan, const struct addrinfo *ai,
             unsigned port, struct sockets *sockets)
{
  bool v6 = ai->ai_family == AF_INET6;
  char host[NI_MAXHOST] = "localhost";
  CLEANUP_FREE char *uri = NULL;

  if (plan->address)
    getnameinfo (ai->ai_addr, ai->ai_addrlen, host, sizeof host, NULL, 0,
                 NI_NUMERICHOST);
  else if (v6)
    strcpy (host, "::1");
  uri = text_format ("nbd%s://%s%s%s:%u", plan->tls ? "s" : "",
                     v6 ? "[" : "", host, v6 ? "]" : "", port);
  words_add (&sockets->uris, uri);
}

static void
set_port (struct sockaddr *sa, unsigned port)
{
  if (sa->sa_family == AF_INET6)
    ((struct sockaddr_in6 *) sa)->sin6_port = htons ((uint16_t) port);
  else
    ((struct sockaddr_in *) sa)->sin_port = htons ((uint16_t) port);
}

/* Listen on every address; a kernel without IPv6 may refuse those of that
 * family as long as one remains.
 */
static int
listen_addresses (struct session *s, const struct serve_plan *plan,
                  const struct addrinfo *list, struct sockets *sockets)
{
  unsigned port = 0;

  for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
    int fd;

    if (port)
      set_port (ai->ai_addr, port);
    fd = listen_address (ai);
    if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)
        && (ai->ai_next || port))
      continue;
    if (fd < 0)
      return fail (s, "cannot listen on %s port %s: %s",
                   plan->address ? plan->address : "any address",
                   plan->port ? plan->port : DEFAULT_PORT, strerror (errno));
    add_fd (sockets, fd);
    port = bound_port (fd);
    add_tcp_uri (plan, ai, port, sockets);
  }
  return STATUS_OK;
}

static int
open_tcp (struct session *s, const struct serve_plan *plan,
          struct sockets *sockets)
{
  struct addrinfo hints = {
    .ai_family = plan->family, .ai_socktype = SOCK_STREAM,
    .ai_flags = AI_PASSIVE,
  };
  struct addrinfo *list;
  int r, status;

  if (plan->port == NULL && plan->address == NULL)
    return STATUS_OK;
  r = getaddrinfo (plan->address, plan->port ? plan->port : DEFAULT_PORT,
                   &hints, &list);
  if (r != 0)
    return fail (s, "cannot listen on %s port %s: %s",
                 plan->address ? plan->address : "any address",
                 plan->port ? plan->port : DEFAULT_PORT, gai_strerror (r));
  status = listen_addresses (s, plan, list, sockets);
  freeaddrinfo (list);
  return status;
}

/* ---- socket activation ---- */

/* How many sockets systemd passed to this very process. */
static size_t
nr_inherited (void)
{
  const char *pid = getenv ("LISTEN_PID"), *fds = getenv ("LISTEN_FDS");

  if (pid == NULL || fds == NULL || atol (pid) != (long) getpid ()
      || atol (fds) <= 0 || atol (fds) > 1000)
    return 0;
  return (size_t) atol (fds);
}

bool
sockets_inherited (void)
{
  return nr_inherited () > 0;
}

static int
take_inherited (struct session *s, struct sockets *sockets)
{
  size_t nr = nr_inherited ();

  for (size_t i = 0; i < nr; i++) {
    int fd = FIRST_FD + (int) i;

    if (fcntl (fd, F_SETFD, FD_CLOEXEC) < 0)
      return fail (s, "socket %zu from systemd (LISTEN_FDS): %s", i,
                   strerror (errno));
    add_fd (sockets, fd);
  }
  return STATUS_OK;
}

int
sockets_open (struct session *s, const struct serve_plan *plan,
              struct sockets *sockets)
{
  int status;

  if (sockets_inherited ())
    return take_inherited (s, sockets);
  status = open_unix (s, plan, sockets);
  if (status == STATUS_OK)
    status = open_tcp (s, plan, sockets);
  return status;
}

int
sockets_pass (const struct sockets *sockets)
{
  int high = FIRST_FD + (int) sockets->nr, *copy;
  char number[16];

  /* First out of the way, as a target may be another one's source. */
  copy = memory_alloc (sockets->nr * sizeof *copy);
  for (size_t i = 0; i < sockets->nr; i++) {
    copy[i] = fcntl (sockets->fd[i], F_DUPFD_CLOEXEC, high);
    if (copy[i] < 0)
      return -errno;
  }
  for (size_t i = 0; i < sockets->nr; i++)
    if (dup2 (copy[i], FIRST_FD + (int) i) < 0)
      return -errno;
  free (copy);
  snprintf (number, sizeof number, "%ld", (long) getpid ());
  setenv ("LISTEN_PID", number, 1);
  snprintf (number, sizeof number, "%zu", sockets->nr);
  setenv ("LISTEN_FDS", number, 1);
  unsetenv ("LISTEN_FDNAMES");
  return 0;
}
