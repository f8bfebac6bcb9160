/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the cowshed command share.
 *
 * A command is a row of cow_commands (commands.c): its name, arguments and
 * options.  The parser, the help texts and the shell completion are all
 * made from that table.  A command's function gets a struct session that
 * holds the parsed line, and returns the exit status.
 */
#ifndef COWSHED_H
#define COWSHED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h"

#define STATUS_OK 0
#define STATUS_FAILED 1         /* a message is on stderr */
#define STATUS_USAGE 2
#define STATUS_REPAIRED 4       /* check --repair */

#define MAX_OPTIONS 8           /* of one command */

struct session;

struct option_def {
  const char *name;             /* without "--" */
  char letter;                  /* short form or 0 */
  const char *arg;              /* what its value is, NULL: a flag */
  const char *help;
};

/* What the arguments are, for completion. */
enum operand { OPERAND_NONE, OPERAND_NAME, OPERAND_DIR };

struct command {
  const char *name;
  const char *args;             /* as in the synopsis */
  const char *summary;
  int min_args, max_args;       /* max -1: any number */
  enum operand operand;
  bool takes_rest;              /* arguments after "--" are kept apart */
  bool hidden;
  int (*run) (struct session *s);
  struct option_def options[MAX_OPTIONS]; /* ends at a NULL name */
};

extern const struct command cow_commands[]; /* ends at a NULL name */
extern const struct option_def global_options[];

struct session {
  const struct command *cmd;
  const char **args;            /* never NULL after parsing */
  int nr_args;
  char **rest;                  /* after "--" */
  int nr_rest;
  const char *values[MAX_OPTIONS]; /* by index; "" for a given flag */
  char **pools;                 /* -p or $COWSHED_POOL, "[NAME:]DIR" */
  size_t nr_pools;
  const char *control;          /* --control or NULL */
  bool json, help, version;
  struct backend *backend;      /* made by the first backend_call */
};

/* ---- options.c ---- */

/* Fill s from the command line; STATUS_OK or STATUS_USAGE. */
int session_parse (struct session *s, int argc, char **argv);
/* The value of an option of this command: NULL where it was not given. */
const char *session_option (const struct session *s, const char *name);
const struct command *command_find (const char *name);

/* Print "cowshed: COMMAND: message"; return STATUS_FAILED, STATUS_USAGE. */
int fail (const struct session *s, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));
int fail_usage (const struct session *s, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

/* Parse and complain, naming what the text stands for. */
int parse_size (const struct session *s, const char *what, const char *text,
                uint64_t *bytes);
int parse_spec (const struct session *s, const char *text, unsigned flags,
                struct cow_spec *spec);
/* The same, where only a volume, or only a snapshot, will do. */
int parse_volume (const struct session *s, const char *text);
int parse_snapshot (const struct session *s, const char *text);
int parse_object (const struct session *s, const char *text);

/* Like asprintf, but ends the program when there is no memory. */
char *text_format (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));
void *memory_alloc (size_t size);

/* ---- help.c ---- */

void help_all (void);
void help_command (const struct command *cmd);

/* ---- backend.c ---- */

/* Carry out a request: by the server where one answers, else on the pool
 * itself.  query (an object of strings) and body are taken over, and may be
 * NULL.  On STATUS_OK *reply is the caller's; otherwise the reason was
 * printed.
 */
int backend_call (struct session *s, const char *method, const char *path,
                  json_t *query, json_t *body, json_t **reply);
/* As above where nothing of the reply is wanted, except under --json. */
int backend_do (struct session *s, const char *method, const char *path,
                json_t *query, json_t *body);
/* Close what backend_call opened; fails if the last commit did. */
int backend_close (struct session *s);
/* "/v1/volumes/NAME" + suffix, NAME percent-encoded.  Free it. */
char *volume_path (const char *name, const char *suffix);
/* The socket of the server of pool "[NAME:]DIR".  Free it. */
char *control_path (const char *spec);
/* Only the DIR of "[NAME:]DIR", absolute where it exists.  Free it. */
char *pool_dir (const char *spec);

/* ---- client.c ---- */

struct client;
/* NULL with errno where nobody listens at the path. */
struct client *client_open (const char *socket_path);
void client_close (struct client *client);
/* One HTTP exchange.  timeout_s 0: none.  The HTTP status with *reply, or
 * -1 with a reason in error.  Keeps neither query nor body.
 */
int client_call (struct client *client, unsigned timeout_s,
                 const char *method, const char *path, json_t *query,
                 json_t *body, json_t **reply, char *error, size_t len);
/* Percent-encode all but unreserved characters and those in keep. */
char *percent_encode (const char *text, const char *keep);

/* ---- output.c ---- */

enum column_kind { COLUMN_TEXT, COLUMN_SIZE, COLUMN_NUMBER, COLUMN_TIME,
                   COLUMN_FLAG, COLUMN_PERCENT };

struct column {
  const char *title;
  const char *key;              /* JSON member */
  enum column_kind kind;
};

/* Columns end at a NULL title.  A missing member shows as "-". */
void print_table (json_t *rows, const struct column *columns);
void print_record (json_t *object, const struct column *columns);
void print_json (json_t *value);
/* Rows that arrive in pages, as one JSON list or aligned lines. */
void print_rows_begin (const struct session *s, const char *list);
void print_rows_item (const struct session *s, json_t *row);
void print_rows_end (const struct session *s);
uint64_t json_u64 (json_t *object, const char *key);
/* A member as text in the way of its kind, printable, to be freed. */
char *json_text (json_t *object, const char *key, enum column_kind kind);

/* ---- progress.c ---- */

/* A bar on stderr; nothing where that is not a terminal. */
struct progress {
  const char *label;
  bool on, bytes;
  double started, drawn;        /* seconds */
};

void progress_begin (struct progress *p, const char *label, bool bytes);
void progress_update (struct progress *p, uint64_t done, uint64_t total);
void progress_end (struct progress *p);

/* ---- the commands: cmd-*.c, serve.c ---- */

int cmd_init (struct session *s);
int cmd_df (struct session *s);
int cmd_check (struct session *s);
int cmd_ls (struct session *s);
int cmd_info (struct session *s);
int cmd_create (struct session *s);
int cmd_rm (struct session *s);
int cmd_rename (struct session *s);
int cmd_resize (struct session *s);
int cmd_snap (struct session *s);
int cmd_clone (struct session *s);
int cmd_rollback (struct session *s);
int cmd_zero (struct session *s);
int cmd_trim (struct session *s);
int cmd_map (struct session *s);
int cmd_diff (struct session *s);
int cmd_jobs (struct session *s);
int cmd_job (struct session *s);
int cmd_serve (struct session *s);
int cmd_completion (struct session *s);

/* Wait for a job, with a bar.  It as it ended goes to *ended, if that is not
 * NULL; NULL where there was no answer.
 */
int job_follow (struct session *s, uint64_t id, const char *label,
                json_t **ended);

#endif /* COWSHED_H */
