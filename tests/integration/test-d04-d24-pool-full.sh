#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D04: a volume larger than its pool: ENOSPC, reads and overwrites go on,
# writes go on after a trim.  D24: copying clients notice the failure.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdcopy qemu-img
new_pool --capacity 32M
C create v 256M
C create img 64M
start_server
py <<'EOF'
from cowtest import *
v = Model("v", strict=False)
at = 0
while True:
    d = pattern(1 << 18, at)
    e = error_of(v.h.pwrite, d, at)
    if e:
        break
    v.data[at:at + len(d)] = d
    at += len(d)
print("failed at", at)
expect(e, "ENOSPC")
expect(16 << 20 < at <= 32 << 20, True, "space before ENOSPC")
# Part of the failed write may be there.
got = v.h.pread(1 << 18, at)
for i in range(0, 1 << 18, 512):
    expect(got[i:i + 512] in (d[i:i + 512], bytes(512)), True, "failed write")
v.data[at:at + (1 << 18)] = got
v.check("full")
v.write(pattern(1 << 20, "over"), 3 << 20)
v.write(b"ragged", 12345)
v.h.flush()
v.check("overwritten")
print(find(cowshed("df"), "state"))
v.trim(8 << 20, 1 << 20)
v.h.flush()
v.write(pattern(2 << 20, "again"), 2 << 20)
v.check_all("after the trim")
v.h.flush()
# Full again through a snapshot; deleting it helps.
cowshed("snap", "v@s")
off = 10 << 20
while error_of(v.h.pwrite, pattern(1 << 16, off), off) is None:
    off += 1 << 16
    if off >= at:
        raise AssertionError("the pool never filled")
rm("v@s")
wait_for(lambda: error_of(v.h.pwrite, b"x" * 65536, 10 << 20) is None,
         what="writes after deleting the snapshot")
close(v.h)
EOF
head -c 60M /dev/urandom >"$tmp/big"
if nbdcopy "$tmp/big" "$(uri img)" 2>"$tmp/err"; then fail "nbdcopy succeeded"; fi
if qemu-img convert -n -f raw -O raw -W -m 16 "$tmp/big" "$(uri img)" 2>"$tmp/err"; then
  fail "qemu-img convert succeeded"
fi
server_alive
C rm img || wait_until 10 cowshed -p "$dir" rm img
stop_server
check_clean
