#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B25: rolling back a volume that a client writes to is refused; by force its
# connection is cut off, and the content is the snapshot's exactly.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 1M
start_server
py <<'EOF'
from cowtest import *
fill = pattern(1 << 20, "v")
v = Model("v", strict=False)
v.write(fill, 0)
cowshed("snap", "v@s")
v.write(pattern(400000, "x"), 1000)
for i in range(40):
    v.h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(4096)), i * 8192)
print(refused("rollback", "v@s").strip())
for i in range(40):
    v.h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(b"y" * 4096)), i * 8192)
cowshed("rollback", "v@s", "--force")
while v.h.aio_in_flight():
    v.h.poll(-1)
expect(error_of(v.h.pwrite, b"late", 0), "ESHUTDOWN", "write after the rollback")
expect(error_of(v.h.pread, 4, 0), "ESHUTDOWN", "read after the rollback")
w = Model("v", data=fill)
w.check_all("rolled back")
w.write(b"works", 10)
w.check_all()
for verb in ("rm", "shrink"):
    if verb == "rm":
        refused("rm", "v", "--snapshots")
    else:
        refused("resize", "v", "1000", "--shrink")
w.check_all("after refusals")
close(w.h)
EOF
restart
py <<'EOF'
from cowtest import *
want = bytearray(pattern(1 << 20, "v"))
want[10:15] = b"works"
Model("v", data=want).check_all("after restart")
EOF
stop_server
check_clean
