#!/usr/bin/env python3
"""Measures how long a station that is killed, stopped or restarted forwards no packets: for all agents and both planes.

    deploy/measure-gaps.py LASTHOP [--times 20] [--jobs 3] [--planes kernel,sockets] [--agents none,snoop,...] [--events kill,stop,restart]

Each run has its own namespaces: a --- station --- b. Three streams pass from a to b: a datagram each millisecond (for the path
itself), 100 bytes each millisecond over one existing connection (for a user of TCP), and one new connection after the other,
each with a byte in both directions. The events:

    nothing   no event
    kill      kill -9; the station is started again 100 ms later, as systemd does
    stop      SIGSTOP, and SIGCONT a second later
    restart   SIGTERM and an immediate start, as `systemctl restart` does
    upgrade   as restart, with `forward-after-stop = true`

Prints a table for each event, in ms: median (largest). Needs root, iproute2 and unshare.
"""
import argparse
import concurrent.futures
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

AGENTS = [
    "none", "snoop", "snoop+ackp", "snoop-smart", "snoop-nack", "seq-cache", "split", "split-sack", "m-tcp", "ebsn",
    "source-quench", "good-packet-size", "ack-reconstruction",
]
EVENTS = ["nothing", "kill", "stop", "restart", "upgrade"]
DATAGRAMS, HELD, ECHO = 7000, 7001, 7002
# How long the streams run before and after an event.
BEFORE, AFTER, STOPPED, RESTART = 0.3, 1.5, 1.0, 0.1


def work(seen, *jobs):
    """Runs jobs in threads until standard input ends, and prints their results."""
    for job in jobs:
        threading.Thread(target=job, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps(seen), flush=True)
    os._exit(0)


def receive():
    """The host b: prints its measurements when its standard input ends."""
    seen = {"datagrams": [0, 0], "held": [0, 0], "held-reset": None}

    def arrivals(name, read):
        last, most = None, 0
        try:
            while read():
                now = time.monotonic()
                if last is not None and now - last > seen[name][0]:
                    seen[name] = [now - last, now]
                last = now
        except ConnectionResetError:
            seen["held-reset"] = time.monotonic()

    def datagrams():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("10.9.0.2", DATAGRAMS))
        arrivals("datagrams", lambda: s.recv(100))

    def held():
        s = socket.create_server(("10.9.0.2", HELD))
        stream, _ = s.accept()
        arrivals("held", lambda: stream.recv(1 << 16))

    def echo():
        s = socket.create_server(("10.9.0.2", ECHO), backlog=100)
        while True:
            stream, _ = s.accept()
            threading.Thread(target=answer, args=(stream,), daemon=True).start()

    def answer(stream):
        try:
            stream.sendall(stream.recv(1))
        except OSError:
            pass
        stream.close()

    work(seen, datagrams, held, echo)


def send():
    """The host a: prints its measurements when its standard input ends."""
    seen = {"opened": [], "opening": None, "held-reset": None}

    def each_millisecond(act):
        due = time.monotonic()
        while True:
            act()
            due += 0.001
            time.sleep(max(0, due - time.monotonic()))

    def datagrams():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect(("10.9.0.2", DATAGRAMS))
        try:
            each_millisecond(lambda: s.send(b"x" * 100))
        except ConnectionError:
            pass  # The other host has ended.

    def held():
        s = socket.create_connection(("10.9.0.2", HELD))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            each_millisecond(lambda: s.sendall(b"x" * 100))
        except ConnectionError:
            seen["held-reset"] = time.monotonic()

    def opener():
        while True:
            begun = seen["opening"] = time.monotonic()
            try:
                with socket.create_connection(("10.9.0.2", ECHO), timeout=10) as s:
                    s.sendall(b"x")
                    if s.recv(1) == b"x":
                        seen["opened"].append([begun, time.monotonic() - begun])
            except OSError:
                pass
            time.sleep(0.005)

    work(seen, datagrams, held, opener)


def start(program):
    station = subprocess.Popen([program, "station", "/run/base.toml"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in station.stdout:
        if "running; control socket" in line:
            threading.Thread(target=station.stdout.read, daemon=True).start()
            return station
    raise SystemExit(f"the station did not start: {open('/run/base.toml').read()}")


def one(program, plane, agent, event):
    """One run, inside of its namespaces: prints its measurements."""
    sh = lambda text: subprocess.run(["sh", "-ec", text], check=True, stdout=subprocess.DEVNULL)
    sh(
        """mount -t tmpfs none /run; mkdir /run/netns; ip link set lo up
        for host in "a lx la 1" "b rx rb 2"; do
            set -- $host
            ip netns add $1; ip link add name $2 type veth peer name $3; ip link set $3 netns $1; ip link set $2 up
            ip -n $1 link set lo up; ip -n $1 addr add 10.9.0.$4/24 dev $3; ip -n $1 link set $3 up
        done"""
    )
    stays = "forward-after-stop = true\n" if event == "upgrade" else ""
    with open("/run/base.toml", "w") as file:
        file.write(f'left = "lx"\nright = "rx"\nplane = "{plane}"\n{stays}[[path]]\nagent = "{agent}"\n')
    station = start(program)
    host = lambda name, role: subprocess.Popen(
        ["ip", "netns", "exec", name, sys.executable, __file__, "--role", role], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    hosts = []
    for name, role in ("b", "receive"), ("a", "send"):
        hosts.append(host(name, role))
        assert hosts[-1].stdout.readline() == "ready\n"
    time.sleep(BEFORE)
    at = time.monotonic()
    if event == "kill":
        station.kill()
        station.wait()
        time.sleep(RESTART)
        station = start(program)
    elif event == "stop":
        station.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED)
        station.send_signal(signal.SIGCONT)
    elif event in ("restart", "upgrade"):
        station.terminate()
        station.wait()
        station = start(program)
    time.sleep(AFTER)
    end = time.monotonic()
    b, a = [json.loads(process.communicate()[0]) for process in hosts]
    station.kill()
    opened = [took for begun, took in a["opened"] if begun > at - BEFORE / 2]
    if end - a["opening"] > max(opened, default=0):
        opened.append(end - a["opening"])
    resets = [reset and reset - at for reset in (a["held-reset"], b["held-reset"])]
    # Connections that begin later than 20 ms after the event.
    later = [took for begun, took in a["opened"] if begun > at + 0.02]
    print(json.dumps({"packets": b["datagrams"][0], "held": b["held"][0], "resets": resets, "new": max(opened), "later": max(later, default=None)}))


def measure(program, plane, agent, event):
    command = ["unshare", "-nmpf", "--mount-proc", "--kill-child", sys.executable, __file__, "--one", program, plane, agent, event]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{plane} {agent} {event}: it failed")
    return json.loads(done.stdout)


def cell(values):
    return f"{statistics.median(values) * 1e3:.0f} ({max(values) * 1e3:.0f})"


def held(runs):
    reset = [max(run["resets"]) for run in runs if None not in run["resets"]]
    if not reset:
        return cell([run["held"] for run in runs])
    rest = len(runs) - len(reset)
    return f"reset after {cell(reset)}" + (f", {rest} times not" if rest else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="LASTHOP", nargs="?")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--planes", default="kernel,sockets")
    parser.add_argument("--agents", default=",".join(AGENTS))
    parser.add_argument("--events", default=",".join(EVENTS))
    parser.add_argument("--raw", help="a file for the figures of each run")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        return {"receive": receive, "send": send}[options.role]()
    if options.one:
        return one(*options.one)
    if not options.program:
        parser.error("which program?")
    program = os.path.abspath(options.program)
    planes, agents = options.planes.split(","), options.agents.split(",")
    cases = [(event, agent, plane) for event in options.events.split(",") for agent in agents for plane in planes]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {}
        for _ in range(options.times):
            for event, agent, plane in cases:
                jobs.setdefault((event, agent, plane), []).append(pool.submit(measure, program, plane, agent, event))
        count = sum(map(len, jobs.values()))
        for i, _ in enumerate(concurrent.futures.as_completed(job for all in jobs.values() for job in all), 1):
            print(f"\r{i} of {count} runs", end="\n" if i == count else "", file=sys.stderr, flush=True)
        results = {case: [job.result() for job in all] for case, all in jobs.items()}
    if options.raw:
        with open(options.raw, "w") as file:
            for case, runs in results.items():
                for run in runs:
                    print(json.dumps([*case, run]), file=file)
    print(f"{options.times} runs each; load {os.getloadavg()[0]:.1f}; ms: median (largest)")
    for event in options.events.split(","):
        print(f"\n{event}\n")
        columns = ["packets", "a connection", "new connections", "those begun 20 ms later"]
        print("| agent | " + " | ".join(f"{plane}: {column}" for plane in planes for column in columns) + " |")
        print("|---" * (1 + len(columns) * len(planes)) + "|")
        for agent in agents:
            cells = []
            for plane in planes:
                runs = results[event, agent, plane]
                later = [run["later"] for run in runs]
                cells += [cell([run["packets"] for run in runs]), held(runs), cell([run["new"] for run in runs])]
                cells.append("-" if None in later else cell(later))
            print(f"| `{agent}` | " + " | ".join(cells) + " |")


main()
