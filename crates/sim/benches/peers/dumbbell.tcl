# The transfers of `compare.sh` in ns-2: two links in a row, DropTail, no trace.
#
#   ns dumbbell.tcl FLOWS BYTES SECONDS MBIT1 MS1 MBIT2 MS2 QUEUE WINDOW COUNT
#
# BYTES 0 sends until the end; QUEUE is in packets, WINDOW in bytes. With COUNT 1 it writes the number of packet-hops, for
# which each link gets a monitor; without, none has one, and nothing is written.
lassign $argv flows bytes seconds mbit1 ms1 mbit2 ms2 queue window count

remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
foreach name {left middle right} { set $name [$ns node] }
$ns duplex-link $left $middle ${mbit1}Mb ${ms1}ms DropTail
$ns duplex-link $middle $right ${mbit2}Mb ${ms2}ms DropTail
set monitors {}
foreach {a b} [list $left $middle $middle $left $middle $right $right $middle] {
    $ns queue-limit $a $b $queue
    if {$count == 1} { lappend monitors [$ns monitor-queue $a $b ""] }
}
# Segments of 1460 bytes with 40 of headers; ACKs for each second one, as RFC 5681 has it.
Agent/TCP set packetSize_ 1460
Agent/TCP set window_ [expr {$window / 1460}]
Agent/TCP set tcpTick_ 0.001
for {set i 0} {$i < $flows} {incr i} {
    set from [new Agent/TCP/Newreno]
    set to [new Agent/TCPSink/DelAck]
    $ns attach-agent $left $from
    $ns attach-agent $right $to
    $ns connect $from $to
    set ftp [new Application/FTP]
    $ftp attach-agent $from
    if {$bytes > 0} {
        $ns at 0 "$ftp produce [expr {($bytes + 1459) / 1460}]"
    } else {
        $ns at 0 "$ftp start"
    }
}
$ns at $seconds {
    if {$count == 1} {
        set hops 0
        foreach monitor $monitors { set hops [expr {$hops + int([$monitor set pdepartures_])}] }
        puts $hops
    }
    exit 0
}
$ns run
