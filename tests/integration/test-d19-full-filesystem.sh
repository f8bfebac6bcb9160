#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D19: the file system under the pool is full: the write or the flush says
# so, a later flush does not hide it, and deletion still works.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires_root
requires mkfs.ext4 mount
for fs in ext4 xfs; do
  command -v mkfs.$fs >/dev/null || continue
  size=96M
  [ $fs = ext4 ] || size=320M
  rm -f "$tmp/disk"; truncate -s $size "$tmp/disk"
  mkfs.$fs -q "$tmp/disk"
  mkdir -p "$tmp/mnt"
  mount -o loop "$tmp/disk" "$tmp/mnt" 2>"$tmp/err" ||
    skip "cannot mount a loop device: $(cat "$tmp/err")"
  mounts+=("$tmp/mnt")
  echo "file system $fs"
  dir=$tmp/mnt/pool
  new_pool --capacity 10G
  C create v 1G
  C create small 1M
  start_server
  py <<'EOF'
from cowtest import *
s = Model("small")
s.write(pattern(1 << 20, "small"), 0)
s.h.flush()
h = connect("v")
good = 0
durable = 0
e = None
for off in range(0, 1 << 30, 1 << 20):
    e = error_of(h.pwrite, pattern(1 << 20, off), off)
    if e:
        break
    good = off + (1 << 20)
    if off % (8 << 20) == 0:
        e = error_of(h.flush)
        if e:
            break
        durable = good
expect(e, "ENOSPC", "at %d" % good)
print("full at", good, "durable", durable)
r = [error_of(h.flush) for _ in range(3)]
print("flush:", r)
if r[-1] is None:
    durable = good
for off in range(0, durable, 1 << 20):
    same(h.pread(1 << 20, off), pattern(1 << 20, off), "flushed data")
s.check("another volume")
s.write(b"in place", 4096)
with open(os.environ["tmp"] + "/durable", "w") as f:
    f.write(str(durable))
# Something else takes the very last bytes; trim and deletion go on.
with open(DIR + "/../filler", "wb") as f:
    try:
        while True:
            f.write(bytes(65536))
            f.flush()
    except OSError:
        pass
os.unlink(DIR + "/../filler")
h.trim(4 << 20, 0)
wait_for(lambda: error_of(h.flush) is None, what="flush after trim")
wait_for(lambda: error_of(h.pwrite, pattern(1 << 20, "w"), 0) is None,
         what="write after trim")
h.flush()
close(h, s.h)
EOF
  kill9
  check_clean
  start_server
  py <<'EOF'
from cowtest import *
durable = int(open(os.environ["tmp"] + "/durable").read())
h = connect("v")
same(h.pread(1 << 20, 0), pattern(1 << 20, "w"), "written after the trim")
for off in range(4 << 20, durable, 1 << 20):
    same(h.pread(1 << 20, off), pattern(1 << 20, off), "after SIGKILL")
close(h)
rm("v")
wait_for(lambda: used() <= 1 << 20, what="space after deletion")
cowshed("create", "w", "64M")
h = connect("w")
def put():
    h.pwrite(pattern(8 << 20, "again"), 0)
    h.flush()
wait_for(lambda: error_of(put) is None, what="writing again")
close(h)
EOF
  stop_server
  check_clean
  umount "$tmp/mnt"
  mounts=()
done
