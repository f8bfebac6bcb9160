/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP to the control server over its Unix socket. */
#include <config.h>

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cleanup.h"
#include "cowshed.h"

#define MAX_REPLY ((size_t) 256 << 20) /* more is not a reply of ours */

struct client {
  CURL *curl;
  char *path;
};

struct reply {
  char *data;
  size_t len;
};

/* Does anybody listen there?  0 or -errno. */
static int
probe (const char *path)
{
  struct sockaddr_un sa = { .sun_family = AF_UNIX };
  CLEANUP_CLOSE int fd = -1;

  if (strlen (path) >= sizeof sa.sun_path)
    return -ENAMETOOLONG;
  memcpy (sa.sun_path, path, strlen (path) + 1);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect (fd, (struct sockaddr *) &sa, sizeof sa) < 0)
    return -errno;
  return 0;
}

struct client *
client_open (const char *socket_path)
{
  struct client *client;
  int r = probe (socket_path);

  if (r < 0) {
    errno = -r;
    return NULL;
  }
  client = memory_alloc (sizeof *client);
  client->path = text_format ("%s", socket_path);
  client->curl = curl_easy_init ();
  if (client->curl == NULL) {
    client_close (client);
    errno = ENOMEM;
    return NULL;
  }
  return client;
}

void
client_close (struct client *client)
{
  if (client == NULL)
    return;
  if (client->curl)
    curl_easy_cleanup (client->curl);
  free (client->path);
  free (client);
}

char *
percent_encode (const char *text, const char *keep)
{
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    "abcdefghijklmnopqrstuvwxyz0123456789-._~";
  char *out = memory_alloc (3 * strlen (text) + 1), *p = out;

  for (; *text; text++)
    if (strchr (plain, *text) || strchr (keep, *text))
      *p++ = *text;
    else
      p += sprintf (p, "%%%02X", (unsigned char) *text);
  return out;
}

static size_t
collect (char *data, size_t size, size_t n, void *opaque)
{
  struct reply *r = opaque;
  size_t len = size * n;
  char *grown;

  if (len > MAX_REPLY - r->len)
    return 0;
  grown = realloc (r->data, r->len + len + 1);
  if (grown == NULL)
    return 0;
  memcpy (grown + r->len, data, len);
  r->data = grown;
  r->len += len;
  r->data[r->len] = '\0';
  return len;
}

static char *
make_url (const char *path, json_t *query)
{
  char *url = text_format ("http://localhost%s", path);
  const char *key;
  json_t *value;

  json_object_foreach (query, key, value) {
    CLEANUP_FREE char *old = url;
    CLEANUP_FREE char *v = percent_encode (json_string_value (value), "");

    url = text_format ("%s%c%s=%s", old, strchr (old, '?') ? '&' : '?', key,
                       v);
  }
  return url;
}

static int
exchange (struct client *client, const char *method, const char *url,
          const char *body, unsigned timeout_s, struct reply *r,
          char *error, size_t len)
{
  CURL *c = client->curl;
  struct curl_slist *headers =
    curl_slist_append (NULL, "Content-Type: application/json");
  CURLcode code;
  long status = -1;

  curl_easy_reset (c);
  curl_easy_setopt (c, CURLOPT_UNIX_SOCKET_PATH, client->path);
  curl_easy_setopt (c, CURLOPT_NOPROXY, "*");
  curl_easy_setopt (c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt (c, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt (c, CURLOPT_URL, url);
  curl_easy_setopt (c, CURLOPT_CUSTOMREQUEST, method);
  if (body)
    curl_easy_setopt (c, CURLOPT_POSTFIELDS, body);
  curl_easy_setopt (c, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt (c, CURLOPT_TIMEOUT, (long) timeout_s);
  curl_easy_setopt (c, CURLOPT_WRITEFUNCTION, collect);
  curl_easy_setopt (c, CURLOPT_WRITEDATA, r);
  code = curl_easy_perform (c);
  if (code != CURLE_OK)
    snprintf (error, len, "%s", curl_easy_strerror (code));
  else
    curl_easy_getinfo (c, CURLINFO_RESPONSE_CODE, &status);
  curl_slist_free_all (headers);
  return (int) status;
}

int
client_call (struct client *client, unsigned timeout_s, const char *method,
             const char *path, json_t *query, json_t *body, json_t **reply,
             char *error, size_t len)
{
  CLEANUP_FREE char *url = make_url (path, query);
  CLEANUP_FREE char *text = NULL;
  struct reply r = { 0 };
  int status;

  if (strcmp (method, "POST") == 0 || strcmp (method, "PATCH") == 0)
    text = body ? json_dumps (body, JSON_COMPACT) : text_format ("{}");
  status = exchange (client, method, url, text, timeout_s, &r, error, len);
  if (status >= 0) {
    *reply = r.len ? json_loadb (r.data, r.len, 0, NULL) : json_object ();
    if (*reply == NULL) {
      snprintf (error, len, "the reply (status %d) is not JSON", status);
      status = -1;
    }
  }
  free (r.data);
  return status;
}
