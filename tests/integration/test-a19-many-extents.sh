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
bufs = nbd.Buffer.from_bytearray(bytearray(b"x" * 256))
for i in range(n):
    h.aio_pwrite(bufs, i * 16384)
    while h.aio_in_flight() >= 64:
        h.poll(-1)
    while True:
        c = h.aio_peek_command_completed()
        if c <= 0:
            break
        h.aio_command_completed(c)
while h.aio_in_flight():
    h.poll(-1)
while True:
    c = h.aio_peek_command_completed()
    if c <= 0:
        break
    h.aio_command_completed(c)
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
