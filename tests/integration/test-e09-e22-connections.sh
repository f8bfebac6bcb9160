#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# E09: connections that vanish at every stage.  E22: many that say nothing.
# Afterwards nothing is left open, neither descriptors nor volumes.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 8M
ulimit -n 4096 2>/dev/null || :
start_server
py <<'EOF'
from cowtest import *
import socket, struct
seed()
PID = int(os.environ["COWSHED_TEST_PID"])
def fds():
    return len(os.listdir("/proc/%d/fd" % PID))
def threads():
    return len(os.listdir("/proc/%d/task" % PID))
close(connect("v"))
f0, t0 = fds(), threads()
def raw(stage):
    s = socket.socket(socket.AF_UNIX)
    s.connect(SOCK)
    if stage == 0:
        return s
    f = s.makefile("rwb")
    f.read(18)
    f.write(struct.pack(">I", 3))
    go = struct.pack(">I", 1) + b"v" + struct.pack(">H", 0)
    opt = b"IHAVEOPT" + struct.pack(">II", 7, len(go)) + go
    if stage == 1:
        f.write(opt[:random.randrange(len(opt))])
        f.flush()
        return s
    f.write(opt)
    f.flush()
    while struct.unpack(">QIII", f.read(20))[2] == 3:
        f.read(12)
    if stage == 2:
        return s
    if stage == 3:              # in the middle of a header
        f.write(struct.pack(">IHHQQI", 0x25609513, 0, 0, 1, 0, 4096)[:random.randrange(28)])
    elif stage == 4:            # in the middle of a payload
        f.write(struct.pack(">IHHQQI", 0x25609513, 0, 1, 1, 0, 65536) + bytes(random.randrange(65536)))
    f.flush()
    return s
for i in range(scaled(600)):
    s = raw(i % 5)
    s.close()
quiet = []
try:
    for i in range(300):
        quiet.append(raw(0))
except OSError as e:
    print(len(quiet), "quiet connections:", e)
h = connect("v")
h.pwrite(b"served", 0)
expect(h.pread(6, 0), b"served")
close(h)
for s in quiet:
    s.close()
wait_for(lambda: fds() <= f0 + 3, what="descriptors: %d at first" % f0)
wait_for(lambda: threads() <= t0 + 3, what="threads: %d at first" % t0)
rm("v")
EOF
server_alive
stop_server
check_clean
