#!/usr/bin/env bash
# Packet-hops per second and memory of lasthop, ns-2 and csg-htsim, interleaved: all of them run each case in turn, several
# times, and the fastest run of each counts. It prints two tables in Markdown.
#
#   crates/sim/benches/peers/compare.sh [ROUNDS]            three rounds by default
#
#   LASTHOP=FILE     the program (target/release/lasthop)
#   BEFORE=FILE      an earlier program, for one more column
#   HTSIM=DIRECTORY  csg-htsim with its library built; left out without it:
#                        git clone https://github.com/Broadcom/csg-htsim && make -C csg-htsim/sim libhtsim.a
#   NS=FILE          ns-2 (Debian: apt install ns2); left out where there is none
#   FLOWS="10 ..."   how many flows (10 1000 10000 100000); ns-2 gets no more than NS_FLOWS (1000) of them
#
# A hop is a packet that one link has carried; a cell has millions of them a second, seconds and MB. Seconds are those of
# the processor, GNU time's of the whole process. What is modelled is not the same: csg-htsim acknowledges each segment,
# which makes four hops of one where the others have three; ns-2's connections have no handshake.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rounds=${1:-3}
lasthop=$(realpath "${LASTHOP:-$here/../../../../target/release/lasthop}")
before=${BEFORE:+$(realpath "$BEFORE")}
ns=$(command -v "${NS:-ns}" || true)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
window=65535

[ -x "$lasthop" ] || { echo "$lasthop: cargo build --release, or LASTHOP=FILE" >&2; exit 2; }
[ -x /usr/bin/time ] || { echo "GNU time is missing: apt install time" >&2; exit 2; }
dumbbell=
if [ -n "${HTSIM:-}" ]; then
    sim=$HTSIM/sim
    [ -f "$sim/libhtsim.a" ] || { echo "$sim/libhtsim.a: make -C $sim libhtsim.a" >&2; exit 2; }
    dumbbell=$work/dumbbell
    c++ -O3 -std=c++11 -I"$sim" "$here/dumbbell.cpp" -o "$dumbbell" -L"$sim" -lhtsim
fi

# scenario FLOWS BYTES SECONDS MBIT1 MS1 MBIT2 MS2 QUEUE: the same for lasthop.
scenario() {
    local bytes=$2
    [ "$2" = 0 ] && bytes='"unlimited"'
    cat <<TOML
name = "peers"
runs = 1
horizon = "$3s"
transfer = { from = "left", to = "right", count = $1, bytes = $bytes }
[host.left]
preset = "rfc"
[host.right]
preset = "rfc"
[[path]]
link = { rate = "$4mbit", delay = "$5ms", queue = "$8p" }
[[path]]
link = { rate = "$6mbit", delay = "$7ms", queue = "$8p" }
TOML
}

# timed NAME COMMAND...: keeps seconds and kilobytes of the fastest run of a name.
timed() {
    local name=$1
    shift
    /usr/bin/time -o "$work/time" -f '%U %S %M' "$@" >"$work/out" 2>"$work/err" ||
        { cat "$work/err" >&2; echo "failed: $*" >&2; exit 1; }
    awk '{ print $1 + $2, $3 }' "$work/time" >>"$work/$name"
}

# cell NAME HOPS: what the fastest run of a name took.
cell() {
    [ -f "$work/$1" ] || { echo -; return; }
    sort -g "$work/$1" | head -n 1 |
        awk -v hops="$2" '{ printf "%.1f (%.2f s, %.0f MB)\n", hops / $1 / 1e6, $1, $2 / 1024 }'
}

# compare NAME NS FLOWS BYTES SECONDS ...: one row.
compare() {
    local name=$1 with_ns=$2
    shift 2
    scenario "$@" >"$work/peers.toml"
    rm -f "$work"/{ours,before,ns,htsim}
    local hops_ours hops_ns=0 hops_htsim=0
    hops_ours=$("$lasthop" run "$work/peers.toml" --json | sed -n 's/.*"hops": \([0-9]*\).*/\1/p')
    [ -n "$ns" ] && [ "$with_ns" = yes ] && hops_ns=$("$ns" "$here/dumbbell.tcl" "$@" $window 1)
    for _ in $(seq "$rounds"); do
        timed ours "$lasthop" run "$work/peers.toml"
        [ -z "$before" ] || timed before "$before" run "$work/peers.toml"
        if [ -n "$ns" ] && [ "$with_ns" = yes ]; then
            timed ns "$ns" "$here/dumbbell.tcl" "$@" $window 0
        fi
        if [ -n "$dumbbell" ]; then
            timed htsim "$dumbbell" "$@" $window
            hops_htsim=$(cat "$work/out")
        fi
    done
    echo "| $name | $(cell ours "$hops_ours") | $(cell htsim "$hops_htsim") | $(cell ns "$hops_ns") |" \
        ${before:+"$(cell before "$hops_ours") |"}
}

columns="lasthop, with metrics | csg-htsim | ns-2 |${before:+ before |}"
line="|---|---|---|---|${before:+---|}"
echo "| case | $columns"
echo "$line"
compare "1 GB over two links of 100 Mb/s, 1 and 5 ms" yes 1 1000000000 1000 100 1 100 5 1000
echo
echo "| flows for 20 s through 10 Gb/s, 5 ms and 1 Gb/s, 1 ms | $columns"
echo "$line"
for flows in ${FLOWS:-10 1000 10000 100000}; do
    with_ns=no
    [ "$flows" -le "${NS_FLOWS:-1000}" ] && with_ns=yes
    compare "$flows" $with_ns "$flows" 0 20 10000 5 1000 1 20000
done
