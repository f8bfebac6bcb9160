#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A24: the payload limit binds reads and writes, not trim and zero.
# A29: a cache request over 64 MiB.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 8G
start_server
py <<'EOF'
from cowtest import *
import socket, struct
other = connect("v")
h = connect("v", strict=False)
expect(error_of(h.pread, (65 << 20), 0) is not None, True, "read of 65 MiB")
h = connect("v", strict=False)
h.zero(4294967295, 0)
h.trim(4294967295, 0)
expect(h.pread(64 << 20, 0), bytes(64 << 20))
expect(other.pread(1, 0), b"\0")

# A write that announces more than the limit, by hand.
for n in ((64 << 20) + 1, 129 << 20):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(SOCK)
    f = s.makefile("rwb")
    expect(f.read(8), b"NBDMAGIC")
    expect(f.read(8), b"IHAVEOPT")
    f.read(2)
    f.write(struct.pack(">I", 3))
    f.write(b"IHAVEOPT" + struct.pack(">II", 7, 7) + struct.pack(">I", 1) +
            b"v" + struct.pack(">H", 0))
    f.flush()
    while True:
        magic, opt, kind, ln = struct.unpack(">QIII", f.read(20))
        f.read(ln)
        if kind != 3:
            break
    expect(kind, 1, "reply to GO")
    try:
        f.write(struct.pack(">IHHQQI", 0x25609513, 0, 1, 42, 0, n))
        left = n
        while left:
            k = min(left, 1 << 20)
            f.write(bytes(k))
            left -= k
        f.flush()
        reply = f.read(16)
        if len(reply) == 16:
            expect(struct.unpack(">I", reply[4:8])[0] != 0, True,
                   "an over-long write succeeded")
            print("error", struct.unpack(">I", reply[4:8])[0])
    except OSError as e:
        print("disconnected:", e)
    s.close()
    expect(other.pread(1, 0), b"\0", "another connection")

# A29
before = used()
if h.can_cache():
    t = time.monotonic()
    other.cache(200 << 20, 0)
    other.cache(1, (8 << 30) - 1)
    print("cache took %.3f s" % (time.monotonic() - t))
    expect(time.monotonic() - t < 10, True, "cache is quick")
expect(used(), before, "cache allocated")
close(other)
EOF
server_alive
stop_server
check_clean
