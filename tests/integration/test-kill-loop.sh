#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SIGKILL at random moments of a mixed load with snapshots and clones being
# made: see kill-loop.py.  COWSHED_KILLS sets how many (200).
. "$COWSHED_SRCDIR/tests/functions.sh"
kills=${COWSHED_KILLS:-$(scaled 200)}
new_pool
/usr/bin/python3 "$COWSHED_SRCDIR/tests/integration/kill-loop.py" "$dir" "$kills"
check_clean
