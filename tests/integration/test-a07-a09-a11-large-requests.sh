#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A07: block status near 2^32.  A09: two discards as large as the kernel
# sends.  A11: zero and trim beyond 2 GiB.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdinfo qemu-io
new_pool
C create v 16G
C create w 8G
start_server
nbdinfo --map "$(uri v)" >"$tmp/map"
grep -q . "$tmp/map" || fail "empty map"
py <<'EOF'
from cowtest import *
BIG = 4294966784                # what the kernel sends
h = connect("v")
for off in (0, 1, 512, K - 1, 8 << 30):
    got = extents_once(h, BIG, off)
    expect(bool(got) and got[0][0] > 0, True, "extents at %d" % off)
    extents(h, BIG, off)
marks = [0, BIG - 1, BIG, 2 * BIG]
for m in marks:
    h.pwrite(b"M", m)
h.flush()
before = used()
h.trim(BIG, 0)
h.trim(BIG, BIG)
h.flush()
expect([h.pread(1, m) for m in marks], [b"\0", b"\0", b"\0", b"M"], "marks")
wait_for(lambda: used() < before, what="space of the trimmed marks")
close(h)

h = connect("w")
def mark(*at):
    for a in at:
        h.pwrite(b"M", a)
def look(*at):
    return b"".join(h.pread(1, a) for a in at)
mark(0, 2 << 30, (3 << 30) - 1, 3 << 30)
h.zero(3 << 30, 0)
expect(look(0, 2 << 30, (3 << 30) - 1, 3 << 30), b"\0\0\0M", "zero 3G")
mark(0, 1, (1 << 32) - 1, 1 << 32)
h.zero(4294967295, 1)
expect(look(1, 3 << 30, (1 << 32) - 1), b"\0\0\0", "zero 2^32-1")
expect(h.pread(1, 0), b"M")
expect(h.pread(1, 1 << 32), b"M", "a byte past the end")
mark(0, (1 << 32) - 2, (1 << 32) - 1)
h.trim(4294967295, 0)
expect(look(0, (1 << 32) - 2, (1 << 32) - 1), b"\0\0M", "trim 2^32-1")
mark(1 << 30, 5 << 30, (6 << 30) - 1, 6 << 30)
close(h)
EOF
# Without -u it asks for provisioned space, and -n lets the server refuse.
qemu-io -f raw -c 'write -z -n 0 6G' "$(uri w)" >"$tmp/io" 2>&1 ||
  grep -q "not supported" "$tmp/io" || fail "qemu-io: $(cat "$tmp/io")"
qemu-io -f raw -c 'write -z -n -u 0 6G' "$(uri w)" >"$tmp/io" 2>&1 ||
  fail "qemu-io: $(cat "$tmp/io")"
py <<'EOF'
from cowtest import *
h = connect("w")
expect([h.pread(1, a) for a in (1 << 30, 5 << 30, (6 << 30) - 1, 6 << 30)],
       [b"\0", b"\0", b"\0", b"M"], "write -z -n")
close(h)
EOF
stop_server
check_clean
