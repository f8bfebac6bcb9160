#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B27: making and deleting snapshots under a writer loses no write.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
C create v 1M
start_server
cat >"$tmp/churn.py" <<'EOF'
from cowtest import *
import pickle, threading
seed()
size = 1 << 20
stop = False
failed = []
m = Model("v")
def writer():
    try:
        i = 0
        while not stop:
            i += 1
            n = random.choice([512, 4096, 5000, 30000])
            off = random.randrange(size - n)
            m.write(pattern(n, i), off)
            if i % 20 == 0:
                same(m.h.pread(n, off), bytes(m.data[off:off + n]), "read back")
        m.h.flush()
    except Exception as e:
        failed.append(e)
t = threading.Thread(target=writer)
t.start()
last = []
for i in range(scaled(150)):
    s = "v@c%d" % i
    cowshed("snap", s)
    last.append(s)
    if len(last) > 3:
        rm(last.pop(random.randrange(4)))
    if failed:
        break
stop = True
t.join()
if failed:
    raise failed[0]
m.check_all("after the churn")
close(m.h)
with open(os.environ["tmp"] + "/want", "wb") as f:
    f.write(m.data)
EOF
/usr/bin/python3 "$tmp/churn.py"
restart
py <<'EOF'
from cowtest import *
with open(os.environ["tmp"] + "/want", "rb") as f:
    Model("v", data=f.read()).check_all("after restart")
EOF
stop_server
check_clean
