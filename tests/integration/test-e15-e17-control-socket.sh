#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# E15: a socket that a dead server left does not hinder the next.
# E17: long socket paths work up to the limit and are refused beyond it.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires curl
new_pool
C create v 1M
start_server
kill9
[ -S "$dir/control.sock" ] || fail "no stale socket to test with"
start_server
curl -sf --unix-socket "$dir/control.sock" http://x/v1/volumes >/dev/null ||
  fail "no answer on the control socket"
[ "$(stat -c %a "$dir/control.sock")" = 600 ] || fail "mode of the socket"
C ls >/dev/null
stop_server
[ ! -e "$dir/control.sock" ] || fail "the socket was left behind"
for len in 107 108 200; do
  p=$tmp/$(printf 'c%.0s' $(seq $((len - ${#tmp} - 1))))
  [ ${#p} = "$len" ] || fail "path arithmetic"
  if try_start_server control="$p"; then
    [ "$len" = 107 ] || fail "a path of $len bytes was accepted"
    cowshed --control "$p" ls >/dev/null
    stop_server
  else
    [ "$len" != 107 ] || fail "a path of 107 bytes was refused"
    wait "$pid" && fail "no error status" || :
    pid=
    grep -q "107\|too long" "$server_log" || fail "the refusal does not say why"
  fi
done
if cowshed --control "$p" ls 2>"$tmp/err"; then fail "long --control accepted"; fi
check_clean
