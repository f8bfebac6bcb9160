#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D12: what a deleted volume held never shows in another.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool --capacity 24M
start_server
py <<'EOF'
from cowtest import *
size = 16 << 20
secret = b"SECRET!!" * (1 << 17)
for rnd in range(3):
    n = "v%d" % rnd
    cowshed("create", n, "16M")
    h = connect(n)
    same(read_all(h), bytes(size), "a new volume")
    for off in range(0, size, 1 << 20):
        h.pwrite(secret, off)
    h.flush()
    close(h)
    rm(n)
    cowshed("create", "w", "16M")
    h = connect("w")
    same(read_all(h), bytes(size), "a new volume after deletion")
    want = bytearray(size)
    def put():
        # One byte in each chunk, which takes space that was used before.
        for off in range(1000, size, K):
            h.pwrite(b"x", off)
            want[off] = ord("x")
    wait_for(lambda: error_of(put) is None, what="space after deletion")
    same(read_all(h), want, "around single bytes")
    close(h)
    rm("w")
    # The same with a reserved one, whose space is there from the start.
    def create():
        r = cowshed("create", "t", "16M", "--thick", ok=False)
        return r if isinstance(r, dict) or "thick" in r else None
    if isinstance(wait_for(create, what="room for a thick volume"), str):
        continue                # not supported
    h = connect("t")
    same(read_all(h), bytes(size), "a thick volume")
    h.pwrite(b"y", 70000)
    expect(h.pread(3, 69999), b"\0y\0")
    h.zero(1 << 20, 0, NO_HOLE)
    expect(h.pread(1 << 20, 0), bytes(1 << 20))
    close(h)
    rm("t")
EOF
stop_server
check_clean
