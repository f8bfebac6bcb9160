#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# E23: two processes write one volume; each block holds what one of them
# wrote last, also in a snapshot taken in between.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 4M
start_server
cat >"$tmp/writer.py" <<'EOF'
from cowtest import *
me = int(sys.argv[1])
h = connect("v", meta=False)
n = scaled(3000)
r = random.Random(me)
for i in range(n):
    # Own blocks, and blocks that both write.
    b = r.randrange(0, 1024, 2) + me if i % 4 else 1023
    h.pwrite((b"%d:%06d:%06d|" % (me, b, i)) * 256, b * 4096)
    if i % 500 == 0:
        h.flush()
h.flush()
close(h)
EOF
/usr/bin/python3 "$tmp/writer.py" 0 & w0=$!
/usr/bin/python3 "$tmp/writer.py" 1 & w1=$!
i=0
while kill -0 $w0 2>/dev/null || kill -0 $w1 2>/dev/null; do
  C snap "v@s$i"
  i=$((i + 1))
  [ $i -lt 200 ] || break
done
wait $w0
wait $w1
cat >"$tmp/verify.py" <<'EOF'
from cowtest import *
for n in names():
    h = connect(n)
    data = read_all(h)
    close(h)
    for b in range(1024):
        d = data[b * 4096:(b + 1) * 4096]
        if not any(d):
            continue
        # Two writes at once may mix, but only whole sectors.
        for at in range(0, 4096, 512):
            w = bytes(d[at:at + 16])
            expect(bytes(d[at:at + 512]), w * 32, "block %d of %s" % (b, n))
            expect(int(w[2:8]), b, "block %d of %s" % (b, n))
            if b < 1023:
                expect(w, bytes(d[:16]), "torn block %d of %s" % (b, n))
EOF
/usr/bin/python3 "$tmp/verify.py"
restart
/usr/bin/python3 "$tmp/verify.py"
stop_server
check_clean
