/* SPDX-License-Identifier: BSD-3-Clause */
/* What "cowshed serve" is to run.
 *
 * After "--" come nbdkit's own options.  Those that say where to listen are
 * for us, because we hold the sockets; a few cannot work under a supervisor
 * and are refused; the rest goes through untouched.  One table says which is
 * which; it must know every option that takes a value, or the value would be
 * taken for a parameter.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cleanup.h"
#include "cowshed.h"
#include "serve.h"

void
words_add (struct words *w, const char *text)
{
  char **item = memory_alloc ((w->nr + 2) * sizeof *item);

  if (w->nr)
    memcpy (item, w->item, w->nr * sizeof *item);
  free (w->item);
  w->item = item;
  item[w->nr++] = text_format ("%s", text);
}

void
words_free (struct words *w)
{
  for (size_t i = 0; i < w->nr; i++)
    free (w->item[i]);
  free (w->item);
  w->item = NULL;
  w->nr = 0;
}

static void
words_append (struct words *to, const struct words *from)
{
  for (size_t i = 0; i < from->nr; i++)
    words_add (to, from->item[i]);
}

void
serve_plan_free (struct serve_plan *plan)
{
  words_free (&plan->pools);
  words_free (&plan->unix_paths);
  words_free (&plan->listen_args);
  words_free (&plan->options);
  words_free (&plan->parameters);
  free (plan->control);
}

/* ---- nbdkit's options ---- */

enum treatment {
  PASS, DROP, REFUSE, UNIX_PATH, PORT, ADDRESS, IPV4, IPV6, TLS, FILTER
};

struct nbdkit_option {
  const char *names;            /* long forms, separated by blanks */
  char letter;
  bool has_value;
  enum treatment treatment;
  const char *reason;           /* REFUSE */
};

#define SUPERVISED "cowshed serve keeps nbdkit running as a server"

static const struct nbdkit_option nbdkit_options[] = {
  { "unix", 'U', true, UNIX_PATH },
  { "port", 'p', true, PORT },
  { "ipaddr ip-addr", 'i', true, ADDRESS },
  { "ipv4-only", '4', false, IPV4 },
  { "ipv6-only", '6', false, IPV6 },
  { "tls", 0, true, TLS },
  { "filter", 0, true, FILTER },
  { "foreground no-fork", 'f', false, DROP },
  { "exit-with-parent", 0, false, DROP },
  { "newstyle new-style", 'n', false, DROP },
  { "run", 0, true, REFUSE, SUPERVISED },
  { "single stdin", 's', false, REFUSE, SUPERVISED },
  { "oldstyle old-style", 'o', false, REFUSE,
    "the old protocol has no export names" },
  { "vsock", 0, false, REFUSE, "cowshed serve listens on Unix and TCP "
    "sockets only" },
  { "selinux-label", 0, true, REFUSE, "cowshed serve makes the sockets" },
  { "help", 0, false, REFUSE, "ask nbdkit itself" },
  { "version", 'V', false, REFUSE, "ask nbdkit itself" },
  { "dump-config", 0, false, REFUSE, "ask nbdkit itself" },
  { "dump-plugin", 0, false, REFUSE, "ask nbdkit itself" },
  { "debug", 'D', true, PASS },
  { "exportname export-name export", 'e', true, PASS },
  { "group", 'g', true, PASS },
  { "log", 0, true, PASS },
  { "mask-handshake", 0, true, PASS },
  { "pidfile pid-file", 'P', true, PASS },
  { "threads", 't', true, PASS },
  { "tls-certificates", 0, true, PASS },
  { "tls-psk", 0, true, PASS },
  { "user", 'u', true, PASS },
  { NULL }
};

/* Filters that give wrong results here, and why. */
static const struct {
  const char *name, *reason;
} refused_filters[] = {
  { "cow", "it keeps one block map for all exports, so that a write to one "
    "export would show in another" },
  { "cache", "it keeps one block map for all exports, so that one export "
    "would show another's data, and changes made behind it would stay "
    "unseen" },
};

/* "/lib/nbdkit-cow-filter.so" and "cow" are the same filter. */
static char *
filter_name (const char *text)
{
  const char *base = strrchr (text, '/');
  size_t len;

  base = base ? base + 1 : text;
  if (strncmp (base, "nbdkit-", 7) == 0)
    base += 7;
  len = strlen (base);
  if (len > 10 && strcmp (base + len - 10, "-filter.so") == 0)
    len -= 10;
  return text_format ("%.*s", (int) len, base);
}

static int
check_filter (const struct session *s, const char *text)
{
  CLEANUP_FREE char *name = filter_name (text);

  for (size_t i = 0; i < sizeof refused_filters / sizeof refused_filters[0];
       i++)
    if (strcmp (name, refused_filters[i].name) == 0)
      return fail_usage (s, "filter %s is refused: %s", name,
                         refused_filters[i].reason);
  return STATUS_OK;
}

static bool
name_listed (const char *names, const char *name, size_t len)
{
  while (*names) {
    size_t n = strcspn (names, " ");

    if (n == len && strncmp (names, name, n) == 0)
      return true;
    names += n + (names[n] == ' ');
  }
  return false;
}

/* By letter, or by the first len bytes of name. */
static const struct nbdkit_option *
nbdkit_option_find (char letter, const char *name, size_t len)
{
  const struct nbdkit_option *o;

  for (o = nbdkit_options; o->names; o++)
    if (letter ? o->letter == letter : name_listed (o->names, name, len))
      return o;
  return NULL;
}

/* ---- one option ---- */

static int
listen_option (struct session *s, struct serve_plan *plan,
               enum treatment treatment, const char *value)
{
  switch (treatment) {
  case UNIX_PATH:
    if (strcmp (value, "-") == 0)
      return fail_usage (s, "-U needs a path here, not \"-\"");
    words_add (&plan->unix_paths, value);
    break;
  case PORT:
    plan->port = value;
    break;
  case ADDRESS:
    plan->address = value;
    break;
  default:
    plan->family = treatment == IPV4 ? AF_INET : AF_INET6;
    break;
  }
  return STATUS_OK;
}

/* first and second are the words as they were written; second may be NULL. */
static int
take_option (struct session *s, struct serve_plan *plan,
             const struct nbdkit_option *o, const char *value,
             const char *first, const char *second)
{
  struct words *to = &plan->options;
  int status = STATUS_OK;

  switch (o ? o->treatment : PASS) {
  case DROP:
    return STATUS_OK;
  case REFUSE:
    return fail_usage (s, "nbdkit's option %s is refused: %s", first,
                       o->reason);
  case FILTER:
    status = check_filter (s, value);
    break;
  case TLS:
    plan->tls = strcmp (value, "off") != 0;
    break;
  case PASS:
    break;
  default:
    status = listen_option (s, plan, o->treatment, value);
    to = &plan->listen_args;
    break;
  }
  words_add (to, first);
  if (second)
    words_add (to, second);
  return status;
}

static int
parse_nbdkit_long (struct session *s, struct serve_plan *plan,
                   const char *word, const char **next)
{
  const char *name = word + 2, *eq = strchr (name, '=');
  size_t len = eq ? (size_t) (eq - name) : strlen (name);
  const struct nbdkit_option *o = nbdkit_option_find (0, name, len);
  const char *second = NULL;

  if (o && o->has_value && !eq) {
    if (*next == NULL)
      return fail_usage (s, "nbdkit's option %s needs a value", word);
    second = *next;
    *next = NULL;
  }
  return take_option (s, plan, o, eq ? eq + 1 : second, word, second);
}

/* Letters may stand together, as in "-fv"; each is treated by itself. */
static int
parse_nbdkit_short (struct session *s, struct serve_plan *plan,
                    const char *word, const char **next)
{
  int status = STATUS_OK;

  for (word++; *word && status == STATUS_OK; word++) {
    const struct nbdkit_option *o = nbdkit_option_find (*word, NULL, 0);
    CLEANUP_FREE char *first = text_format ("-%c", *word);
    const char *value = word[1] ? word + 1 : *next;

    if (o == NULL || !o->has_value) {
      status = take_option (s, plan, o, NULL, first, NULL);
      continue;
    }
    if (value == NULL)
      return fail_usage (s, "nbdkit's option %s needs a value", first);
    if (word[1] == '\0')
      *next = NULL;
    return take_option (s, plan, o, value, first, value);
  }
  return status;
}

static int
parse_nbdkit_words (struct session *s, struct serve_plan *plan)
{
  int status = STATUS_OK;

  for (int i = 0; i < s->nr_rest && status == STATUS_OK; i++) {
    const char *word = s->rest[i];
    const char *next = i + 1 < s->nr_rest ? s->rest[i + 1] : NULL;
    bool had_next = next != NULL;

    if (word[0] != '-' || word[1] == '\0') {
      if (strchr (word, '=') == NULL)
        return fail_usage (s, "expected an option of nbdkit or KEY=VALUE, "
                           "got: %s", word);
      words_add (&plan->parameters, word);
      continue;
    }
    status = (word[1] == '-' ? parse_nbdkit_long : parse_nbdkit_short)
      (s, plan, word, &next);
    i += had_next && next == NULL;
  }
  return status;
}

/* ---- pools, control socket, default listener ---- */

static void
add_pool (struct serve_plan *plan, const char *spec)
{
  CLEANUP_FREE char *dir = pool_dir (spec);
  const char *colon = strchr (spec, ':'), *slash = strchr (spec, '/');
  CLEANUP_FREE char *full = NULL;

  if (colon && (slash == NULL || colon < slash))
    full = text_format ("%.*s:%s", (int) (colon - spec), spec, dir);
  else
    full = text_format ("%s", dir);
  words_add (&plan->pools, full);
}

static int
add_pools (struct session *s, struct serve_plan *plan)
{
  for (int i = 0; i < s->nr_args; i++)
    add_pool (plan, s->args[i]);
  if (s->nr_args == 0)
    for (size_t i = 0; i < s->nr_pools; i++)
      add_pool (plan, s->pools[i]);
  if (plan->pools.nr == 0)
    return fail_usage (s, "no pool given");
  return STATUS_OK;
}

/* The plugin's own parameter wins over --control, which wins over the
 * default.
 */
static void
find_control (const struct session *s, struct serve_plan *plan)
{
  const char *control = s->control;

  for (size_t i = 0; i < plan->parameters.nr; i++)
    if (strncmp (plan->parameters.item[i], "control=", 8) == 0)
      control = plan->parameters.item[i] + 8;
  if (control == NULL)
    plan->control = control_path (plan->pools.item[0]);
  else if (strcmp (control, "none") != 0)
    plan->control = text_format ("%s", control);
  if (control && control == s->control) {
    CLEANUP_FREE char *parameter = text_format ("control=%s", control);

    words_add (&plan->parameters, parameter);
  }
}

static void
default_listener (struct serve_plan *plan)
{
  CLEANUP_FREE char *dir = pool_dir (plan->pools.item[0]);
  CLEANUP_FREE char *path = text_format ("%s/nbd.sock", dir);

  words_add (&plan->unix_paths, path);
  words_add (&plan->listen_args, "-U");
  words_add (&plan->listen_args, path);
}

int
serve_plan_parse (struct session *s, struct serve_plan *plan)
{
  int status = add_pools (s, plan);

  if (status == STATUS_OK)
    status = parse_nbdkit_words (s, plan);
  if (status != STATUS_OK)
    return status;
  if (sockets_inherited () && plan->listen_args.nr)
    return fail_usage (s, "the sockets come from systemd; %s cannot be used",
                       plan->listen_args.item[0]);
  find_control (s, plan);
  if (plan->listen_args.nr == 0 && !sockets_inherited ())
    default_listener (plan);
  return status;
}

/* ---- nbdkit's command line ---- */

/* The build tree's module where ./run names the tree, else the installed
 * file.  NULL where there is none.  Free it.
 */
static char *
accounting_filter (void)
{
  const char *build = getenv ("COWSHED_BUILDDIR");
  char *path = build
    ? text_format ("%s/filters/accounting/.libs/nbdkit-accounting-filter.so",
                   build)
    : text_format ("%s/nbdkit-accounting-filter.so", NBDKIT_FILTERDIR);

  if (access (path, R_OK) == 0)
    return path;
  free (path);
  return NULL;
}

static bool
has_accounting (const struct serve_plan *plan)
{
  for (size_t i = 0; i < plan->options.nr; i++)
    if (strstr (plan->options.item[i], "accounting"))
      return true;
  return false;
}

static const char *
plugin (void)
{
  const char *path = getenv ("COWSHED_PLUGIN");

  if (path && *path)
    return path;
  path = NBDKIT_PLUGINDIR "/nbdkit-cowshed-plugin.so";
  return access (path, R_OK) == 0 ? path : "cowshed";
}

void
serve_plan_command (const struct serve_plan *plan, bool with_sockets,
                    struct words *command)
{
  const char *nbdkit = getenv ("NBDKIT");
  CLEANUP_FREE char *filter = has_accounting (plan) ? NULL
    : accounting_filter ();

  words_add (command, nbdkit && *nbdkit ? nbdkit : "nbdkit");
  words_add (command, "-f");
  if (with_sockets)
    words_append (command, &plan->listen_args);
  if (filter) {
    CLEANUP_FREE char *option = text_format ("--filter=%s", filter);

    words_add (command, option);
  }
  words_append (command, &plan->options);
  words_add (command, plugin ());
  for (size_t i = 0; i < plan->pools.nr; i++) {
    CLEANUP_FREE char *parameter = text_format ("pool=%s",
                                                plan->pools.item[i]);

    words_add (command, parameter);
  }
  words_append (command, &plan->parameters);
}
