#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A05 A06 A25 A26: sizes that are no multiple of anything are exact for every
# client, and the last byte is kept.
. "$COWSHED_SRCDIR/tests/functions.sh"
requires nbdinfo nbdcopy qemu-img qemu-io
new_pool
sizes=(1 511 512 513 4095 4097 65535 65537)
for s in "${sizes[@]}"; do C create "v$s" "$s"; done
start_server
for s in "${sizes[@]}"; do
  [ "$(nbdinfo --size "$(uri "v$s")")" = "$s" ] || fail "size $s"
done
py "${sizes[@]}" <<'EOF'
from cowtest import *
for s in map(int, sys.argv[1:]):
    h = connect("v%d" % s)
    h.pwrite(b"Z", s - 1)
    expect(h.pread(1, s - 1), b"Z")
    expect(error_of(lambda: connect("v%d" % s, strict=False).pread(1, s)) is not None, True)
    h.flush()
    # A26: what is advertised lets a client keep the full size.
    mini = h.get_block_size(nbd.SIZE_MINIMUM)
    expect(mini in (0, 1), True, "minimum block size %d" % mini)
    close(h)
EOF
restart
py "${sizes[@]}" <<'EOF'
from cowtest import *
for s in map(int, sys.argv[1:]):
    h = connect("v%d" % s)
    expect(h.pread(s, 0), bytes(s - 1) + b"Z", "size %d" % s)
    close(h)
EOF

# A06
C create img 202893
head -c 202893 /dev/urandom >"$tmp/file"
nbdcopy "$tmp/file" "$(uri img)"
nbdcopy "$(uri img)" "$tmp/out"
cmp "$tmp/file" "$tmp/out"
qemu-img compare -f raw -F raw "$tmp/file" "$(uri img)"

# A25: qemu pads to sectors; nothing may be cut or fail unseen.
C create odd 1000001
qemu-io -f raw -c 'write -P 5 999936 65' "$(uri odd)" >"$tmp/io" 2>&1 ||
  fail "qemu-io: $(cat "$tmp/io")"
py <<'EOF'
from cowtest import *
h = connect("odd")
expect(h.get_size(), 1000001)
expect(h.pread(65, 999936), b"\5" * 65)
expect(h.pread(64, 999936 - 64), bytes(64))
close(h)
EOF
head -c 1000001 /dev/urandom >"$tmp/src"
# qemu may refuse the odd tail aloud, but must not drop it in silence.
if qemu-img convert -n -f raw -O raw "$tmp/src" "$(uri odd)"; then
  nbdcopy "$(uri odd)" "$tmp/out"
  cmp "$tmp/src" "$tmp/out"
fi
nbdcopy "$tmp/src" "$(uri odd)"
nbdcopy "$(uri odd)" "$tmp/out"
cmp "$tmp/src" "$tmp/out"
stop_server
check_clean
