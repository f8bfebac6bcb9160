#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B23: a chain of many clones: no recursion, reading the last costs no more
# than reading the first; deletion from both ends.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v0 16M
ulimit -s 256
start_server
ulimit -s 8192 2>/dev/null || :
py <<'EOF'
from cowtest import *
seed()
N = scaled(300)
size = 16 << 20
model = bytearray(size)
for i in range(N):
    h = connect("v%d" % i, meta=False)
    off = i * K % size
    d = pattern(5000, i)
    h.pwrite(d, off + 100)
    model[off + 100:off + 5100] = d
    if i == 0:
        for o in range(0, size, 1 << 20):
            d = pattern(1 << 20, o)
            h.pwrite(d, o)
            model[o:o + (1 << 20)] = d
    close(h)
    cowshed("clone", "v%d" % i, "v%d" % (i + 1))
top = Model("v%d" % N, data=model)
top.check_all("the last clone")
first = connect("v0")
def rate(h):
    t = time.monotonic()
    for i in range(1500):
        h.pread(4096, random.randrange(size // 4096) * 4096)
    return time.monotonic() - t
ratios = []
for i in range(3):
    a, b = rate(first), rate(top.h)
    ratios.append(a / b)
print("rate of the last to the first:", ["%.2f" % r for r in ratios])
expect(max(ratios) > 0.5, True, "depth costs")
close(first)
cowshed("map", top.name)
expect(len(names()), N + 1)
for i in range(N // 2):
    rm("v%d" % i)
top.check("after deleting the lower half")
for i in range(N - 1, N // 2 - 1, -1):
    rm("v%d" % i)
top.check_all("after deleting all others")
close(top.h)
EOF
stop_server
check_clean
