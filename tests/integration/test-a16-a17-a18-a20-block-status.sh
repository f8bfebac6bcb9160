#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A16: maps of sizes that are no multiple of a sector.  A17: data type changes
# inside small units.  A18: with and without REQ_ONE.  A20: any offset and
# length.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires qemu-img
new_pool
C create small 1000
C create tail $((65536 * 3 + 1000))
C create mix 256K
C create full 300000
C create empty 300000
start_server
py <<'EOF'
from cowtest import *
seed()
h = connect("small"); h.pwrite(b"x" * 1000, 0); close(h)
h = connect("tail"); h.pwrite(b"x" * 100, 3 * K + 10); close(h)
m = Model("mix")
for i in range(0, 512, 2):
    m.write(pattern(512, i), i * 512)
    m.zero(512, i * 512 + 512)
for off in list(range(0, 256 * 1024, 512)) + [1, 511, 4095, 4097, K - 1, K + 1, 3 * K + 3]:
    for n, _ in extents_once(m.h, 256 * 1024 - off, off):
        if n == 0:
            raise AssertionError("empty extent at %d" % off)
m.check_all()
for i in range(0, 64, 3):
    m.zero(4096, i * 4096)
m.check_all()
f = Model("full")
f.write(pattern(300000, "full"), 0)
cowshed("snap", "full@s")
cowshed("clone", "full@s", "holes")
c = Model("holes", data=f.data)
for i in range(8):
    c.trim(random.randrange(1, 20000), random.randrange(0, 280000))
c.check_all()
e = Model("empty")
def byte_map(h, size, flags):
    out = bytearray()
    while len(out) < size:
        got = extents_once(h, size - len(out), len(out), flags)
        if flags:
            expect(len(got), 1, "extents with REQ_ONE")
            expect(got[0][0] <= size - len(out), True, "REQ_ONE length")
        for n, fl in got:
            out += bytes([fl]) * min(n, size - len(out))
    return out
for x in (m, f, c, e):
    size = len(x.data)
    same(byte_map(x.h, size, REQ_ONE), byte_map(x.h, size, 0), x.name)
    whole = byte_map(x.h, size, 0)
    for i in range(scaled(300)):
        off = random.randrange(size)
        n = random.randrange(1, min(size - off, 1 << random.randrange(18)) + 1)
        got = extents_once(x.h, n, off)
        expect(bool(got) and got[0][0] > 0, True, "extent at %d+%d" % (off, n))
        for ln, fl in got:
            ln = min(ln, size - off)
            expect(whole[off:off + ln], bytes([fl]) * ln, "%d+%d" % (off, ln))
            off += ln
    close(x.h)
EOF
py <<'EOF'
from cowtest import *
for name, size in (("small", 1000), ("tail", 3 * K + 1000), ("mix", 4 * K)):
    out = subprocess.check_output(
        ["qemu-img", "map", "--output=json", "-f", "raw",
         "nbd+unix:///%s?socket=%s" % (name, SOCK)])
    at = 0
    for e in json.loads(out):
        expect(e["start"], at, "qemu-img map " + name)
        at += e["length"]
    # qemu rounds up to its sectors.
    expect(at in (size, (size + 511) // 512 * 512), True,
           "qemu-img map of %s ends at %d" % (name, at))
EOF
stop_server
check_clean
