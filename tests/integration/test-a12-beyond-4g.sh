#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A12: a clone whose allocations pass 4 GiB in the data file; nothing wraps
# to low offsets.  Chunks of 1 MiB with one written block keep it small.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool --chunk 1M
free=$(df --output=avail -B1M "$tmp" | tail -n 1)
[ "$free" -gt 8000 ] || skip "needs 8 GB in ${TMPDIR:-/tmp}"
C create base 6G
start_server
py <<'EOF'
from cowtest import *
M = 1 << 20
N = 2200                        # chunks of each side: 4.3 GiB together
h = connect("base")
q = Queue(h, 16)
for i in range(N):
    q.write(b"B%07d" % i, i * M)
q.finish()
cowshed("clone", "base", "copy")
c = connect("copy")
for i in range(N):
    c.pwrite(b"C%07d" % i, i * M + 8)
c.flush()
expect(used() > 1 << 32, True, "used")
for i in range(N):
    expect(h.pread(24, i * M), b"B%07d" % i + bytes(16), "base %d" % i)
    expect(c.pread(24, i * M), b"B%07d" % i + b"C%07d" % i + bytes(8),
           "clone %d" % i)
close(h, c)
EOF
stop_server
check_clean
