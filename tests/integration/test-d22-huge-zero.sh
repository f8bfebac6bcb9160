#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D22: one huge zero or trim does not keep others waiting.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool --chunk 4K
C create base 4G
C create other 1M
start_server
py <<'EOF'
from cowtest import *
import threading
h = connect("base")
n = scaled(12000)
for i in range(0, n):
    h.pwrite(b"x" * 4096, i * ((4 << 30) // n) // 4096 * 4096)
o = connect("other")
o.pwrite(b"o" * 4096, 0)
for verb in ("zero", "trim"):
    cowshed("clone", "base", verb)
    c = connect(verb, meta=False)
    worst = 0
    t = threading.Thread(target=getattr(c, verb), args=(4294967295, 0))
    t.start()
    rounds = 0
    while t.is_alive() or rounds < 3:
        a = time.monotonic()
        o.pread(4096, 0)
        o.pwrite(b"p" * 100, 5000)
        cowshed("ls")
        worst = max(worst, time.monotonic() - a)
        rounds += 1
    t.join()
    print(verb, "rounds", rounds, "worst %.3f s" % worst)
    expect(worst < 1.5, True, "others wait %.3f s" % worst)
    expect(c.pread(100, 0), bytes(100))
    close(c)
expect(h.pread(4096, 0), b"x" * 4096)
close(h, o)
EOF
stop_server
check_clean
