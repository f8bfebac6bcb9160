/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines of the engine and the server go through one callback, so that
 * the same code serves inside nbdkit, in the command and in unit tests.
 * Set it once, before threads start; without one, lines go to stderr.
 */
#ifndef COW_LOG_H
#define COW_LOG_H

enum cow_log_level { COW_LOG_DEBUG, COW_LOG_INFO, COW_LOG_WARNING,
                     COW_LOG_ERROR };

typedef void (*cow_log_fn) (enum cow_log_level level, const char *line);

void cow_log_set (cow_log_fn fn);

/* One line without a newline.  Keeps errno.  Thread-safe. */
void cow_log (enum cow_log_level level, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

#endif /* COW_LOG_H */
