/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table of commands and options. */
#include <config.h>

#include "cowshed.h"

const struct option_def global_options[] = {
  { "pool", 'p', "[NAME:]DIR", "the pool; may be repeated "
    "(default: $COWSHED_POOL)" },
  { "control", 0, "PATH", "socket of the server "
    "(default: DIR/control.sock)" },
  { "json", 0, NULL, "print JSON" },
  { "help", 'h', NULL, "print this help" },
  { "version", 'V', NULL, "print the version" },
  { NULL }
};

#define OPT_FORCE(what) { "force", 'f', NULL, what }
#define OPT_NO_WAIT { "no-wait", 0, NULL, \
    "if it becomes a job, print its id and do not wait" }

const struct command cow_commands[] = {
  { "init", "DIR", "make a pool",
    1, 1, OPERAND_DIR, .run = cmd_init, .options = {
      { "chunk", 0, "SIZE", "unit of allocation, a power of two "
        "from 4K to 1M (default: 64K)" },
      { "capacity", 0, "SIZE", "the most the pool may hold "
        "(default: what the file system or device has)" },
      { "device", 0, "PATH", "block device for the data" } } },
  { "serve", "[DIR...] [-- NBDKIT-ARGS]", "serve pools over NBD",
    0, -1, OPERAND_DIR, .takes_rest = true, .run = cmd_serve, .options = {
      { "print", 0, NULL, "show the nbdkit command line and exit" },
      { "grace", 0, "SECONDS", "on SIGTERM, how long clients may stay "
        "(default: 10)" } } },
  { "ls", "[POOL]", "list volumes and snapshots",
    0, 1, OPERAND_NONE, .run = cmd_ls, .options = {
      { "long", 'l', NULL, "with allocated, exclusive, shared and "
        "reserved space" } } },
  { "info", "VOL[@SNAP]", "show a volume or snapshot",
    1, 1, OPERAND_NAME, .run = cmd_info },
  { "df", "", "show the space of the pools",
    0, 0, OPERAND_NONE, .run = cmd_df },
  { "create", "VOL SIZE", "make a volume",
    2, 2, OPERAND_NONE, .run = cmd_create, .options = {
      { "thick", 0, NULL, "reserve all of its space" } } },
  { "rm", "VOL[@SNAP]", "remove a volume or snapshot",
    1, 1, OPERAND_NAME, .run = cmd_rm, .options = {
      { "snapshots", 0, NULL, "remove the volume's snapshots too" },
      OPT_FORCE ("even while clients have it open for writing") } },
  { "rename", "OLD NEW", "rename a volume or snapshot",
    2, 2, OPERAND_NAME, .run = cmd_rename },
  { "resize", "VOL [+]SIZE", "change the size of a volume",
    2, 2, OPERAND_NAME, .run = cmd_resize, .options = {
      { "shrink", 0, NULL, "the size may become smaller" },
      OPT_FORCE ("shrink even while clients have it open for writing") } },
  { "snap", "VOL@SNAP...", "make snapshots, all at one instant",
    1, -1, OPERAND_NAME, .run = cmd_snap },
  { "clone", "SRC[@SNAP] DST", "make a writable copy that shares its data",
    2, 2, OPERAND_NAME, .run = cmd_clone },
  { "rollback", "VOL@SNAP", "set a volume back to a snapshot",
    1, 1, OPERAND_NAME, .run = cmd_rollback, .options = {
      OPT_FORCE ("even while clients have it open for writing") } },
  { "zero", "VOL[:OFF+LEN]", "make a range read as zeros",
    1, 1, OPERAND_NAME, .run = cmd_zero, .options = {
      { "thick", 0, NULL, "keep the range's space reserved" },
      OPT_NO_WAIT } },
  { "trim", "VOL[:OFF+LEN]", "give a range's space back",
    1, 1, OPERAND_NAME, .run = cmd_trim, .options = { OPT_NO_WAIT } },
  { "map", "VOL[@SNAP]", "show what is allocated",
    1, 1, OPERAND_NAME, .run = cmd_map },
  { "diff", "VOL@A [VOL[@B]]", "show what changed since a snapshot",
    1, 2, OPERAND_NAME, .run = cmd_diff },
  { "check", "[DIR]", "verify a pool",
    0, 1, OPERAND_DIR, .run = cmd_check, .options = {
      { "repair", 0, NULL, "repair what can be; "
        "the pool must not be served" } } },
  { "jobs", "", "list long work",
    0, 0, OPERAND_NONE, .run = cmd_jobs },
  { "job", "wait|cancel ID", "wait for a job, or cancel it",
    2, 2, OPERAND_NONE, .run = cmd_job },
  { "completion", "bash|names", "print the completion of a shell",
    1, 1, OPERAND_NONE, .hidden = true, .run = cmd_completion },
  { NULL }
};
