#!/bin/sh
# Regenerates orders.txt with the program `ns` of ns-2 (Debian: apt-get install ns2). The first packet (0) is its SYN.
set -e
cd "$(dirname "$0")"
orders() {
    agent=$1
    shift
    for lost in "$@"; do
        echo "${agent%% *} | $lost |$(ns orders.tcl $agent $lost)"
    done
}
{
for agent in "TCP TCPSink" "TCP/Reno TCPSink" "TCP/Newreno TCPSink" "TCP/Sack1 TCPSink/Sack1"; do
    orders "$agent" "20" "20 21" "20 22" "20 21 22" "20 22 24" "20 21 22 23" "5" "6 7" "20 40" "30" "20 35" "20 36 37" "3" \
        "19 20 21 22 23 24" "25 26 40"
done
# Recoveries in which partial ACKs are for several packets, and such as end with a timeout.
orders "TCP/Newreno TCPSink" "18 41 42 44 46 55" "24 34 40 41 47 51" "19 35 37 44 51 53" "18 34 35 38 48 53" \
    "23 26 30 40 56" "29 30 31 37 42 58" "20 24 36 37 41 53" "19 36 38 39 47" "22 24 26 42 53"
# A timeout in a recovery, after many duplicate ACKs.
orders "TCP/Reno TCPSink" "21 41 50"
} | awk -F'|' '
    # 0-39 20 40-100: packets in a row by the first and the last one.
    {
        n = split($3, sent, " ")
        runs = ""
        for (i = 1; i <= n; i = j) {
            for (j = i + 1; j <= n && sent[j] == sent[j - 1] + 1; j++) {}
            runs = runs " " (j > i + 1 ? sent[i] "-" sent[j - 1] : sent[i])
        }
        print $1 "|" $2 "|" runs
    }
' > orders.txt
rm -f orders.tr
