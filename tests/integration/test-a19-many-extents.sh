#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A19: a volume that alternates data and holes everywhere: replies are
# bounded, the walk completes and memory stays down.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool --chunk 4K
C create v 4G
start_server
rss () { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }
py <<'EOF'
from cowtest import *
h = connect("v")
n = scaled(65536)
q = Queue(h, 64)
for i in range(n):
    q.write(b"x" * 256, i * 16384)
q.finish()
h.flush()
close(h)
EOF
before=$(rss "$pid")
py <<'EOF'
from cowtest import *
h = connect("v")
got = extents_once(h, 4294966784, 0)
expect(bool(got), True)
print("extents in one reply:", len(got))
expect(len(got) <= 1 << 20, True, "bounded reply")
n = scaled(65536)
walk = extents(h, n * 16384)
expect(sum(1 for _, _, f in walk if not f & ZERO), n, "data extents")
for off, ln, f in walk[:20]:
    print(off, ln, f)
close(h)
EOF
after=$(rss "$pid")
echo "RSS before $before KiB, after $after KiB"
[ $((after - before)) -lt 102400 ] || [ -n "$COWSHED_PRELOAD" ] ||
  fail "the walk took $((after - before)) KiB"
server_alive
stop_server
check_clean
