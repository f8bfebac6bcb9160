#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# D25: round trips through nbdcopy with sparse detection, odd request sizes
# and sizes beside a chunk, onto clean and dirty volumes.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdcopy
new_pool
start_server
for size in 65535 65536 65537 200001 1048575 1048577; do
  C create "n$size" $size
  py "$size" "$tmp/file" <<'EOF'
from cowtest import *
size = int(sys.argv[1])
d = bytearray(size)
for i in range(0, size, 9000):
    n = min(3000, size - i)
    d[i:i + n] = pattern(n, i)
d[-1] = 7
open(sys.argv[2], "wb").write(d)
EOF
  u=$(uri "n$size")
  for opts in "--destination-is-zero" "-S 4096" "--request-size=4096" \
    "--request-size=65536 -S 0" "--allocated" "-C 4 --flush"; do
    # shellcheck disable=SC2086
    nbdcopy $opts "$tmp/file" "$u" || fail "nbdcopy $opts, size $size"
    rm -f "$tmp/out"
    nbdcopy "$u" "$tmp/out"
    cmp "$tmp/file" "$tmp/out" || fail "nbdcopy $opts, size $size"
    C create other "$size"
    nbdcopy -S 512 "$u" "$(uri other)"
    nbdcopy "$(uri other)" - | cmp "$tmp/file" - ||
      fail "volume to volume, size $size"
    wait_until 10 cowshed -p "$dir" rm other 2>/dev/null
    # Dirty from here on.
    py "n$size" <<'EOF'
from cowtest import *
h = connect(sys.argv[1])
h.pwrite(b"\xee" * h.get_size(), 0)
close(h)
EOF
  done
done
stop_server
check_clean
