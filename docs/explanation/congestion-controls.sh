#!/bin/sh
# Counts of congestion controls for docs/how-to/analyze.md: the names that `lasthop analyze` gives to senders of captures whose
# congestion control is known.
#
#     docs/explanation/congestion-controls.sh target/release/lasthop [DIRECTORY]
#
# Kernel senders are captured in the testbed, all that the kernel offers (net.ipv4.tcp_available_congestion_control), then our own
# senders in the simulator. Captures that are in the directory already are read as they are. It takes ten minutes and the
# rights of a testbed (lasthop doctor).
set -eu
program=$(realpath "$1")
dir=${2:-$(mktemp -d)}
mkdir -p "$dir"
cd "$dir"

# Name, rate, delay of the radio and of the wire, random losses, queue, bytes.
links='wifi 20mbit 2ms 10ms 0.01 100p 12MB
cell 10mbit 20ms 20ms 0.003 100p 10MB
dsl 5mbit 5ms 15ms 0 30p 6MB
deep 8mbit 10ms 15ms 0 300p 10MB
short 27mbit 11ms 49ms 0 20p 30MB
lossy 15mbit 6ms 11ms 0.012 250p 20MB'

capture() { # world sender name rate delay wired-delay loss queue bytes
	name=$3-$1-$2
	[ -e "$name.pcapng" ] && return
	errors="errors = { model = \"packet-loss\", p = $7, on = [\"data\"] }"
	[ "$7" = 0 ] && errors='errors = "none"'
	if [ "$1" = kernel ]; then
		world=testbed
		from="kernel = \"linux-$2\""
		to='kernel = "linux-cubic"'
	else
		world=sim
		from="preset = \"linux\"
		tcp = \"$2\""
		to='preset = "linux"'
	fi
	cat >"$name.toml" <<-SCENARIO
		name = "$name"
		runs = 1
		horizon = "12s"
		transfer = { from = "server", to = "client", bytes = "$9" }
		[host.server]
		$from
		[host.client]
		$to
		# Where the capture is made: at the sender.
		[[path]]
		name = "sender"
		link = { delay = "0ms" }
		[[path]]
		link = { rate = "200mbit", delay = "$6", queue = "1000p" }
		[[path]]
		agent = "none"
		[[path]]
		radio = { rate = "$4", delay = "$5", duplex = "full", queue = "$8" }
		$errors
	SCENARIO
	"$program" run "$name.toml" --world $world -n 1 -j 1 -o "$name" >"$name.log" 2>&1 || true
	cp "$name/trace/run/sender.pcapng" "$name.pcapng"
	rm -r "$name"
}

named() { # capture
	"$program" analyze "$1" | sed -n 's/.* looks like \([A-Za-z]*\),.*/\1/p' | head -n 1
}

table() { # world senders
	echo "| sender | Reno | CUBIC | BBR | none |"
	echo "|---|---|---|---|---|"
	for sender in $2; do
		echo "$links" | while read -r link rest; do
			# shellcheck disable=SC2086
			capture "$1" "$sender" "$link" $rest </dev/null
			control=$(named "$link-$1-$sender.pcapng")
			echo "${control:-none}"
		done | awk -v sender="$sender" '
			{ n[$1]++ }
			END { print "| " sender " | " n["Reno"] + 0 " | " n["CUBIC"] + 0 " | " n["BBR"] + 0 " | " n["none"] + 0 " |" }'
	done
}

kernels=$(sysctl -n net.ipv4.tcp_available_congestion_control)
echo "Kernel $(uname -r | cut -d. -f1,2): $kernels"
echo
table kernel "$kernels"
echo
echo "Our own senders, in the simulator:"
echo
table own "rack cubic bbr bbr3 vegas veno westwood hybla"
