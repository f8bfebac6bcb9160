#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many volumes: the pool opens at once, 1000 exports can be listed, and a
# list too long for nbdkit ends with what fits.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdinfo
new_pool
start_server
cat >"$tmp/many.py" <<'EOF'
from cowtest import *
import http.client
import socket
LIMIT = 10000                   # exports that nbdkit 1.32 lists


class Http(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(DIR + "/control.sock")

    def post(self, path, **body):
        self.request("POST", path, json.dumps(body))
        r = self.getresponse()
        text = r.read()
        if r.status // 100 != 2:
            raise AssertionError("POST %s %s: %d %s"
                                 % (path, body, r.status, text))


def create(first, end):
    a = time.monotonic()
    http = Http("cowshed")
    for i in range(first, end):
        http.post("/v1/volumes", name="v%05d" % i, size=1 << 30, sync=False)
    http.post("/v1/flush")
    print("%d volumes in %.1f s" % (end - first, time.monotonic() - a))


def listed():
    h = nbd.NBD()
    h.set_opt_mode(True)
    h.connect_unix(SOCK)
    got = []
    a = time.monotonic()

    def export(name, description):
        got.append(name)
        return 0
    h.opt_list(export)
    print("%d exports listed in %.2f s" % (len(got), time.monotonic() - a))
    # The connection goes on.
    h.set_export_name("v00000")
    h.opt_go()
    expect(h.get_size(), 1 << 30)
    close(h)
    return got


if sys.argv[1] == "create":
    create(int(sys.argv[2]), int(sys.argv[3]))
else:
    nr, snapshots = int(sys.argv[2]), 0
    got = listed()
    expect(got, ["v%05d" % i for i in range(nr)][:LIMIT], "the list")
    # Snapshots make it too long.
    http = Http("cowshed")
    for s in range(max(1, LIMIT // nr + 1)):
        for i in range(0, nr, 500):
            few = range(i, min(nr, i + 500))
            http.post("/v1/snapshots", sync=False,
                      names=["v%05d@s%d" % (n, s) for n in few])
            snapshots += len(few)
    http.post("/v1/flush")
    expect(nr + snapshots > LIMIT, True, "enough snapshots")
    got = listed()
    expect(len(got), LIMIT, "exports in a list that is too long")
    expect(len(set(got)), LIMIT, "different exports")
    for name in got:
        v, at, s = name.partition("@")
        expect(int(v[1:]) < nr, True, name)
EOF
at_first=$(scaled 1000)
nr=$(scaled 2000)
/usr/bin/python3 "$tmp/many.py" create 0 "$at_first"
t=$SECONDS
nbdinfo --list --json "$(uri '')" >"$tmp/list.json"
echo "nbdinfo --list of $at_first took $((SECONDS - t)) s"
[ "$(grep -c '"export-name"' "$tmp/list.json")" -eq "$at_first" ] ||
  fail "nbdinfo --list shows $(grep -c '"export-name"' "$tmp/list.json") of $at_first"
/usr/bin/python3 "$tmp/many.py" create "$at_first" "$nr"
/usr/bin/python3 "$tmp/many.py" list "$nr"
server_alive
C ls >"$tmp/ls"
[ "$(grep -c '^v[0-9]' "$tmp/ls")" -gt 10000 ] || fail "cowshed ls shows $(wc -l <"$tmp/ls") lines"
stop_server
# The best of some tries: other tests run beside this one.
py <<'EOF'
from cowtest import *
best = 99
for _ in range(5):
    a = time.monotonic()
    n = find(cowshed("df"), "used")
    best = min(best, time.monotonic() - a)
print("opened and closed in %.3f s" % best)
expect(best < 1, True, "opening under a second: %.3f" % best)
EOF
check_clean
