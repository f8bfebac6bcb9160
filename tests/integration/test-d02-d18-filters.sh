#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D02: below filters that change offsets, sizes and zeroing, content stays
# right.  D18: trim with FUA, bare and below filters.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdcopy
new_pool
C create v 3M
truncate -s 3000000 "$tmp/sparse"
head -c 200000 /dev/urandom | dd of="$tmp/sparse" bs=1 seek=700001 conv=notrunc status=none
for filter in none "offset offset=1000" "blocksize minblock=4096" \
  "blocksize minblock=512 maxdata=65536" cow "nozero zeromode=emulate" log \
  "nozero zeromode=notrim" "fua fuamode=emulate" "truncate round-up=4096"; do
  read -r -a words <<<"$filter"
  name=${words[0]}
  if [ "$name" = none ]; then
    NBDKIT_ARGS=() params=()
  else
    [ -e "$(pkg-config --variable=filterdir nbdkit 2>/dev/null)/nbdkit-$name-filter.so" ] ||
      continue
    NBDKIT_ARGS=(--filter="$name") params=("${words[@]:1}")
  fi
  [ "$name" != log ] || params=(logfile="$tmp/filter.log")
  echo "filter $filter"
  start_server "${params[@]}"
  FILTER=$name py <<'EOF'
from cowtest import *
h = connect("v")
if h.can_trim():
    h.trim(1024, 1024, FUA)
if h.can_zero():
    h.zero(1024, 5000, FUA)
h.pwrite(pattern(1 << 20, "dirt"), 100000)
if h.can_trim():
    h.trim(9000, 150000, FUA if h.can_fua() else 0)
if h.can_zero():
    h.zero(9001, 250000)
else:
    h.pwrite(bytes(9001), 250000)
want = bytearray(pattern(1 << 20, "dirt"))
want[150000:159001] = bytes(9001)
# A filter may leave the ragged ends of a trim, or all of it.
got = h.pread(1 << 20, 100000)
for i in range(50000, 59000):
    expect(got[i] in (0, want[i]), True, "trimmed byte %d" % i)
want[50000:59000] = got[50000:59000]
same(got, want, os.environ["FILTER"])
close(h)
EOF
  nbdcopy "$tmp/sparse" "$(uri v)"
  py <<'EOF'
from cowtest import *
h = connect("v")
same(h.pread(3000000, 0), open(os.environ["tmp"] + "/sparse", "rb").read(), "after nbdcopy")
close(h)
EOF
  server_alive
  stop_server
done
NBDKIT_ARGS=()
check_clean
