/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of volumes, snapshots and ranges as interface users write them:
 *
 *   VOLUME   [A-Za-z0-9][A-Za-z0-9._-]{0,127}
 *   SNAP     the same, without ".."
 *   [POOL/]VOLUME[@SNAP]            a volume or snapshot
 *   [POOL/]VOLUME@A..[B]            a diff view (B empty: the live volume)
 *   [POOL/]VOLUME[@SNAP][:OFF[+LEN]] a range
 */
#ifndef COW_NAMES_H
#define COW_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define COW_NAME_MAX 128

struct cow_spec {
  char pool[COW_NAME_MAX + 1];   /* "" : the first pool */
  char volume[COW_NAME_MAX + 1];
  char snap[COW_NAME_MAX + 1];   /* "" : the volume itself */
  char snap_to[COW_NAME_MAX + 1];/* the B of A..B, "" : live */
  bool is_diff;                  /* A..B was written; snap holds A */
  bool has_offset, has_length;
  uint64_t offset, length;
};

#define COW_SPEC_RANGE 1         /* accept :OFF+LEN */
#define COW_SPEC_DIFF 2          /* accept @A..B */

bool cow_name_valid (const char *name);
bool cow_snap_name_valid (const char *name);

/* Parse text; 0 or -EINVAL with err (code "invalid-name" or
 * "invalid-range") that quotes the text (made printable) and says what was
 * expected.
 */
int cow_spec_parse (const char *text, unsigned flags, struct cow_spec *spec,
                    struct cow_error *err);

/* "VOLUME" or "VOLUME@SNAP" into buf (at least 2*COW_NAME_MAX+2). */
const char *cow_spec_object (const struct cow_spec *spec, char *buf);

/* Text from outside in double quotes for a message: printable ASCII only, a
 * "..." where it does not fit.  len is at least 16.  Returns buf.
 */
const char *cow_text_quote (const char *text, char *buf, size_t len);

#endif /* COW_NAMES_H */
