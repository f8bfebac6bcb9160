#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D15: write, SIGKILL, start, stop, start: every acknowledged volume is there
# at the second start too.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
: >"$tmp/acked"
for i in $(seq "$(scaled 12)"); do
  start_server
  py "$i" <<'EOF' || :
from cowtest import *
import signal, threading
i = int(sys.argv[1])
random.seed(i)
delay = random.uniform(0, 0.15)
threading.Timer(delay, lambda: os.kill(int(os.environ["COWSHED_TEST_PID"]), signal.SIGKILL)).start()
with open(os.environ["tmp"] + "/acked", "a") as f:
    for j in range(1000):
        n = "v%d-%d" % (i, j)
        cowshed("create", n, "1M")
        f.write(n + " 0\n"); f.flush()
        h = connect(n)
        h.pwrite(pattern(30000, n), 5000)
        h.flush()
        f.write(n + " 1\n"); f.flush()
EOF
  wait "$pid" 2>/dev/null || :
  start_server
  stop_server
  start_server
  py <<'EOF'
from cowtest import *
have = set(names())
flushed = {}
for line in open(os.environ["tmp"] + "/acked"):
    n, k = line.split()
    flushed[n] = int(k)
for n, k in flushed.items():
    expect(n in have, True, "volume " + n)
    if k:
        h = connect(n)
        same(h.pread(30000, 5000), pattern(30000, n), n)
        close(h)
print(len(flushed), "volumes")
EOF
  kill9
done
check_clean
