#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B18 B20: volumes and snapshots go in any order.  B21: parallel deletions.
# B31: a name is never taken twice.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 1M
start_server
py <<'EOF'
from cowtest import *
import concurrent.futures, itertools
fill = pattern(1 << 20, "v")
v = Model("v")
v.write(fill, 0)
close(v.h)
# B31
cowshed("snap", "v@s")
for args in (("clone", "v@s", "v"), ("snap", "v@s"), ("create", "v", "1M"),
             ("clone", "v", "v"), ("rename", "v", "v"),):
    if args[0] != "rename":
        refused(*args)
cowshed("clone", "v@s", "w")
refused("clone", "w", "v")
refused("clone", "v@s", "v@s")
refused("rename", "w", "v")
refused("rename", "w", "w@s")
expect(sorted(names()), ["v", "v@s", "w"], "names")
# B20
cowshed("clone", "v@s", "x")
rm("v@s")
refused("info", "v@s")
for n in ("w", "x", "v"):
    Model(n, data=fill).check_all("after deleting the snapshot")
for n in ("w", "x", "v"):
    rm(n)
wait_for(lambda: used() == 0, what="used 0")
# B18: every order of deletion of a chain with its snapshots.
objects = ["a@1", "b@1", "c", "a", "b"]
for order in itertools.islice(itertools.permutations(objects), 0, 120, 7):
    cowshed("create", "a", "300000")
    a = Model("a")
    a.write(fill[:300000], 0)
    cowshed("snap", "a@1")
    a.write(fill[:1000], 5000)
    cowshed("clone", "a@1", "b")
    b = Model("b", data=fill[:300000])
    b.write(fill[7:70007], 10)
    cowshed("snap", "b@1")
    cowshed("clone", "b@1", "c")
    c = Model("c", data=b.data)
    c.write(fill[9:9009], 90000)
    want = {"a": bytes(a.data), "a@1": fill[:300000], "b": bytes(b.data),
            "b@1": bytes(b.data), "c": bytes(c.data)}
    close(a.h, b.h, c.h)
    alive = set(objects)
    for n in order:
        if n not in alive:
            continue
        gone = {x for x in alive if x == n or x.startswith(n + "@")}
        if len(gone) > 1:
            refused("rm", n)
            rm(n, "--snapshots")
        else:
            rm(n)
        alive -= gone
        for x in alive:
            h = connect(x)
            same(read_all(h), want[x], "%s after deleting %s" % (x, n))
            close(h)
    wait_for(lambda: used() == 0, what="used 0 after " + " ".join(order))
# B21
cowshed("create", "p", "1M")
h = connect("p")
h.pwrite(fill, 0)
for i in range(4):
    cowshed("snap", "p@%d" % i)
    h.pwrite(fill[i:i + 5000], i * 100000)
with concurrent.futures.ThreadPoolExecutor(10) as ex:
    r = list(ex.map(lambda i: cowshed("rm", "p@1", ok=False), range(10)))
    expect(sum(isinstance(x, dict) for x in r), 1, "successful deletions")
    r = list(ex.map(lambda i: cowshed("rm", "p@%d" % i, ok=False), (0, 2, 3)))
    expect(sum(isinstance(x, dict) for x in r), 3, "successful deletions")
want = bytearray(fill)
for i in range(4):
    want[i * 100000:i * 100000 + 5000] = fill[i:i + 5000]
same(read_all(h), want, "p")
close(h)
EOF
stop_server
check_clean
