#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D06: SIGKILL when the pool has just run full, again and again; it starts
# each time without repair and can free space.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool --capacity 8M
C create v 64M
for i in $(seq "$(scaled 15)"); do
  start_server
  py "$i" <<'EOF'
from cowtest import *
h = connect("v")
i = int(sys.argv[1])
for off in range(0, 64 << 20, 65536):
    e = error_of(h.pwrite, pattern(65536, i * 1000 + off // 65536), off)
    if e:
        expect(e, "ENOSPC")
        break
else:
    raise AssertionError("never full")
h.pwrite(b"flushed%d" % i, 100)
h.flush()
EOF
  kill9
  check_clean
  start_server
  py "$i" <<'EOF'
from cowtest import *
h = connect("v")
i = int(sys.argv[1])
want = b"flushed%d" % i
expect(h.pread(len(want), 100), want)
h.trim(64 << 20, 0)
h.flush()
h.pwrite(b"more", 0)
close(h)
EOF
  kill9
done
check_clean
