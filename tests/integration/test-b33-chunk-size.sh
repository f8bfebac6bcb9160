#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B33: the chunk size belongs to the pool; making the pool again with another
# one is refused and changes nothing.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool --chunk 64K
C create v 1M
start_server
py <<'EOF'
from cowtest import *
m = Model("v")
m.write(pattern(1 << 20, "v"), 0)
close(m.h)
EOF
stop_server
must_fail 'pool' cowshed init "$dir" --chunk 128K
must_fail 'pool' cowshed init "$dir"
for bad in 0 1 3000 65535 2M 96K x -1; do
  rc=0
  cowshed init "$tmp/other" --chunk "$bad" >/dev/null 2>"$tmp/err" || rc=$?
  [ $rc -ne 0 ] && [ $rc -lt 126 ] || fail "--chunk $bad: status $rc"
  [ -s "$tmp/err" ] || fail "--chunk $bad: no message"
  [ ! -e "$tmp/other/meta.db" ] || fail "--chunk $bad left a pool"
done
start_server
py <<'EOF'
from cowtest import *
Model("v", data=pattern(1 << 20, "v")).check_all()
EOF
stop_server
check_clean
