#!/usr/bin/env python3
"""Compares lasthop's TCP with the kernel's by random scripts.

    random.py LASTHOP OUT [SENDERS [RECEIVERS [FIRST]]]

Writes the scripts to OUT, plays each against both, and lists those in which the two differ. A script grows step by step:
lasthop's TCP plays it so far, and the next segment from the peer answers what was sent long enough ago to have arrived.
The kernel needs an idle machine and root; a difference in time alone may come from other programs, so play it again.
"""

import json
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SENT = re.compile(r"^([SFRP.EWA]+) (\d+):(\d+)\((\d+)\)")
# Scripts that are played at once: they mostly wait.
AT_ONCE = 5


def play(lasthop, script, against):
    """The answer to a script, or None if it cannot be played."""
    command = [lasthop, "packetdrill", str(script), "--against", against, "--loose", "--tries", "1", "--json"]
    text = subprocess.run(command, capture_output=True, text=True).stdout
    try:
        answer = json.loads(text)
    except ValueError:
        return None
    while "scripts" not in answer:
        answer = next(answer[key] for key in ("answer", "result", "data") if key in answer)
    return answer["scripts"][0]


class Script:
    """The lines of a script, and the options of its connection."""

    def __init__(self, lasthop, path, rng):
        self.lasthop, self.path, self.rng = lasthop, path, rng
        self.mss = rng.choice([1000, 1000, 1460, 536, 1200])
        self.sack, self.stamps = rng.random() < 0.8, rng.random() < 0.4
        self.scale = rng.choice([7, 7, 8, 0, None])
        self.rtt = rng.choice([0.01, 0.02, 0.04, 0.1, 0.2])
        self.clock, self.stamp = 0.0, 200
        self.options, self.lines = [], []

    def open(self, congestion_control=None):
        """Opens the connection; the peer connects."""
        offered = [f"mss {self.mss}"] + ["sackOK"] * self.sack + ["TS val 100 ecr 0"] * self.stamps
        offered += [f"nop,wscale {self.scale}"] * (self.scale is not None)
        self.lines = ["0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", "+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0"]
        if congestion_control:
            size = len(congestion_control)
            self.lines.append(f'+0 setsockopt(3, SOL_TCP, TCP_CONGESTION, "{congestion_control}", {size}) = 0')
        window = self.rng.choice([65535, 32768, 20000, 65535])
        self.lines += ["+0 bind(3, ..., ...) = 0", "+0 listen(3, 1) = 0"]
        self.lines.append(f"+0 < S 0:0(0) win {window} <{','.join(offered)}>")
        answer = "..."
        if self.stamps:
            # Echoed times are scaled to the script's only if the options are given.
            self.options.append("--tcp_ts_ecr_scaled")
            sack = ["sackOK"] if self.sack else ["nop", "nop"]
            scale = ["nop", "wscale 8"] * (self.scale is not None)
            answer = ",".join(["mss 1460", *sack, "TS val 100 ecr 100", *scale])
        self.lines.append(f"+0 > S. 0:0(0) ack 1 <{answer}>")
        self.options.append(f"`sysctl -q net.ipv4.tcp_timestamps={int(self.stamps)}`")
        self.arrive(self.rtt, 1, 0, 1, 60000)
        self.lines.append("+0 accept(3, ..., ...) = 4")

    def arrive(self, wait, first, size, ack, window, flags=".", blocks=()):
        """A segment from the peer, `wait` seconds later."""
        self.clock += wait
        options = []
        if self.stamps:
            self.stamp += 10
            echo = 100 + max(0, int((self.clock - self.rtt) * 1000))
            options += ["nop", "nop", f"TS val {self.stamp} ecr {echo}"]
        if blocks and self.sack:
            options += ["nop", "nop", "sack " + " ".join(f"{a}:{b}" for a, b in blocks)]
        options = f" <{','.join(options)}>" if options else ""
        scaled = min(65535, max(1, window >> (self.scale or 0))) if window else 0
        self.lines.append(f"+{wait:.6g} < {flags} {first}:{first + size}({size}) ack {ack} win {scaled}{options}")

    def text(self):
        options = sorted(self.options, key=lambda line: not line.startswith("--"))
        return "\n".join(options + self.lines) + "\n"

    def sent(self):
        """The segments that lasthop's TCP has sent so far, as (time, first, end), and the time."""
        self.path.write_text(self.text() + "+0 %{ print(1) }%\n")
        answer = play(self.lasthop, self.path, "self")
        if answer is None:
            raise ValueError(f"{self.path} cannot be played")
        trace = answer["self"]["trace"]
        found = []
        for event in trace:
            match = SENT.match(event["text"]) if event["kind"] == "sent" else None
            if match and (int(match[4]) or "F" in match[1]):
                first, end = int(match[2]), int(match[3])
                found.append((event["at"] / 1e9, first, max(end, first + int(match[4]) + ("F" in match[1]))))
        return found, max((event["at"] / 1e9 for event in trace), default=0)

    def end(self, wait):
        self.lines.append(f"+{wait} %{{ print(1) }}%")
        self.path.write_text(self.text())


def sender(s):
    """A peer that acknowledges, reports and closes its window at random."""
    rng = s.rng
    s.open(rng.choice(["cubic", "cubic", "reno"]))
    if rng.random() < 0.3:
        s.options.append("`sysctl -q net.ipv4.tcp_slow_start_after_idle=1`")
    if rng.random() < 0.15:
        s.lines.append("+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0")
    written, closed, una, reported = 0, False, 1, []
    window = rng.choice([60000, 60000, 30000, 200000, 12000]) if s.scale else 60000

    def write():
        nonlocal written
        size = rng.choice([s.mss * rng.randint(1, 40), rng.randint(1, 3 * s.mss), rng.randint(1000, 60000), s.mss * 10])
        if written + size <= 150000:
            s.lines.append(f"+{rng.choice([0, 0, 0.0017, 0.003])} write(4, ..., {size}) = {size}")
            written += size

    write()
    for step in range(rng.randint(6, 14)):
        all_sent, now = s.sent()
        kind = rng.random()
        if kind < 0.1 and not closed:
            write()
            continue
        if kind < 0.13 and not closed and step > 3:
            s.lines.append(rng.choice(["+0 close(4) = 0", "+0 shutdown(4, SHUT_WR) = 0"]))
            closed = True
            continue
        rtt = s.rtt
        wait = rng.choice([0, 0, 0.0003, 0.0017, rtt / 4, rtt / 2, rtt, rtt, rtt * 1.5])
        if kind > 0.93:
            wait = rng.choice([0.3, 0.6, 1.2])
        there = [it for it in all_sent if it[0] <= now + wait - 0.4 * rtt]
        if max((end for _, _, end in there), default=1) <= una:
            wait, there = max(wait, rtt), all_sent
        top = max((end for _, _, end in there), default=1)
        if top <= una:
            if closed:
                s.lines.append("+.1 %{ print(1) }%")
            else:
                write()
            continue
        edges = sorted({max(a, una) for _, a, b in there if b > una} | {b for _, _, b in there if b > una})
        what = rng.random()
        if what < 0.42 or s.sack and what < 0.5:
            to = rng.choice(edges) if rng.random() >= 0.08 else rng.randint(una, top)
            una = max(una, to)
            while any(a <= una < b for a, b in reported):
                una = next(b for a, b in reported if a <= una < b)
            reported = [it for it in reported if it[1] > una]
            blocks = reported[-3:][::-1]
            if rng.random() < 0.06 and una > 1 + s.mss:
                blocks = [(una - s.mss, una)] + blocks[:2]
            s.arrive(wait, 1, 0, una, window, blocks=blocks)
        elif not s.sack:
            for _ in range(rng.randint(1, 4)):
                s.arrive(wait, 1, 0, una, window)
                wait = rng.choice([0, 0.0017])
        else:
            for _ in range(rng.randint(1, 4)):
                if len(edges) < 3:
                    break
                i = rng.randrange(1, len(edges) - 1)
                low, high = edges[i], edges[rng.randint(i + 1, min(len(edges) - 1, i + 3))]
                if rng.random() < 0.04:
                    high = rng.randint(low + 1, high)
                if low <= una:
                    continue
                joined = [it for it in reported if it[1] >= low and it[0] <= high]
                reported = [it for it in reported if it not in joined]
                reported.append((min([low] + [a for a, _ in joined]), max([high] + [b for _, b in joined])))
                s.arrive(wait, 1, 0, una, window, blocks=reported[-3:][::-1])
                wait = rng.choice([0, 0, 0.0017])
        if rng.random() < 0.07 and s.scale:
            window = rng.choice([60000, 30000, 5000, 100000, 0, 2000, 60000])
    s.end(rng.choice([0.5, 1, 2]))


def receiver(s):
    """A peer that sends with holes, duplicates and pauses."""
    rng = s.rng
    s.open()
    if rng.random() < 0.2:
        s.lines.append(f"+0 setsockopt(4, SOL_SOCKET, SO_RCVBUF, [{rng.choice([5000, 20000])}], 4) = 0")
    next_, holes, mss = 1, [], s.mss
    for _ in range(rng.randint(8, 22)):
        wait = rng.choice([0, 0, 0, 0.0017, 0.005, 0.03, 0.06, s.rtt])
        size = rng.choice([mss, mss, mss, rng.randint(1, mss), 100])
        kind = rng.random()
        if kind < 0.5:
            s.arrive(wait, next_, size, 1, 60000, rng.choice([".", ".", "P."]))
            next_ += size
        elif kind < 0.62:
            gap = rng.choice([mss, 2 * mss, 100])
            holes.append((next_, next_ + gap))
            s.arrive(wait, next_ + gap, size, 1, 60000)
            next_ += gap + size
        elif kind < 0.74 and holes:
            first, end = holes.pop(rng.randrange(len(holes)))
            part = min(end - first, mss)
            s.arrive(wait, first, part, 1, 60000)
            if first + part < end:
                holes.append((first + part, end))
        elif kind < 0.8 and next_ > mss:
            first = rng.randint(1, next_ - mss)
            s.arrive(wait, first, mss, 1, 60000)
        elif kind < 0.9:
            s.lines.append(f"+{wait} write(4, ..., {size}) = {size}")
        elif kind < 0.95:
            s.arrive(wait, next_, 0, 1, 60000)
        elif kind < 0.97:
            s.arrive(wait, next_ + rng.choice([70000, 1000000]), size, 1, 60000)
        else:
            s.arrive(wait, next_, 0, 1, 60000, "F.")
            break
    s.end(0.5)


def describe(event):
    return f"{event[0]['at'] / 1e9:.4f} {event[0]['text'][:70]}" if event else "nothing"


def main():
    lasthop, out = sys.argv[1], Path(sys.argv[2])
    senders, receivers, first = (int(it) for it in (sys.argv[3:] + ["200", "100", "0"][len(sys.argv) - 3 :]))
    out.mkdir(parents=True, exist_ok=True)
    kinds = [("sender", sender, senders), ("receiver", receiver, receivers)]
    jobs = [(f"{name}-{first + i:04}", make) for name, make, count in kinds for i in range(count)]

    def compare(job):
        name, make = job
        make(Script(lasthop, out / f"{name}.pkt", random.Random(name)))
        return name, play(lasthop, out / f"{name}.pkt", "both")

    differs = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, answer in pool.map(compare, jobs):
            difference = answer and answer.get("difference")
            if difference or answer is None:
                differs += 1
                kind = difference["what"] if difference else "not played"
                both = (difference["first"], difference["second"]) if difference else ([], [])
                print(f"{name}: {kind}; lasthop {describe(both[0])}, kernel {describe(both[1])}", flush=True)
    print(f"{differs} of {len(jobs)} scripts differ")


if __name__ == "__main__":
    main()
