/* SPDX-License-Identifier: BSD-3-Clause */
/* Long work: jobs, job wait, job cancel. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "cowshed.h"

static const struct column job_columns[] = {
  { "ID", "id", COLUMN_NUMBER },
  { "OP", "op", COLUMN_TEXT },
  { "STATE", "state", COLUMN_TEXT },
  { "DONE", "done", COLUMN_NUMBER },
  { "TOTAL", "total", COLUMN_NUMBER },
  { "RATE", "rate", COLUMN_NUMBER },
  { "STARTED", "started", COLUMN_TIME },
  { "ENDED", "ended", COLUMN_TIME },
  { "SOURCE", "source", COLUMN_TEXT },
  { "DESTINATION", "destination", COLUMN_TEXT },
  { "ERROR", "error", COLUMN_TEXT },
  { NULL }
};

int
cmd_jobs (struct session *s)
{
  json_t *reply;
  int status = backend_call (s, "GET", "/v1/jobs", NULL, NULL, &reply);

  if (status != STATUS_OK)
    return status;
  if (s->json)
    print_json (reply);
  else
    print_table (json_object_get (reply, "jobs"), job_columns);
  json_decref (reply);
  return status;
}

static const char *
job_state (json_t *job)
{
  const char *state = json_string_value (json_object_get (job, "state"));

  return state ? state : "";
}

/* What a job that has ended means for the exit status. */
static int
job_outcome (struct session *s, uint64_t id, json_t *job)
{
  CLEANUP_FREE char *error = json_text (job, "error", COLUMN_TEXT);

  if (strcmp (job_state (job), "done") == 0)
    return STATUS_OK;
  if (strcmp (error, "-") == 0)
    return fail (s, "job %" PRIu64 " was %s", id, job_state (job));
  return fail (s, "job %" PRIu64 " %s: %s", id, job_state (job), error);
}

int
job_follow (struct session *s, uint64_t id, const char *label,
            json_t **ended)
{
  CLEANUP_FREE char *path = text_format ("/v1/jobs/%" PRIu64, id);
  struct progress p;
  json_t *job = NULL;
  int status;

  progress_begin (&p, label, false);
  do {
    json_decref (job);
    job = NULL;
    status = backend_call (s, "GET", path, json_pack ("{s:s}", "wait", "1"),
                           NULL, &job);
    if (status == STATUS_OK)
      progress_update (&p, json_u64 (job, "done"), json_u64 (job, "total"));
  } while (status == STATUS_OK && strcmp (job_state (job), "running") == 0);
  progress_end (&p);
  if (status == STATUS_OK)
    status = job_outcome (s, id, job);
  if (ended)
    *ended = json_incref (job);
  json_decref (job);
  return status;
}

static int
job_wait (struct session *s, uint64_t id)
{
  json_t *job;
  int status = job_follow (s, id, "job", &job);

  if (job && s->json)
    print_json (job);
  json_decref (job);
  return status;
}

int
cmd_job (struct session *s)
{
  CLEANUP_FREE char *path = NULL;
  char *end;
  uint64_t id;

  errno = 0;
  id = strtoull (s->args[1], &end, 10);
  if (s->args[1][0] < '0' || s->args[1][0] > '9' || *end || errno)
    return fail_usage (s, "not the id of a job: %s", s->args[1]);
  if (strcmp (s->args[0], "wait") == 0)
    return job_wait (s, id);
  if (strcmp (s->args[0], "cancel") != 0)
    return fail_usage (s, "expected wait or cancel: %s", s->args[0]);
  path = text_format ("/v1/jobs/%" PRIu64, id);
  return backend_do (s, "DELETE", path, NULL, NULL);
}
