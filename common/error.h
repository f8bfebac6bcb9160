/* SPDX-License-Identifier: BSD-3-Clause */
/* The error that a control operation hands to its user.
 *
 * Functions return 0 or -errno; where a person will read the reason they
 * also take a struct cow_error, which may be NULL.  It is filled only on
 * failure: the number, a stable code for machines, and one sentence that
 * names the thing and what was expected.
 */
#ifndef COW_ERROR_H
#define COW_ERROR_H

struct cow_error {
  int errnum;                   /* positive errno */
  char code[32];                /* see cow_error_codes in docs */
  char message[512];
};

/* Fill err (if not NULL) and return -errnum. */
int cow_error_set (struct cow_error *err, int errnum, const char *code,
                   const char *fmt, ...)
  __attribute__ ((format (printf, 4, 5)));

#endif /* COW_ERROR_H */
