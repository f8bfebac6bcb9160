#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B14 B15: snapshots in the middle of deep writing: no write fails, block
# status and diffs of every snapshot tell the truth, also after SIGKILL.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 2M
start_server
cat >"$tmp/verify.py" <<'EOF'
from cowtest import *
import re
snaps = sorted((n for n in names() if n.startswith("v@")),
               key=lambda n: int(n[3:]))
acked = open(os.environ["tmp"] + "/acked").read().split()
expect(set(acked) <= set(snaps), True, "acknowledged snapshots exist")
last = None
for s in snaps:
    h = connect(s)
    data = read_all(h)
    check_extents(h, data, s)
    close(h)
    if last:
        d = connect("%s..%s" % (last[0], s[2:]))
        at = 0
        for off, n, fl in extents(d):
            if fl & HOLE and not fl & ZERO:
                same(data[off:off + n], last[1][off:off + n],
                     "unchanged from %s to %s" % (last[0], s))
        close(d)
    last = (s, data)
print(len(snaps), "snapshots")
EOF
py <<'EOF'
from cowtest import *
import threading
seed()
stop = False
failed = []
done = 0
def writer():
    global done
    try:
        h = connect("v", meta=False)
        q = Queue(h, 32)
        i = 0
        while not stop:
            i += 1
            n = random.choice([512, 4096, 20000])
            off = random.randrange((2 << 20) - n)
            if i % 5:
                q.write(random.randbytes(n), off)
            else:
                q.trim(n, off)
            done = q.done
        q.finish()
        h.shutdown()
    except nbd.Error as e:
        failed.append(e)
t = threading.Thread(target=writer)
t.start()
acked = open(os.environ["tmp"] + "/acked", "w")
for i in range(scaled(60)):
    at = done
    wait_for(lambda: done > at or failed, what="progress of the writer")
    cowshed("snap", "v@s%d" % i)
    acked.write("v@s%d\n" % i)
acked.close()
stop = True
t.join()
if failed:
    raise failed[0]
EOF
/usr/bin/python3 "$tmp/verify.py"
kill9
check_clean
start_server
/usr/bin/python3 "$tmp/verify.py"
# And SIGKILL in the middle of the load.
py <<'EOF' || :
from cowtest import *
import signal
h = connect("v", meta=False)
acked = open(os.environ["tmp"] + "/acked", "a")
for i in range(10000):
    h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(random.randbytes(4096))),
                 random.randrange(500) * 4096)
    if i % 20 == 19:
        cowshed("snap", "v@s%d" % (1000 + i))
        acked.write("v@s%d\n" % (1000 + i))
        acked.flush()
    if i == 210:
        os.kill(int(os.environ["COWSHED_TEST_PID"]), signal.SIGKILL)
        break
EOF
wait "$pid" 2>/dev/null || :
check_clean
start_server
/usr/bin/python3 "$tmp/verify.py"
stop_server
check_clean
