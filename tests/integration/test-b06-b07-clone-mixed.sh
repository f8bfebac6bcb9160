#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B06: many first writes to a clone in flight at once.  B07: reads over a mix
# of own and inherited blocks.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create base 4M
start_server
py <<'EOF'
from cowtest import *
seed()
size = 4 << 20
fill = pattern(size, "base")
b = Model("base")
b.write(fill, 0)
cowshed("snap", "base@1")
for rnd in range(scaled(6)):
    name = "c%d" % rnd
    cowshed("clone", "base@1", name)
    c = Model(name, data=fill)
    hs = [connect(name) for _ in range(3)] + [c.h]
    jobs = []
    for i in range(64):         # distinct chunks, shorter than a chunk
        n = random.choice([1, 100, 512, 4096, 5000, 20000, K - 1])
        off = i * K + random.randrange(K - n + 1)
        d = pattern(n, rnd * 1000 + i)
        h = hs[i % 4]
        jobs.append((h, h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(d)), off)))
        c.data[off:off + n] = d
    for h, cookie in jobs:
        while not h.aio_command_completed(cookie):
            h.poll(-1)
    c.check_all("after parallel first writes")
    # The same chunk from many requests at once, each its own piece.
    cowshed("clone", "base@1", name + "x")
    x = Model(name + "x", data=fill)
    jobs = []
    for i in range(16 * 8):
        off, n = i * 4096 + 7, 4000
        d = pattern(n, i)
        jobs.append(x.h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(d)), off))
        x.data[off:off + n] = d
    for cookie in jobs:
        while not x.h.aio_command_completed(cookie):
            x.h.poll(-1)
    x.check_all("several first writes to one chunk")
    close(x.h, *hs)
b.check("the base")
# B07
cowshed("clone", "base@1", "half")
m = Model("half", data=fill)
for i in range(0, 32, 2):
    m.write(pattern(K, i), i * K)
for i in range(32, 64):
    m.write(pattern(K // 2, i), i * K + (i % 2) * K // 2)
for edge in range(0, size, K // 2):
    for n in (1, 512, 4096, K, 5 * K):
        off = max(0, min(size - n, edge - random.randrange(n)))
        same(m.h.pread(n, off), bytes(m.data[off:off + n]), "read %d+%d" % (off, n))
m.check_all()
close(m.h, b.h)
EOF
stop_server
check_clean
