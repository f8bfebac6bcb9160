/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP/1.1 on a libevent bufferevent.
 *
 * Written here and not with evhttp because that bounds neither the number of
 * connections nor the time in which a request must have arrived, parses the
 * target as a URL before a callback can refuse it, and decodes queries in its
 * own way.  A connection goes through these states:
 *
 *   IDLE -> HEAD -> [BODY | CHUNK_SIZE <-> CHUNK_DATA -> TRAILERS]
 *        -> HANDLING (on a worker) -> WRITING -> IDLE
 *
 * While HANDLING, nothing is read, so the connection cannot go away under
 * the worker.  A request that is refused before it has arrived in full is
 * answered, and then the connection is LINGERING: what the client still sends
 * is thrown away for a moment, because closing at once would make the kernel
 * discard the answer.
 *
 * Each state but HANDLING has a deadline that bytes trickling in do not
 * extend.
 */
#include <config.h>

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cleanup.h"
#include "http-parse.h"
#include "http.h"
#include "log.h"

#define CONNS_MAX 128
#define HEAD_MAX 16384
#define BODY_MAX (4 << 20)
#define LINE_MAX_BYTES 1024     /* of a chunk's size or a trailer */
#define READ_AHEAD 65536

#define IDLE_S 60
#define RECEIVE_S 30
#define WRITE_S 120
#define LINGER_S 2

enum state { IDLE, HEAD, BODY, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILERS,
             HANDLING, WRITING, LINGERING };

struct http_conn {
  struct work work;             /* first: the worker's view of a request */
  struct http *http;
  TAILQ_ENTRY (http_conn) entry;
  struct bufferevent *bev;
  struct event *deadline;
  enum state state;
  bool needs_token;
  bool close;                   /* after this reply */
  bool linger;                  /* there may be input that nobody wants */
  bool dead;                    /* the client went while HANDLING */

  char *head_text;
  struct http_head head;
  bool is_head;                 /* the method is HEAD: no body goes back */
  struct evbuffer *body;
  uint64_t chunk_left;

  /* For the worker, and its result. */
  char *body_text;
  size_t body_len;
  int status;
  char *reply;
  size_t reply_len;
};

static void advance (struct http_conn *c);

/* ---- Life ---- */

static void
set_deadline (struct http_conn *c, int seconds)
{
  struct timeval tv = { .tv_sec = seconds };

  if (seconds)
    evtimer_add (c->deadline, &tv);
  else
    evtimer_del (c->deadline);
}

static void
forget_request (struct http_conn *c)
{
  free (c->head_text);
  free (c->body_text);
  free (c->reply);
  c->head_text = c->body_text = c->reply = NULL;
  c->is_head = false;
  c->linger = false;
  evbuffer_drain (c->body, evbuffer_get_length (c->body));
}

static void
conn_free (struct http_conn *c)
{
  struct http *http = c->http;

  TAILQ_REMOVE (&http->conns, c, entry);
  http->nr_conns--;
  forget_request (c);
  evbuffer_free (c->body);
  event_free (c->deadline);
  bufferevent_free (c->bev);
  free (c);
}

static void
become_idle (struct http_conn *c)
{
  forget_request (c);
  c->state = IDLE;
  set_deadline (c, IDLE_S);
  TAILQ_REMOVE (&c->http->conns, c, entry);
  TAILQ_INSERT_TAIL (&c->http->conns, c, entry);
  bufferevent_enable (c->bev, EV_READ);
}

/* ---- Replies ---- */

static void
free_reference (const void *data, size_t len, void *opaque)
{
  free (opaque);
}

static void
add_extra_headers (struct http_conn *c, struct evbuffer *out, int status)
{
  char allowed[64];

  if (status == 401)
    evbuffer_add_printf (out, "WWW-Authenticate: Bearer\r\n");
  else if (status == 503)
    evbuffer_add_printf (out, "Retry-After: 1\r\n");
  else if (status == 405) {
    cow_api_allowed (c->head.path, allowed, sizeof allowed);
    evbuffer_add_printf (out, "Allow: %s\r\n", allowed);
  }
}

/* Send text, which is taken over. */
static void
reply (struct http_conn *c, int status, char *text, size_t len)
{
  struct evbuffer *out = bufferevent_get_output (c->bev);

  bufferevent_disable (c->bev, EV_READ);
  c->close |= c->http->stopping;
  evbuffer_add_printf (out, "HTTP/1.1 %d %s\r\n"
                       "Content-Type: application/json\r\n"
                       "Content-Length: %zu\r\n"
                       "Cache-Control: no-store\r\n"
                       "X-Content-Type-Options: nosniff\r\n"
                       "Connection: %s\r\n",
                       status, cow_http_reason (status), len,
                       c->close ? "close" : "keep-alive");
  add_extra_headers (c, out, status);
  evbuffer_add (out, "\r\n", 2);
  if (c->is_head || len == 0)
    free (text);
  else if (evbuffer_add_reference (out, text, len, free_reference,
                                   text) < 0) {
    free (text);                /* the short reply shows that it is broken */
    c->close = true;
  }
  c->state = WRITING;
  set_deadline (c, WRITE_S);
}

/* With a newline, for people with curl. */
static char *
dump (json_t *value)
{
  CLEANUP_FREE char *text = json_dumps (value, JSON_COMPACT);
  char *line;

  return text && asprintf (&line, "%s\n", text) >= 0 ? line : NULL;
}

/* Refuse a request; the rest of it is not worth reading. */
static void
refuse (struct http_conn *c, int status, const char *code,
        const char *message)
{
  json_t *error = cow_json_error (code, message);
  char *text = dump (error);

  json_decref (error);
  c->close = c->linger = true;
  reply (c, status, text, text ? strlen (text) : 0);
}

static void
refuse_head (struct http_conn *c, int status)
{
  switch (status) {
  case 413:
    refuse (c, status, "request-too-large", "the body is over 4 MiB");
    break;
  case 414:
    refuse (c, status, "request-too-large", "the path is over 16 KiB");
    break;
  case 417:
    refuse (c, status, "invalid-request", "expected Expect: 100-continue");
    break;
  case 431:
    refuse (c, status, "request-too-large", "the headers are over 16 KiB");
    break;
  case 501:
    refuse (c, status, "invalid-request",
            "the only transfer encoding known here is chunked");
    break;
  case 505:
    refuse (c, status, "invalid-request", "expected HTTP/1.1 or HTTP/1.0");
    break;
  default:
    refuse (c, status, "invalid-request", "this is no valid HTTP request");
  }
}

/* ---- A request on a worker ---- */

static int
parse_body (struct http_conn *c, json_t **body, struct cow_error *err)
{
  json_error_t je;

  if (c->body_len == 0)
    return 0;
  *body = json_loadb (c->body_text, c->body_len, JSON_REJECT_DUPLICATES,
                      &je);
  if (*body)
    return 0;
  return cow_error_set (err, EINVAL, "invalid-json",
                        "the body is not valid JSON: %s (byte %d)", je.text,
                        je.position);
}

static json_t *
call (struct http_conn *c)
{
  const char *method = c->is_head ? "GET" : c->head.method;
  struct cow_error err = { 0 };
  json_t *query = NULL, *body = NULL, *result;

  if (cow_query_parse (c->head.query, &query, &err) < 0 ||
      parse_body (c, &body, &err) < 0) {
    c->status = cow_error_status (&err);
    result = cow_json_error (err.code, err.message);
  }
  else
    c->status = cow_api_call (c->http->api, method, c->head.path, query,
                              body, &result);
  json_decref (query);
  json_decref (body);
  return result;
}

static void
run (struct work *work)
{
  struct http_conn *c = (struct http_conn *) work;
  json_t *result = call (c);

  c->reply = dump (result);
  c->reply_len = c->reply ? strlen (c->reply) : 0;
  if (c->reply == NULL)
    c->status = 500;
  json_decref (result);
}

void
cow_http_done (struct work *work)
{
  struct http_conn *c = (struct http_conn *) work;
  char *text = c->reply;

  c->reply = NULL;
  if (c->dead) {
    free (text);
    conn_free (c);
    return;
  }
  reply (c, c->status, text, c->reply_len);
}

/* The request has arrived. */
static void
submit (struct http_conn *c)
{
  c->body_len = evbuffer_get_length (c->body);
  c->body_text = malloc (c->body_len + 1);
  if (c->body_text == NULL) {
    refuse (c, 503, "no-memory", "out of memory");
    return;
  }
  evbuffer_remove (c->body, c->body_text, c->body_len);
  bufferevent_disable (c->bev, EV_READ);
  set_deadline (c, 0);
  c->state = HANDLING;
  c->work.run = run;
  if (cow_workers_submit (c->http->workers, &c->work) < 0)
    refuse (c, 503, "overloaded", "too many requests are waiting");
}

/* ---- Receiving: each step says whether another may follow ---- */

static bool
too_long (struct http_conn *c)
{
  struct evbuffer *in = bufferevent_get_input (c->bev);

  refuse_head (c, evbuffer_search_eol (in, NULL, NULL,
                                       EVBUFFER_EOL_LF).pos < 0 ? 414 : 431);
  return false;
}

static bool
begin_body (struct http_conn *c)
{
  if (c->needs_token &&
      !cow_http_token_ok (c->head.authorization, c->http->token)) {
    refuse (c, 401, "unauthorized", "a valid bearer token is required");
    return false;
  }
  c->is_head = strcmp (c->head.method, "HEAD") == 0;
  c->close = !c->head.keep_alive;
  if (c->head.length > BODY_MAX) {
    refuse_head (c, 413);
    return false;
  }
  c->state = c->head.chunked ? CHUNK_SIZE : BODY;
  if (c->head.expect_continue && (c->head.chunked || c->head.length))
    bufferevent_write (c->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
  return true;
}

static bool
take_head (struct http_conn *c, size_t len)
{
  struct evbuffer *in = bufferevent_get_input (c->bev);
  int status;

  c->head_text = malloc (len + 1);
  if (c->head_text == NULL) {
    refuse (c, 503, "no-memory", "out of memory");
    return false;
  }
  evbuffer_remove (in, c->head_text, len);
  evbuffer_drain (in, 4);
  c->head_text[len] = '\0';
  status = strlen (c->head_text) < len ? 400 :
    cow_http_parse_head (c->head_text, &c->head);
  if (status) {
    refuse_head (c, status);
    return false;
  }
  return begin_body (c);
}

static bool
step_head (struct http_conn *c)
{
  struct evbuffer *in = bufferevent_get_input (c->bev);
  struct evbuffer_ptr end;
  unsigned char first[1];

  /* Empty lines before a request are allowed. */
  while (evbuffer_copyout (in, first, 1) == 1 &&
         (*first == '\r' || *first == '\n'))
    evbuffer_drain (in, 1);
  if (evbuffer_get_length (in) == 0)
    return false;
  if (c->state == IDLE) {
    c->state = HEAD;
    set_deadline (c, RECEIVE_S);
  }
  end = evbuffer_search (in, "\r\n\r\n", 4, NULL);
  if (end.pos > HEAD_MAX ||
      (end.pos < 0 && evbuffer_get_length (in) > HEAD_MAX))
    return too_long (c);
  return end.pos >= 0 && take_head (c, (size_t) end.pos);
}

/* Move up to *left bytes to the body. */
static void
take_data (struct http_conn *c, uint64_t *left)
{
  struct evbuffer *in = bufferevent_get_input (c->bev);
  size_t n = evbuffer_get_length (in);

  if (n > *left)
    n = (size_t) *left;
  evbuffer_remove_buffer (in, c->body, n);
  *left -= n;
}

static bool
step_body (struct http_conn *c)
{
  take_data (c, &c->head.length);
  if (c->head.length == 0)
    submit (c);
  return false;
}

/* A line of the chunked encoding, or NULL where it is not there yet; one
 * that is too long is refused.
 */
static char *
take_line (struct http_conn *c)
{
  struct evbuffer *in = bufferevent_get_input (c->bev);
  char *line = evbuffer_readln (in, NULL, EVBUFFER_EOL_CRLF);

  if ((line == NULL && evbuffer_get_length (in) > LINE_MAX_BYTES) ||
      (line && strlen (line) > LINE_MAX_BYTES)) {
    free (line);
    line = NULL;
    refuse_head (c, 400);
  }
  return line;
}

static bool
step_chunk_size (struct http_conn *c)
{
  CLEANUP_FREE char *line = take_line (c);

  if (line == NULL)
    return false;
  if (cow_http_parse_chunk (line, &c->chunk_left)) {
    refuse_head (c, 400);
    return false;
  }
  if (c->chunk_left > BODY_MAX - evbuffer_get_length (c->body)) {
    refuse_head (c, 413);
    return false;
  }
  c->state = c->chunk_left ? CHUNK_DATA : TRAILERS;
  return true;
}

static bool
step_chunk_data (struct http_conn *c)
{
  take_data (c, &c->chunk_left);
  if (c->chunk_left)
    return false;
  c->state = CHUNK_END;
  return true;
}

static bool
step_chunk_end (struct http_conn *c)
{
  CLEANUP_FREE char *line = take_line (c);

  if (line == NULL)
    return false;
  if (*line) {
    refuse_head (c, 400);
    return false;
  }
  c->state = CHUNK_SIZE;
  return true;
}

static bool
step_trailers (struct http_conn *c)
{
  CLEANUP_FREE char *line = take_line (c);

  if (line == NULL)
    return false;
  if (*line)
    return true;
  submit (c);
  return false;
}

static bool
step (struct http_conn *c)
{
  switch (c->state) {
  case IDLE:
  case HEAD:
    return step_head (c);
  case BODY:
    return step_body (c);
  case CHUNK_SIZE:
    return step_chunk_size (c);
  case CHUNK_DATA:
    return step_chunk_data (c);
  case CHUNK_END:
    return step_chunk_end (c);
  case TRAILERS:
    return step_trailers (c);
  case LINGERING:
    evbuffer_drain (bufferevent_get_input (c->bev), SIZE_MAX);
    return false;
  case HANDLING:
  case WRITING:
    return false;
  }
  return false;
}

static void
advance (struct http_conn *c)
{
  while (step (c))
    ;
}

/* ---- Events ---- */

static void
on_read (struct bufferevent *bev, void *opaque)
{
  advance (opaque);
}

static void
begin_lingering (struct http_conn *c)
{
  shutdown (bufferevent_getfd (c->bev), SHUT_WR);
  c->state = LINGERING;
  set_deadline (c, LINGER_S);
  bufferevent_enable (c->bev, EV_READ);
  advance (c);
}

static void
on_written (struct bufferevent *bev, void *opaque)
{
  struct http_conn *c = opaque;

  if (c->state != WRITING)      /* a "100 Continue" */
    return;
  if (c->linger)
    begin_lingering (c);
  else if (c->close || c->http->stopping)
    conn_free (c);
  else {
    become_idle (c);
    advance (c);                /* it may have sent the next one already */
  }
}

static void
on_event (struct bufferevent *bev, short what, void *opaque)
{
  struct http_conn *c = opaque;

  if (c->state == HANDLING)
    c->dead = true;
  else if (c->state != WRITING || (what & BEV_EVENT_ERROR))
    conn_free (c);
}

static void
on_deadline (evutil_socket_t fd, short what, void *opaque)
{
  struct http_conn *c = opaque;

  switch (c->state) {
  case IDLE:
  case WRITING:
  case LINGERING:
    conn_free (c);
    break;
  case HANDLING:
    break;
  default:
    refuse (c, 408, "timeout", "the request did not arrive in time");
  }
}

/* ---- For the server ---- */

void
cow_http_init (struct http *http)
{
  TAILQ_INIT (&http->conns);
}

/* Make room by closing the connection that has been idle longest. */
static bool
evict_idle (struct http *http)
{
  struct http_conn *c;

  TAILQ_FOREACH (c, &http->conns, entry)
    if (c->state == IDLE) {
      conn_free (c);
      return true;
    }
  return false;
}

void
cow_http_accept (struct http *http, evutil_socket_t fd, bool needs_token)
{
  struct http_conn *c;

  if (http->stopping ||
      (http->nr_conns >= CONNS_MAX && !evict_idle (http)) ||
      (c = calloc (1, sizeof *c)) == NULL) {
    evutil_closesocket (fd);
    return;
  }
  c->http = http;
  c->needs_token = needs_token;
  c->body = evbuffer_new ();
  c->deadline = evtimer_new (http->base, on_deadline, c);
  c->bev = bufferevent_socket_new (http->base, fd, BEV_OPT_CLOSE_ON_FREE);
  if (c->body == NULL || c->deadline == NULL || c->bev == NULL) {
    if (c->body)
      evbuffer_free (c->body);
    if (c->deadline)
      event_free (c->deadline);
    if (c->bev)
      bufferevent_free (c->bev);
    else
      evutil_closesocket (fd);
    free (c);
    return;
  }
  TAILQ_INSERT_TAIL (&http->conns, c, entry);
  http->nr_conns++;
  bufferevent_setcb (c->bev, on_read, on_written, on_event, c);
  bufferevent_setwatermark (c->bev, EV_READ, 0, READ_AHEAD);
  become_idle (c);
}

void
cow_http_stop (struct http *http)
{
  struct http_conn *c, *next;

  http->stopping = true;
  for (c = TAILQ_FIRST (&http->conns); c; c = next) {
    next = TAILQ_NEXT (c, entry);
    if (c->state < HANDLING || c->state == LINGERING)
      conn_free (c);
    else if (c->state == WRITING)
      set_deadline (c, LINGER_S);
  }
}

void
cow_http_destroy (struct http *http)
{
  while (!TAILQ_EMPTY (&http->conns))
    conn_free (TAILQ_FIRST (&http->conns));
}
