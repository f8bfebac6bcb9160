#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# E18: one snapshot name on two volumes.  E20: names that look special either
# work everywhere or are refused with a reason; nothing appears outside the
# pool.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdinfo
new_pool
cd "$tmp"
mkdir aside && cd aside
start_server
before_dir=$(ls -a "$dir")
C create v 1M
C create w 1M
C snap v@same
C snap w@same
C snap v@both w@both
py <<'EOF'
from cowtest import *
expect(sorted(names()), ["v", "v@both", "v@same", "w", "w@both", "w@same"])
good = ["snapshot1", "data.mdb", "lock", "meta.db", "con", "x", "0", "a..b", "A-b_c.d"]
for n in good:
    cowshed("create", n, "4096")
    h = connect(n)
    h.pwrite(n.encode(), 0)
    close(h)
    cowshed("snap", n + "@" + ("x" if ".." in n else n))
    h = connect(n + "@" + ("x" if ".." in n else n))
    expect(h.pread(len(n), 0), n.encode())
    close(h)
bad = [".", "..", "a/b/c", "a@b", "-r", "", " ", "a b", "\U0001f600", "é", "_x", ".x", "@", "a@",
       "a\n", "a\tb", "../x", "/etc/passwd", "a%2Fb", "%", "a?b", "a#b", 'a"b', "a\\b", "x" * 129]
for n in bad:
    if n.startswith("-"):
        p = subprocess.run(["cowshed", "-p", DIR, "create", "--", n, "4096"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        expect(p.returncode in (1, 2), True, "status for " + n)
        continue
    text = refused("create", n, "4096")
    expect(bool(text.strip()), True, "message for %r" % n)
for s in ("v@", "v@a..b", "v@..", "v@a@b", "v@-x", "v@ ", "v@" + "y" * 129, "nope@s"):
    expect(bool(refused("snap", s).strip()), True, "message for %r" % s)
for n in good:
    rm(n, "--snapshots")
expect(sorted(names()), ["v", "v@both", "v@same", "w", "w@both", "w@same"])
EOF
pool_name=$(basename "$dir")
[ "$(nbdinfo --size "nbd+unix:///$pool_name%2Fv?socket=$sock")" = $((1 << 20)) ] ||
  fail "POOL/VOLUME as an export name"
[ "$(nbdinfo --size "nbd+unix:///v%40same?socket=$sock")" = $((1 << 20)) ] ||
  fail "VOLUME@SNAP in a URI"
[ "$(ls -a "$dir")" = "$before_dir" ] || { ls -a "$dir"; fail "new files in the pool"; }
[ -z "$(ls -A "$tmp/aside")" ] || fail "files in the working directory"
stop_server
check_clean
