#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# E13: changes to a read-only snapshot are refused with EPERM and the
# connection stays.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 1M
start_server
py <<'EOF'
from cowtest import *
v = Model("v")
v.write(pattern(1 << 20, "v"), 0)
cowshed("snap", "v@s")
h = connect("v@s", strict=False)
expect(h.is_read_only(), True)
for fn, args in ((h.pwrite, (b"x", 0)), (h.zero, (4096, 0)), (h.trim, (4096, 0)),
                 (h.zero, (4096, 0, FAST_ZERO)), (h.pwrite, (b"x", 0, FUA))):
    expect(error_of(fn, *args) in ("EPERM", "EROFS"), True, fn.__name__)
    expect(h.pread(1000, 0), bytes(v.data[:1000]), "read after the refusal")
for fn, args in ((v.h.pwrite, (b"x", 1 << 20)), (v.h.pwrite, (b"xx", (1 << 20) - 1)),
                 (v.h.pread, (1, 1 << 20))):
    close_me = connect("v", strict=False)
    print(fn.__name__, error_of(getattr(close_me, fn.__name__), *args))
    expect(close_me.pread(1, 0), bytes(v.data[:1]))
    close(close_me)
d = connect("v@s..", strict=False)
expect(d.is_read_only(), True, "a diff view")
expect(error_of(d.pwrite, b"x", 0) in ("EPERM", "EROFS"), True)
close(d, h, v.h)
EOF
server_alive
stop_server
check_clean
