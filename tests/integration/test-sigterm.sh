#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# "cowshed serve": it ends in bounded time with clients connected, restarts an
# nbdkit that dies, on the same sockets, and leaves none behind.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires qemu-io pgrep
new_pool
C create v 16M
sock=$tmp/nbd.sock
export COWSHED_TEST_SOCK=$sock COWSHED_TEST_DIR=$dir
port=$(/usr/bin/python3 -c '
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
export port

dead () { # PID: gone, or a zombie that somebody else has to reap
  ! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}
serving () { [ -s "$tmp/uris" ] || dead "$pid"; }
find_nbdkit () { nbdkit=$(pgrep -P "$pid" nbdkit); }
another_nbdkit () { find_nbdkit && [ "$nbdkit" != "$killed" ]; }
serve () {
  rm -f "$tmp/uris"
  cowshed serve --grace 2 "$dir" -- -U "$sock" -i 127.0.0.1 -p "$port" \
    >"$tmp/uris" 2>>"$server_log" &
  pid=$!
  wait_until 30 serving
  ! dead "$pid" || fail "cowshed serve ended"
  find_nbdkit || fail "no nbdkit below cowshed serve"
  pids=("$nbdkit")
}
# client NAME: in the background; connects, writes and flushes tag NAME, says
# so in a file and stays, writing on without flushes, until it is cut off.
client () {
  rm -f "$tmp/ready.$1"
  /usr/bin/python3 - "$1" <<'EOF' &
from cowtest import *
i = int(sys.argv[1])
h = connect("v")
h.pwrite(pattern(1 << 20, "flushed%d" % i), i << 20)
h.flush()
h.pwrite(pattern(1 << 20, "unflushed%d" % i), (8 + i) << 20)
open(os.environ["tmp"] + "/ready.%d" % i, "w").close()
try:
    while i % 2:                # odd ones keep it busy
        h.pwrite(pattern(65536, "busy"), 15 << 20)
    h.poll(60000)
except nbd.Error:
    pass
os._exit(0)
EOF
  pids+=($!)
}

echo "SIGTERM with clients"
serve
echo "serves $(tr '\n' ' ' <"$tmp/uris")"
for i in 0 1 2 3; do client $i; done
for i in 0 1 2 3; do wait_until 20 test -e "$tmp/ready.$i"; done
t=$SECONDS
kill -TERM "$pid"
wait_until 15 dead "$pid"
rc=0
wait "$pid" || rc=$?
pid=
[ $rc -eq 0 ] || fail "cowshed serve ended with $rc"
echo "ended after $((SECONDS - t)) s"
[ $((SECONDS - t)) -le 9 ] || fail "2 s of grace and 5 s for a flush became $((SECONDS - t)) s"
dead "$nbdkit" || fail "nbdkit $nbdkit still runs"
[ ! -e "$sock" ] || fail "the socket is still there"
check_clean
serve
cat >"$tmp/look.py" <<'EOF'
from cowtest import *
h = connect("v")
for i in range(4):
    same(h.pread(1 << 20, i << 20), pattern(1 << 20, "flushed%d" % i),
         "flushed by client %d" % i)
    # The supervisor flushes before it kills.
    same(h.pread(1 << 20, (8 + i) << 20),
         pattern(1 << 20, "unflushed%d" % i), "written by client %d" % i)
close(h)
EOF
/usr/bin/python3 "$tmp/look.py"

echo "SIGKILL to nbdkit, three times"
coproc QEMU { exec qemu-io --image-opts \
  "driver=nbd,server.type=unix,server.path=$sock,export=v,reconnect-delay=30" 2>&1; }
pids+=("$QEMU_PID")
qemu () { # COMMAND EXPECTED
  local line
  echo "$1" >&"${QEMU[1]}"
  while read -r -t 40 line <&"${QEMU[0]}"; do
    case $line in
      *"$2"*) return 0 ;;
      *rror*|*ailed*) fail "qemu-io: $1: $line" ;;
    esac
  done
  fail "qemu-io: $1: no answer"
}
qemu "write -P 65 13M 64k" "wrote 65536/65536"
qemu "flush" ""
for i in 1 2 3; do
  killed=$nbdkit
  kill -KILL "$killed"
  wait_until 10 dead "$killed"
  # New clients wait at the same sockets and are not refused.
  py $i <<'EOF'
from cowtest import *
h = connect("v")
same(h.pread(1 << 20, 0), pattern(1 << 20, "flushed0"), "after SIGKILL")
h.pwrite(b"again", 14 << 20)
h.flush()
t = nbd.NBD()
t.set_export_name("v")
t.connect_tcp("127.0.0.1", os.environ["port"])
expect(t.pread(5, 14 << 20), b"again", "over TCP")
close(h, t)
EOF
  wait_until 10 another_nbdkit
  pids+=("$nbdkit")
  qemu "read -P 65 13M 64k" "read 65536/65536"
done
echo quit >&"${QEMU[1]}"
wait "$QEMU_PID" || fail "qemu-io ended with $?"
kill -0 "$pid" || fail "the supervisor died"
/usr/bin/python3 "$tmp/look.py"

echo "SIGKILL to the supervisor"
kill9
wait_until 10 dead "$nbdkit"
check_clean
serve
/usr/bin/python3 "$tmp/look.py"
echo "SIGKILL to the supervisor, with a client"
client 0
wait_until 20 test -e "$tmp/ready.0"
kill9
wait_until 10 dead "$nbdkit"
check_clean
serve
/usr/bin/python3 "$tmp/look.py"
stop_server
check_clean
