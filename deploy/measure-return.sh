#!/bin/sh
# Measures modern TCP over a slow return link, with several queue disciplines: a download of 10 Mb/s whose ACKs return over
# 28.8 kb/s, between two kernels with lasthop's station in the middle. Needs root, iperf3 and iproute2.
#
#   deploy/measure-return.sh [LASTHOP] [SECONDS] [REPETITIONS]      prints tables in Markdown
#
# Everything happens in namespaces that end with the script:
#
#   a (10.9.0.1, server) ---- the station: 10 Mb/s forward, 28.8 kb/s back, 5 ms each way ---- b (10.9.0.2, home)
#
# CONTROLS are the congestion controls (cubic bbr reno); cubic@10M also paces its sockets at 10 Mb/s (SO_MAX_PACING_RATE).
# QUEUES are forward queues in packets (10 50). For an upload in parallel to the download see scenarios/slow-return.toml:
# here the control connections of iperf3 would wait behind the upload for longer than the measurement.
set -eu
lasthop=$(realpath "${1:-target/release/lasthop}")
seconds=${2:-20}
times=${3:-3}
controls=${CONTROLS:-cubic bbr reno}
queues=${QUEUES:-10 50}
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
done
ip -n a addr add 10.9.0.1/24 dev eth0
ip -n b addr add 10.9.0.2/24 dev eth0

# Mb/s of an iperf3 client's report.
rate() {
    python3 - "$1" <<'PY'
import json, sys
try:
    print('%.3f' % (json.load(open(sys.argv[1]))['end']['sum_received']['bits_per_second'] / 1e6))
except Exception:
    print('0.000')
PY
}

# One measurement: discipline, agent, congestion control, forward queue. Prints Mb/s, ACKs that the filter removed, packets dropped
# by the full return queue, reconstructed ACKs, and packets dropped by the full forward queue.
measure() {
    cat > base.toml <<TOML
left = "sa"
right = "sb"
[[path]]
agent = "$2"
[[path]]
name = "forward"
link = { rate-right = "10mbit", delay = "5ms", queue = "${4}p" }
[[path]]
name = "return"
link = { rate-left = "28.8kbit", queue = "10p", discipline-left = "$1" }
TOML
    control=${3%%@*}
    pace=
    [ "$control" = "$3" ] || pace="--fq-rate ${3##*@}"
    "$lasthop" station base.toml --socket /run/ctl.sock >station.log 2>&1 &
    station=$!
    for _ in $(seq 50); do
        [ -S ctl.sock ] && break
        sleep 0.1
    done
    ip netns exec b iperf3 --server --port 5201 >server.log 2>&1 &
    server=$!
    sleep 0.3
    timeout $((seconds + 20)) ip netns exec a iperf3 --client 10.9.0.2 --congestion "$control" $pace --time "$seconds" \
        --connect-timeout 8000 --json >down.json 2>down.log || true
    "$lasthop" ctl --socket ctl.sock get --json >figures.json 2>ctl.log || true
    kill $station $server 2>/dev/null || true
    wait $station $server 2>/dev/null || true
    rm -f ctl.sock
    python3 - "$(rate down.json)" <<'PY'
import json, sys
try:
    text = open('figures.json').read()
except OSError:
    text = ''
def count(node, cause):
    if isinstance(node, dict):
        own = node.get(cause)
        return (own if isinstance(own, int) else 0) + sum(count(v, cause) for k, v in node.items() if k != cause or not isinstance(v, int))
    if isinstance(node, list):
        return sum(count(v, cause) for v in node)
    return 0
try:
    figures = json.loads(text)
except ValueError:
    figures = {}
stages = {stage['name']: stage for stage in figures.get('stages', [])}
found = [
    count(stages.get('return'), 'superseded-ack'),
    count(stages.get('return'), 'queue-full'),
    count(stages.get('agent'), 'reconstructed-ack'),
    count(stages.get('forward'), 'queue-full'),
]
print(sys.argv[1], *found)
PY
}

kinds='fifo:none ack-filter:none acks-first:none ack-filter+acks-first:none ack-filter:ack-reconstruction'
rm -f results
for _ in $(seq "$times"); do
    for queue in $queues; do
        for control in $controls; do
            for kind in $kinds; do
                echo "$queue $control $kind $(measure "${kind%%:*}" "${kind##*:}" "$control" "$queue")" >>results
            done
        done
    done
done
python3 - <<'PY'
from statistics import median
rows = {}
for line in open('/run/results'):
    forward, control, kind, *numbers = line.split()
    rows.setdefault((forward, control, kind), []).append([float(n) for n in numbers])
print('| forward queue | congestion control | queue of the ACKs | agent | Mb/s | ACKs removed | return queue full | ACKs filled in | forward queue full |')
print('|---|---|---|---|---|---|---|---|---|')
for (forward, control, kind), runs in rows.items():
    queue, agent = kind.split(':')
    down, gone, full, forged, lost = (median(run[i] for run in runs) for i in range(5))
    print(f'| {forward} | {control} | {queue} | {agent} | {down:.2f} | {gone:.0f} | {full:.0f} | {forged:.0f} | {lost:.0f} |')
PY
