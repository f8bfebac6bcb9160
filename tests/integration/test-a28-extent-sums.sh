#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A28: data above 4 GiB: the sums of all extents are exact for each client.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires qemu-img nbdinfo
new_pool
C create v 6G
start_server
py <<'EOF'
from cowtest import *
size = 6 << 30
h = connect("v")
data = 0
for off in (0, (4 << 30) - K, 4 << 30, (5 << 30) + K, size - K):
    h.pwrite(b"d" * K, off)
    data += K
h.flush()
ex = extents(h)
expect(sum(n for _, n, _ in ex), size, "libnbd")
expect(sum(n for _, n, f in ex if not f & ZERO), data, "libnbd data")
expect(find(cowshed("info", "v"), "allocated"), data, "allocated")
uri = "nbd+unix:///v?socket=" + SOCK
m = json.loads(subprocess.check_output(["qemu-img", "map", "--output=json", "-f", "raw", uri]))
expect(sum(e["length"] for e in m), size, "qemu-img map")
expect(sum(e["length"] for e in m if e["data"]), data, "qemu-img map data")
t = json.loads(subprocess.check_output(["nbdinfo", "--map", "--totals", "--json", uri]))
expect(sum(e["size"] for e in t), size, "nbdinfo totals")
expect(sum(e["size"] for e in t if e["type"] == 0), data, "nbdinfo data")
rows = find(cowshed("map", "v"), "map")
expect(sum(e["length"] for e in rows), size, "cowshed map")
expect(sum(e["length"] for e in rows if e["data"]), data, "cowshed map data")
close(h)
EOF
stop_server
check_clean
