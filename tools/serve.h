/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of "cowshed serve": what to run (serve-args.c), the sockets it
 * listens on (serve-sockets.c), and keeping it running (serve.c).
 */
#ifndef COWSHED_SERVE_H
#define COWSHED_SERVE_H

#include <stdbool.h>
#include <stddef.h>

struct session;

/* A list of strings that it owns, always ended by NULL. */
struct words {
  char **item;
  size_t nr;
};

void words_add (struct words *w, const char *text);
void words_free (struct words *w);

/* What the line asks for. */
struct serve_plan {
  struct words pools;           /* "[NAME:]DIR", DIR absolute */
  struct words unix_paths;      /* -U */
  const char *port;             /* -p or NULL */
  const char *address;          /* -i or NULL */
  int family;                   /* AF_UNSPEC, AF_INET, AF_INET6 */
  bool tls;                     /* --tls=on or require */
  struct words listen_args;     /* -U, -p, -i ... as written, for --print */
  struct words options;         /* nbdkit's, passed through */
  struct words parameters;      /* KEY=VALUE for the plugin and filters */
  char *control;                /* the control socket, NULL: none */
};

/* Fill plan; STATUS_OK or STATUS_USAGE with a message. */
int serve_plan_parse (struct session *s, struct serve_plan *plan);
void serve_plan_free (struct serve_plan *plan);
/* nbdkit's words; with_sockets: as it would be run by hand. */
void serve_plan_command (const struct serve_plan *plan, bool with_sockets,
                         struct words *command);

struct sockets {
  int *fd;                      /* close-on-exec */
  size_t nr;
  struct words uris;            /* one for each socket of our own */
  struct words unlink;          /* files to remove at the end */
};

/* Take over systemd's sockets if it passed some, else listen as the plan
 * says.  STATUS_OK, or a message was printed.
 */
int sockets_open (struct session *s, const struct serve_plan *plan,
                  struct sockets *sockets);
/* In the child before exec: put them where socket activation wants them. */
int sockets_pass (const struct sockets *sockets);
void sockets_close (struct sockets *sockets);
/* Did systemd pass sockets to this process? */
bool sockets_inherited (void);

#endif /* COWSHED_SERVE_H */
