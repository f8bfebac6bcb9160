#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A22: single bytes and sectors at odd offsets.  A23: empty requests.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdinfo
new_pool
C create v 1M
start_server
info=$(nbdinfo --json "$(uri v)")
grep -q '"block_size_minimum": *1,' <<<"$info" ||
  fail "the minimum block size is not 1"
py <<'EOF'
from cowtest import *
m = Model("v", strict=False)
for n in (1, 512, 1024):
    for off in (0, 1, 511, 513, 4095, K - 1, K - 300, (1 << 20) - n):
        m.write(pattern(n, n + off), off)
        expect(m.h.pread(n, off), m.data[off:off + n])
m.check_all()
size = 1 << 20
for off in (0, size):
    for fn, args in ((m.h.pread, (0, off)), (m.h.pwrite, (b"", off)),
                     (m.h.zero, (0, off)), (m.h.trim, (0, off))):
        print(fn.__name__, off, error_of(fn, *args))
m.h.flush()
m.check_all("after empty requests")
close(m.h)
EOF
server_alive
stop_server
check_clean
