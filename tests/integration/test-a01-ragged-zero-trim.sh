#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A01: zero and trim with ragged ends change their range and nothing else,
# for every mix of offsets and lengths around the unit sizes.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 100000
C create w 100000
start_server
py <<'EOF'
from cowtest import *
import itertools
V = [0, 1, 511, 512, 4096, K - 1, K, K + 1, 99999]
full = b"!" * 100000
m = Model("v", strict=False)
for verb, flags in (("zero", 0), ("zero", NO_HOLE), ("trim", 0)):
    for off, n in itertools.product(V, V):
        n = min(n, 100000 - off)
        if n == 0:
            continue
        m.write(full, 0)
        if verb == "zero":
            m.zero(n, off, flags)
        else:
            m.trim(n, off)
        m.check("%s %d+%d flags %d" % (verb, off, n, flags))
    check_extents(m.h, m.data)
# Over a map with holes and half-written blocks too.
seed()
m = Model("w")
for i in range(scaled(400)):
    off = random.randrange(100000)
    n = random.randrange(1, min(100000 - off, random.choice([600, 9000, 10**5])) + 1)
    random.choice([lambda: m.write(pattern(n, i), off), lambda: m.zero(n, off),
                   lambda: m.zero(n, off, NO_HOLE), lambda: m.trim(n, off)])()
    m.check_all("step %d" % i)
close(m.h)
EOF
stop_server
check_clean
