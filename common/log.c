/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "log.h"

static void
log_to_stderr (enum cow_log_level level, const char *line)
{
  if (level > COW_LOG_DEBUG)
    fprintf (stderr, "cowshed: %s\n", line);
}

static cow_log_fn log_fn = log_to_stderr;

void
cow_log_set (cow_log_fn fn)
{
  log_fn = fn ? fn : log_to_stderr;
}

void
cow_log (enum cow_log_level level, const char *fmt, ...)
{
  int saved_errno = errno;
  char line[1024];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (line, sizeof line, fmt, ap);
  va_end (ap);
  log_fn (level, line);
  errno = saved_errno;
}
