# SPDX-License-Identifier: BSD-3-Clause
"""What the Python parts of the integration tests share.

The shell part exports where the server listens.  A test that breaks an
expectation raises; the exit status then fails the script.
"""
import json
import os
import random
import subprocess
import sys
import time

import nbd

SOCK = os.environ.get("COWSHED_TEST_SOCK", "")
DIR = os.environ.get("COWSHED_TEST_DIR", "")
SCALE = float(os.environ.get("COWSHED_TEST_SCALE", "1"))
K = 64 * 1024                   # default chunk
B = 4 * 1024                    # default block
FUA = nbd.CMD_FLAG_FUA
NO_HOLE = nbd.CMD_FLAG_NO_HOLE
FAST_ZERO = nbd.CMD_FLAG_FAST_ZERO
REQ_ONE = nbd.CMD_FLAG_REQ_ONE
HOLE = nbd.STATE_HOLE
ZERO = nbd.STATE_ZERO
CONTEXT = "base:allocation"


def scaled(n):
    return max(1, int(n * SCALE))


def seed():
    """Seed the generator from the environment or the clock, and say it."""
    s = int(os.environ.get("COWSHED_TEST_SEED", time.time_ns() % 2**31))
    print("seed", s, flush=True)
    random.seed(s)
    return s


def connect(name="", meta=True, strict=True, sock=None):
    h = nbd.NBD()
    h.set_export_name(name)
    if meta:
        h.add_meta_context(CONTEXT)
    if not strict:
        h.set_strict_mode(0)
    h.connect_unix(sock or SOCK)
    return h


def close(*handles):
    for h in handles:
        h.shutdown()


def error_of(fn, *args):
    """The errno name with which fn fails, or None when it does not."""
    try:
        fn(*args)
    except nbd.Error as e:
        return e.errno
    return None


def expect(got, want, what=""):
    if got != want:
        raise AssertionError("%s: expected %r, found %r" % (what, want, got))


def same(got, want, what=""):
    """Compare two byte strings and name the first difference."""
    if got == want:
        return
    if len(got) != len(want):
        raise AssertionError("%s: length %d instead of %d"
                             % (what, len(got), len(want)))
    step = 1 << 16
    at = 0
    while got[at:at + step] == want[at:at + step]:
        at += step
    while got[at] == want[at]:
        at += 1
    raise AssertionError("%s: offset %d (chunk %d + %d) holds %s instead of %s"
                         % (what, at, at // K, at % K,
                            bytes(got[at:at + 16]).hex(),
                            bytes(want[at:at + 16]).hex()))


def read_all(h, size=None):
    size = h.get_size() if size is None else size
    out = bytearray()
    while len(out) < size:
        n = min(32 << 20, size - len(out))
        out += h.pread(n, len(out))
    return out


def extents_once(h, length, offset, flags=0):
    """One block-status call: a list of (length, flags)."""
    got = []

    def f(context, off, entries, err):
        if context == CONTEXT:
            got.extend(zip(entries[::2], entries[1::2]))
    h.block_status(length, offset, f, flags)
    return got


def extents(h, length=None, offset=0, flags=0, step=0xfffffe00):
    """Walk a range: a list of (offset, length, flags), merged, clipped."""
    end = offset + length if length is not None else h.get_size()
    out = []
    while offset < end:
        got = extents_once(h, min(step, end - offset), offset, flags)
        if not got or got[0][0] == 0:
            raise AssertionError("no progress at %d" % offset)
        for n, fl in got:
            n = min(n, end - offset)
            if n == 0:
                break
            if out and out[-1][2] == fl:
                out[-1] = (out[-1][0], out[-1][1] + n, fl)
            else:
                out.append((offset, n, fl))
            offset += n
    return out


def check_extents(h, model, what=""):
    """What is flagged ZERO must read as zero; all of it is covered."""
    at = 0
    for off, n, fl in extents(h):
        expect(off, at, what + " extent start")
        at += n
        if fl & ZERO and any(model[off:off + n]):
            raise AssertionError("%s: [%d,+%d) is flagged zero but holds data"
                                 % (what, off, n))
    expect(at, len(model), what + " extents end")


class Model:
    """A connection and the bytes that it should show."""

    def __init__(self, name, size=None, data=None, **kw):
        self.name = name
        self.h = connect(name, **kw)
        self.data = bytearray(data) if data is not None \
            else bytearray(self.h.get_size())
        expect(self.h.get_size(), len(self.data), name + " size")

    def write(self, data, off, flags=0):
        self.h.pwrite(bytes(data), off, flags)
        self.data[off:off + len(data)] = data

    def zero(self, n, off, flags=0):
        self.h.zero(n, off, flags)
        self.data[off:off + n] = bytes(n)

    def trim(self, n, off, flags=0):
        self.h.trim(n, off, flags)
        self.data[off:off + n] = bytes(n)

    def check(self, what=""):
        same(read_all(self.h), self.data, self.name + " " + what)

    def check_all(self, what=""):
        self.check(what)
        check_extents(self.h, self.data, self.name + " " + what)

    def reconnect(self, **kw):
        close(self.h)
        self.h = connect(self.name, **kw)


class Queue:
    """At most depth requests in flight on one connection."""

    def __init__(self, h, depth):
        self.h, self.depth, self.flight = h, depth, []
        self.done = 0

    def shrink(self, n):
        while len(self.flight) > n:
            if self.h.aio_command_completed(self.flight[0]):
                self.flight.pop(0)
                self.done += 1
            else:
                self.h.poll(-1)

    def write(self, data, offset, flags=0):
        self.shrink(self.depth - 1)
        self.flight.append(self.h.aio_pwrite(
            nbd.Buffer.from_bytearray(bytearray(data)), offset,
            flags=flags))

    def trim(self, n, offset, flags=0):
        self.shrink(self.depth - 1)
        self.flight.append(self.h.aio_trim(n, offset, flags=flags))

    def read(self, n, offset):
        self.shrink(self.depth - 1)
        self.flight.append(self.h.aio_pread(nbd.Buffer(n), offset))

    def finish(self):
        self.shrink(0)


class Fault(Exception):
    pass


def cowshed(*args, ok=True):
    """Run the command on the test's pool with --json; its parsed output,
    or where it is refused (status 1 or 2) and ok is false, the message.
    """
    p = subprocess.run(["cowshed", "-p", DIR, *args, "--json"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode == 0:
        text = p.stdout.decode()
        return json.loads(text) if text.strip() else {}
    message = p.stderr.decode(errors="replace") + p.stdout.decode(
        errors="replace")
    if p.returncode not in (1, 2) or ok:
        raise Fault("cowshed %s: status %d: %s"
                    % (" ".join(args), p.returncode, message))
    return message


def refused(*args):
    """The command must be refused; its message."""
    r = cowshed(*args, ok=False)
    if not isinstance(r, str):
        raise AssertionError("not refused: cowshed " + " ".join(args))
    return r


def rm(*args):
    """Delete something that was just closed: the server learns of that a
    little later than the client.
    """
    wait_for(lambda: isinstance(cowshed("rm", *args, ok=False), dict),
             what="rm " + " ".join(args))


def find(x, key):
    """The first value of key anywhere in parsed JSON."""
    if isinstance(x, dict):
        if key in x:
            return x[key]
        x = list(x.values())
    if isinstance(x, list):
        for y in x:
            r = find(y, key)
            if r is not None:
                return r
    return None


def used():
    return find(cowshed("df"), "used")


def names():
    """All volumes and snapshots that the command lists."""
    out = []

    def walk(x):
        if isinstance(x, dict):
            if isinstance(x.get("name"), str) and "size" in x:
                out.append(x["name"])
            for y in x.values():
                walk(y)
        elif isinstance(x, list):
            for y in x:
                walk(y)
    walk(cowshed("ls", "-l"))
    return out


def wait_for(fn, seconds=30, what="condition"):
    deadline = time.monotonic() + seconds
    while True:
        r = fn()
        if r:
            return r
        if time.monotonic() > deadline:
            raise AssertionError("timed out: " + what)
        time.sleep(0.02)


def pattern(n, tag):
    """n bytes that depend on tag and never repeat a block."""
    return random.Random(tag).randbytes(n)
