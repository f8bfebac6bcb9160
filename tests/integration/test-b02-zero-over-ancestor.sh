#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B02: zeros written where only a grandparent has data must hide it.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create g 1M
start_server
py <<'EOF'
from cowtest import *
fill = pattern(1 << 20, "g")
g = Model("g")
g.write(fill, 0)
cowshed("snap", "g@1")
cowshed("clone", "g@1", "p")
cowshed("snap", "p@1")
cowshed("clone", "p@1", "c")
c = Model("c", data=fill)
c.write(bytes(K), K)            # plain zeros, found by detection
c.zero(K, 3 * K)
c.trim(K, 5 * K)
c.write(bytes(B), 7 * K + B)
c.write(bytes(100), 9 * K + 50)
c.check_all()
for off in (K, 3 * K, 5 * K):
    expect(extents(c.h, K, off), [(off, K, HOLE | ZERO)], "block status")
expect(extents(c.h, B, 7 * K + B)[0][2] & ZERO, ZERO, "a block of zeros")
for name in ("g", "p", "g@1", "p@1"):
    Model(name, data=fill).check_all()
close(c.h, g.h)
EOF
stop_server
check_clean
