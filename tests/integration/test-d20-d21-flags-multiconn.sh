#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D20: the flags advertised are the truth.  D21: a flush covers what other
# connections had written, and writes are seen at once by all.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdinfo
new_pool
C create v 4M
C snap v@s
start_server
for f in flush fua zero trim fast-zero multi-conn cache; do
  nbdinfo --can $f "$(uri v)" || fail "does not offer $f"
done
if nbdinfo --is read-only "$(uri v)"; then fail "the volume is read-only"; fi
nbdinfo --is read-only "$(uri v@s)" || fail "the snapshot is not read-only"
nbdinfo --can multi-conn "$(uri v@s)" || fail "snapshot: no multi-conn"
py <<'EOF'
from cowtest import *
hs = [connect("v") for _ in range(5)]
want = bytearray(4 << 20)
for i in range(200):
    d = pattern(4096, i)
    off = i * 20000
    hs[i % 4].pwrite(d, off)
    same(hs[(i + 1) % 5].pread(4096, off), d, "seen by another connection")
    want[off:off + 4096] = d
hs[4].flush()
with open(os.environ["tmp"] + "/want", "wb") as f:
    f.write(want)
hs[0].pwrite(b"fua", 100000, FUA)
hs[1].zero(5000, 300000, FUA)
hs[2].trim(5000, 400000, FUA)
EOF
kill9
start_server
py <<'EOF'
from cowtest import *
want = bytearray(open(os.environ["tmp"] + "/want", "rb").read())
want[100000:100003] = b"fua"
want[300000:305000] = bytes(5000)
want[400000:405000] = bytes(5000)
Model("v", data=want).check_all("after SIGKILL")
EOF
stop_server
check_clean
# offload=off: no native zero, trim or extents; the content is the same.
start_server offload=off
py <<'EOF'
from cowtest import *
h = connect("v")
expect(h.can_meta_context(CONTEXT) and extents(h) != [(0, 4 << 20, 0)], False, "extents")
if h.can_zero():
    h.zero(70000, 1000)
    expect(h.pread(70000, 1000), bytes(70000))
expect(h.can_trim(), False, "trim")
expect(h.can_fast_zero(), False, "fast zero")
h.pwrite(bytes(65536), 0)
h.flush()
expect(find(cowshed("info", "v"), "allocated") > 0, True)
close(h)
EOF
stop_server
check_clean
