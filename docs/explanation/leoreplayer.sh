#!/bin/sh
# Prints counts for docs/explanation/fidelity.md: packets that leave a link of lasthop as they leave LeoReplayer's LinkQueue and
# DelayQueue.
#
#     docs/explanation/leoreplayer.sh target/release/lasthop [LEOCC]
#
# It needs git, g++ and python3. LEOCC is a checkout of https://github.com/SpaceNetLab/LeoCC; without it, one is made. The two queues
# are compiled unchanged, with a virtual clock in the place of the system's. Packets arrive as in a run of lasthop: datagrams of four
# sizes above the rate of the link, and CUBIC with its ACKs. LeoReplayer counts 4 bytes more per packet. It takes a minute.
set -eu
program=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
leocc=${2:-}
if [ -z "$leocc" ]; then
	leocc=$dir/leocc
	git clone -q --depth 1 https://github.com/SpaceNetLab/LeoCC "$leocc"
fi
source=$(realpath "$leocc")/leoreplayer/replayer
cp "$source"/example/Cubic/bw_example.txt "$source"/example/Cubic/delay_example.txt "$dir"
cd "$dir"

# Graphs are not needed.
cat >binned_livegraph.hh <<'END'
#pragma once
#include <functional>
#include <string>
#include <tuple>
#include <vector>
struct BinnedLiveGraph {
	template <class... T> BinnedLiveGraph(std::string, std::vector<std::tuple<float, float, float, float, bool>>, T...) {}
	void add_value_now(int, double) {}
	void set_max_value_now(int, double) {}
};
END
cat >drive.cc <<'END'
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "delay_queue.hh"
#include "drop_tail_packet_queue.hh"
#include "link_queue.hh"
#include "timestamp.hh"
using namespace std;
static uint64_t now;
static DelayQueue *behind;
static vector<long> out;
static bool leaves_link;
uint64_t raw_timestamp() { return now; }
uint64_t initial_timestamp() { return 0; }
FileDescriptor::FileDescriptor(int fd) : fd_(fd), eof_(false), read_count_(0), write_count_(0) {}
FileDescriptor::~FileDescriptor() {}
string::const_iterator FileDescriptor::write(const string &packet, bool) {
	uint32_t i;
	memcpy(&i, packet.data(), sizeof i);
	if (leaves_link) behind->read_packet(packet);
	else out[i] = now;
	return packet.end();
}
// Arguments: trace, delays, milliseconds between delays, packets of the queue, arrivals (nanoseconds and bytes).
int main(int, char **argument) {
	setenv("BASE_TIMESTAMP", "0", 1);
	auto tail = make_unique<DropTailPacketQueue>(string("packets=") + argument[4]);
	LinkQueue link("Downlink", argument[1], "", true, false, false, move(tail), "");
	DelayQueue delay(stoull(argument[3]), argument[2]);
	behind = &delay;
	FileDescriptor fd(1);
	vector<pair<uint64_t, size_t>> in;
	unsigned long long at;
	size_t bytes;
	FILE *arrivals = fopen(argument[5], "r");
	while (fscanf(arrivals, "%llu %zu", &at, &bytes) == 2) in.push_back({at, bytes + 4});
	out.assign(in.size(), -1);
	size_t next = 0;
	for (uint64_t end = in.back().first / 1000000 + 20000; now < end; ++now) {
		link.wait_time();
		leaves_link = true;
		link.write_packets(fd);
		leaves_link = false;
		delay.write_packets(fd);
		for (; next < in.size() && in[next].first / 1000000 == now; ++next) {
			string packet(in[next].second, 0);
			uint32_t i = next;
			memcpy(&packet[0], &i, sizeof i);
			link.read_packet(packet);
		}
	}
	for (long at : out) printf("%ld\n", at);
}
END
src=$source/src
g++ -std=c++17 -O2 -w -I. -I"$src/frontend" -I"$src/packet" -I"$src/util" drive.cc "$src/frontend/link_queue.cc" \
	"$src/frontend/delay_queue.cc" "$src/packet/dropping_packet_queue.cc" "$src/util/ezio.cc" -o drive

scenario() { # name, then lines before the path
	cat >"$1.toml" <<END
horizon = "60s"
[host.server]
side = "left"
preset = "linux"
[host.client]
preset = "linux"
$2
[[path]]
link = { trace = "bw_example.txt", delays = "delay_example.txt", delays-step = "10ms", delays-order = "free", queue = "500p" }
END
	"$program" -q run "$1.toml" -n 1 -o "$1" --details-size unlimited >/dev/null
}
datagrams=
for flow in 20mbit:1500B 15mbit:576B 12mbit:1003B 1mbit:60B; do
	datagrams="$datagrams
[[transfer]]
from = \"server\"
to = \"client\"
udp = { rate = \"${flow%:*}\", size = \"${flow#*:}\", arrivals = \"poisson\" }"
done
scenario datagrams "$datagrams"
scenario cubic '[[transfer]]
from = "server"
to = "client"
bytes = "unlimited"'

cat >compare.py <<'END'
import csv, subprocess, sys

for name, side in ("datagrams", "right"), ("cubic", "right"), ("cubic", "left"):
    arrivals, leaves, dropped = {}, {}, set()
    for row in csv.DictReader(open(f"{name}/trace/run/events.csv")):
        if row["side"] != side:
            continue
        if row["event"] == "originated":
            arrivals[row["id"]] = f"{round(float(row['time_s']) * 1e9)} {row['length']}\n"
        elif row["event"] == "dropped":
            dropped.add(row["id"])
        elif row["event"] == "transmitted" and row["stage"] == "link":
            leaves[row["id"]] = round(float(row["time_s"]) * 1e3, 6)
    open("arrivals", "w").writelines(arrivals.values())
    words = ["./drive", "bw_example.txt", "delay_example.txt", "10", "500", "arrivals"]
    theirs = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    same = different = 0
    for packet, at in zip(arrivals, map(int, theirs), strict=True):
        ours = -1 if packet in dropped else leaves.get(packet)
        # Packets under way at the end of the run.
        if ours is None and at >= 60_000:
            continue
        same, different = (same + 1, different) if ours == at else (same, different + 1)
    print(f"{name} to the {side}: {same} packets agree, {different} differ; {len(dropped)} of them are dropped")
END
python3 compare.py
