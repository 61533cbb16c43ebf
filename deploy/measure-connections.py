#!/usr/bin/env python3
"""Counts the connections that survive an event at a station, for agents and planes, next to a bridge.

    deploy/measure-connections.py LASTHOP [--connections 500] [--jobs 2] [--ways bridge,none/kernel,...] [--events kill,stop,...]

Each run has its own namespaces: a --- station --- b. All connections echo a message five times per second. The events:

    kill      kill -9; the station is started again 100 ms later, as systemd does
    stop      SIGSTOP, and SIGCONT a second later
    restart   SIGTERM and an immediate start
    drain     the same with `drain = "20s"`; clients close their connections within 4 s
    set       `ctl set agent=none --drain`, without --drain where no connection ends at the agent
    reload    SIGHUP
    flap      each interface goes down for a second, one after the other
    rename    both interfaces get another name
    remove    an interface is removed, and a new one of this name is added a second later
    second    a second station is started for the same interfaces

Prints a table: connections that echo afterwards or were closed by their client, reset ones, and silent ones. Needs root,
iproute2 and unshare.
"""
import argparse
import asyncio
import concurrent.futures
import json
import os
import random
import signal
import subprocess
import sys
import time

WAYS = ["bridge"] + [f"{agent}/{plane}" for agent in ("none", "snoop", "split", "m-tcp") for plane in ("kernel", "sockets")]
EVENTS = ["kill", "stop", "restart", "drain", "set", "reload", "flap", "rename", "remove", "second"]
AT_BRIDGE = ["flap", "rename", "remove"]
PORT, PERIOD, SETTLE = 7000, 0.2, 8.0


async def serve():
    async def echo(reader, writer):
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    server = await asyncio.start_server(echo, "10.9.0.1", PORT, backlog=1000)
    print("ready", flush=True)
    await server.serve_forever()


async def use(count):
    """The clients. Lines on standard input: `closes` makes them close soon, `event` marks the end of an event, `end` the measurement."""
    state = {"closes": False, "after": None}
    results = ["silent"] * count

    async def one(i):
        n = 0
        try:
            reader, writer = await asyncio.open_connection("10.9.0.1", PORT)
            ready.release()
            while True:
                if state["closes"] and random.random() < PERIOD / 2:
                    writer.write_eof()
                    results[i] = "wrong" if await reader.read() else "closed"
                    writer.close()
                    return
                message = b"%d %d\n" % (i, n)
                sent = time.monotonic()
                writer.write(message)
                if await reader.readexactly(len(message)) != message:
                    results[i] = "wrong"
                    return
                if state["after"] is not None and sent > state["after"]:
                    results[i] = "echoes"
                n += 1
                await asyncio.sleep(PERIOD)
        except (OSError, asyncio.IncompleteReadError):
            results[i] = "reset"

    async def opens():
        begun = time.monotonic()
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection("10.9.0.1", PORT), 10)
            writer.write(b"x")
            await asyncio.wait_for(reader.readexactly(1), 10)
            return time.monotonic() - begun
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError):
            return None

    ready = asyncio.Semaphore(0)
    tasks = []
    for i in range(count):
        tasks.append(asyncio.create_task(one(i)))
        if i % 50 == 49:
            await asyncio.sleep(0.05)
    for _ in range(count):
        await asyncio.wait_for(ready.acquire(), 60)
    print("ready", flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    new = None
    while line := (await lines.readline()).decode().strip():
        if line == "closes":
            state["closes"] = True
        elif line == "event":
            state["after"] = time.monotonic()
            new = asyncio.create_task(opens())
        else:
            break
    print(json.dumps({"results": {key: results.count(key) for key in set(results)}, "new": await new}), flush=True)
    os._exit(0)


def sh(text):
    return subprocess.run(["sh", "-ec", text], check=True, stdout=subprocess.PIPE, text=True).stdout


def start(program):
    station = subprocess.Popen([program, "station", "/run/base.toml"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in station.stdout:
        if "running; control socket" in line:
            return station
    raise SystemExit("the station did not start")


def wires(host, outer, inner, last):
    sh(f"ip link add name {outer} type veth peer name {inner} netns {host}; ip link set dev {outer} up")
    sh(f"ip -n {host} link set dev {inner} address 02:00:00:00:00:0{last}; ip -n {host} addr add 10.9.0.{last}/24 dev {inner}")
    sh(f"ip -n {host} link set dev {inner} up")


def one(program, way, event, count):
    """One run, inside of its namespaces: prints its measurements."""
    sh("mount -t tmpfs none /run; mkdir /run/netns; ip link set lo up; ip netns add a; ip netns add b")
    wires("a", "lx", "la", 1)
    wires("b", "rx", "rb", 2)
    station, bridge = None, way == "bridge"
    if bridge:
        sh("ip link add br0 type bridge; ip link set dev lx master br0; ip link set dev rx master br0; ip link set dev br0 up")
    else:
        agent, plane = way.split("/")
        drain = 'drain = "20s"\n' if event == "drain" else ""
        with open("/run/base.toml", "w") as file:
            file.write(f'left = "lx"\nright = "rx"\nplane = "{plane}"\n{drain}[[path]]\nagent = "{agent}"\n')
        station = start(program)
    hosts = []
    for name, role in ("a", "serve"), ("b", "use"):
        command = ["ip", "netns", "exec", name, sys.executable, __file__, "--role", role, "--connections", str(count)]
        hosts.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        if hosts[-1].stdout.readline() != "ready\n":
            raise SystemExit(f"{way} {event}: the connections do not open")
    say = lambda line: (hosts[1].stdin.write(line + "\n"), hosts[1].stdin.flush())
    time.sleep(1)
    if event == "kill":
        station.kill()
        station.wait()
        time.sleep(0.1)
        station = start(program)
    elif event == "stop":
        station.send_signal(signal.SIGSTOP)
        time.sleep(1)
        station.send_signal(signal.SIGCONT)
    elif event in ("restart", "drain"):
        if event == "drain":
            say("closes")
        station.terminate()
        station.wait()
        station = start(program)
    elif event == "set":
        drain = ["--drain"] if agent in ("split", "m-tcp") else []
        subprocess.run([program, "ctl", "set", "agent=none", *drain], check=True, stdout=subprocess.DEVNULL)
    elif event == "reload":
        station.send_signal(signal.SIGHUP)
    elif event == "flap":
        for name in "lx", "rx":
            sh(f"ip link set dev {name} down; sleep 1; ip link set dev {name} up")
    elif event == "rename":
        for name in "lx", "rx":
            sh(f"ip link set dev {name} down; ip link set dev {name} name {name}2; ip link set dev {name}2 up")
    elif event == "remove":
        sh("ip link del lx; sleep 1")
        wires("a", "lx", "la", 1)
        if bridge:
            sh("ip link set dev lx master br0")
    elif event == "second":
        second = subprocess.run([program, "station", "/run/base.toml", "--socket", "/run/second.sock"], capture_output=True)
        if second.returncode != 2:
            raise SystemExit(f"{way}: the second station ended with {second.returncode}")
    say("event")
    time.sleep(SETTLE)
    say("end")
    seen = json.loads(hosts[1].stdout.readline())
    seen["runs"] = bridge or station.poll() is None
    for process in [*hosts, *([] if bridge else [station])]:
        process.kill()
    print(json.dumps(seen))


def measure(program, way, event, count):
    command = ["unshare", "-nmpf", "--mount-proc", "--kill-child", sys.executable, __file__, "--one", program, way, event]
    done = subprocess.run([*command, "--connections", str(count)], stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def cell(seen):
    if seen is None:
        return "failed"
    results = dict(seen["results"])
    good = results.pop("echoes", 0) + results.pop("closed", 0)
    rest = [f"{results[key]} {key}" for key in sorted(results)]
    if seen["new"] is None:
        rest.append("no new one")
    if not seen["runs"]:
        rest.append("station ended")
    return ", ".join([str(good), *rest])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="LASTHOP", nargs="?")
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--events", default=",".join(EVENTS))
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        return asyncio.run(serve() if options.role == "serve" else use(options.connections))
    if options.one:
        return one(*options.one, options.connections)
    if not options.program:
        parser.error("which program?")
    program = os.path.abspath(options.program)
    ways, events = options.ways.split(","), options.events.split(",")
    cases = [(way, event) for event in events for way in ways if way != "bridge" or event in AT_BRIDGE]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {case: pool.submit(measure, program, *case, options.connections) for case in cases}
        for i, _ in enumerate(concurrent.futures.as_completed(jobs.values()), 1):
            print(f"\r{i} of {len(cases)} runs", end="\n" if i == len(cases) else "", file=sys.stderr, flush=True)
    print("| event | " + " | ".join(ways) + " |")
    print("|---" * (1 + len(ways)) + "|")
    for event in events:
        row = [cell(jobs[way, event].result()) if (way, event) in jobs else "-" for way in ways]
        print(f"| {event} | " + " | ".join(row) + " |")


main()
