#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Wrong plugin parameters and commands: an error that names the thing, no
# server, nothing changed.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 1M
state () { cowshed -p "$dir" ls -l --json; ls -I "*-wal" -I "*-shm" "$dir"; }
state >"$tmp/before"
refuse () { # TEXT PARAM...
  local text=$1 rc=0
  shift
  timeout 20 "$COWSHED_BUILDDIR/run" nbdkit -f -U "$tmp/x.sock" cowshed "$@" \
    >"$tmp/x.log" 2>&1 || rc=$?
  rm -f "$tmp/x.sock"
  if [ $rc -ne 1 ]; then cat "$tmp/x.log"; fail "status $rc and not 1: $*"; fi
  grep -qi -- "$text" "$tmp/x.log" || {
    cat "$tmp/x.log"
    fail "the error does not name '$text': $*"
  }
}
refuse pool
refuse nowhere pool="$tmp/nowhere"
mkdir "$tmp/empty"
refuse empty pool="$tmp/empty"
touch "$tmp/file"
refuse file pool="$tmp/file"
refuse pool pool=
refuse unknown-thing pool="$dir" unknown-thing=1
refuse offload pool="$dir" offload=maybe
refuse detect-zeroes pool="$dir" detect-zeroes=2
for v in x -1 "" 1Q 99999999999999999999; do
  refuse metadata-cache pool="$dir" metadata-cache="$v"
done
for v in 0 101 x -5 80.5; do refuse warn-at pool="$dir" warn-at="$v"; done
for v in 101 x; do refuse critical-at pool="$dir" critical-at="$v"; done
for v in x -1 1e9x; do refuse commit-interval pool="$dir" commit-interval="$v"; done
refuse control pool="$dir" control="$tmp/no/such/dir/sock"
refuse token pool="$dir" control=none control-listen=127.0.0.1:0
refuse default pool="$dir" default='bad name'
refuse 'pool' pool="$dir" pool="$dir"
refuse 'bad/name' pool="bad/name:$dir"
state | cmp - "$tmp/before" || fail "something changed"

for args in "create" "create w" "create w 1M extra" "nosuchcommand" \
  "create w -1" "create w 1Z" "create w 1.5" "create w 0x10" "create w ''" \
  "resize v" "resize v x" "rm" "rm v --nosuch" "snap" "clone v" "zero v:1+" \
  "zero v:x+1" "trim v:0+x" "zero v:2M+1" "trim v:0+2M" "snap v@a w" \
  "info none" "info v@none" "rm none" "rename v" "rollback v" "map none" \
  "diff v v" "job wait 99999" "job wait x" "job nosuch 1" "--nosuch"; do
  rc=0
  eval "cowshed -p '$dir' $args" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || [ $rc = 2 ] || fail "cowshed $args: status $rc"
  [ -s "$tmp/err" ] || fail "cowshed $args: no message"
  # The same through a server is covered by the API's own tests.
done
state | cmp - "$tmp/before" || fail "something changed"
must_fail 'nowhere' cowshed -p "$tmp/nowhere" ls
must_fail 'pool' cowshed ls
must_fail . cowshed init "$dir"
must_fail . cowshed init "$tmp/file"
must_fail . cowshed init "$tmp/new" --capacity 1
must_fail . cowshed init "$tmp/new" --device "$tmp/none"
must_fail . cowshed init "$tmp/new" --device "$tmp/file"
[ ! -e "$tmp/new/meta.db" ] || fail "a failed init left a pool"
check_clean
