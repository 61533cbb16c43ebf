# One transfer of 100 packets in ns-2 over 10 Mb/s and then 0.8 Mb/s, with packets lost by their order on the second link.
# ns orders.tcl AGENT SINK LOST...: prints the packets in the order in which the source sends them.
set ns [new Simulator]
set source [$ns node]; set router [$ns node]; set sink [$ns node]
$ns duplex-link $source $router 10Mb 2ms DropTail
$ns duplex-link $router $sink 0.8Mb 50ms DropTail
$ns queue-limit $source $router 1000
$ns queue-limit $router $sink 1000
set tcp [new Agent/[lindex $argv 0]]
set end [new Agent/[lindex $argv 1]]
$ns attach-agent $source $tcp
$ns attach-agent $sink $end
$ns connect $tcp $end
# As the preset `ns`: a clock of 100 ms, one packet at first, no limited transmit.
foreach {name value} {window_ 20 packetSize_ 1000 tcpTick_ 0.1 windowInit_ 1 singledup_ 0 minrto_ 0.2} {
    $tcp set $name $value
}
[new Application/FTP] attach-agent $tcp
$ns at 0 "$tcp advance 100"
set lost [lrange $argv 2 end]
if {[llength $lost]} {
    set errors [new ErrorModel/List]
    $errors droplist $lost
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $router $sink
}
set trace [open orders.tr w]
$ns trace-queue $source $router $trace
$ns at 300 done
proc done {} {
    global trace
    close $trace
    set in [open orders.tr]
    while {[gets $in line] >= 0} {
        if {[lindex $line 0] == "+"} { puts -nonewline " [lindex $line 10]" }
    }
    puts ""
    exit 0
}
$ns run
