/* SPDX-License-Identifier: BSD-3-Clause */
/* "cowshed serve": keep an nbdkit running.
 *
 *            start            control socket answers (without one: ran 1 s)
 *   [waiting] ----> [starting] ----> [up]
 *       ^               |              |
 *       +--- backoff ---+--------------+   it died and nobody asked for that
 *
 *   [any] -- SIGTERM, SIGINT, SIGHUP --> [stopping]: the signal goes to
 *   nbdkit, which ends once its clients have left.  When the grace period is
 *   over, or at a second signal, the control server is asked to make
 *   everything durable and nbdkit is killed: to the pool that is a crash
 *   just after a flush, which it recovers from by design.
 *
 * An nbdkit that ends with an error of its own (not by a signal) before it
 * was ever up has a wrong parameter or no pool: trying again would not help,
 * so we end too.  One that ends with status 0 meant to (nbdkit has filters
 * that end the server); so do we.
 *
 * The supervisor has one thread: PR_SET_PDEATHSIG, by which nbdkit does not
 * outlive a supervisor that is killed, is tied to the thread that forked.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "cowshed.h"
#include "serve.h"

#define UP_MS 1000              /* ran that long: it did start */
#define STEADY_MS 10000         /* ran that long: forget earlier failures */
#define MAX_FAILURES 5          /* in a row, each before UP_MS */
#define BACKOFF_MS 100          /* doubled at each failure ... */
#define MAX_BACKOFF_MS 5000     /* ... up to this */
#define MAX_START_MS 60000      /* then take it to be up unseen */
#define PROBE_MS 20             /* between looks at the control socket */
#define FLUSH_SECONDS 5        /* for the last flush before the kill */
#define MAX_GRACE_SECONDS 3600

enum state { WAITING, STARTING, UP, STOPPING, ENDED };

struct supervisor {
  struct session *s;
  const struct serve_plan *plan;
  struct sockets *sockets;
  struct words command;
  sigset_t old_mask;
  int signals;                  /* signalfd */
  int said;                     /* read end of nbdkit's stderr, or -1 */
  char last[2048];              /* the end of what it said */
  enum state state;
  pid_t pid;                    /* 0: none */
  long started_ms;              /* of this nbdkit */
  long due_ms;                  /* WAITING: start; STOPPING: kill */
  long grace_ms;
  int failures, backoff_ms;
  bool was_up;                  /* ever */
  int status;                   /* ENDED: exit status */
};

static long
now_ms (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Tell systemd, where it asked to be told (sd_notify(3)'s protocol). */
static void
notify_systemd (const char *text)
{
  const char *path = getenv ("NOTIFY_SOCKET");
  struct sockaddr_un sa = { .sun_family = AF_UNIX };
  CLEANUP_CLOSE int fd = -1;
  size_t len = path ? strlen (path) : 0;
  ssize_t n;

  if (len == 0 || len >= sizeof sa.sun_path)
    return;
  memcpy (sa.sun_path, path, len);
  if (sa.sun_path[0] == '@')    /* an abstract one */
    sa.sun_path[0] = '\0';
  fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return;
  /* May fail silently: systemd then reports the missing notice itself. */
  n = sendto (fd, text, strlen (text), MSG_NOSIGNAL, (struct sockaddr *) &sa,
              (socklen_t) (offsetof (struct sockaddr_un, sun_path) + len));
  (void) n;
}

/* ---- nbdkit ---- */

static void
exec_nbdkit (const struct supervisor *v, int err_fd, pid_t parent)
{
  const char *preload = getenv ("COWSHED_PRELOAD");
  char text[32];
  int r;

  /* nbdkit changes it to SIGTERM, and the plugin, which knows us by the
   * variable, back (see there).
   */
  snprintf (text, sizeof text, "%ld", (long) parent);
  setenv ("COWSHED_SUPERVISOR", text, 1);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  if (getppid () != parent)     /* it died before that line */
    _exit (STATUS_FAILED);
  dup2 (err_fd, STDERR_FILENO);
  signal (SIGPIPE, SIG_DFL);
  sigprocmask (SIG_SETMASK, &v->old_mask, NULL);
  r = sockets_pass (v->sockets);
  if (r < 0) {
    fprintf (stderr, "cowshed: serve: sockets: %s\n", strerror (-r));
    _exit (STATUS_FAILED);
  }
  unsetenv ("NOTIFY_SOCKET");
  if (preload && *preload)
    setenv ("LD_PRELOAD", preload, 1);
  execvp (v->command.item[0], v->command.item);
  fprintf (stderr, "cowshed: serve: cannot run %s: %s\n",
           v->command.item[0], strerror (errno));
  _exit (127);
}

static void
start_nbdkit (struct supervisor *v)
{
  pid_t parent = getpid ();
  int fds[2];

  if (pipe2 (fds, O_CLOEXEC) < 0 || (v->pid = fork ()) < 0) {
    v->status = fail (v->s, "cannot start nbdkit: %s", strerror (errno));
    v->pid = 0;
    v->state = ENDED;
    return;
  }
  if (v->pid == 0)
    exec_nbdkit (v, fds[1], parent);
  close (fds[1]);
  fcntl (fds[0], F_SETFL, O_NONBLOCK);
  v->said = fds[0];
  v->last[0] = '\0';
  v->started_ms = now_ms ();
  v->state = STARTING;
}

/* Keep the end of what nbdkit says, and pass everything on. */
static void
hear (struct supervisor *v)
{
  char buf[1024];
  ssize_t n;

  while (v->said >= 0 && (n = read (v->said, buf, sizeof buf)) != 0) {
    size_t have = strlen (v->last), room = sizeof v->last - 1, len;

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return;
    len = (size_t) n;
    if (have + len > room) {
      size_t drop = have + len - room;

      memmove (v->last, v->last + drop, have - drop + 1);
      have -= drop;
    }
    memcpy (v->last + have, buf, len);
    v->last[have + len] = '\0';
    fwrite (buf, 1, len, stderr);
  }
  if (v->said >= 0)
    close (v->said);
  v->said = -1;
}

/* The last line that it said, for an error message. */
static const char *
last_words (struct supervisor *v)
{
  size_t len = strlen (v->last);
  char *line;

  while (len && (v->last[len - 1] == '\n' || v->last[len - 1] == '\r'))
    v->last[--len] = '\0';
  line = strrchr (v->last, '\n');
  return len == 0 ? "it said nothing" : line ? line + 1 : v->last;
}

static char *
describe_end (int wstatus)
{
  if (WIFSIGNALED (wstatus))
    return text_format ("was killed by signal %d (%s)", WTERMSIG (wstatus),
                        strsignal (WTERMSIG (wstatus)));
  return text_format ("ended with status %d", WEXITSTATUS (wstatus));
}

/* ---- transitions ---- */

static void
end (struct supervisor *v, int status)
{
  v->status = status;
  v->state = ENDED;
}

static void
print_uris (const struct session *s, const struct words *uris)
{
  json_t *list = json_array (), *reply;

  for (size_t i = 0; i < uris->nr; i++) {
    json_array_append_new (list, json_string (uris->item[i]));
    if (!s->json)
      puts (uris->item[i]);
  }
  reply = json_pack ("{s:o}", "uris", list);
  if (s->json)
    print_json (reply);
  json_decref (reply);
  fflush (stdout);
}

static void
announce (struct supervisor *v)
{
  if (v->was_up)
    return;
  v->was_up = true;
  print_uris (v->s, &v->sockets->uris);
  notify_systemd ("READY=1\n");
}

/* With a control server, being up means that it answers; without one all we
 * can see is that nbdkit did not end.
 */
static void
look_if_up (struct supervisor *v)
{
  struct client *client;

  if (v->plan->control && now_ms () - v->started_ms < MAX_START_MS) {
    client = client_open (v->plan->control);
    if (client == NULL)
      return;
    client_close (client);
  }
  else if (now_ms () - v->started_ms < UP_MS)
    return;
  v->state = UP;
  announce (v);
}

static void
schedule_restart (struct supervisor *v, long ran_ms, const char *how)
{
  if (ran_ms >= STEADY_MS)
    v->failures = v->backoff_ms = 0;
  v->failures = ran_ms < UP_MS ? v->failures + 1 : 0;
  if (v->failures >= MAX_FAILURES) {
    end (v, fail (v->s, "nbdkit %s, %d times in a row; giving up: %s", how,
                  v->failures, last_words (v)));
    return;
  }
  v->backoff_ms = v->backoff_ms == 0 ? BACKOFF_MS : 2 * v->backoff_ms;
  if (v->backoff_ms > MAX_BACKOFF_MS)
    v->backoff_ms = MAX_BACKOFF_MS;
  fprintf (stderr, "cowshed: serve: nbdkit %s; starting it again in %d ms\n",
           how, v->backoff_ms);
  v->due_ms = now_ms () + v->backoff_ms;
  v->state = WAITING;
}

static void
nbdkit_ended (struct supervisor *v, int wstatus)
{
  CLEANUP_FREE char *how = describe_end (wstatus);
  long ran_ms = now_ms () - v->started_ms;

  hear (v);
  if (v->said >= 0)             /* a child of nbdkit's may still hold it */
    close (v->said);
  v->said = -1;
  v->pid = 0;
  if (v->state == STOPPING)
    end (v, STATUS_OK);
  else if (WIFEXITED (wstatus) && WEXITSTATUS (wstatus) == 0)
    end (v, STATUS_OK);
  else if (WIFEXITED (wstatus) && !v->was_up)
    end (v, fail (v->s, "nbdkit %s: %s", how, last_words (v)));
  else
    schedule_restart (v, ran_ms, how);
}

/* The last resort.  A flush first, so that nothing is lost that clients
 * believe to be written.
 */
static void
kill_nbdkit (struct supervisor *v)
{
  struct client *client = v->plan->control ? client_open (v->plan->control)
    : NULL;
  json_t *reply = NULL;
  char error[256];

  fprintf (stderr, "cowshed: serve: clients are still connected; "
           "ending nbdkit\n");
  if (client)
    client_call (client, FLUSH_SECONDS, "POST", "/v1/flush", NULL, NULL,
                 &reply, error, sizeof error);
  json_decref (reply);
  client_close (client);
  kill (v->pid, SIGKILL);
  v->due_ms = now_ms () + MAX_BACKOFF_MS; /* it cannot refuse */
}

static void
stop (struct supervisor *v, int sig)
{
  if (v->pid == 0) {
    end (v, STATUS_OK);
    return;
  }
  if (v->state == STOPPING) {
    kill_nbdkit (v);
    return;
  }
  notify_systemd ("STOPPING=1\n");
  v->state = STOPPING;
  v->due_ms = now_ms () + v->grace_ms;
  kill (v->pid, sig);
}

/* ---- the loop ---- */

static void
read_signals (struct supervisor *v)
{
  struct signalfd_siginfo si;
  int wstatus;

  while (v->state != ENDED && read (v->signals, &si, sizeof si) == sizeof si) {
    if (si.ssi_signo != SIGCHLD)
      stop (v, (int) si.ssi_signo);
    else if (v->pid && waitpid (v->pid, &wstatus, WNOHANG) == v->pid)
      nbdkit_ended (v, wstatus);
  }
}

/* How long to sleep at most; -1: until something happens. */
static int
timeout_ms (const struct supervisor *v)
{
  long left;

  if (v->state == STARTING)
    return PROBE_MS;
  if (v->state == UP)
    return -1;
  left = v->due_ms - now_ms ();
  return left < 0 ? 0 : (int) left;
}

static void
on_time (struct supervisor *v)
{
  if (v->state == STARTING)
    look_if_up (v);
  else if (v->state == WAITING && now_ms () >= v->due_ms)
    start_nbdkit (v);
  else if (v->state == STOPPING && now_ms () >= v->due_ms)
    kill_nbdkit (v);
}

static void
supervise (struct supervisor *v)
{
  start_nbdkit (v);
  while (v->state != ENDED) {
    struct pollfd fds[] = {
      { .fd = v->signals, .events = POLLIN },
      { .fd = v->said, .events = POLLIN },
    };

    poll (fds, 2, timeout_ms (v));
    if (fds[1].revents)
      hear (v);
    if (fds[0].revents)
      read_signals (v);
    on_time (v);
  }
}

/* ---- the command ---- */

static bool
needs_quotes (const char *word)
{
  return *word == '\0' || strspn (word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz"
                                  "0123456789-_=+:,./@%") != strlen (word);
}

static void
print_quoted (const struct words *command)
{
  for (size_t i = 0; i < command->nr; i++) {
    const char *word = command->item[i];

    if (i)
      putchar (' ');
    if (!needs_quotes (word)) {
      fputs (word, stdout);
      continue;
    }
    putchar ('\'');
    for (; *word; word++)
      if (*word == '\'')
        fputs ("'\\''", stdout);
      else
        putchar (*word);
    putchar ('\'');
  }
  putchar ('\n');
}

static int
parse_grace (struct session *s, long *ms)
{
  const char *text = session_option (s, "grace");
  char *rest;
  long seconds;

  *ms = 10000;
  if (text == NULL)
    return STATUS_OK;
  seconds = strtol (text, &rest, 10);
  if (*text < '0' || *text > '9' || *rest || seconds > MAX_GRACE_SECONDS)
    return fail_usage (s, "--grace: expected 0 to %d seconds: %s",
                       MAX_GRACE_SECONDS, text);
  *ms = seconds * 1000;
  return STATUS_OK;
}

/* What is better said before there are sockets.  A second server's control
 * socket would be taken for ours.
 */
static int
check_plan (struct session *s, const struct serve_plan *plan)
{
  struct client *client;

  for (size_t i = 0; i < plan->pools.nr; i++) {
    CLEANUP_FREE char *dir = pool_dir (plan->pools.item[i]);

    if (access (dir, X_OK) < 0)
      return fail (s, "no pool in %s: %s", dir, strerror (errno));
  }
  client = plan->control ? client_open (plan->control) : NULL;
  if (client == NULL)
    return STATUS_OK;
  client_close (client);
  return fail (s, "a server is running already: it answers at %s",
               plan->control);
}

static int
run_supervisor (struct session *s, const struct serve_plan *plan,
                long grace_ms)
{
  struct sockets sockets = { 0 };
  struct supervisor v = {
    .s = s, .plan = plan, .sockets = &sockets, .said = -1,
    .grace_ms = grace_ms,
  };
  sigset_t mask;
  int status = check_plan (s, plan);

  if (status == STATUS_OK)
    status = sockets_open (s, plan, &sockets);
  if (status == STATUS_OK) {
    signal (SIGPIPE, SIG_IGN);
    sigemptyset (&mask);
    sigaddset (&mask, SIGCHLD);
    sigaddset (&mask, SIGTERM);
    sigaddset (&mask, SIGINT);
    sigaddset (&mask, SIGHUP);
    sigprocmask (SIG_BLOCK, &mask, &v.old_mask);
    v.signals = signalfd (-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    serve_plan_command (plan, false, &v.command);
    supervise (&v);
    status = v.status;
    words_free (&v.command);
    close (v.signals);
  }
  sockets_close (&sockets);
  return status;
}

int
cmd_serve (struct session *s)
{
  struct serve_plan plan = { .family = AF_UNSPEC };
  struct words command = { 0 };
  long grace_ms;
  int status = parse_grace (s, &grace_ms);

  if (status == STATUS_OK)
    status = serve_plan_parse (s, &plan);
  if (status == STATUS_OK && session_option (s, "print")) {
    serve_plan_command (&plan, true, &command);
    print_quoted (&command);
    words_free (&command);
  }
  else if (status == STATUS_OK)
    status = run_supervisor (s, &plan, grace_ms);
  serve_plan_free (&plan);
  return status;
}
