/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line.  Global options are taken before and after the command,
 * options and arguments in any order, as users of GNU tools expect.
 */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "cowshed.h"
#include "size.h"

static void
complain (const struct session *s, const char *fmt, va_list ap)
{
  fflush (stdout);
  fprintf (stderr, "cowshed: ");
  if (s->cmd)
    fprintf (stderr, "%s: ", s->cmd->name);
  vfprintf (stderr, fmt, ap);
  fputc ('\n', stderr);
}

int
fail (const struct session *s, const char *fmt, ...)
{
  va_list ap;

  va_start (ap, fmt);
  complain (s, fmt, ap);
  va_end (ap);
  return STATUS_FAILED;
}

int
fail_usage (const struct session *s, const char *fmt, ...)
{
  va_list ap;

  va_start (ap, fmt);
  complain (s, fmt, ap);
  va_end (ap);
  if (s->cmd)
    fprintf (stderr, "Usage: cowshed %s%s%s (see cowshed %s --help)\n",
             s->cmd->name, *s->cmd->args ? " " : "", s->cmd->args,
             s->cmd->name);
  else
    fprintf (stderr, "See cowshed --help.\n");
  return STATUS_USAGE;
}

static void
no_memory (void)
{
  fprintf (stderr, "cowshed: %s\n", strerror (ENOMEM));
  exit (STATUS_FAILED);
}

void *
memory_alloc (size_t size)
{
  void *p = calloc (1, size ? size : 1);

  if (p == NULL)
    no_memory ();
  return p;
}

char *
text_format (const char *fmt, ...)
{
  char *text;
  va_list ap;

  va_start (ap, fmt);
  if (vasprintf (&text, fmt, ap) < 0)
    no_memory ();
  va_end (ap);
  return text;
}

const struct command *
command_find (const char *name)
{
  for (const struct command *c = cow_commands; c->name; c++)
    if (strcmp (c->name, name) == 0)
      return c;
  return NULL;
}

/* The index of an option in a list that ends at a NULL name, or -1.  It is
 * looked for by letter, or by the first len bytes of name.
 */
static int
option_index (const struct option_def *list, char letter, const char *name,
              size_t len)
{
  for (int i = 0; list[i].name; i++)
    if (letter ? list[i].letter == letter
        : strlen (list[i].name) == len
          && strncmp (list[i].name, name, len) == 0)
      return i;
  return -1;
}

const char *
session_option (const struct session *s, const char *name)
{
  int i = option_index (s->cmd->options, 0, name, strlen (name));

  return i < 0 ? NULL : s->values[i];
}

static void
add_pool (struct session *s, char *spec)
{
  char **pools = memory_alloc ((s->nr_pools + 1) * sizeof *pools);

  if (s->nr_pools)
    memcpy (pools, s->pools, s->nr_pools * sizeof *pools);
  free (s->pools);
  pools[s->nr_pools++] = spec;
  s->pools = pools;
}

static int
set_global (struct session *s, int i, const char *value)
{
  const char *name = global_options[i].name;

  if (strcmp (name, "pool") == 0) {
    if (*value == '\0')
      return fail_usage (s, "--pool: expected [NAME:]DIR, got nothing");
    add_pool (s, text_format ("%s", value));
  }
  else if (strcmp (name, "control") == 0)
    s->control = value;
  else if (strcmp (name, "json") == 0)
    s->json = true;
  else if (strcmp (name, "help") == 0)
    s->help = true;
  else
    s->version = true;
  return STATUS_OK;
}

/* What one option on the line is, while it is being taken apart. */
struct found {
  const struct option_def *def;
  int index;
  bool global;
};

static bool
find_option (const struct session *s, char letter, const char *name,
             size_t len, struct found *f)
{
  f->global = false;
  f->index = -1;
  if (s->cmd) {
    f->index = option_index (s->cmd->options, letter, name, len);
    f->def = &s->cmd->options[f->index < 0 ? 0 : f->index];
  }
  if (f->index < 0) {
    f->global = true;
    f->index = option_index (global_options, letter, name, len);
    f->def = &global_options[f->index < 0 ? 0 : f->index];
  }
  return f->index >= 0;
}

static int
set_option (struct session *s, const struct found *f, const char *value)
{
  if (f->global)
    return set_global (s, f->index, value);
  s->values[f->index] = value;
  return STATUS_OK;
}

/* "--name", "--name=value" or "--name value"; *next is the next word and is
 * set to NULL when it was used.
 */
static int
parse_long (struct session *s, const char *word, const char **next)
{
  const char *name = word + 2, *eq = strchr (name, '=');
  size_t len = eq ? (size_t) (eq - name) : strlen (name);
  const char *value = eq ? eq + 1 : NULL;
  struct found f;

  if (!find_option (s, 0, name, len, &f))
    return fail_usage (s, "unknown option --%.*s", (int) len, name);
  if (f.def->arg == NULL) {
    if (eq)
      return fail_usage (s, "option --%s takes no value", f.def->name);
    return set_option (s, &f, "");
  }
  if (value == NULL) {
    value = *next;
    *next = NULL;
  }
  if (value == NULL)
    return fail_usage (s, "option --%s needs a value: %s", f.def->name,
                       f.def->arg);
  return set_option (s, &f, value);
}

/* "-abc", "-pDIR" or "-p DIR" */
static int
parse_short (struct session *s, const char *word, const char **next)
{
  struct found f;
  int status = STATUS_OK;

  for (word++; *word && status == STATUS_OK; word++) {
    const char *value = "";

    if (!find_option (s, *word, NULL, 0, &f))
      return fail_usage (s, "unknown option -%c", *word);
    if (f.def->arg) {
      value = word[1] ? word + 1 : *next;
      if (value == NULL)
        return fail_usage (s, "option -%c needs a value: %s", *word,
                           f.def->arg);
      if (word[1] == '\0')
        *next = NULL;
      return set_option (s, &f, value);
    }
    status = set_option (s, &f, value);
  }
  return status;
}

static int
parse_word (struct session *s, const char *word)
{
  if (s->cmd) {
    s->args[s->nr_args++] = word;
    return STATUS_OK;
  }
  s->cmd = command_find (word);
  return s->cmd ? STATUS_OK : fail_usage (s, "unknown command: %s", word);
}

static int
check_nr_args (const struct session *s)
{
  const struct command *c = s->cmd;

  if (s->nr_args < c->min_args)
    return fail_usage (s, "missing argument");
  if (c->max_args >= 0 && s->nr_args > c->max_args)
    return fail_usage (s, "unexpected argument: %s", s->args[c->max_args]);
  return STATUS_OK;
}

/* Directories separated by ':'; empty ones are skipped. */
static void
pools_from_environment (struct session *s)
{
  const char *p = getenv ("COWSHED_POOL");

  while (p && *p) {
    size_t len = strcspn (p, ":");

    if (len)
      add_pool (s, text_format ("%.*s", (int) len, p));
    p += len;
    p += *p == ':';
  }
}

static int
parse_words (struct session *s, int argc, char **argv)
{
  bool only_args = false;
  int status = STATUS_OK;

  for (int i = 1; i < argc && status == STATUS_OK; i++) {
    const char *word = argv[i], *next = argv[i + 1];

    if (!only_args && strcmp (word, "--") == 0) {
      if (s->cmd && s->cmd->takes_rest) {
        s->rest = &argv[i + 1];
        s->nr_rest = argc - i - 1;
        break;
      }
      only_args = true;
    }
    else if (only_args || word[0] != '-' || word[1] == '\0')
      status = parse_word (s, word);
    else {
      status = (word[1] == '-' ? parse_long : parse_short) (s, word, &next);
      i += next == NULL && argv[i + 1] != NULL;
    }
  }
  return status;
}

int
session_parse (struct session *s, int argc, char **argv)
{
  int status;

  s->args = memory_alloc ((size_t) argc * sizeof *s->args);
  status = parse_words (s, argc, argv);
  if (status != STATUS_OK || s->help || s->version)
    return status;
  if (s->cmd == NULL)
    return fail_usage (s, "no command given");
  if (s->nr_pools == 0)
    pools_from_environment (s);
  return check_nr_args (s);
}

int
parse_size (const struct session *s, const char *what, const char *text,
            uint64_t *bytes)
{
  int r = cow_size_parse (text, bytes);

  if (r == -ERANGE)
    return fail_usage (s, "%s is too large: %s", what, text);
  if (r < 0)
    return fail_usage (s, "%s is not a size: \"%s\" (expected a number, "
                       "optionally with K, M, G, T, P or E)", what, text);
  return STATUS_OK;
}

int
parse_spec (const struct session *s, const char *text, unsigned flags,
            struct cow_spec *spec)
{
  struct cow_error err = { 0 };

  if (cow_spec_parse (text, flags, spec, &err) < 0)
    return fail_usage (s, "%s", err.message);
  return STATUS_OK;
}

int
parse_object (const struct session *s, const char *text)
{
  struct cow_spec spec;

  return parse_spec (s, text, 0, &spec);
}

int
parse_volume (const struct session *s, const char *text)
{
  struct cow_spec spec;
  int status = parse_spec (s, text, 0, &spec);

  if (status == STATUS_OK && spec.snap[0])
    return fail_usage (s, "expected a volume, not a snapshot: %s", text);
  return status;
}

int
parse_snapshot (const struct session *s, const char *text)
{
  struct cow_spec spec;
  int status = parse_spec (s, text, 0, &spec);

  if (status == STATUS_OK && spec.snap[0] == '\0')
    return fail_usage (s, "expected VOLUME@SNAP: %s", text);
  return status;
}
