/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of an HTTP/1.x request, as far as the control server needs it. */
#ifndef COW_HTTP_PARSE_H
#define COW_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_head {
  const char *method;
  const char *path;             /* as sent, without scheme and authority */
  const char *query;            /* after '?', or "" */
  const char *authorization;    /* or NULL */
  bool keep_alive;
  bool chunked;
  bool expect_continue;
  bool has_length;
  uint64_t length;
};

/* Parse text, which ends before the empty line.  It is changed, and the
 * fields point into it.  0, or the HTTP status to refuse it with.
 */
int cow_http_parse_head (char *text, struct http_head *head);

/* The size line of a chunk; 0, or 400. */
int cow_http_parse_chunk (const char *line, uint64_t *size);

/* Does authorization say "Bearer TOKEN" with the right token?  The time
 * taken does not depend on where they differ.
 */
bool cow_http_token_ok (const char *authorization, const char *token);

const char *cow_http_reason (int status);

#endif /* COW_HTTP_PARSE_H */
