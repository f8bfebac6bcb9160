#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B13: trimming a clone leaves its own snapshots the source's data.
# B26: a small trim or zero leaves a snapshot intact.  B29: trimming what
# only the base owns.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create base 1M
start_server
py <<'EOF'
from cowtest import *
fill = pattern(1 << 20, "base")
b = Model("base")
b.write(fill, 0)
cowshed("snap", "base@1")
for i, verb in enumerate(("trim", "zero")):
    c = "c%d" % i
    cowshed("clone", "base@1", c)
    cowshed("snap", c + "@1")
    m = Model(c, data=fill)
    getattr(m, verb)(1 << 20, 0)
    m.check_all("whole " + verb)
    Model(c + "@1", data=fill).check_all("after " + verb)
    close(m.h)
for i, verb in enumerate(("trim", "zero")):
    s = "base@small%d" % i
    cowshed("snap", s)
    was = bytes(b.data)
    getattr(b, verb)(4096, 4096 + 100000 * i)
    getattr(b, verb)(700, 300 + 100000 * i)
    b.check_all(verb)
    Model(s, data=was).check_all("snapshot under a small " + verb)
cowshed("clone", "base@1", "e")
e = Model("e", data=fill)
e.trim(300000, 100000)
e.write(pattern(5000, "e"), 200000)
e.h.flush()
e.check_all()
close(e.h, b.h)
rm("base", "--snapshots")
Model("c0@1", data=fill).check_all("after deleting the base")
Model("c1@1", data=fill).check_all("after deleting the base")
with open(os.environ["tmp"] + "/e", "wb") as f:
    f.write(e.data)
EOF
restart
py <<'EOF'
from cowtest import *
with open(os.environ["tmp"] + "/e", "rb") as f:
    Model("e", data=f.read()).check_all("after restart")
Model("c0@1", data=pattern(1 << 20, "base")).check_all("after restart")
EOF
stop_server
check_clean
