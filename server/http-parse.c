/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict where two readings of one request would be possible (lengths,
 * encodings, folded lines), indifferent to headers that do not concern us.
 */
#include <config.h>

#include <string.h>
#include <strings.h>

#include "http-parse.h"

/* ---- Request line ---- */

static bool
is_token (const char *p)
{
  if (*p == '\0')
    return false;
  for (; *p; p++)
    if (*p <= ' ' || *p > '~' || strchr ("()<>@,;:\\\"/[]?={}", *p))
      return false;
  return true;
}

/* "http://host/path" is to be taken as "/path". */
static char *
skip_authority (char *target)
{
  static char root[] = "/";
  char *slash;

  if (strncasecmp (target, "http://", 7) == 0)
    target += 7;
  else if (strncasecmp (target, "https://", 8) == 0)
    target += 8;
  else
    return target;
  slash = target + strcspn (target, "/?");
  return *slash == '/' ? slash : root;
}

static int
parse_request_line (char *line, struct http_head *head)
{
  char *target = strchr (line, ' ');
  char *version = target ? strchr (target + 1, ' ') : NULL;
  char *query;

  if (version == NULL)
    return 400;
  *target++ = '\0';
  *version++ = '\0';
  if (!is_token (line) || *target == '\0')
    return 400;
  if (strcmp (version, "HTTP/1.1") == 0)
    head->keep_alive = true;
  else if (strcmp (version, "HTTP/1.0") != 0)
    return strncmp (version, "HTTP/", 5) == 0 ? 505 : 400;
  for (const char *p = target; *p; p++)
    if ((unsigned char) *p <= ' ' || *p == 0x7f)
      return 400;
  head->method = line;
  target = skip_authority (target);
  query = strchr (target, '?');
  if (query)
    *query++ = '\0';
  head->path = target;
  head->query = query ? query : "";
  return 0;
}

/* ---- Headers ---- */

static int
take_length (struct http_head *head, const char *value)
{
  if (head->has_length || *value == '\0')
    return 400;
  for (; *value >= '0' && *value <= '9'; value++)
    if (__builtin_mul_overflow (head->length, 10, &head->length) ||
        __builtin_add_overflow (head->length, (uint64_t) (*value - '0'),
                                &head->length))
      return 400;
  head->has_length = true;
  return *value ? 400 : 0;
}

static int
take_encoding (struct http_head *head, const char *value)
{
  if (head->chunked)
    return 400;
  head->chunked = true;
  return strcasecmp (value, "chunked") == 0 ? 0 : 501;
}

static int
take_connection (struct http_head *head, const char *value)
{
  if (strcasestr (value, "close"))
    head->keep_alive = false;
  else if (strcasestr (value, "keep-alive"))
    head->keep_alive = true;
  return 0;
}

static int
take_expect (struct http_head *head, const char *value)
{
  head->expect_continue = true;
  return strcasecmp (value, "100-continue") == 0 ? 0 : 417;
}

static int
take_authorization (struct http_head *head, const char *value)
{
  if (head->authorization)
    return 400;
  head->authorization = value;
  return 0;
}

static const struct {
  const char *name;
  int (*take) (struct http_head *head, const char *value);
} headers[] = {
  { "content-length", take_length },
  { "transfer-encoding", take_encoding },
  { "connection", take_connection },
  { "expect", take_expect },
  { "authorization", take_authorization },
};

static int
parse_header (char *line, struct http_head *head)
{
  char *value = strchr (line, ':'), *end;

  if (value == NULL)
    return 400;
  *value++ = '\0';
  if (!is_token (line))         /* also refuses folded lines */
    return 400;
  value += strspn (value, " \t");
  for (end = value + strlen (value);
       end > value && (end[-1] == ' ' || end[-1] == '\t'); )
    *--end = '\0';
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
    if (strcasecmp (headers[i].name, line) == 0)
      return headers[i].take (head, value);
  return 0;
}

int
cow_http_parse_head (char *text, struct http_head *head)
{
  char *next;
  int status;

  memset (head, 0, sizeof *head);
  next = strstr (text, "\r\n");
  if (next)
    *next = '\0';
  status = parse_request_line (text, head);
  while (status == 0 && next) {
    text = next + 2;
    next = strstr (text, "\r\n");
    if (next)
      *next = '\0';
    status = parse_header (text, head);
  }
  if (status == 0 && head->chunked && head->has_length)
    status = 400;
  return status;
}

int
cow_http_parse_chunk (const char *line, uint64_t *size)
{
  static const char digits[] = "0123456789abcdef0123456789ABCDEF";
  const char *start = line, *d;

  *size = 0;
  for (; *line && (d = strchr (digits, *line)); line++) {
    if (*size >> 56)
      return 400;
    *size = *size << 4 | ((d - digits) & 15);
  }
  if (line == start)
    return 400;
  line += strspn (line, " \t");
  return *line && *line != ';' ? 400 : 0;
}

/* ---- The rest ---- */

bool
cow_http_token_ok (const char *authorization, const char *token)
{
  size_t given_len, token_len = strlen (token);
  unsigned char different;

  if (authorization == NULL || strncasecmp (authorization, "Bearer ", 7) != 0)
    return false;
  authorization += 7;
  authorization += strspn (authorization, " ");
  given_len = strlen (authorization);
  different = given_len != token_len;
  for (size_t i = 0; i < given_len; i++)
    different |= authorization[i] ^ token[i % token_len];
  return different == 0;
}

static const struct {
  int status;
  const char *reason;
} reasons[] = {
  { 200, "OK" }, { 201, "Created" }, { 202, "Accepted" },
  { 400, "Bad Request" }, { 401, "Unauthorized" }, { 403, "Forbidden" },
  { 404, "Not Found" }, { 405, "Method Not Allowed" },
  { 408, "Request Timeout" }, { 409, "Conflict" },
  { 413, "Content Too Large" }, { 414, "URI Too Long" },
  { 417, "Expectation Failed" },
  { 431, "Request Header Fields Too Large" },
  { 500, "Internal Server Error" }, { 501, "Not Implemented" },
  { 503, "Service Unavailable" }, { 505, "HTTP Version Not Supported" },
  { 507, "Insufficient Storage" },
};

const char *
cow_http_reason (int status)
{
  for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
    if (reasons[i].status == status)
      return reasons[i].reason;
  return "Status";
}
