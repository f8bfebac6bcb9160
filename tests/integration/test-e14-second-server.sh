#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# E14: a second server, or the command on the pool itself, is refused by name
# while one has the pool, by whatever path it comes.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 1M
start_server control=none
first=$pid first_sock=$sock first_log=$server_log
ln -s "$dir" "$tmp/link"
paths=("$dir" "$tmp/link" "$dir/../pool")
if [ "$(id -u)" -eq 0 ]; then
  mkdir "$tmp/bind"
  if mount --bind "$dir" "$tmp/bind" 2>/dev/null; then
    mounts+=("$tmp/bind")
    paths+=("$tmp/bind")
  fi
fi
for p in "${paths[@]}"; do
  rc=0
  timeout 20 "$COWSHED_BUILDDIR/run" nbdkit -f -U "$tmp/second.sock" cowshed \
    pool="$p" control=none >"$tmp/second.log" 2>&1 || rc=$?
  [ $rc -ne 0 ] && [ $rc -lt 124 ] || fail "second server on $p: status $rc"
  grep -qi "in use\|busy\|another" "$tmp/second.log" || {
    cat "$tmp/second.log"
    fail "the refusal does not say why"
  }
  must_fail 'in use|busy|another|server' cowshed -p "$p" create w 1M
done
pid=$first sock=$first_sock server_log=$first_log
COWSHED_TEST_SOCK=$first_sock py <<'EOF'
from cowtest import *
h = connect("v")
h.pwrite(b"undisturbed", 0)
h.flush()
expect(h.pread(11, 0), b"undisturbed")
close(h)
EOF
cowshed check "$dir" >/dev/null || fail "check beside a server"
stop_server
must_fail . cowshed -p "$dir" info w
check_clean
