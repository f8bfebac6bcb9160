#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# fio's own verification, on a clone of a volume full of data, while snapshots
# of that clone come and go; again after a restart, and after SIGKILL.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires fio
fio --enghelp 2>/dev/null | grep -qw nbd || skip "fio has no nbd engine"
new_pool
C create base 32M
start_server
py <<'EOF'
from cowtest import *
b = Model("base")
b.write(pattern(32 << 20, "base"), 0)
b.h.flush()
cowshed("clone", "base", "c")
EOF
fio_run () { # NAME SEED BS [ARG...]
  local name=$1 seed=$2 bs=$3 rc=0
  shift 3
  (cd "$tmp" && fio --name="$name" --ioengine=nbd --uri="$(uri c)" \
    --rw=randwrite --bs="$bs" --size=32M --iodepth=16 --randseed="$seed" \
    --verify=crc32c --verify_fatal=1 --verify_state_save=0 "$@") \
    >"$tmp/fio.out" 2>&1 || rc=$?
  [ $rc -eq 0 ] || { tail -n 30 "$tmp/fio.out" >&2; fail "fio $name ended with $rc"; }
}
snapshots () {
  local i=0
  while [ ! -e "$tmp/stop" ]; do
    C snap "c@s$i"
    [ $i -lt 3 ] || C rm "c@s$((i - 3))"
    i=$((i + 1))
    echo $i >"$tmp/taken"
  done
}
under_snapshots () {
  rm -f "$tmp/stop"
  snapshots >"$tmp/snap.log" 2>&1 &
  local snapper=$! rc=0
  pids=("$snapper")
  fio_run "$@"
  touch "$tmp/stop"
  wait "$snapper" || rc=$?
  pids=()
  [ $rc -eq 0 ] || { cat "$tmp/snap.log" >&2; fail "snapshots ended with $rc"; }
  echo "$1: $(cat "$tmp/taken") snapshots"
  C ls --json | py_names | while read -r s; do C rm "$s"; done
}
py_names () {
  /usr/bin/python3 -c '
import json, re, sys
for name in sorted(set(re.findall(r"\"(c@[^\"]+)\"", sys.stdin.read()))):
    print(name)'
}
seed=$(((RANDOM << 15) + RANDOM + 1))
echo "seed $seed"
C snap c@first
under_snapshots write $seed 4k --do_verify=1
restart
fio_run again $seed 4k --verify_only
# Larger requests over it, then power lost just after fio's fsync.
under_snapshots mixed $((seed + 1)) 12k --do_verify=1 --end_fsync=1
kill9
check_clean
start_server
fio_run again $((seed + 1)) 12k --verify_only
py <<'EOF'
from cowtest import *
same(read_all(connect("base")), pattern(32 << 20, "base"), "base")
EOF
stop_server
check_clean
