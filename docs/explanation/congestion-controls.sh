#!/bin/sh
# Prints counts for docs/how-to/analyze.md: the names that `lasthop analyze` gives to senders of captures with known congestion
# control.
#
#     docs/explanation/congestion-controls.sh target/release/lasthop [DIRECTORY]
#     docs/explanation/congestion-controls.sh "" DIRECTORY
#
# It captures the kernel's senders in KERNELS, or all available ones (tcp_available_congestion_control): Reno, CUBIC and BBR in the
# testbed, which needs its rights (lasthop doctor), others in network namespaces, which needs root, tcpdump and iperf3. Then it
# captures our own senders in the simulator. Existing captures in the directory are reused, so that those of several kernels can be
# collected there. The second form makes only captures of the kernel. Each takes 15 seconds.
set -eu
program=${1:+$(realpath "$1")}
dir=${2:-$(mktemp -d)}
mkdir -p "$dir"
cd "$dir"

# Name, rate, delays of the radio and of the wire, random losses, queue, bytes.
links='wifi 20mbit 2ms 10ms 0.01 100p 12MB
cell 10mbit 20ms 20ms 0.003 100p 10MB
dsl 5mbit 5ms 15ms 0 30p 6MB
deep 8mbit 10ms 15ms 0 300p 10MB
short 27mbit 11ms 49ms 0 20p 30MB
lossy 15mbit 6ms 11ms 0.012 250p 20MB'

# A path between namespaces: a queue of packets before the slow link, the whole delay on the return path, and no super-segments.
namespaces() { # sender file rate delay wired-delay loss queue
	id=cc$$
	back=$((2 * (${4%ms} + ${5%ms})))ms
	for host in s r c; do ip netns add $id-$host; done
	ip link add s0 netns $id-s type veth peer r0 netns $id-r
	ip link add c0 netns $id-c type veth peer r1 netns $id-r
	ip -n $id-s addr add 10.9.0.1/24 dev s0
	ip -n $id-r addr add 10.9.0.2/24 dev r0
	ip -n $id-r addr add 10.9.1.2/24 dev r1
	ip -n $id-c addr add 10.9.1.1/24 dev c0
	for end in s:s0 r:r0 r:r1 c:c0 s:lo c:lo; do
		ip -n $id-${end%:*} link set dev ${end#*:} up
		ip -n $id-${end%:*} link set dev ${end#*:} gso_max_segs 1
	done
	ip -n $id-s route add default via 10.9.0.2
	ip -n $id-c route add default via 10.9.1.2
	ip netns exec $id-r sysctl -qw net.ipv4.ip_forward=1
	ip netns exec $id-s sysctl -qw net.ipv4.tcp_no_metrics_save=1
	tc -n $id-r qdisc add dev r1 root netem rate "$3" limit "${7%p}" loss "$(echo "$6" | awk '{ print $1 * 100 }')%"
	tc -n $id-c qdisc add dev c0 root netem delay "$back" limit 100000
	ip netns exec $id-c iperf3 -s -1 -D
	ip netns exec $id-s tcpdump -Z root -i s0 -s 128 -w "$2" tcp port 5201 2>/dev/null &
	dump=$!
	sleep 1
	ip netns exec $id-s iperf3 -c 10.9.1.1 -t 12 -C "$1" >"$2.log" 2>&1 || true
	kill $dump
	wait $dump || true
	for host in s r c; do ip netns del $id-$host; done
}

capture() { # world sender name rate delay wired-delay loss queue bytes
	name=$3-$1-$2
	[ -e "$name.pcapng" ] && return
	case ${program:+testbed-}$1-$2 in
	testbed-kernel-reno | testbed-kernel-cubic | testbed-kernel-bbr | *-own-*) ;;
	*)
		namespaces "$2" "$name.pcapng" "$4" "$5" "$6" "$7" "$8"
		return
		;;
	esac
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
		# The capture is made here, at the sender.
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
	[ -n "$program" ] || return 0
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

kernels=${KERNELS:-$(sysctl -n net.ipv4.tcp_available_congestion_control)}
echo "Kernel $(uname -r | cut -d. -f1,2): $kernels"
echo
table kernel "$kernels"
[ -n "$program" ] || exit 0
# Captures of other kernels.
others=$(ls | sed -n 's/^wifi-kernel-\([a-z]*\)\.pcapng$/\1/p' | grep -vxF "$(echo "$kernels" | tr ' ' '\n')" || true)
if [ -n "$others" ]; then
	echo
	echo "Captures of other kernels:"
	echo
	table kernel "$others"
fi
echo
echo "Our own senders, in the simulator:"
echo
table own "rack cubic bbr bbr3 vegas veno westwood hybla"
