#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B09: the part that a resize added works, on a volume with snapshots and on
# a clone larger than its source.  B11: a clone of nothing, and one that was
# resized to nothing, let their sources go.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 1000000
start_server
py <<'EOF'
from cowtest import *
old = pattern(1000000, "v")
m = Model("v")
m.write(old, 0)
cowshed("snap", "v@s")
close(m.h)
new = 2 << 20
cowshed("resize", "v", "2M")
cowshed("clone", "v@s", "c")
cowshed("resize", "c", "2M")
for name in ("v", "c"):
    m = Model(name, data=old + bytes(new - len(old)))
    m.check_all("grown")
    m.write(pattern(3000, 1), 999000)
    m.write(pattern(K, 2), 1500000)
    m.zero(5000, 1002000)
    m.trim(100000, 990000)
    m.write(b"end", new - 3)
    m.check_all("written beyond the old end")
    close(m.h)
Model("v@s", data=old).check_all()
# Shrunk and grown again: nothing of the old tail comes back.
cowshed("resize", "c", "999990", "--shrink")
cowshed("resize", "c", "2M")
h = connect("c")
same(h.pread(new - 999990, 999990), bytes(new - 999990), "regrown")
close(h)
expect("shrink" in refused("resize", "v", "1000").lower(), True, "message")
# B11
cowshed("create", "nothing", "0")
cowshed("snap", "nothing@s")
cowshed("clone", "nothing@s", "n2")
cowshed("clone", "v@s", "d")
cowshed("resize", "d", "0", "--shrink")
rm("nothing", "--snapshots")
rm("v", "--snapshots")
rm("n2")
rm("c")
wait_for(lambda: used() == 0, what="all space is free")
rm("d")
EOF
stop_server
check_clean
