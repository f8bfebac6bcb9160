/* SPDX-License-Identifier: BSD-3-Clause */
/* Every request that the control server knows, one row each. */
#include <config.h>

#include "api-internal.h"

#define SYNC { "sync", FIELD_FLAG, IN_BODY | IN_QUERY, \
    "false: durable with the next flush only" }
#define FORCE { "force", FIELD_FLAG, IN_BODY | IN_QUERY, \
    "even if it is open for writing; its clients get ESHUTDOWN" }
#define POOL { "pool", FIELD_TEXT, IN_BODY | IN_QUERY, \
    "name of the pool; all of them, or the first, where absent" }

const struct route cow_routes[] = {
  { "GET", "/", cow_route_root, "what this server offers" },
  { "GET", "/v1", cow_route_root, "what this server offers" },
  { "GET", "/v1/pools", cow_route_pools, "pools and their space" },
  { "POST", "/v1/flush", cow_route_flush,
    "make all that was done so far durable", { POOL } },
  { "POST", "/v1/check", cow_route_check,
    "verify a pool's structures and counts, without changing it", { POOL } },

  { "GET", "/v1/volumes", cow_route_volumes, "volumes and snapshots",
    { POOL,
      { "details", FIELD_FLAG, IN_QUERY,
        "with allocated, exclusive and shared, which takes longer" } } },
  { "POST", "/v1/volumes", cow_route_volume_create,
    "new volume, or with source a clone",
    { { "name", FIELD_TEXT, IN_BODY | REQUIRED, "[POOL/]VOLUME" },
      { "size", FIELD_SIZE, IN_BODY, "bytes" },
      { "thick", FIELD_FLAG, IN_BODY, "reserve all space" },
      { "source", FIELD_TEXT, IN_BODY, "[POOL/]VOLUME[@SNAP] to clone" },
      SYNC } },
  { "GET", "/v1/volumes/{name}", cow_route_volume_info,
    "one volume or snapshot in full" },
  { "PATCH", "/v1/volumes/{name}", cow_route_volume_change,
    "resize, rename or roll back",
    { { "size", FIELD_SIZE, IN_BODY, "new size in bytes" },
      { "shrink", FIELD_FLAG, IN_BODY, "the size may become smaller" },
      { "name", FIELD_TEXT, IN_BODY, "new name" },
      { "rollback", FIELD_TEXT, IN_BODY, "snapshot to go back to" },
      FORCE, SYNC } },
  { "DELETE", "/v1/volumes/{name}", cow_route_volume_remove,
    "remove a volume or snapshot",
    { { "snapshots", FIELD_FLAG, IN_BODY | IN_QUERY, "with its snapshots" },
      FORCE, SYNC } },
  { "GET", "/v1/volumes/{name}/snapshots", cow_route_volume_snapshots,
    "the snapshots of a volume" },
  { "POST", "/v1/volumes/{name}/snapshots", cow_route_volume_snapshot,
    "take a snapshot",
    { { "name", FIELD_TEXT, IN_BODY | REQUIRED, "SNAP or VOLUME@SNAP" },
      SYNC } },
  { "POST", "/v1/snapshots", cow_route_snapshots,
    "take several snapshots at one instant",
    { { "names", FIELD_TEXTS, IN_BODY | REQUIRED, "[POOL/]VOLUME@SNAP ..." },
      SYNC } },

  { "GET", "/v1/volumes/{name}/map", cow_route_map,
    "allocation map, in pages",
    { { "offset", FIELD_SIZE, IN_QUERY, "where to begin" },
      { "length", FIELD_SIZE, IN_QUERY, "how far to go" },
      { "limit", FIELD_NUMBER, IN_QUERY, "rows in a page" } } },
  { "GET", "/v1/volumes/{name}/diff", cow_route_diff,
    "what may differ since a snapshot, in pages",
    { { "from", FIELD_TEXT, IN_QUERY | REQUIRED, "the older snapshot" },
      { "to", FIELD_TEXT, IN_QUERY, "the newer one; the volume if absent" },
      { "offset", FIELD_SIZE, IN_QUERY, "where to begin" },
      { "length", FIELD_SIZE, IN_QUERY, "how far to go" },
      { "limit", FIELD_NUMBER, IN_QUERY, "rows in a page" } } },

  { "POST", "/v1/zero", cow_route_zero, "make a range read as zero",
    { { "destination", FIELD_TEXT, IN_BODY | REQUIRED,
        "[POOL/]VOLUME[:OFFSET[+LENGTH]]" },
      { "thick", FIELD_FLAG, IN_BODY, "keep space for the range" },
      SYNC } },
  { "POST", "/v1/trim", cow_route_trim, "give the space of a range back",
    { { "destination", FIELD_TEXT, IN_BODY | REQUIRED,
        "[POOL/]VOLUME[:OFFSET[+LENGTH]]" },
      { "thick", FIELD_FLAG, IN_BODY, "must be false" },
      SYNC } },

  { "GET", "/v1/jobs", cow_route_jobs, "long work, running and ended" },
  { "GET", "/v1/jobs/{id}", cow_route_job, "one job",
    { { "wait", FIELD_NUMBER, IN_QUERY,
        "seconds to wait, at most, for its end" } } },
  { "DELETE", "/v1/jobs/{id}", cow_route_job_cancel, "cancel a job" },
  { NULL }
};
