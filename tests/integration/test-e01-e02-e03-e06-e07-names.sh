#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# E01: names of every length.  E02: NUL and bad UTF-8 in names.  E03: several
# INFO requests on one connection.  E06: listings of all clients.  E07: a
# refused name leaves the connection usable.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdinfo qemu-nbd
new_pool
C create a 1M
C create b 2M
C snap b@s
long=$(printf 'n%.0s' $(seq 128))
C create "$long" 3M
must_fail . cowshed -p "$dir" create "x$long" 1M
start_server
py "$long" <<'EOF'
from cowtest import *
import socket, struct
long = sys.argv[1]

class Raw:
    def __init__(self):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(20)
        self.s.connect(SOCK)
        self.f = self.s.makefile("rwb")
        expect(self.f.read(18)[:16], b"NBDMAGICIHAVEOPT")
        self.f.write(struct.pack(">I", 3))
    def ask(self, name, option=6):
        d = struct.pack(">I", len(name)) + name + struct.pack(">HH", 1, 0)
        self.f.write(b"IHAVEOPT" + struct.pack(">II", option, len(d)) + d)
        self.f.flush()
        got = {}
        while True:
            h = self.f.read(20)
            if len(h) < 20:
                return None, got
            _, _, kind, n = struct.unpack(">QIII", h)
            body = self.f.read(n)
            if kind == 3 and body[:2] == b"\0\0":
                got["size"], got["flags"] = struct.unpack(">QH", body[2:12])
            elif kind != 3:
                got["text"] = body
                return kind, got

def fresh():
    return Raw()
r = fresh()
kind, got = r.ask(b"a"); expect((kind, got["size"], got["flags"] & 2), (1, 1 << 20, 0), "a")
kind, got = r.ask(b"b"); expect((kind, got["size"], got["flags"] & 2), (1, 2 << 20, 0), "b")
kind, got = r.ask(b"b@s"); expect((kind, got["size"], got["flags"] & 2), (1, 2 << 20, 2), "b@s")
kind, got = r.ask(b"missing"); expect(kind >> 31, 1, "missing")
print(got["text"])
kind, got = r.ask(b"a"); expect((kind, got["size"]), (1, 1 << 20), "a again")
kind, got = r.ask(long.encode()); expect((kind, got["size"]), (1, 3 << 20), "longest")
for bad in (b"a\0b", b"\xff\xfe", b"n" * 129, b"n" * 255, b"n" * 256, b"n" * 257,
            b"n" * 3000, b"n" * 4095, b"n" * 4096, b"n" * 4097, "é".encode() * 2048,
            b"a/b/c", b"b@", b"@s", b"b@s@s", b"b@none", b"none@s", b"..", b"-r", b" a", b"a ",
            b"b@s..nope", b"b@none.."):
    kind, got = r.ask(bad)
    if kind is None:            # cut off: allowed only above the limit
        expect(len(bad) > 4096 or b"\0" in bad, True, "cut off for %r" % bad[:20])
        r = fresh()
        continue
    expect(kind >> 31, 1, "refusal of %r" % bad[:20])
kind, got = r.ask(b"b", 7)
expect((kind, got["size"]), (1, 2 << 20), "GO after refusals")
r.s.close()
# With three volumes and no default the empty name is refused.
kind, got = fresh().ask(b"")
expect(kind >> 31, 1, "empty name")
json.dumps(cowshed("ls"))
EOF
{ nbdinfo --list --json "nbd+unix:///?socket=$sock"; } >"$tmp/list"
for n in a b b@s "$long"; do
  grep -qF "\"export-name\": \"$n\"" "$tmp/list" || fail "nbdinfo --list lacks $n"
done
qemu-nbd -L -k "$sock" >"$tmp/qlist"
for n in a b b@s "$long"; do
  grep -qF "'$n'" "$tmp/qlist" || fail "qemu-nbd -L lacks $n"
done
if command -v nbd-client >/dev/null; then
  nbd-client -l -unix "$sock" >"$tmp/nlist" 2>&1 || nbd-client -unix "$sock" -l >"$tmp/nlist" 2>&1 || :
  if grep -q . "$tmp/nlist"; then cat "$tmp/nlist"; fi
fi
server_alive
stop_server
start_server default=b
[ "$(nbdinfo --size "nbd+unix:///?socket=$sock")" = $((2 << 20)) ] || fail "default="
stop_server
start_server
C rm b --snapshots
C rm "$long"
wait_until 5 test "$(nbdinfo --size "nbd+unix:///?socket=$sock")" = $((1 << 20))
stop_server
check_clean
