#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The file system under the pool runs full, again and again: writers get
# ENOSPC and nothing else, what is written stays, and each way to free space
# (snapshot, trim, volume) works while full and lets writers go on.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires_root
requires mkfs.ext4 mkfs.xfs mount
cat >"$tmp/full.py" <<'EOF'
from cowtest import *
MIB = 1 << 20
STATE = os.environ["tmp"] + "/state"


class Filler:
    """Fills volume big and knows what it must hold."""

    def __init__(self, name, h=None):
        self.name, self.h = name, h or connect(name)
        self.tags = {}          # MiB -> tag

    def write(self, i, tag):
        """The errno of writing MiB i in parts, several in flight."""
        data = pattern(MIB, tag)
        errors = []

        def done(err):
            if err.value:
                errors.append(err.value)
            return 1
        for off in range(0, MIB, 128 << 10):
            self.h.aio_pwrite(nbd.Buffer.from_bytearray(
                bytearray(data[off:off + (128 << 10)])), i * MIB + off,
                completion=done)
        while self.h.aio_in_flight():
            self.h.poll(-1)
        if not errors:
            self.tags[i] = tag
        else:
            self.tags.pop(i, None)      # old or new
        for e in errors:
            expect(e, 28, "errno of a write to %s" % self.name)  # ENOSPC
        return bool(errors)

    def fill(self, tag, first=0):
        """Write until it is full, a little further each time."""
        misses = 0
        for i in range(first, self.h.get_size() // MIB):
            if i in self.tags:
                continue
            full = self.write(i, "%s%d" % (tag, i))
            misses = misses + 1 if full else 0
            if i % 16 == 0:
                e = error_of(self.h.flush)
                expect(e in (None, "ENOSPC"), True, "flush: %s" % e)
            if misses == 3:
                break
        else:
            raise AssertionError("never full")
        print("full with %d MiB in %s" % (len(self.tags), self.name))

    def check(self, what):
        for i, tag in self.tags.items():
            same(self.h.pread(MIB, i * MIB), pattern(MIB, tag),
                 "%s, MiB %d, %s" % (self.name, i, what))


def flushed(h, what):
    wait_for(lambda: error_of(h.flush) is None, 10, "flush " + what)


def goes_on(f, what):
    """After something was freed 4 MiB can be written, without a restart."""
    flushed(f.h, what)
    free = [i for i in range(f.h.get_size() // MIB) if i not in f.tags][:4]
    wait_for(lambda: not any([f.write(i, what) for i in free]), 10,
             "writing " + what)
    flushed(f.h, "after writing " + what)
    f.check(what)


def first():
    a, b = Model("a"), Model("b")
    for m in (a, b):
        m.write(pattern(16 * MIB, m.name), 0)
        m.h.flush()
    cowshed("snap", "a@s")
    a.write(pattern(10 * MIB, "over"), 0)
    a.h.flush()
    f = Filler("big")
    f.fill("x")
    f.check("while full")
    a.check("while full")
    # In place: no space needed.
    a.write(pattern(MIB, "in place"), 2 * MIB)
    flushed(a.h, "after writing in place")
    a.check("in place")
    same(read_all(connect("a@s")), pattern(16 * MIB, "a"), "a@s while full")
    cowshed("rm", "a@s")
    goes_on(f, "without the snapshot")
    f.fill("y")
    b.trim(8 * MIB, 0)
    goes_on(f, "after a trim")
    b.check("trimmed")
    f.fill("z")
    close(b.h)
    rm("b")
    goes_on(f, "without volume b")
    # Full once more, flushed, and then SIGKILL.
    f.fill("w")
    e = error_of(f.h.flush)
    print("the last flush:", e)
    expect(e in (None, "ENOSPC"), True, "the last flush")
    if e:
        f.tags = {}             # nothing was promised for some of it
    with open(STATE, "w") as out:
        json.dump(f.tags, out)


def second():
    a = bytearray(pattern(16 * MIB, "a"))
    a[:10 * MIB] = pattern(10 * MIB, "over")
    a[2 * MIB:3 * MIB] = pattern(MIB, "in place")
    a = Model("a", data=a)
    a.check("after SIGKILL")
    f = Filler("big")
    f.tags = {int(i): tag for i, tag in json.load(open(STATE)).items()}
    f.check("after SIGKILL")
    for i in list(f.tags)[:6]:
        f.h.trim(MIB, i * MIB)
        del f.tags[i]
    goes_on(f, "after SIGKILL and a trim")
    close(f.h)
    rm("big")
    wait_for(lambda: used() == 16 * MIB, what="space of big: %d" % used())
    a.write(pattern(4 * MIB, "end"), 0)
    a.h.flush()
    a.check("at the end")


first() if sys.argv[1] == "first" else second()
EOF
for fs in ext4 xfs; do
  echo "file system $fs"
  size=128M
  [ $fs = ext4 ] || size=300M
  rm -f "$tmp/disk"; truncate -s $size "$tmp/disk"
  mkfs.$fs -q "$tmp/disk"
  mkdir -p "$tmp/mnt"
  mount -o loop "$tmp/disk" "$tmp/mnt" 2>"$tmp/err" ||
    skip "cannot mount a loop device: $(cat "$tmp/err")"
  mounts+=("$tmp/mnt")
  dir=$tmp/mnt/pool
  new_pool --capacity 10G
  C create a 16M
  C create b 16M
  C create big 1G
  start_server
  /usr/bin/python3 "$tmp/full.py" first
  kill9
  check_clean
  start_server
  /usr/bin/python3 "$tmp/full.py" second
  stop_server
  check_clean
  umount "$tmp/mnt"
  mounts=()
done
