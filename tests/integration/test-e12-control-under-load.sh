#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# E12: control operations while many requests are in flight answer soon.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 16M
start_server
py <<'EOF'
from cowtest import *
import threading
stop = False
failed = []
def load(name):
    try:
        h = connect(name, meta=False)
        q = Queue(h, 64)
        while not stop:
            off = random.randrange(250) * 65536
            if random.random() < 0.6:
                q.write(b"z" * 9000, off)
            else:
                q.read(9000, off)
        q.finish()
    except nbd.Error as e:
        failed.append(e)
ts = [threading.Thread(target=load, args=("v",)) for _ in range(2)]
for t in ts:
    t.start()
worst = 0
size = 16
def timed(*args):
    global worst
    a = time.monotonic()
    cowshed(*args)
    worst = max(worst, time.monotonic() - a)
for i in range(scaled(25)):
    size += 1
    timed("resize", "v", "%dM" % size)
    timed("snap", "v@s%d" % i)
    timed("clone", "v@s%d" % i, "c%d" % i)
    timed("rm", "v@s%d" % i)
    timed("rm", "c%d" % i)
    timed("ls", "-l")
    timed("df")
stop = True
for t in ts:
    t.join(30)
    expect(t.is_alive(), False, "a writer hangs")
if failed:
    raise failed[0]
print("slowest %.3f s" % worst)
expect(worst < 10, True, "slowest operation")
h = connect("v")
expect(h.get_size(), size << 20)
close(h)
# By force, under load: its clients are cut off and the server lives.
stop = False
t = threading.Thread(target=load, args=("v",))
t.start()
wait_for(lambda: isinstance(cowshed("rm", "v", "--force", ok=False), dict), 10, "rm --force")
t.join(30)
expect(t.is_alive(), False, "a writer hangs after rm --force")
EOF
server_alive
stop_server
check_clean
