#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A03: a trim that holds no whole unit.  A04: the tail of a rounded trim.
# A10: a trim at offset 0.  A21: zeroing less than a block.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 1M
start_server
py <<'EOF'
from cowtest import *
m = Model("v")
fill = pattern(1 << 20, "fill")
for flags in (0, FUA):
    for n, off in ((K // 2, K), (1, 2 * K - 2), (K - 1, 1), (K // 2, 3 * K),
                   (K, K // 2), (2 * K - 2, 5 * K + 1)):
        m.write(fill, 0)
        m.trim(n, off, flags)
        m.check_all("trim %d+%d" % (off, n))
    for n, off in ((512, 512), (K - 1, 1), (K - 1, K + 2), (1, 0), (3, 4095),
                   (1, (1 << 20) - 1)):
        m.write(fill, 0)
        m.zero(n, off, flags)
        m.check_all("zero %d+%d" % (off, n))
# A10
m.write(fill, 0)
m.h.flush()
before = used()
m.trim(K, 0)
m.h.flush()
wait_for(lambda: used() == before - K, what="the first chunk is freed")
expect(extents(m.h)[0], (0, K, HOLE | ZERO), "map")
m.check()
close(m.h)
EOF
stop_server
check_clean
