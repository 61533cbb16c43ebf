#!/usr/bin/env python3
"""Throughputs of ns-2 and of the preset `ns` side by side, as docs/explanation/fidelity.md has them.

throughput.py LASTHOP [SEEDS]: needs the program `ns` of ns-2 (Debian: apt-get install ns2) and lasthop.
"""
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SENDERS = {
    "Tahoe": ("TCP", "TCPSink", "tahoe"),
    "Reno": ("TCP/Reno", "TCPSink", "reno"),
    "NewReno": ("TCP/Newreno", "TCPSink", "newreno"),
    "SACK": ("TCP/Sack1", "TCPSink/Sack1", "sack"),
}
# A name, the window, the queue of ns-2 (which holds one packet less), the loss, how many flows.
CASES = [
    ("no loss", 20, 1000, 0, 1),
    ("0.1 % lost", 20, 1000, 0.001, 1),
    ("1 % lost", 20, 1000, 0.01, 1),
    ("3 % lost", 20, 1000, 0.03, 1),
    ("queue of 10", 100, 10, 0, 1),
    ("queue of 10, 1 % lost", 100, 10, 0.01, 1),
    ("four flows, queue of 10", 20, 10, 0, 4),
    ("four flows, queue of 10, 1 % lost", 20, 10, 0.01, 4),
]


def theirs(seed, sender, case):
    _, window, queue, loss, flows = case
    agent, sink, _ = SENDERS[sender]
    run = ["ns", "throughput.tcl", seed, agent, sink, window, queue, loss, flows]
    out = subprocess.run([str(x) for x in run], cwd=HERE, capture_output=True, text=True, check=True)
    return sum(int(x) for x in out.stdout.split()) * 8000 / 100_000


def ours(program, seeds, sender, case):
    _, window, queue, loss, flows = case
    transfers = ", ".join(
        f'{{ from = "s", to = "r", bytes = "unlimited", start = "{100 * i}ms" }}' for i in range(flows)
    )
    size = f"{window * 1000}"
    text = f"""
name = "beside-ns-2"
horizon = "100s"
runs = {seeds}
transfer = [{transfers}]
[host.s]
preset = "ns"
tcp = "{SENDERS[sender][2]}"
send-buffer = {size}
side = "left"
[host.r]
preset = "ns"
sack = {str(sender == "SACK").lower()}
recv-buffer = {size}
window-scale = true
side = "right"
[[path]]
link = {{ rate = "10mbit", delay = "2ms", queue = "1000p" }}
[[path]]
cross = {{ loss = "{100 * loss}%", jitter = "0ms" }}
[[path]]
link = {{ rate = "1mbit", delay = "50ms", queue = "{queue - 1}p" }}
"""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "ns.toml"
        file.write_text(text)
        out = subprocess.run([program, "run", file, "--json"], capture_output=True, text=True, check=True)
    runs = json.loads(out.stdout)["cells"][0]["runs"]
    return [sum(f["delivered"] for f in run["metrics"]["flows"]) * 8 / 100_000 for run in runs]


def main():
    program, seeds = str(Path(sys.argv[1]).resolve()), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    print("| case | sender | ns-2, kb/s | lasthop, kb/s | ratio |\n|---|---|---:|---:|---:|")
    for case in CASES:
        for sender in SENDERS:
            mine = ours(program, seeds, sender, case)
            other = [theirs(seed, sender, case) for seed in range(1, seeds + 1)]
            means = [statistics.mean(x) for x in (other, mine)]
            # Welch's 95 % interval of the difference; 2.03 is the quantile for some 35 degrees of freedom.
            apart = 2.03 * sum(statistics.variance(x) / len(x) for x in (other, mine)) ** 0.5
            differs = abs(means[0] - means[1]) > max(apart, 0.001 * means[0])
            ratio = f"{means[1] / means[0]:.3f}"
            ratio = f"**{ratio}**" if differs else ratio
            print(f"| {case[0]} | {sender} | {means[0]:.0f} | {means[1]:.0f} | {ratio} |", flush=True)


main()
