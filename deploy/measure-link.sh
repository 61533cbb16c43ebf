#!/bin/sh
# Throughput of one TCP connection over a path that loses packets in both directions: without help, with snoop, with
# TULIP as the link layer of the hop, and through `lasthop link`. Needs root, iperf3 and iproute2.
#
#   deploy/measure-link.sh [LASTHOP] [SECONDS] [REPETITIONS]      prints a table in Markdown
#
# Everything happens in namespaces that end with the script:
#
#   a (10.9.0.1) ---- the station of lasthop: a radio of 20 Mb/s, 10 ms each way, that loses packets ---- b (10.9.0.2)
set -eu
lasthop=$(realpath "${1:-target/release/lasthop}")
seconds=${2:-6}
times=${3:-3}
if [ "${INSIDE:-}" != yes ]; then
    exec env INSIDE=yes unshare --net --mount --pid --fork --mount-proc "$0" "$lasthop" "$seconds" "$times"
fi
mount -t tmpfs -o mode=755 none /run
mkdir /run/netns
cd /run
ip link set lo up
for host in a b; do
    ip netns add $host
    ip link add s$host type veth peer name eth0 netns $host
    ip link set s$host up
    ip -n $host link set lo up
    ip -n $host link set eth0 up
    ip netns exec $host ethtool -K eth0 tso off gso off gro off >/dev/null 2>&1 || true
done
ip -n a addr add 10.9.0.1/24 dev eth0
ip -n b addr add 10.9.0.2/24 dev eth0
radio='radio = { rate = "20mbit", delay = "10ms", overhead = "0us", duplex = "full", queue = "100p" }'
"$lasthop" link --keygen > key
chmod 600 key
common='key-file = "/run/key"
rate = "19mbit"
window = 512'
printf 'listen = "10.9.0.2:4747"\naddresses = ["10.8.0.2/24"]\n%s\n' "$common" > b.toml
printf 'listen = "10.9.0.1:4747"\npeer = "10.9.0.2:4747"\naddresses = ["10.8.0.1/24"]\n%s\n' "$common" > a.toml

# One measurement: system, loss, congestion control; prints Mb/s.
measure() {
    link_layer=
    agent=none
    address=10.9.0.2
    case $1 in
        snoop) agent=snoop ;;
        tulip) link_layer='link-layer = "tulip"
tulip = { window = 512, pacing = "full-duplex" }' ;;
        link) address=10.8.0.2 ;;
    esac
    errors="errors = { model = \"packet-loss\", p = \"$2%\", on = [\"data\", \"ack\"] }"
    [ "$2" = 0 ] && errors=
    printf 'left = "sa"\nright = "sb"\nseed = %s\n[[path]]\nagent = "%s"\n[[path]]\n%s\n%s\n%s\n' \
        "$4" $agent "$radio" "$link_layer" "$errors" > base.toml
    "$lasthop" station base.toml --socket /run/base.sock >station.log 2>&1 &
    pids=$!
    ip netns exec b iperf3 --server --one-off >server.log 2>&1 &
    server=$!
    if [ "$1" = link ]; then
        for host in b a; do
            ip netns exec $host "$lasthop" link $host.toml --socket /run/link-$host.sock >$host.log 2>&1 &
            pids="$pids $!"
        done
        for _ in $(seq 100); do
            grep -q 'peer is there' a.log && break
            sleep 0.1
        done
    else
        sleep 0.5
    fi
    timeout $((seconds + 12)) ip netns exec a iperf3 --client $address --congestion "$3" --time "$seconds" --connect-timeout 8000 \
        --json >client.json 2>client.log || true
    python3 - <<'PY'
import json
try:
    print('%.2f' % (json.load(open('client.json'))['end']['sum_received']['bits_per_second'] / 1e6))
except Exception:
    print('0.00')
PY
    kill $pids 2>/dev/null || true
    kill $server 2>/dev/null || true
    wait
}

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "| loss each way | congestion control | none | snoop | TULIP on the hop | \`lasthop link\` |"
echo "|---|---|---|---|---|---|"
for loss in ${LOSSES:-0 1 5 15 30}; do
    for control in ${CONTROLS:-cubic bbr}; do
        row="| $loss % | $control |"
        for system in none snoop tulip link; do
            value=$(for i in $(seq "$times"); do measure $system "$loss" "$control" "$i"; done | median)
            row="$row $value |"
        done
        echo "$row"
    done
done
