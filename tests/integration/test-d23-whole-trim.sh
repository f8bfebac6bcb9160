#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D23: discarding everything in one call, also at a size that is no multiple
# of a chunk; mkfs with discard.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires qemu-io mke2fs qemu-img
new_pool
C create v 10000001
C create fs 64M
start_server
py <<'EOF'
from cowtest import *
m = Model("v")
m.write(pattern(10000001, "v"), 0)
m.h.flush()
m.trim(10000001, 0)
m.h.flush()
m.check_all()
wait_for(lambda: used() == 0, what="used 0")
m.write(pattern(10000001, "w"), 0)
m.h.flush()
close(m.h)
EOF
qemu-io -f raw -c "discard 0 9999872" "$(uri v)" >"$tmp/io" 2>&1 ||
  fail "qemu-io: $(cat "$tmp/io")"
py <<'EOF'
from cowtest import *
h = connect("v")
want = bytes(9999872) + pattern(10000001, "w")[9999872:]
same(read_all(h), want, "after the discard")
close(h)
EOF
truncate -s 64M "$tmp/img"
mke2fs -q -t ext4 -E discard "$tmp/img"
qemu-img convert -n -f raw -O raw "$tmp/img" "$(uri fs)"
qemu-img compare -f raw -F raw "$tmp/img" "$(uri fs)"
stop_server
check_clean
