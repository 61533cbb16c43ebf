#!/bin/sh
# Compares the effect of both data planes of a station on TCP. One connection from a to b (cubic) passes a station, and then a
# lossy radio of 100 Mb/s, 5 ms each way, which another station emulates. The first station runs `none` and `snoop`, with the
# kernel's plane and with packet sockets. Needs root, iperf3, iproute2.
#
#   deploy/measure-planes.sh [LASTHOP] [SECONDS] [REPETITIONS]    prints a table in Markdown
#
# Everything happens in namespaces that end with the script:
#
#   a (10.9.0.1) -- la [station] lb -- ra [radio] rb -- b (10.9.0.2)
set -eu
lasthop=$(realpath "${1:-target/release/lasthop}")
seconds=${2:-5}
times=${3:-5}
if [ "${INSIDE:-}" != yes ]; then
    exec env INSIDE=yes unshare --net --mount --pid --fork --mount-proc "$0" "$lasthop" "$seconds" "$times"
fi
mount -t tmpfs -o mode=755 none /run
mkdir /run/netns
cd /run
ip link set lo up
for host in a b; do
    ip netns add $host
    ip -n $host link set lo up
done
ip link add la type veth peer name eth0 netns a
ip link add rb type veth peer name eth0 netns b
ip link add lb type veth peer name ra
for link in la lb ra rb; do ip link set $link up; ethtool -K $link tso off gso off gro off >/dev/null 2>&1; done
for host in a b; do
    ip netns exec $host ethtool -K eth0 tso off gso off gro off >/dev/null 2>&1
    ip -n $host link set eth0 up
done
ip -n a addr add 10.9.0.1/24 dev eth0
ip -n b addr add 10.9.0.2/24 dev eth0
ip netns exec b iperf3 --server >/dev/null &
radio='radio = { rate = "100mbit", delay = "5ms", overhead = "0us", duplex = "full", queue = "200p" }'

echo "| loss | \`none\`, kernel | \`none\`, sockets | \`snoop\`, kernel | \`snoop\`, sockets |"
echo "|---|---|---|---|---|"
for loss in 0.1 1 3; do
    printf 'left = "ra"\nright = "rb"\nplane = "sockets"\n[[path]]\n%s\nerrors-data = { model = "packet-loss", p = "%s%%" }\n' \
        "$radio" $loss > radio.toml
    rm -f result.*
    "$lasthop" station radio.toml --socket /run/radio.sock >radio.log 2>&1 &
    away=$!
    for round in $(seq "$times"); do
        for agent in none snoop; do
            for plane in kernel sockets; do
                printf 'left = "la"\nright = "lb"\nplane = "%s"\n[[path]]\nagent = "%s"\n' $plane $agent > near.toml
                "$lasthop" station near.toml --socket /run/near.sock >near.log 2>&1 &
                near=$!
                sleep 1
                ip netns exec a iperf3 --client 10.9.0.2 --congestion cubic --time "$seconds" --json > iperf3.json || true
                kill $near
                wait $near || { cat near.log >&2; exit 1; }
                python3 -c 'import json; e = json.load(open("iperf3.json"))["end"]
print(e["sum_received"]["bits_per_second"] / 8e3, e["sum_sent"]["retransmits"])' >> result.$agent.$plane
            done
        done
    done
    kill $away
    wait $away || true
    python3 - $loss <<'PY'
import statistics, sys
cells = []
for agent in "none", "snoop":
    for plane in "kernel", "sockets":
        rows = [tuple(map(float, line.split())) for line in open(f"result.{agent}.{plane}")]
        rate = [row[0] for row in rows]
        spread = 1.96 * statistics.stdev(rate) / len(rate) ** 0.5
        cells.append(f"{statistics.mean(rate):.0f} ± {spread:.0f} ({statistics.mean(row[1] for row in rows):.0f})")
print(f"| {sys.argv[1]} % | " + " | ".join(cells) + " |")
PY
done
kill $(jobs -p) 2>/dev/null || true
