#!/bin/sh
# Measures the throughput of one TCP connection over a path that loses packets in both directions: without help, with snoop,
# with TULIP as the link layer of the hop, and through `lasthop link`. Also measures one QUIC stream, for which both forms
# of TULIP repair all packets. Needs root, iperf3, iproute2, and for QUIC
#
#   cargo build --release --example quic
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
quic=$(realpath -m "${QUIC:-$(dirname "$lasthop")/examples/quic}")
controls=${CONTROLS:-cubic bbr quic}
case $controls in
    *quic*) [ -x "$quic" ] || { echo "$quic does not exist: run cargo build --release --example quic" >&2; exit 2; } ;;
esac
if [ "${INSIDE:-}" != yes ]; then
    exec env INSIDE=yes QUIC="$quic" unshare --net --mount --pid --fork --mount-proc "$0" "$lasthop" "$seconds" "$times"
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
"$lasthop" link --keygen key
common='key-file = "/run/key"
rate = "19mbit"
window = 512'
printf 'listen = "10.9.0.2:4747"\naddresses = ["10.8.0.2/24"]\n%s\n' "$common" > b.toml
printf 'listen = "10.9.0.1:4747"\npeer = "10.9.0.2:4747"\naddresses = ["10.8.0.1/24"]\n%s\n' "$common" > a.toml

# Measures TCP to an address with a congestion control; prints Mb/s.
measure_tcp() {
    timeout $((seconds + 12)) ip netns exec a iperf3 --client "$1" --congestion "$2" --time "$seconds" --connect-timeout 8000 \
        --json >client.json 2>client.log || true
    python3 - <<'PY'
import json
try:
    print('%.2f' % (json.load(open('client.json'))['end']['sum_received']['bits_per_second'] / 1e6))
except Exception:
    print('0.00')
PY
}

# Measures QUIC to an address; prints Mb/s.
measure_quic() {
    rm -f quic.der
    timeout $((seconds + 12)) ip netns exec b "$quic" serve "$1:7443" quic.der "$seconds" >quic.out 2>server.log &
    receiver=$!
    for _ in $(seq 50); do
        [ -s quic.der ] && break
        sleep 0.1
    done
    timeout $((seconds + 12)) ip netns exec a "$quic" send "$1:7443" quic.der >client.log 2>&1 || true
    wait $receiver || true
    [ -s quic.out ] && cat quic.out || echo 0.00
}

# One measurement: system, loss, congestion control; prints Mb/s.
measure() {
    link_layer=
    agent=none
    address=10.9.0.2
    reliable=tcp
    [ "$3" = quic ] && reliable=all
    case $1 in
        snoop) agent=snoop ;;
        tulip) link_layer='link-layer = "tulip"
tulip = { window = 512, pacing = "full-duplex", reliable = "'$reliable'" }' ;;
        link) address=10.8.0.2 ;;
    esac
    errors="errors = { model = \"packet-loss\", p = \"$2%\", on = [\"data\", \"ack\"] }"
    [ "$2" = 0 ] && errors=
    printf 'left = "sa"\nright = "sb"\nseed = %s\n[[path]]\nagent = "%s"\n[[path]]\n%s\n%s\n%s\n' \
        "$4" $agent "$radio" "$link_layer" "$errors" > base.toml
    "$lasthop" station base.toml --socket /run/base.sock >station.log 2>&1 &
    pids=$!
    server=
    if [ "$3" != quic ]; then
        ip netns exec b iperf3 --server --one-off >server.log 2>&1 &
        server=$!
    fi
    if [ "$1" = link ]; then
        for host in b a; do
            { echo "reliable = \"$reliable\""; cat $host.toml; } > link-$host.toml
            ip netns exec $host "$lasthop" link link-$host.toml --socket /run/link-$host.sock >$host.log 2>&1 &
            pids="$pids $!"
        done
        for _ in $(seq 100); do
            grep -q 'peer is there' a.log && break
            sleep 0.1
        done
    else
        sleep 0.5
    fi
    if [ "$3" = quic ]; then
        measure_quic $address
    else
        measure_tcp $address "$3"
    fi
    kill $pids 2>/dev/null || true
    [ -n "$server" ] && kill $server 2>/dev/null || true
    wait
}

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "| loss each way | congestion control | none | snoop | TULIP on the hop | \`lasthop link\` |"
echo "|---|---|---|---|---|---|"
for loss in ${LOSSES:-0 1 5 15 30}; do
    for control in $controls; do
        row="| $loss % | $control |"
        for system in none snoop tulip link; do
            value=$(for i in $(seq "$times"); do measure $system "$loss" "$control" "$i"; done | median)
            row="$row $value |"
        done
        echo "$row"
    done
done
