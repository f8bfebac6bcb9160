#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D08: very many small writes at random over a large clone, and hundreds of
# snapshots: the metadata store has no limit of its own.  D09: after SIGKILL
# the last flush is there.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create base 16G
C clone base v
start_server metadata-cache=16M
cat >"$tmp/load.py" <<'EOF'
from cowtest import *
n = scaled(40000)
r = random.Random(7)
offs = [r.randrange((16 << 30) // 4096) * 4096 for _ in range(n)]
def stamp(i):
    return b"%015d|" % i * 256
last = {o: i for i, o in enumerate(offs)}
if sys.argv[1] == "write":
    h = connect("v", meta=False)
    q = Queue(h, 16)
    for i, o in enumerate(offs):
        if last[o] == i:
            q.write(stamp(i), o)
    q.finish()
    h.flush()
    for i in range(scaled(200)):
        cowshed("snap", "v@s%d" % i)
        h.pwrite(stamp(i), (16 << 30) - 4096)
else:
    h = connect("v", meta=False)
    for o, i in r.sample(list(last.items()), min(len(last), 5000)):
        if o != (16 << 30) - 4096:
            same(h.pread(4096, o), stamp(i), "offset %d" % o)
    expect(len([x for x in names() if "@" in x]), scaled(200), "snapshots")
EOF
/usr/bin/python3 "$tmp/load.py" write
kill9
check_clean
start_server metadata-cache=16M
/usr/bin/python3 "$tmp/load.py" verify
stop_server
