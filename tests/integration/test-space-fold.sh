#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One block written into each chunk over a snapshot makes pairs of chunks;
# once the snapshot is gone the fold makes one chunk of each pair.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool --chunk 64K
C create v 16M
start_server
cat >"$tmp/fold.py" <<'EOF'
from cowtest import *
SIZE = 16 << 20
WANT = os.environ["tmp"] + "/want"


def pairs(v, tag):
    """Under a snapshot, 4 KiB into each chunk; then delete the snapshot."""
    cowshed("snap", "v@" + tag)
    for i in range(SIZE // K):
        v.write(pattern(B, tag + str(i)), i * K + (i % 16) * B)
    v.h.flush()
    expect(used(), 2 * SIZE, "used with pairs")
    cowshed("rm", "v@" + tag)


def folded(what):
    wait_for(lambda: used() == SIZE, 15,
             "fold %s: %d used instead of %d" % (what, used(), SIZE))


if sys.argv[1] == "first":
    v = Model("v", SIZE)
    v.write(pattern(SIZE, "v"), 0)
    v.h.flush()
    expect(used(), SIZE, "used by one copy")
    pairs(v, "a")
    folded("after the first snapshot")
    v.check_all("folded")
    # Writes into what is being folded.
    pairs(v, "b")
    for i in range(0, SIZE // K, 3):
        v.write(pattern(6000, "c" + str(i)), i * K + 30000)
    folded("under writes")
    v.check_all("folded under writes")
    # Half of a pair is shared by a clone: nothing to fold until it goes.
    cowshed("clone", "v", "c")
    for i in range(0, SIZE // K, 2):
        v.write(pattern(B, "d" + str(i)), i * K + 5 * B)
    v.h.flush()
    expect(used(), SIZE * 3 // 2, "used beside a clone")
    cowshed("rm", "c")
    folded("after the clone")
    v.check_all("folded after the clone")
    # SIGKILL comes in the middle of the last one.
    pairs(v, "e")
    v.h.flush()
    with open(WANT, "wb") as f:
        f.write(v.data)
else:
    v = Model("v", data=open(WANT, "rb").read())
    v.check_all("after SIGKILL")
    folded("after SIGKILL")
    v.check_all("folded after SIGKILL")
EOF
/usr/bin/python3 "$tmp/fold.py" first
kill9
check_clean
start_server
/usr/bin/python3 "$tmp/fold.py" second
stop_server
check_clean
