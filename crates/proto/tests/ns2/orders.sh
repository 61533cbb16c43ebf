#!/bin/sh
# Writes orders.txt anew, with the program `ns` of ns-2 (Debian: apt-get install ns2). The first packet (0) is its SYN.
set -e
cd "$(dirname "$0")"
for agent in "TCP TCPSink" "TCP/Reno TCPSink" "TCP/Newreno TCPSink" "TCP/Sack1 TCPSink/Sack1"; do
    for lost in "20" "20 21" "20 22" "20 21 22" "20 22 24" "20 21 22 23" "5" "6 7" "20 40" "30" "20 35" "20 36 37" "3" \
        "19 20 21 22 23 24" "25 26 40"; do
        echo "${agent%% *} | $lost |$(ns orders.tcl $agent $lost)"
    done
done | awk -F'|' '
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
