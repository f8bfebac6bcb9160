# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the integration tests share.  Source it first:
#
#   . "$COWSHED_SRCDIR/tests/functions.sh"
#
# It makes a private directory $tmp, which goes away at the end together with
# every process that start_server began, and defines:
#
#   requires TOOL...          exit 77 with the reason where one is missing
#   requires_root             the same unless root
#   new_pool [INIT-ARG...]    a fresh pool at $dir
#   start_server [PLUGIN-ARG...]  serve $dir; sets $pid, $sock and $uri;
#                             nbdkit's own arguments come from NBDKIT_ARGS
#   stop_server               SIGTERM, and wait for a clean end
#   kill9                     SIGKILL, and wait
#   restart                   stop_server and start_server with the same
#   server_alive              fail unless it still runs
#   uri NAME                  the NBD URI of an export
#   py [ARG...]               Python with cowtest.py at hand, from stdin
#   check_clean               cowshed check must find nothing
#   must_fail TEXT CMD...     CMD must exit 1 or 2 with TEXT on stderr
#   wait_until SECONDS CMD... until CMD succeeds, or fail
#   loop_device FILE          a loop device on FILE; sets $loop
#   scaled N                  N times COWSHED_TEST_SCALE, at least 1
#   fail MESSAGE              show the server's log and exit 1
set -e -o pipefail

if [ -z "${COWSHED_BUILDDIR:-}" ]; then
  echo "run tests through ./run of the built tree" >&2
  exit 99
fi
# The program itself, before the slower script that libtool wraps it in.
export PATH="$COWSHED_BUILDDIR/tools/.libs:$COWSHED_BUILDDIR/tools:/usr/bin:$PATH:/usr/sbin:/sbin"
export PYTHONPATH="$COWSHED_SRCDIR/tests${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONDONTWRITEBYTECODE=1
unset COWSHED_POOL

tmp=$(mktemp -d "${TMPDIR:-/tmp}/cowshed-test.XXXXXX")
export tmp
dir=$tmp/pool
pid=
server_log=$tmp/server.log
server_args=()
mounts=()
loops=()                        # loop devices to detach at the end
pids=()                         # more processes to end
NBDKIT_ARGS=()

cleanup () {
  local rc=$? p
  trap - EXIT
  if [ $rc -ne 0 ] && [ $rc -ne 77 ]; then
    show_log
  fi
  if [ -n "$pid" ]; then
    kill -KILL "$pid" 2>/dev/null || :
    wait "$pid" 2>/dev/null || :
  fi
  for p in "${pids[@]}"; do
    kill -KILL "$p" 2>/dev/null || :
  done
  for p in "${mounts[@]}"; do
    umount "$p" 2>/dev/null || umount -l "$p" || :
  done
  for p in "${loops[@]}"; do
    losetup -d "$p" || :
  done
  rm -rf "$tmp"
  exit $rc
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

show_log () {
  if [ -s "$server_log" ]; then
    echo "---- the server's log ends with:" >&2
    tail -n 40 "$server_log" >&2
  fi
}

fail () { echo "FAIL: $*" >&2; exit 1; }
skip () { echo "SKIP: $*"; exit 77; }

requires () {
  local tool
  for tool; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
  done
}

requires_root () {
  [ "$(id -u)" -eq 0 ] || skip "needs root"
}

loop_device () {
  requires losetup
  loop=$(losetup -f --show "$1" 2>"$tmp/err") ||
    skip "cannot set up a loop device: $(cat "$tmp/err")"
  loops+=("$loop")
}

scaled () {
  awk -v n="$1" -v s="${COWSHED_TEST_SCALE:-1}" \
    'BEGIN { r = int(n * s); print r < 1 ? 1 : r }'
}

wait_until () {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $deadline ] || fail "timed out waiting for: $*"
    sleep 0.02
  done
}

new_pool () {
  rm -rf "$dir"
  cowshed init "$dir" "$@" >/dev/null || fail "cowshed init $dir $*"
}

# nbdkit binds its socket and writes the pid file before the plugin opens the
# pool, so only a greeting shows that it serves.
_greets () {
  /usr/bin/python3 - "$sock" 2>/dev/null <<'EOF'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(5)
s.connect(sys.argv[1])
sys.exit(s.recv(8, socket.MSG_WAITALL) != b"NBDMAGIC")
EOF
}

_server_up_or_dead () {
  ! kill -0 "$pid" 2>/dev/null || { [ -s "$tmp/nbdkit.pid" ] && _greets; }
}

# Start without demanding success; used where a refusal is expected too.
try_start_server () {
  local args=("$@") p have_pool=
  for p in "${args[@]}"; do
    case $p in pool=*) have_pool=1 ;; esac
  done
  [ -n "$have_pool" ] || args=(pool="$dir" "${args[@]}")
  sock=$tmp/nbd.sock
  export COWSHED_TEST_SOCK=$sock COWSHED_TEST_DIR=$dir
  uri="nbd+unix:///?socket=$sock"
  rm -f "$sock" "$tmp/nbdkit.pid"
  "$COWSHED_BUILDDIR/run" nbdkit -f -U "$sock" -P "$tmp/nbdkit.pid" \
    "${NBDKIT_ARGS[@]}" cowshed "${args[@]}" >>"$server_log" 2>&1 &
  pid=$!
  export COWSHED_TEST_PID=$pid
  wait_until 60 _server_up_or_dead
  kill -0 "$pid" 2>/dev/null
}

start_server () {
  server_args=("$@")
  try_start_server "$@" || fail "the server did not start"
}

_gone () { ! kill -0 "$1" 2>/dev/null; }

stop_server () {
  local rc=0
  kill -TERM "$pid" || fail "the server is gone"
  wait_until 60 _gone "$pid"
  wait "$pid" || rc=$?
  pid=
  [ $rc -eq 0 ] || fail "the server ended with status $rc"
}

kill9 () {
  kill -KILL "$pid" || fail "the server is gone"
  wait "$pid" 2>/dev/null || :
  pid=
}

restart () {
  stop_server
  start_server "${server_args[@]}"
}

server_alive () {
  kill -0 "$pid" 2>/dev/null || fail "the server died"
}

uri () {
  printf 'nbd+unix:///%s?socket=%s' "${1//@/%40}" "$sock"
}

py () { /usr/bin/python3 - "$@"; }

C () { cowshed -p "$dir" "$@"; }

# check_clean [DIR]
check_clean () {
  cowshed check "${1:-$dir}" >"$tmp/check.out" 2>&1 || {
    cat "$tmp/check.out" >&2
    fail "cowshed check found faults"
  }
}

must_fail () {
  local text=$1 rc=0
  shift
  "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
  if [ $rc -ne 1 ] && [ $rc -ne 2 ]; then
    cat "$tmp/out" "$tmp/err" >&2
    fail "expected exit status 1 or 2 and not $rc: $*"
  fi
  grep -qiE -- "$text" "$tmp/err" || {
    cat "$tmp/err" >&2
    fail "the error does not say '$text': $*"
  }
}

# size | allocated | ... of an object, as a number
info_of () {
  C info "$1" --json | py_field "$2"
}

# Bytes used in the pool.
used () { C df --json | py_field used; }

# The first value of a field anywhere in JSON on stdin.
py_field () {
  /usr/bin/python3 -c '
import json, sys
def find(x, key):
    if isinstance(x, dict):
        if key in x:
            return x[key]
        x = list(x.values())
    if isinstance(x, list):
        for y in x:
            r = find(y, key)
            if r is not None:
                return r
    return None
r = find(json.load(sys.stdin), sys.argv[1])
print("" if r is None else r)' "$1"
}

if ! /usr/bin/python3 -c 'import nbd' 2>/dev/null; then
  skip "Python has no nbd module (package python3-libnbd)"
fi
requires nbdkit
