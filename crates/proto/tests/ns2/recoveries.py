#!/usr/bin/env python3
"""Compares new packets that NewReno of ns-2 sends on each ACK of its recoveries with the rule of the preset `ns`.

recoveries.py [SEEDS] [LOSS] [WINDOW]: needs the program `ns` of ns-2 (Debian: apt-get install ns2). Prints each ACK on
which the two differ, and the number of compared ACKs.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def trace(seed, loss, window):
    """Of each moment: the ACK that arrives, the packets that the source sends, and what it says of its variables."""
    with tempfile.TemporaryDirectory() as place:
        names = {name: f"{place}/{name}" for name in ("TRACE", "VARS")}
        run = ["ns", "throughput.tcl", seed, "TCP/Newreno", "TCPSink", window, 1000, loss, 1]
        subprocess.run([str(x) for x in run], cwd=HERE, check=True, capture_output=True, env=os.environ | names)
        packets, variables = (Path(name).read_text().splitlines() for name in names.values())
    moments = {}
    for words in map(str.split, packets):
        now = moments.setdefault(round(float(words[1]), 5), ([], [], {}))
        if words[0] == "r" and words[3:5] == ["0", "ack"]:
            now[0].append(int(words[10]))
        if words[0] == "+" and words[2] == "0" and words[4] == "tcp":
            now[1].append(int(words[10]))
    for words in map(str.split, variables):
        now = moments.setdefault(round(float(words[0]), 5), ([], [], {}))
        now[2][words[5]] = float(words[6])
    return sorted(moments.items())


def compare(seed, loss, window):
    """How many ACKs of recoveries there are, and on how many the rule gives another number of packets."""
    looked_at = differing = highest = bare = added = 0
    last, recover = -1, None
    for time, (acks, sent, said) in trace(seed, loss, window):
        if acks and recover is not None:
            acked = acks[0] - last
            if acked == 0:
                added += 1
            elif acks[0] < recover:
                bare = max(1, bare - max(0, acked - added))
                added = max(0, added - acked) + 1
            else:
                recover = None
        if acks and recover is not None:
            # ns-2 shows three decimals of its window, which may be less than what it shows.
            most = [int(acks[0] + min(window, bare + half + added)) - highest for half in (-0.0005, 0)]
            expected, new = [min(2, max(0, m)) for m in most], sum(packet > highest for packet in sent)
            looked_at += 1
            if new not in expected:
                differing += 1
                print(f"seed {seed}, {time} s: {new} new packets, by the rule {expected[1]}")
        elif acks and said.get("dupacks_") == 3 and "ssthresh_" in said:
            recover, bare, added = highest, said["cwnd_"], 3
        elif sent and not acks:
            # A timeout.
            recover = None
        if acks:
            last = max(last, acks[0])
        highest = max([highest, *sent])
    return looked_at, differing


def main():
    seeds, loss, window = (float(x) for x in (sys.argv[1:] + ["40", "0.03", "20"][len(sys.argv) - 1:]))
    counts = [compare(seed, loss, int(window)) for seed in range(1, int(seeds) + 1)]
    print(f"{sum(c[0] for c in counts)} ACKs in recoveries, of which {sum(c[1] for c in counts)} differ from the rule")


main()
