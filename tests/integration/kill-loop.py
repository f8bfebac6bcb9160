#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""SIGKILL the server at random moments of a mixed load, over and over.

Several connections write, zero and trim whole sectors of several volumes;
each sector written holds its number and that of the write.  Meanwhile the
command makes and removes volumes, snapshots and clones.  After each kill the
pool must check clean, and a new server must show

  - of each sector: what the last flush (or FUA) made durable, or something
    written since;
  - every volume, snapshot and clone whose command had succeeded, and none
    whose removal had;
  - of a snapshot: the content of one instant, the same for ever.

Usage: kill-loop.py POOL-DIR KILLS   (COWSHED_TEST_SEED repeats the choices)
"""
import os
import random
import signal
import struct
import subprocess
import sys
import time

import nbd

import cowtest
from cowtest import FUA, expect, wait_for

DIR, KILLS = os.path.abspath(sys.argv[1]), int(sys.argv[2])
SOCK = os.path.join(os.environ["tmp"], "kill.sock")
LOG = open(os.path.join(os.environ["tmp"], "server.log"), "ab")
SECTOR = 512
NSECT = 1000                    # of a volume; no multiple of a chunk
SIZE = NSECT * SECTOR - 100     # the last sector is short
MAX_VOLUMES, MAX_SNAPS = 6, 8


def sector_bytes(value, s):
    """What sector s holds after the write numbered value; 0: zeros."""
    d = struct.pack("<QQ", value, s) * 32 if value else bytes(SECTOR)
    return d[:SIZE - s * SECTOR]


def values(data, what):
    """The number of the write in each sector; each must be whole."""
    expect(len(data), SIZE, what + " size")
    out = []
    for s in range(NSECT):
        d = bytes(data[s * SECTOR:(s + 1) * SECTOR])
        v = struct.unpack_from("<Q", d)[0]
        if d != sector_bytes(v, s):
            raise AssertionError("%s: sector %d is torn or foreign: %s"
                                 % (what, s, d[:32].hex()))
        out.append(v)
    return out


class Volume:
    """What each sector may hold: base is durable, pending came after it."""

    def __init__(self, name, base=None):
        self.name = name
        self.base = base or [0] * NSECT
        self.pending = [[] for _ in range(NSECT)]   # [serial, value, done]
        self.busy = [False] * NSECT
        self.watchers = []      # allowed sets of snapshots being taken

    def allowed(self, s):
        return {self.base[s]} | {p[1] for p in self.pending[s]}

    def now(self, s):
        """Last completed value and those in flight."""
        out = {self.base[s]}
        for _, v, done in self.pending[s]:
            out = {v} if done else out | {v}
        return out

    def issue(self, op):
        for s in range(op.first, op.first + op.n):
            self.busy[s] = True
            self.pending[s].append([op.serial, op.value, False])
            for w in self.watchers:
                w[s].add(op.value)

    def complete(self, op):
        for s in range(op.first, op.first + op.n):
            self.busy[s] = False
            self.pending[s][-1][2] = True

    def durable(self, op):
        for s in range(op.first, op.first + op.n):
            keep = [p for p in self.pending[s] if p[0] > op.serial]
            if len(keep) != len(self.pending[s]):
                self.pending[s] = keep
                self.base[s] = op.value

    def settle(self, found):
        self.base = found
        self.pending = [[] for _ in range(NSECT)]
        self.busy = [False] * NSECT
        self.watchers = []


class Op:
    def __init__(self, kind, vol, first, n, serial):
        self.kind, self.vol, self.first, self.n = kind, vol, first, n
        self.serial = serial
        self.value = serial if kind == "write" else 0
        self.fua = random.random() < 0.03


class Loop:
    def __init__(self):
        self.volumes = {}       # name: Volume
        self.snaps = {}         # name: list of values, or of allowed sets
        self.serial = 0
        self.server = None
        self.history = []       # of the last rounds, for a fault's report
        self.counts = {"kills": 0, "stops": 0, "ops": 0, "flushes": 0,
                       "control": 0}

    # ---- The server ----

    def start(self):
        for f in (SOCK, SOCK + ".pid"):
            if os.path.exists(f):
                os.unlink(f)
        self.server = subprocess.Popen(
            [os.environ["COWSHED_BUILDDIR"] + "/run", "nbdkit", "-f",
             "-U", SOCK, "-P", SOCK + ".pid", "cowshed", "pool=" + DIR,
             "commit-interval=1"], stdout=LOG, stderr=LOG)

        def ready():
            if self.server.poll() is not None:
                raise AssertionError("the server did not start, status %d"
                                     % self.server.returncode)
            return os.path.exists(SOCK + ".pid") and \
                os.path.getsize(SOCK + ".pid") > 0
        wait_for(ready, 60, "the server's start")

    def kill(self):
        expect(self.server.poll(), None, "the server ended by itself")
        self.server.kill()
        self.server.wait()
        self.counts["kills"] += 1
        self.note("killed", None, 0, 0)

    def check(self):
        p = subprocess.run(["cowshed", "check", DIR], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        if p.returncode != 0:
            raise AssertionError("check: status %d: %s"
                                 % (p.returncode, p.stdout.decode()))

    # ---- Control commands, each in its own process ----
    #
    # They are given the socket and not the pool: without a server they would
    # open the pool themselves, and snapshot what the kill left.

    def begin_command(self):
        vols, snaps = list(self.volumes), list(self.snaps)
        known = [s for s in snaps if isinstance(self.snaps[s], list)]
        free = [v for v in vols if v not in self.connected and
                not any(s.startswith(v + "@") for s in snaps)]
        choice = random.random()
        self.serial += 1
        c = {"watch": None}
        if choice < 0.4 and len(snaps) < MAX_SNAPS:
            src = random.choice(vols)
            c.update(kind="snap", name="%s@s%d" % (src, self.serial),
                     source=src)
            args = ["snap", c["name"]]
        elif choice < 0.7 and len(vols) < MAX_VOLUMES:
            src = random.choice(vols + known)
            c.update(kind="clone", name="v%d" % self.serial, source=src)
            args = ["clone", src, c["name"]]
        elif choice < 0.8 and len(vols) < MAX_VOLUMES:
            c.update(kind="create", name="v%d" % self.serial, source=None)
            args = ["create", c["name"], str(SIZE)]
        elif snaps and (choice < 0.9 or not free):
            c.update(kind="rm", name=random.choice(snaps))
            args = ["rm", c["name"]]
        elif free:
            c.update(kind="rm", name=random.choice(free))
            args = ["rm", c["name"]]
        else:
            return None
        if c["kind"] in ("snap", "clone"):
            src = self.volumes.get(c["source"])
            if src:
                c["watch"] = [src.now(s) for s in range(NSECT)]
                src.watchers.append(c["watch"])
            else:
                c["watch"] = [{v} for v in self.snaps[c["source"]]]
        elif c["kind"] == "create":
            c["watch"] = [{0}] * NSECT
        self.note("begin " + " ".join(args), " ".join(
            x.split("@")[0] for x in args[1:]), 0, NSECT)
        c["process"] = subprocess.Popen(
            # By the socket alone: with -p it would do its work on the pool
            # itself, after the kill.
            ["cowshed", "--control", DIR + "/control.sock"] + args, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        return c

    def stop_watching(self, c):
        for v in self.volumes.values():
            v.watchers = [w for w in v.watchers if w is not c["watch"]]

    def end_command(self, c):
        """It succeeded: note what must hold from now on."""
        self.note("done %s %s" % (c["kind"], c["name"]), " ".join(
            [c["name"].split("@")[0], str(c.get("source")).split("@")[0]]),
            0, NSECT)
        self.stop_watching(c)
        self.counts["control"] += 1
        if c["kind"] == "rm":
            self.volumes.pop(c["name"], None)
            self.snaps.pop(c["name"], None)
        elif c["kind"] == "snap":
            self.snaps[c["name"]] = tuple(c["watch"])
            if random.random() < 0.4:
                self.freeze(c["name"])
        else:
            # Its content is found at the next start.
            self.fresh[c["name"]] = c["watch"]

    def freeze(self, name):
        h = self.connect(name)
        found = values(cowtest.read_all(h), name)
        cowtest.close(h)
        self.compare_sets(name, found, self.snaps[name])
        self.snaps[name] = found

    def note(self, what, volume, first, n):
        self.history.append((time.monotonic(), what, volume, first, n))

    def show_history(self, name, s):
        """What happened to sector s of the object's volume of late."""
        volume = name.split("@")[0]
        for t, what, v, first, n in self.history:
            if v is None or (volume in v.split() and first <= s < first + n):
                print("%.6f %s %s" % (t - self.history[0][0], v or "", what))

    def compare_sets(self, name, found, allowed):
        for s in range(NSECT):
            if found[s] not in allowed[s]:
                self.show_history(name, s)
                raise AssertionError("%s: sector %d holds write %d and may "
                                     "hold %s" % (name, s, found[s],
                                                  sorted(allowed[s])))

    # ---- Load ----

    def connect(self, name):
        return cowtest.connect(name, meta=False, sock=SOCK)

    def random_op(self, vol):
        n = random.choice([1, 1, 7, 8, 8, 16, 30, 128, 200])
        first = random.randrange(NSECT - n + 1)
        if random.random() < 0.6:
            first -= first % 8
        if any(vol.busy[first:first + n]):
            return None
        self.serial += 1
        kind = random.choice(["write"] * 7 + ["zero", "zero", "trim"])
        return Op(kind, vol, first, n, self.serial)

    def submit(self, h, op):
        flags = FUA if op.fua else 0
        off = op.first * SECTOR
        ln = min(op.n * SECTOR, SIZE - off)
        if op.kind == "write":
            data = b"".join(sector_bytes(op.value, s)
                            for s in range(op.first, op.first + op.n))
            return h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(data)),
                                off, flags=flags)
        fn = h.aio_zero if op.kind == "zero" else h.aio_trim
        return fn(ln, off, flags=flags)

    def load(self, seconds):
        self.connected = random.sample(list(self.volumes),
                                       min(2, len(self.volumes)))
        conns = [(self.volumes[n], self.connect(n), {})
                 for n in self.connected for _ in range(2)]
        done_ops = []           # completed, not yet known durable
        command = None
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for vol, h, flight in conns:
                while len(flight) < 4:
                    if random.random() < 0.04:
                        flight[h.aio_flush()] = len(done_ops)
                        self.note("flush", None, 0, 0)
                        continue
                    op = self.random_op(vol)
                    if op is None:
                        break
                    vol.issue(op)
                    self.note("%s %d+%d number %d%s" % (
                        op.kind, op.first, op.n, op.serial,
                        " FUA" if op.fua else ""), vol.name, op.first, op.n)
                    flight[self.submit(h, op)] = op
                h.poll(0)
                for cookie in list(flight):
                    if not h.aio_command_completed(cookie):
                        continue
                    x = flight.pop(cookie)
                    if isinstance(x, Op):
                        x.vol.complete(x)
                        self.note("completed %d" % x.serial, vol.name,
                                  x.first, x.n)
                        self.counts["ops"] += 1
                        if x.fua:
                            x.vol.durable(x)
                        done_ops.append(x)
                    else:
                        self.counts["flushes"] += 1
                        self.note("flushed", None, 0, 0)
                        for op in done_ops[:x]:
                            if op:
                                op.vol.durable(op)
                        done_ops[:x] = [None] * x
            if command is None:
                if random.random() < 0.2:
                    command = self.begin_command()
            elif command["process"].poll() is not None:
                p = command["process"]
                if p.returncode != 0:
                    raise AssertionError("%s %s failed: %s" % (
                        command["kind"], command["name"],
                        p.stderr.read().decode()))
                p.stderr.close()
                self.end_command(command)
                command = None
        return conns, command

    # ---- One round ----

    def after_command(self, c):
        """It ran when the server was killed: done or not done."""
        p = c["process"]
        p.stderr.read()
        p.stderr.close()
        if p.wait() == 0:
            self.end_command_offline(c)
            return
        self.maybe = c

    def end_command_offline(self, c):
        self.stop_watching(c)
        if c["kind"] == "rm":
            self.volumes.pop(c["name"], None)
            self.snaps.pop(c["name"], None)
        elif c["kind"] == "snap":
            self.snaps[c["name"]] = tuple(c["watch"])
        else:
            self.fresh[c["name"]] = c["watch"]

    def verify(self):
        os.environ["COWSHED_TEST_DIR"] = cowtest.DIR = DIR
        have = set(cowtest.names())
        c = self.maybe
        if c:
            present = c["name"] in have
            if (c["kind"] == "rm") != present:
                self.end_command_offline(c)
            self.stop_watching(c)
        want = set(self.volumes) | set(self.snaps) | set(self.fresh)
        expect(sorted(have), sorted(want), "objects")
        for name in sorted(want):
            h = self.connect(name)
            found = values(cowtest.read_all(h), name)
            cowtest.close(h)
            if name in self.volumes:
                v = self.volumes[name]
                self.compare_sets(name, found,
                                  [v.allowed(s) for s in range(NSECT)])
                v.settle(found)
            elif name in self.fresh:
                self.compare_sets(name, found, self.fresh[name])
                self.volumes[name] = Volume(name, found)
            elif isinstance(self.snaps[name], tuple):
                self.compare_sets(name, found, self.snaps[name])
                self.snaps[name] = found
            else:
                expect(found == self.snaps[name], True,
                       name + " is unchanged")
        self.fresh = {}

    def stop(self, conns):
        """A clean stop: all that was completed is durable."""
        for vol, h, flight in conns:
            while h.aio_in_flight():
                h.poll(-1)
            for cookie, x in flight.items():
                if h.aio_command_completed(cookie) and isinstance(x, Op):
                    x.vol.complete(x)
        for vol, _, _ in conns:
            for s in range(NSECT):
                if vol.pending[s]:
                    vol.base[s] = vol.pending[s][-1][1]
                    vol.pending[s] = []
        for _, h, _ in conns:
            h.shutdown()
        self.server.send_signal(signal.SIGTERM)
        expect(self.server.wait(60), 0, "status of a clean stop")
        self.counts["stops"] += 1

    def round(self):
        self.maybe = None
        del self.history[:-20000]
        conns, command = self.load(random.uniform(0.02, 0.5))
        if random.random() < 0.04:
            if command:
                command["process"].wait()
                self.after_command(command)
                expect(self.maybe, None, "a command without a kill failed")
            self.stop(conns)
        else:
            self.kill()
            if command:
                self.after_command(command)
        del conns
        self.check()
        self.start()
        self.verify()

    def run(self):
        self.fresh = {}
        self.maybe = None
        self.start()
        cowtest.DIR = DIR
        for n in ("a", "b"):
            cowtest.cowshed("create", n, str(SIZE))
            self.volumes[n] = Volume(n)
        began = time.monotonic()
        while self.counts["kills"] < KILLS:
            self.round()
            if self.counts["kills"] % 20 == 0:
                print("%.0f s" % (time.monotonic() - began), self.counts,
                      flush=True)
        self.server.send_signal(signal.SIGTERM)
        expect(self.server.wait(60), 0, "the last stop")
        self.check()
        print("%.0f s" % (time.monotonic() - began), self.counts)


cowtest.seed()
loop = Loop()
try:
    loop.run()
finally:
    if loop.server and loop.server.poll() is None:
        loop.server.kill()
        loop.server.wait()
