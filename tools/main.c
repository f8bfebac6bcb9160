/* SPDX-License-Identifier: BSD-3-Clause */
/* The cowshed command: parse the line, run one command, close the pool. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "cowshed.h"
#include "log.h"

/* What a person who runs a command should see; the rest is for servers. */
static void
log_warnings (enum cow_log_level level, const char *line)
{
  if (level >= COW_LOG_WARNING || getenv ("COWSHED_DEBUG"))
    fprintf (stderr, "cowshed: %s\n", line);
}

static void
session_free (struct session *s)
{
  for (size_t i = 0; i < s->nr_pools; i++)
    free (s->pools[i]);
  free (s->pools);
  free (s->args);
}

/* Output that could not be written (a full disk, a closed pipe) must not
 * look like success.
 */
static int
flush_output (const struct session *s, int status)
{
  if ((fflush (stdout) != 0 || ferror (stdout)) && status == STATUS_OK)
    return fail (s, "cannot write the output: %m");
  return status;
}

static int
run (struct session *s)
{
  int status, r;

  if (s->version)
    puts (PACKAGE_NAME " " PACKAGE_VERSION);
  else if (s->help && s->cmd)
    help_command (s->cmd);
  else if (s->help)
    help_all ();
  if (s->version || s->help)
    return flush_output (s, STATUS_OK);
  status = s->cmd->run (s);
  r = backend_close (s);
  return flush_output (s, status == STATUS_OK ? r : status);
}

int
main (int argc, char **argv)
{
  struct session s = { 0 };
  int status;

  cow_log_set (log_warnings);
  status = session_parse (&s, argc, argv);
  if (status == STATUS_OK)
    status = run (&s);
  session_free (&s);
  return status;
}
