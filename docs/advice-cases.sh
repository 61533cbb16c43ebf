#!/bin/sh
# The table of docs/advice-cases.md: captures of kernel senders in the testbed, and what advice makes of them.
#
#     docs/advice-cases.sh target/release/lasthop [DIRECTORY]
#
# Captures that lie in the directory already are taken as they are. It takes five minutes and the rights of a testbed
# (lasthop doctor), and needs python3 for the JSON.
set -eu
program=$(realpath "$1")
dir=${2:-$(mktemp -d)}
mkdir -p "$dir"
cd "$dir"

capture() { # name rate delay wired-delay loss queue bytes kernel duplex
	name=$1-$8-$9
	[ -e "$name.pcapng" ] && return
	errors="errors = { model = \"packet-loss\", p = $5, on = [\"data\"] }"
	[ "$5" = 0 ] && errors='errors = "none"'
	cat >"$name.toml" <<-SCENARIO
		name = "$name"
		runs = 1
		horizon = "12s"
		transfer = { from = "server", to = "client", bytes = "$7" }
		[host.server]
		kernel = "linux-$8"
		[host.client]
		kernel = "linux-cubic"
		# Where the capture is made: at the sender.
		[[path]]
		name = "sender"
		link = { delay = "0ms" }
		[[path]]
		link = { rate = "200mbit", delay = "$4", queue = "1000p" }
		[[path]]
		agent = "none"
		[[path]]
		radio = { rate = "$2", delay = "$3", duplex = "$9", queue = "$6" }
		$errors
	SCENARIO
	"$program" run "$name.toml" --world testbed -n 1 -j 1 -o "$name" >/dev/null 2>&1 || true
	cp "$name/trace/run/sender.pcapng" "$name.pcapng"
	rm -r "$name"
}

echo '| link | kernel | named | sure | captured | model | model / capture | recommended |'
echo '|---|---|---|---|---|---|---|---|'
for kernel in reno cubic bbr; do
	for duplex in full half; do
		capture wifi 20mbit 2ms 10ms 0.01 100p 12MB $kernel $duplex
		capture cell 10mbit 20ms 20ms 0.003 100p 10MB $kernel $duplex
		capture dsl 5mbit 5ms 15ms 0 30p 6MB $kernel $duplex
		for link in wifi cell dsl; do
			name=$link-$kernel-$duplex
			"$program" advise --capture "$name.pcapng" --quick --json >advice.json 2>/dev/null || true
			python3 - "$link, $duplex" $kernel <<-'TABLE'
				import json, sys
				advice = json.load(open("advice.json"))["advice"]
				beside = advice["beside"]
				like = beside["likeness"]
				mbit = lambda figures: f"{figures['throughput'] * 8e-6:.2f} Mbit/s"
				cells = [*sys.argv[1:], like["control"] or "none", f"{100 * min(like['confidence'], 0.99):.0f} %",
				    mbit(beside["captured"]), mbit(beside["modelled"]), f"{beside['ratio']:.2f}",
				    ", ".join(advice["helps"][:2]) or "nothing"]
				print("| " + " | ".join(cells) + " |")
			TABLE
		done
	done
done
