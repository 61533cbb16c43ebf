#!/usr/bin/env python3
"""Makes real.pcap: a transfer between two Linux TCPs over a lossy link, seen by tcpdump at the sender.

Two network namespaces, a tun device in each, and between them this program: 8 Mbit/s, 10 ms each way,
a queue of 30 packets, 2 % of the packets to the receiver lost at random (fixed seed).
It also writes real.truth, with a line for each lost packet: its TCP sequence number, and `radio` or `queue`.
Needs root (or `unshare -rn`), /dev/net/tun, ip, tcpdump.
"""
import ctypes, fcntl, heapq, os, random, select, socket, struct, subprocess, sys, threading, time

OUT = sys.argv[1] if len(sys.argv) > 1 else "real.pcap"
LOSS, RATE, DELAY, QUEUE = 0.02, 8e6, 0.010, 30
TRUTH = []
libc = ctypes.CDLL(None, use_errno=True)


def enter(ns):
    with open(f"/run/netns/{ns}") as f:
        if libc.setns(f.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")


def tun(ns, addr):
    enter(ns)
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", b"t0", 0x1001))
    subprocess.check_call(["ip", "addr", "add", addr, "dev", "t0"])
    subprocess.check_call(["ip", "link", "set", "t0", "up"])
    return fd


def lost(packet, cause):
    header = 4 * (packet[0] & 15)
    if packet[0] >> 4 == 4 and packet[9] == 6:
        TRUTH.append(f"{int.from_bytes(packet[header + 4:header + 8], 'big')} {cause}\n")


def relay(ends, stop):
    draw = random.Random(7)
    due, count, free = [], 0, [0.0, 0.0]
    while not stop.is_set():
        wait = max(0.0, due[0][0] - time.monotonic()) if due else 0.05
        ready, _, _ = select.select(ends, [], [], min(wait, 0.05))
        now = time.monotonic()
        for fd in ready:
            side = ends.index(fd)
            packet = os.read(fd, 65536)
            duration = len(packet) * 8 / RATE
            if free[side] - now > QUEUE * 1500 * 8 / RATE:
                lost(packet, "queue")
                continue
            free[side] = max(free[side], now) + duration
            if side == 0 and draw.random() < LOSS:
                lost(packet, "radio")
                continue
            count += 1
            heapq.heappush(due, (free[side] + DELAY, count, ends[1 - side], packet))
        while due and due[0][0] <= now:
            _, _, fd, packet = heapq.heappop(due)
            os.write(fd, packet)


def receive(server):
    peer, _ = server.accept()
    while peer.recv(65536):
        pass
    peer.close()


def main():
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    for ns in ("lh-a", "lh-b"):
        subprocess.check_call(["ip", "netns", "add", ns])
    try:
        ends = [tun("lh-a", "10.9.0.1/24"), tun("lh-b", "10.9.0.2/24")]
        server = socket.create_server(("10.9.0.2", 5001))  # in lh-b
        enter("lh-a")
        dump = subprocess.Popen(["tcpdump", "-i", "t0", "-s", "100", "-U", "--immediate-mode", "-w", OUT, "tcp"])
        client = socket.socket()  # in lh-a
        time.sleep(1)
        stop = threading.Event()
        threads = [threading.Thread(target=relay, args=(ends, stop)), threading.Thread(target=receive, args=(server,))]
        for thread in threads:
            thread.start()
        client.connect(("10.9.0.2", 5001))
        client.sendall(bytes(1_000_000))
        client.shutdown(socket.SHUT_WR)
        client.recv(1)
        client.close()
        threads[1].join()
        time.sleep(2)
        stop.set()
        dump.terminate()
        dump.wait()
        with open(OUT.removesuffix(".pcap") + ".truth", "w") as f:
            f.writelines(TRUTH)
    finally:
        libc.setns(home, 0)
        for ns in ("lh-a", "lh-b"):
            subprocess.call(["ip", "netns", "del", ns])


main()
