#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B16: deleting the newest snapshot returns its space.  B28: trimmed space
# goes back to the file system, over and over.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 32M
start_server
py <<'EOF'
from cowtest import *
N = 32 << 20
h = connect("v")
def fill(tag):
    for off in range(0, N, 1 << 20):
        h.pwrite(pattern(1 << 20, tag + off), off)
    h.flush()
fill(1)
expect(used(), N, "one copy")
cowshed("snap", "v@s")
fill(2)
expect(used(), 2 * N, "two copies")
rm("v@s")
wait_for(lambda: used() == N, what="back to one copy")
def du():
    return int(subprocess.check_output(["du", "-sk", DIR]).split()[0])
base = None
for i in range(4):
    fill(10 + i)
    full = du()
    h.trim(N, 0)
    h.flush()
    wait_for(lambda: used() == 0, what="nothing used")
    wait_for(lambda: du() < full - 30 * 1024, 15, "du falls by 30 MiB")
    if base is None:
        base = full
    expect(full < base + 10240, True, "du grows: %d, first %d" % (full, base))
close(h)
EOF
restart
[ "$(used)" = 0 ] || fail "used after restart"
stop_server
check_clean
