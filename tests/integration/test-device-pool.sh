#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A pool on a block device (here a loop device): it works, it ends where the
# device ends, and whatever is not this pool's device is refused by name.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires_root
requires losetup cmp dd
truncate -s 16M "$tmp/a.img" "$tmp/b.img" "$tmp/c.img"
loop_device "$tmp/a.img"; dev=$loop
loop_device "$tmp/b.img"; dev_b=$loop
loop_device "$tmp/c.img"; dev_c=$loop

echo "not a device"
truncate -s 16M "$tmp/file"
must_fail "$tmp/file.*not a block device" cowshed init "$tmp/p1" --device "$tmp/file"
must_fail "/dev/null.*not a block device" cowshed init "$tmp/p1" --device /dev/null
must_fail "$tmp/none" cowshed init "$tmp/p1" --device "$tmp/none"
[ ! -e "$tmp/p1/meta.db" ] || fail "a refused init left a pool"
[ "$(stat -c %s "$tmp/file")" -eq $((16 << 20)) ] || fail "the file was changed"
cmp -s -n $((16 << 20)) "$tmp/file" /dev/zero || fail "the file was written to"

echo "init, and another init over it"
new_pool --device "$dev"
[ ! -e "$dir/data" ] || fail "a data file beside the device"
cowshed init "$tmp/pool_b" --device "$dev_b" >/dev/null
before=$(md5sum <"$tmp/a.img")
must_fail "$dev already holds the data of pool" cowshed init "$tmp/p1" --device "$dev"
[ "$(md5sum <"$tmp/a.img")" = "$before" ] || fail "a refused init wrote to the device"
[ ! -e "$tmp/p1/meta.db" ] || fail "a refused init left a pool"

echo "write, restart, kill"
C create v 4M
start_server
must_fail "$dev|in use" cowshed init "$tmp/p1" --device "$dev"
py <<'EOF'
from cowtest import *
v = Model("v")
v.write(pattern(4 << 20, "v"), 0)
v.write(b"ragged", 70001)
v.zero(200000, 100000)
v.h.flush()
cowshed("snap", "v@s")
v.write(pattern(300000, "w"), 1 << 20)
v.h.flush()
v.check_all()
with open(os.environ["tmp"] + "/want", "wb") as f:
    f.write(v.data)
EOF
cat >"$tmp/look.py" <<'EOF'
from cowtest import *
want = open(os.environ["tmp"] + "/want", "rb").read()
v = Model("v", data=want)
v.check_all(sys.argv[1])
old = bytearray(pattern(4 << 20, "v"))
old[70001:70007] = b"ragged"
old[100000:300000] = bytes(200000)
same(read_all(connect("v@s")), old, "v@s " + sys.argv[1])
EOF
restart
/usr/bin/python3 "$tmp/look.py" "after a restart"
kill9
check_clean
start_server
/usr/bin/python3 "$tmp/look.py" "after SIGKILL"

echo "a second open"
must_fail "in use" cowshed check --repair "$dir"
cp -a "$dir" "$tmp/copy"        # the same pool by its metadata
must_fail "$dev.*(busy|in use)" cowshed -p "$tmp/copy" --control none ls
(
  pid=
  sock=$tmp/second.sock
  ! timeout 20 "$COWSHED_BUILDDIR/run" nbdkit -f -U "$sock" cowshed pool="$dir" \
    control=none >"$tmp/second.log" 2>&1 || fail "a second server started"
  grep -q "$dir is in use" "$tmp/second.log" || {
    cat "$tmp/second.log" >&2
    fail "the second server's error does not name the pool"
  }
  trap - EXIT
)
/usr/bin/python3 "$tmp/look.py" "after second opens"

echo "the end of the device"
py <<'EOF'
from cowtest import *
cowshed("create", "big", "64M")
h = connect("big")
good = 0
for off in range(0, 64 << 20, 65536):
    e = error_of(h.pwrite, pattern(65536, off), off)
    if e:
        expect(e, "ENOSPC", "at the device's end")
        break
    good = off + 65536
else:
    raise AssertionError("never full")
print("full after", good)
# v and its snapshot have 4 MiB and 5 chunks at most; some is kept back.
expect(good >= 9 << 20, True, "%d bytes fitted" % good)
h.flush()
for off in range(0, good, 65536):
    same(h.pread(65536, off), pattern(65536, off), "while full")
h.pwrite(pattern(8192, "in place"), 65536)
expect(error_of(h.pwrite, b"more", 63 << 20), "ENOSPC", "still full")
h.trim(4 << 20, 0)
h.flush()
wait_for(lambda: error_of(h.pwrite, pattern(2 << 20, "again"), 0) is None,
         10, "writing after a trim")
h.flush()
same(h.pread(2 << 20, 0), pattern(2 << 20, "again"))
same(h.pread(65536, 4 << 20), pattern(65536, 4 << 20))
close(h)
EOF
/usr/bin/python3 "$tmp/look.py" "beside a full device"
kill9
check_clean
start_server
/usr/bin/python3 "$tmp/look.py" "after SIGKILL of a full device"
py <<'EOF'
from cowtest import *
h = connect("big")
same(h.pread(2 << 20, 0), pattern(2 << 20, "again"), "after SIGKILL")
close(h)
rm("big")
wait_for(lambda: used() < 6 << 20, what="space of big")
EOF
stop_server
check_clean

echo "wrong devices"
dd if="$dev" of="$tmp/a.save" bs=1M status=none
wrong () { # WHAT TEXT
  local rc=0
  must_fail "$dev.*$2|$2.*$dev" cowshed -p "$dir" ls
  cowshed check "$dir" >"$tmp/out" 2>&1 || rc=$?
  [ $rc -eq 1 ] || fail "$1: check ended with $rc"
  grep -q "$dev" "$tmp/out" || fail "$1: check does not name $dev"
  : >"$server_log"
  ! try_start_server || fail "$1: the server started"
  wait "$pid" || :
  pid=
  grep -q "$dev" "$server_log" || fail "$1: the server does not name $dev"
}
dd if="$dev_b" of="$dev" bs=1M conv=fsync status=none
uuid_b=$(dd if="$dev_b" bs=1 skip=24 count=36 status=none)
wrong "another pool's device" "pool $uuid_b"
dd if="$dev" of="$tmp/now" bs=1M status=none
cmp "$tmp/now" "$tmp/b.img" || fail "another pool's device was written to"
dd if="$dev_c" of="$dev" bs=1M conv=fsync status=none
wrong "a fresh device" "header|hold"
dd if="$dev" of="$tmp/now" bs=1M status=none
cmp "$tmp/now" "$tmp/c.img" || fail "a fresh device was written to"

echo "and the right one again"
dd if="$tmp/a.save" of="$dev" bs=1M conv=fsync status=none
start_server
/usr/bin/python3 "$tmp/look.py" "at the end"
stop_server
check_clean
