#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A base with 100 clones: the base goes first, then the clones in random
# order.  Those that are left stay as they are, and at the end nothing is
# in use.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
start_server
cat >"$tmp/clones.py" <<'EOF'
from cowtest import *
import hashlib
import pickle
STATE = os.environ["tmp"] + "/state"
SIZE = 2 << 20


def digest(data):
    return hashlib.md5(data).digest()


def look(name, want, what):
    h = connect(name, meta=False)
    got = read_all(h)
    close(h)
    if digest(got) != want:
        raise AssertionError("%s changed %s" % (name, what))


def make():
    expect(used(), 0, "used in a new pool")
    cowshed("create", "base", str(SIZE))
    base = Model("base", SIZE)
    base.write(pattern(3 << 19, "base"), 0)
    base.write(pattern(50000, "tail"), SIZE - 60001)
    base.h.flush()
    close(base.h)
    sums = {}
    for i in range(scaled(100)):
        name = "c%d" % i
        cowshed("clone", "base", name)
        c = Model(name, data=base.data)
        for _ in range(8):
            kind = random.random()
            n = random.choice((511, 4096, 9000, 65536, 150000))
            off = random.randrange(SIZE - n)
            if kind < .7:
                c.write(random.randbytes(n), off)
            elif kind < .85:
                c.zero(n, off)
            else:               # whole blocks, so that all of it must go
                c.trim(max(B, n // B * B), off // B * B)
        close(c.h)
        sums[name] = digest(c.data)
    look("base", digest(base.data), "when its clones were written")
    for name in random.sample(sorted(sums), min(len(sums), 10)):
        look(name, sums[name], "before any deletion")
    return sums


def delete(sums, down_to):
    while len(sums) > down_to:
        name = random.choice(sorted(sums))
        rm(name)
        del sums[name]
        for other in random.sample(sorted(sums), min(len(sums), 2)):
            look(other, sums[other], "when %s was deleted" % name)


seed()
if sys.argv[1] == "make":
    sums = make()
    rm("base")
    for name in sums:
        look(name, sums[name], "when the base was deleted")
    delete(sums, len(sums) // 2)
else:
    with open(STATE, "rb") as f:
        sums = pickle.load(f)
    for name in sums:
        look(name, sums[name], "over the SIGKILL")
    delete(sums, 0)
    wait_for(lambda: used() == 0, what="used to be 0: %d" % used())
with open(STATE, "wb") as f:
    pickle.dump(sums, f)
EOF
/usr/bin/python3 "$tmp/clones.py" make
cowshed check "$dir" >"$tmp/out" || { cat "$tmp/out"; fail "check of the served pool"; }
kill9
check_clean
start_server
/usr/bin/python3 "$tmp/clones.py" finish
[ -z "$(C ls)" ] || C ls
stop_server
check_clean
[ "$(used)" -eq 0 ] || fail "$(used) bytes in use in an empty pool"
