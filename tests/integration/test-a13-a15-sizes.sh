#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A13: sizes of a terabyte and far more.  A15: size 0 works everywhere.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdinfo nbdcopy
new_pool
start_server
py <<'EOF'
from cowtest import *
for n, size in enumerate((1 << 40, (1 << 41) + 1, 1 << 43, 1 << 46, 1 << 60)):
    cowshed("create", "v%d" % n, str(size))
    h = connect("v%d" % n)
    expect(h.get_size(), size)
    h.pwrite(b"E", size - 1)
    for low in ((size - 1) % (1 << 32), (size - 1) % (1 << 41)):
        if low != size - 1:
            expect(h.pread(1, low), b"\0", "offset %d of %d" % (low, size))
    expect(h.pread(1, size - 1), b"E")
    got = extents(h, 1 << 20, size - (1 << 20))
    expect(sum(n for _, n, _ in got), 1 << 20)
    close(h)
    cowshed("snap", "v%d@s" % n)
    cowshed("clone", "v%d@s" % n, "c%d" % n)
    c = connect("c%d" % n)
    expect(c.pread(1, size - 1), b"E")
    close(c)
cowshed("create", "empty", "0")
cowshed("snap", "empty@s")
cowshed("clone", "empty@s", "e2")
EOF
[ "$(nbdinfo --size "$(uri v1)")" = 2199023255553 ] || fail "nbdinfo --size"
[ "$(nbdinfo --size "$(uri empty)")" = 0 ] || fail "size of the empty volume"
nbdinfo --map "$(uri empty)" >/dev/null
nbdcopy "$(uri empty)" null:
nbdinfo "$(uri empty@s)" >/dev/null
C info empty >/dev/null
C map empty >/dev/null
C resize empty 1
[ "$(nbdinfo --size "$(uri empty)")" = 1 ] || fail "resize from 0 to 1"
C resize e2 1M
C resize e2 0 --shrink
C rm e2
C rm empty --snapshots
must_fail . cowshed -p "$dir" create toolarge 8E
must_fail . cowshed -p "$dir" create toolarge 9223372036854775808
must_fail . cowshed -p "$dir" create toolarge 18446744073709551617
restart
[ "$(nbdinfo --size "$(uri v3)")" = $((1 << 46)) ] || fail "size after restart"
stop_server
check_clean
