# A source that never ends, for 100 s over 10 Mb/s and then 1 Mb/s, in ns-2.
# ns throughput.tcl SEED AGENT SINK WINDOW QUEUE LOSS FLOWS: prints the packets that arrived in order, of each flow.
foreach {seed agent end window queue loss flows} $argv {}
set ns [new Simulator]
if {[info exists ::env(TRACE)]} {
    set packets [open $::env(TRACE) w]
    $ns trace-all $packets
}
ns-random $seed
set source [$ns node]; set router [$ns node]; set sink [$ns node]
$ns duplex-link $source $router 10Mb 2ms DropTail
$ns duplex-link $router $sink 1Mb 50ms DropTail
$ns queue-limit $source $router 1000
$ns queue-limit $router $sink $queue
for {set i 0} {$i < $flows} {incr i} {
    set tcp($i) [new Agent/$agent]
    set to($i) [new Agent/$end]
    $ns attach-agent $source $tcp($i)
    $ns attach-agent $sink $to($i)
    $ns connect $tcp($i) $to($i)
    # As the preset `ns`: a clock of 100 ms, one packet at first, no limited transmit.
    foreach {name value} {packetSize_ 1000 tcpTick_ 0.1 windowInit_ 1 singledup_ 0 minrto_ 0.2} {
        $tcp($i) set $name $value
    }
    $tcp($i) set window_ $window
    if {[info exists ::env(VARS)]} {
        set variables [open $::env(VARS) w]
        $tcp($i) attach $variables
        foreach name {cwnd_ ssthresh_ dupacks_} { $tcp($i) trace $name }
    }
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $tcp($i)
    # Each flow starts at a different time.
    $ns at [expr 0.1 * $i] "$ftp($i) start"
}
if {$loss > 0} {
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $loss
    set uniform [new RandomVariable/Uniform]
    $errors ranvar $uniform
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $router $sink
}
$ns at 100 {
    for {set i 0} {$i < $flows} {incr i} { puts -nonewline "[$tcp($i) set ack_] " }
    puts ""
    if {[info exists packets]} {
        $ns flush-trace
        close $packets
    }
    foreach file [info vars variables] { close [set $file] }
    exit 0
}
$ns run
