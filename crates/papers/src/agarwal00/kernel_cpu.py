#!/usr/bin/env python3
"""Measures CPU time of the kernel's TCP for A-LIVE with iperf3 and perf, and writes kernel_cpu.json next to this file.

Needs root, iperf3, perf, ethtool and iproute2. Two hosts in network namespaces are joined by a cable of 9000 bytes without
rate or delay. CPU time is the task-clock of both iperf3 processes and of the kernel's threads that receive packets (threaded
NAPI). The cases are interleaved, so that a disturbance affects all. A congestion window of at most 200 segments loses no packet.

    crates/papers/src/agarwal00/kernel_cpu.py [ROUNDS] [BYTES]      9 rounds of 64 MB take ten minutes
"""

import json
import os
import pathlib
import platform
import subprocess
import sys
import time

SIZES = [500, 1000, 1460, 2296, 8960]
CHANGES = ["timestamps off", "SACK off", "window scaling off", "an ACK for each segment", "nothing (the same again)"]
SYSCTLS = {"timestamps off": "tcp_timestamps", "SACK off": "tcp_sack", "window scaling off": "tcp_window_scaling"}
CASES = [(mss, on, "") for on in (False, True) for mss in SIZES]
CASES += [(2296, on, change) for on in (False, True) for change in CHANGES]


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def main():
    if "INSIDE" not in os.environ:
        os.environ["INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv])
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    amount = sys.argv[2] if len(sys.argv) > 2 else "64M"
    run("mount", "-t", "sysfs", "none", "/sys")
    other = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", "mount -t sysfs none /sys; exec sleep infinity"])
    try:
        time.sleep(0.5)
        far = ["nsenter", f"--target={other.pid}", "--net", "--mount"]
        run("ip", "link", "add", "near", "mtu", "9000", "type", "veth", "peer", "name", "far", "mtu", "9000", "netns", str(other.pid))
        run("ip", "address", "add", "10.9.0.1/24", "dev", "near")
        run("ip", "link", "set", "near", "up")
        run(*far, "ip", "address", "add", "10.9.0.2/24", "dev", "far")
        run(*far, "ip", "link", "set", "far", "up")
        for host, cable in ([], "near"), (far, "far"):
            run(*host, "ethtool", "-K", cable, "gro", "on", "tso", "off")
            run(*host, "sh", "-c", f"echo 1 > /sys/class/net/{cable}/threaded")
        seconds = {case: [] for case in CASES}
        for number in range(rounds):
            for case in CASES:
                seconds[case].append(transfer(case, far, amount))
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    finally:
        other.kill()
    cases = [
        {"mss": mss, "offloads": on, "change": change, "seconds_per_gb": seconds[mss, on, change]} for mss, on, change in CASES
    ]
    record = {"kernel": platform.release(), "iperf3": run("iperf3", "--version").split()[1], "amount": amount, "cases": cases}
    text = json.dumps(record, indent=1)
    pathlib.Path(__file__).with_suffix(".json").write_text(text + "\n")


def transfer(case, far, amount):
    """CPU seconds of both ends per gigabyte."""
    mss, on, change = case
    for sysctl in SYSCTLS.values():
        value = int(SYSCTLS.get(change) != sysctl)
        run("sysctl", "-q", f"net.ipv4.{sysctl}={value}")
        run(*far, "sysctl", "-q", f"net.ipv4.{sysctl}={value}")
    offload = "on" if on else "off"
    for host, cable in ([], "near"), (far, "far"):
        run(*host, "ethtool", "-K", cable, "gso", offload)
        # With GRO off a veth has no NAPI; packets of at most one byte do not merge.
        run(*host, "ip", "link", "set", cable, "gso_max_segs", "65535" if on else "1", "gro_max_size", "65536" if on else "1")
    run("ip", "route", "replace", "10.9.0.2/32", "dev", "near", "src", "10.9.0.1", "cwnd", "lock", "200")
    quick = str(int(change == "an ACK for each segment"))
    run(*far, "ip", "route", "replace", "10.9.0.1/32", "dev", "far", "src", "10.9.0.2", "quickack", quick)
    perf = ["perf", "stat", "-x,", "-e", "task-clock"]
    threads = ",".join(run("pgrep", "napi/(near|far)-").split())
    server = subprocess.Popen([*far, *perf, "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while "5201" not in run(*far, "ss", "-ltn"):
        time.sleep(0.05)
    client = subprocess.run(
        [*perf, "-p", threads, *perf, "iperf3", "-c", "10.9.0.2", "-M", str(mss), "-n", amount, "--json"], check=True, capture_output=True, text=True
    )
    received = json.loads(client.stdout)["end"]["sum_received"]["bytes"]
    lines = client.stderr.splitlines() + server.communicate()[1].splitlines()
    spent = sum(float(line.split(",")[0]) for line in lines)
    return round(spent / 1e3 / (received / 1e9), 5)


main()
