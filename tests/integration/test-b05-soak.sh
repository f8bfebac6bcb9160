#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# B05: a soak of random work with restarts, clean and by SIGKILL after a
# flush; the check finds no block with two owners after any.
. "$COWSHED_SRCDIR/tests/functions.sh"
new_pool
start_server
cat >"$tmp/soak.py" <<'EOF'
from cowtest import *
import pickle
rounds, state = int(sys.argv[1]), sys.argv[2]
try:
    with open(state, "rb") as f:
        model, serial = pickle.load(f)
except FileNotFoundError:
    model, serial = {}, 0
seed()
for name, data in model.items():
    h = connect(name)
    same(read_all(h), data, name + " after restart")
    check_extents(h, data, name)
    close(h)
handles = {}
def h_of(name):
    if name not in handles:
        handles[name] = connect(name)
    return handles[name]
def drop(name):
    if name in handles:
        close(handles.pop(name))
for i in range(rounds):
    serial += 1
    volumes = [n for n in model if "@" not in n]
    what = random.random()
    if not volumes or (what < 0.05 and len(model) < 12):
        n = "v%d" % serial
        size = random.choice([300000, 1 << 20, (1 << 20) + 777])
        cowshed("create", n, str(size))
        model[n] = bytearray(size)
        continue
    v = random.choice(volumes)
    if what < 0.12 and len(model) < 14:
        n = "%s@s%d" % (v, serial)
        cowshed("snap", n)
        model[n] = bytearray(model[v])
    elif what < 0.20 and len(model) < 14:
        src = random.choice(list(model))
        n = "c%d" % serial
        cowshed("clone", src, n)
        model[n] = bytearray(model[src])
    elif what < 0.26 and len(model) > 4:
        snaps = [n for n in model if "@" in n]
        n = random.choice(snaps or volumes)
        drop(n)
        if "@" not in n:
            for s in [s for s in model if s.startswith(n + "@")]:
                drop(s)
                del model[s]
            rm(n, "--snapshots")
        else:
            rm(n)
        del model[n]
    else:
        data = model[v]
        off = random.randrange(len(data))
        n = min(len(data) - off, random.choice([512, 4096, 9000, K, 200000]))
        if what < 0.7:
            d = pattern(n, serial)
            h_of(v).pwrite(d, off)
        else:
            d = bytes(n)
            (h_of(v).trim if what < 0.85 else h_of(v).zero)(n, off)
        data[off:off + n] = d
for h in handles.values():
    h.flush()
    close(h)
with open(state, "wb") as f:
    pickle.dump((model, serial), f)
EOF
for i in $(seq "$(scaled 6)"); do
  /usr/bin/python3 "$tmp/soak.py" 150 "$tmp/state"
  check_clean
  if [ $((i % 2)) = 0 ]; then kill9; else stop_server; fi
  check_clean
  start_server
done
/usr/bin/python3 "$tmp/soak.py" 0 "$tmp/state"
stop_server
check_clean
