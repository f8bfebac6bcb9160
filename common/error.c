/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>

#include "error.h"

int
cow_error_set (struct cow_error *err, int errnum, const char *code,
               const char *fmt, ...)
{
  va_list ap;

  if (err == NULL)
    return -errnum;
  err->errnum = errnum;
  snprintf (err->code, sizeof err->code, "%s", code);
  va_start (ap, fmt);
  vsnprintf (err->message, sizeof err->message, fmt, ap);
  va_end (ap);
  return -errnum;
}
