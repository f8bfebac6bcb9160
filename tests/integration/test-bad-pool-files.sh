#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Damage to a pool's files: flipped bits, truncation, missing files, a newer
# format.  The answer is an error that names the file or volume, or right
# data; never an abort, and never wrong data.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires sqlite3
new_pool
C create v 4M
C create w 1M
start_server
py <<'EOF'
from cowtest import *
h = connect("v")
for i in range(0, 64, 2):
    h.pwrite(pattern(50000, i), i * K + 100)
h.flush()
cowshed("snap", "v@s")
for i in range(0, 64, 3):
    h.pwrite(pattern(5000, 100 + i), i * K + 20000)
h.flush()
close(h)
with open(os.environ["tmp"] + "/want", "wb") as f:
    f.write(read_all(connect("v")))
EOF
stop_server
# All of the WAL in the database, so that damage is seen.
sqlite3 "$dir/meta.db" 'pragma wal_checkpoint(truncate)' >/dev/null
check_clean
cp -a --sparse=always "$dir" "$tmp/good"
fresh () { rm -rf "$dir"; cp -a --sparse=always "$tmp/good" "$dir"; }
data_file=data

# Start, read, compare.  Exit 0: all was right or refused.
cat >"$tmp/look.py" <<'EOF'
from cowtest import *
want = open(os.environ["tmp"] + "/want", "rb").read()
wrong = 0
try:
    h = connect("v", meta=False)
except nbd.Error as e:
    print("open:", e)
    sys.exit(0)
errors = 0
for off in range(0, len(want), 4096):
    try:
        same(h.pread(4096, off), want[off:off + 4096], "v at %d" % off)
    except nbd.Error as e:
        expect(e.errno in ("EIO", "ESHUTDOWN"), True, e.errno)
        errors += 1
print("errors:", errors)
try:
    h.pwrite(b"x" * 5000, 70000)
    h.flush()
except nbd.Error as e:
    print("write:", e)
EOF
no_abort () { # RC WHAT
  [ "$1" -lt 124 ] || fail "$2 ended with status $1"
}
damaged () { # WHAT
  local rc=0
  : >"$server_log"
  if try_start_server; then
    /usr/bin/python3 "$tmp/look.py" || fail "$1: wrong data"
    kill -0 "$pid" 2>/dev/null || { wait "$pid" || rc=$?; fail "$1: the server died with $rc"; }
    kill -TERM "$pid"
    wait "$pid" || rc=$?
    no_abort $rc "$1: the server"
  else
    wait "$pid" || rc=$?
    [ -s "$server_log" ] || fail "$1: refused without a message"
    no_abort $rc "$1: the server"
  fi
  pid=
  rc=0
  cowshed check "$dir" >"$tmp/out" 2>&1 || rc=$?
  no_abort $rc "$1: check"
  [ $rc -ne 0 ] || [ -z "$2" ] || fail "$1: check found nothing"
  rc=0
  cowshed -p "$dir" ls >"$tmp/out" 2>&1 || rc=$?
  no_abort $rc "$1: ls"
}

db_size=$(stat -c %s "$dir/meta.db")
for _ in $(seq "$(scaled 40)"); do
  fresh
  off=$((RANDOM * 32768 + RANDOM))
  off=$((off % db_size))
  /usr/bin/python3 - "$dir/meta.db" $off <<'EOF'
import sys, random
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]))
    b = f.read(1)[0]
    f.seek(-1, 1)
    f.write(bytes([b ^ 1 << random.randrange(8)]))
EOF
  damaged "bit flip at $off of meta.db"
done
for size in 0 1 100 4096 $((db_size / 2)) $((db_size - 4096)); do
  fresh
  truncate -s "$size" "$dir/meta.db"
  damaged "meta.db cut to $size"
done
fresh; rm "$dir/meta.db"
damaged "no meta.db" yes
grep -q "$(basename "$dir")\|meta.db" "$server_log" || fail "the error does not name the pool"
fresh; rm "$dir/$data_file"
damaged "no data file" yes
grep -q "$data_file" "$server_log" || fail "the error does not name the data file"
fresh; truncate -s 4096 "$dir/$data_file"
damaged "short data file"
fresh; head -c "$db_size" /dev/urandom >"$dir/meta.db"
damaged "noise in meta.db" yes

# A pool of a newer format.
fresh
sqlite3 "$dir/meta.db" "update pool set value = '99' where key = 'format'" \
  'pragma wal_checkpoint(truncate)' >/dev/null
before=$(md5sum <"$dir/meta.db")
damaged "newer format" yes
grep -qi "version\|format\|newer" "$server_log" || fail "the error does not name the version"
[ "$(md5sum <"$dir/meta.db")" = "$before" ] || fail "a newer pool was changed"

fresh
sqlite3 "$dir/meta.db" "update pool set value = '2' where key = 'incompat'" \
  'pragma wal_checkpoint(truncate)' >/dev/null
damaged "unknown feature" yes

# The data of another pool.
fresh
cowshed init "$tmp/foreign" >/dev/null
cp --sparse=always "$tmp/foreign/$data_file" "$dir/$data_file"
damaged "data of another pool" yes
grep -qi "$data_file\|another" "$server_log" || fail "the error does not name the data file"

# And the good one still is.
fresh
start_server
out=$(/usr/bin/python3 "$tmp/look.py")
grep -q 'errors: 0' <<<"$out" || fail "the good copy"
stop_server
check_clean
