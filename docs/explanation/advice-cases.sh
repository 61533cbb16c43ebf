#!/bin/sh
# Prints the table of docs/explanation/advice-cases.md: `lasthop advise` on captures of kernel senders in the testbed.
#
#     docs/explanation/advice-cases.sh target/release/lasthop [DIRECTORY [blind|again]]
#
# `blind` prints the second table, whose links were drawn before any capture of them, `again` the third. Existing captures in the
# directory are reused. It takes five minutes, and needs the rights of a testbed (lasthop doctor) and python3 for the JSON.
set -eu
program=$(realpath "$1")
dir=${2:-$(mktemp -d)}
set=${3:-first}
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
		# The capture is made here, at the sender.
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

row() { # link kernel duplex
	name=$1-$2-$3
	"$program" advise --capture "$name.pcapng" --quick --json >advice.json 2>/dev/null || true
	python3 - "$1, $3" "$2" <<-'TABLE'
		import json, sys
		advice = json.load(open("advice.json"))["advice"]
		comparison = advice["beside"]
		like = comparison["likeness"]
		mbit = lambda figures: f"{figures['throughput'] * 8e-6:.2f} Mbit/s"
		cells = [*sys.argv[1:], like["control"] or "none", f"{100 * min(like['confidence'], 0.99):.0f} %",
		    mbit(comparison["captured"]), mbit(comparison["modelled"]), f"{comparison['ratio']:.2f}",
		    ", ".join(advice["helps"][:2]) or "nothing"]
		print("| " + " | ".join(cells) + " |")
	TABLE
}

# The links of the second table are drawn by random.Random(18). For each link, in this order: rate, round trip, share of the radio in
# it, whether there are losses (two of three) and their rate, and queue. All but that share are uniform on a logarithmic scale:
# 2 to 40 Mbit/s, 15 to 180 ms, 10 to 50 %, 0.05 to 2 %, 20 to 300 packets. Links are alternately full- and half-duplex.
blind() { # kernel
	capture a 3.4mbit 9.1ms 29.7ms 0 75p 5MB $1 full
	capture b 8.8mbit 7ms 17.7ms 0 40p 12MB $1 half
	capture c 15.9mbit 6.2ms 10.6ms 0.0122 258p 22MB $1 full
	capture d 4mbit 5.3ms 8.2ms 0.0011 125p 6MB $1 half
	capture e 27.4mbit 11.2ms 48.7ms 0 20p 38MB $1 full
	capture f 37.2mbit 5.1ms 7.9ms 0.0045 83p 52MB $1 half
}

# Six more links, for the changes after the second table: random.Random(19), in the same way.
again() { # kernel
	capture g 15.2mbit 16.3ms 36.5ms 0.0021 297p 21MB $1 full
	capture h 4.8mbit 2.2ms 8.6ms 0 49p 7MB $1 half
	capture i 4.5mbit 2.3ms 7.5ms 0 93p 6MB $1 full
	capture j 3.7mbit 1.6ms 7.3ms 0.0021 146p 5MB $1 half
	capture k 22.2mbit 2.9ms 18.1ms 0.0081 58p 30MB $1 full
	capture l 14.4mbit 7.3ms 8.4ms 0.0093 265p 20MB $1 half
}

echo '| link | kernel | named | sure | captured | model | model / capture | recommended |'
echo '|---|---|---|---|---|---|---|---|'
for kernel in reno cubic bbr; do
	case $set in
	blind) links='a-full b-half c-full d-half e-full f-half' ;;
	again) links="g-full h-half i-full j-half k-full l-half" ;;
	*) links='' ;;
	esac
	[ -z "$links" ] || "$set" $kernel
	for link in $links; do
		row ${link%-*} $kernel ${link#*-}
	done
	[ -z "$links" ] || continue
	for duplex in full half; do
		capture wifi 20mbit 2ms 10ms 0.01 100p 12MB $kernel $duplex
		capture cell 10mbit 20ms 20ms 0.003 100p 10MB $kernel $duplex
		capture dsl 5mbit 5ms 15ms 0 30p 6MB $kernel $duplex
		for link in wifi cell dsl; do
			row $link $kernel $duplex
		done
	done
done
