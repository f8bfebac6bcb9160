#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Wrong values in a meta.db that SQLite finds nothing wrong with: check names
# each, repair rebuilds what can be rebuilt, and what cannot stays an error
# of the one volume that needs it.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires sqlite3
new_pool --chunk 16K
C create good 20M
C create bad 8M
start_server
cat >"$tmp/content.py" <<'EOF'
from cowtest import *
LEAF = 64 * 16384               # bytes of a volume under one leaf
DAMAGED = (LEAF, 2 * LEAF)      # leaf 1 of "bad"


def content(name):
    base = {"good": (20 << 20, 0), "bad": (8 << 20, 1)}[
        "bad" if name in ("bad", "kin") else "good"]
    data = bytearray(pattern(*base))
    if name == "good":
        data[3 << 20:(3 << 20) + 50000] = pattern(50000, 2)
    if name == "kin":           # a clone of bad with a leaf 1 of its own
        for at in range(LEAF, 2 * LEAF, 40000):
            data[at:at + 5000] = pattern(5000, at)
    return data
EOF
export PYTHONPATH=$tmp:$PYTHONPATH
py <<'EOF'
from content import *
for name, tag in (("good", 0), ("bad", 1)):
    v = Model(name)
    v.write(pattern(len(v.data), tag), 0)
    v.h.flush()
    close(v.h)
cowshed("snap", "good@s")
h = connect("good")
h.pwrite(pattern(50000, 2), 3 << 20)
h.flush()
close(h)
cowshed("clone", "bad", "kin")
k = Model("kin", data=content("bad"))
for at in range(LEAF, 2 * LEAF, 40000):
    k.write(pattern(5000, at), at)
k.h.flush()
close(k.h)
same(k.data, content("kin"))
EOF
# A served pool can be checked, but not repaired.
check_clean
must_fail "$dir is in use" cowshed check --repair "$dir"
stop_server
check_clean
cowshed check --repair "$dir" >/dev/null || fail "repair of a clean pool: $?"
sql () { sqlite3 "$dir/meta.db" "$@" >"$tmp/sql.out" || fail "sqlite3 $*"; }
sql 'pragma wal_checkpoint(truncate)'
cp -a --sparse=always "$dir" "$tmp/good"
fresh () { rm -rf "$dir"; cp -a --sparse=always "$tmp/good" "$dir"; }

check_is () { # STATUS WHEN [ARG...]
  local rc=0 want=$1 when=$2
  shift 2
  cowshed check "$@" "$dir" >"$tmp/check.out" 2>&1 || rc=$?
  [ $rc -eq "$want" ] || {
    head -n 20 "$tmp/check.out" >&2
    fail "$what: check $when: expected status $want, found $rc"
  }
}
names () { # WHEN TEXT...
  local when=$1 text
  shift
  for text; do
    grep -qE -- "$text" "$tmp/check.out" || {
      head -n 20 "$tmp/check.out" >&2
      fail "$what: check $when does not say '$text'"
    }
  done
}

# What the pool must still do; "damaged" where leaf 1 of bad is.
cat >"$tmp/use.py" <<'EOF'
from content import *
damaged = sys.argv[1] == "damaged"
for name in ("good", "good@s", "kin"):
    same(read_all(connect(name)), content(name), name)
h = connect("bad")
want = content("bad")
expect(h.is_read_only(), damaged, "bad is read-only")
expect(find(cowshed("info", "bad"), "readonly") if not damaged else True,
       damaged, "bad by info")
for off in range(0, len(want), 65536):
    there = damaged and DAMAGED[0] <= off < DAMAGED[1]
    if there:
        expect(error_of(h.pread, 65536, off), "EIO", "bad at %d" % off)
    else:
        same(h.pread(65536, off), want[off:off + 65536], "bad at %d" % off)
if damaged:
    expect("damaged" in json.dumps(cowshed("ls", "-l")) or
           "damaged" in subprocess.run(
               ["nbdinfo", "--list", "nbd+unix:///?socket=" + SOCK],
               stdout=subprocess.PIPE).stdout.decode(), True,
           "the damage shows")
close(h)
# It can write, create, snapshot, delete.
g = Model("good", data=content("good"))
g.write(pattern(1 << 20, 7), 5 << 20)
g.h.flush()
cowshed("snap", "good@t")
cowshed("create", "new", "4M")
n = Model("new")
n.write(pattern(4 << 20, 8), 0)
n.h.flush()
cowshed("clone", "kin", "kin2")
k = Model("kin2", data=content("kin"))
k.write(pattern(2 << 20, 9), 1 << 20)
k.check()
n.check()
g.check()
close(k.h, n.h, g.h)
rm("new")
rm("kin2")
rm("bad")
cowshed("rm", "good@s")
cowshed("rm", "good@t")
same(read_all(connect("kin")), content("kin"), "kin after deletions")
EOF
use () {
  : >"$server_log"
  start_server
  /usr/bin/python3 "$tmp/use.py" "${1:-whole}" || fail "$what: using the pool"
  stop_server
}

# What can be rebuilt wholly.
rebuilt () { # WHAT SQL TEXT [use]
  what=$1
  echo "$what"
  fresh
  sql "$2"
  check_is 1 "before the repair"
  names "before the repair" "$3"
  check_is 4 "--repair" --repair
  check_is 0 "after the repair"
  [ -n "$4" ] || return 0
  use
  check_is 0 "after use"
}
rebuilt "a page of chunk counts is gone" \
  "delete from chunk_counts where id = 1" 'chunk (10[2-9][0-9]|1[1-9][0-9]{2}|20[0-4][0-9])\b' use
rebuilt "all node counts are gone" \
  "delete from node_counts" 'node [0-9]+: .*count' use
rebuilt "a region says too much" \
  "update regions set used = used - 3 where id = 0" 'region 0\b'
rebuilt "a region is said to be free" \
  "update regions set used = 0, free_spans = 65535 where id = 1" 'region 1\b'
rebuilt "a node that nothing refers to" \
  "insert into nodes select 5000, data from nodes order by id limit 1" 'node 5000\b'

# The leaf of bad that kin does not share, as the format's manual describes.
fresh
leaf=$(/usr/bin/python3 - "$dir/meta.db" <<'EOF'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
root, level = db.execute("select root, level from volumes where name = 'bad'"
                         " and parent = 0").fetchone()
data = db.execute("select data from nodes where id = ?", (root,)).fetchone()[0]
assert level == 1 and data[:4] == b"CWIN", (level, data[:4])
at, slot, child = 24, 0, {}
def varint():
    global at
    n = shift = 0
    while True:
        b = data[at]
        at += 1
        n |= (b & 0x7f) << shift
        shift += 7
        if b < 0x80:
            return n
while at < len(data):
    gap, length, first = varint(), varint(), varint()
    slot += gap
    for i in range(length):
        child[slot + i] = first + i
    slot += length
print(child[1])
EOF
)
damage_leaf () {
  /usr/bin/python3 - "$dir/meta.db" "$leaf" <<'EOF'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
data = bytearray(db.execute("select data from nodes where id = ?",
                            (sys.argv[2],)).fetchone()[0])
data[-2] ^= 4
db.execute("update nodes set data = ? where id = ?", (bytes(data), sys.argv[2]))
db.commit()
EOF
}
only_the_leaf () {
  local rest
  rest=$(grep -vE "volume bad: node $leaf\b|faults? found|^leaked" "$tmp/check.out") || :
  [ -z "$rest" ] || fail "$what: faults are left besides node $leaf: $rest"
}
# check after a repair that leaves the leaf: status 0, or 1 with this fault.
check_leaf () {
  local rc=0
  cowshed check "$dir" >"$tmp/check.out" 2>&1 || rc=$?
  [ $rc -le 1 ] || fail "$what: check $1 ended with $rc"
  [ $rc -eq 0 ] || only_the_leaf
}
# The same of the repair: 4, or 1 with nothing unrepaired but the leaf.
repair_leaf () {
  local rc=0
  cowshed check --repair "$dir" >"$tmp/check.out" 2>&1 || rc=$?
  case $rc in
    4) ;;
    1) sed -i '/(repaired)$/d' "$tmp/check.out"; only_the_leaf ;;
    *) fail "$what: check --repair ended with $rc" ;;
  esac
}
broken () { # WHAT
  what=$1
  check_is 1 "before the repair"
  names "before the repair" "volume bad: node $leaf\b"
  repair_leaf
  check_leaf "after the repair"
  use damaged
  # bad is gone, and with it all reason for complaint.
  cowshed check --repair "$dir" >"$tmp/check.out" 2>&1 || [ $? -eq 4 ] || {
    cat "$tmp/check.out" >&2
    fail "$what: repair after bad was deleted"
  }
  check_is 0 "at the end"
  [ "$(used)" -eq "$(info_sum)" ] || fail "$what: $(used) bytes used instead of $(info_sum)"
}
# good and kin are all that is left, and share nothing.
info_sum () { echo $(($(info_of good allocated) + $(info_of kin allocated))); }

echo "a flipped bit in a node"
fresh
damage_leaf
broken "a flipped bit in a node"
echo "a node is gone"
fresh
sql "delete from nodes where id = $leaf"
broken "a node is gone"
echo "all together"
fresh
sql "delete from chunk_counts where id = 1" "delete from node_counts" \
  "update regions set used = 5 where id = 0" \
  "insert into nodes select 5000, data from nodes order by id limit 1"
damage_leaf
broken "all together"

rebuilt "a missing node in the delete queue" \
  "insert into delete_queue values (4999, 0)" 'delete queue.*node 4999\b|node 4999\b.*delete queue'
