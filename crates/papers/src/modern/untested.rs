//! Sentences with a number or an order that no claim tests, by source.

use crate::Untested;

pub(super) const UNTESTED: &[Untested] = &[
    Untested::new(
        "RFC 9438 5.1, Tables 1 and 2, losses of 1e-5 and less",
        "Windows up to 1,200,000 segments.",
        "Runs of hours: a loss in 100,000 packets and more.",
    ),
    Untested::new(
        "RFC 9438 5.2, Table 3, 1 and 10 Gb/s",
        "Losses that permit 1 and 10 Gb/s.",
        "As above.",
    ),
    Untested::new(
        "RFC 9438 5.1 and 5.2",
        "Windows of HSTCP, and of CUBIC with C = 0.04 and C = 4.",
        "There is no HSTCP, and C is 0.4.",
    ),
    Untested::new(
        "RFC 6937 5",
        "RFC 3517 has 29 % more lost retransmissions and 2.6 % more timeouts than PRR; rate halving 5 % more.",
        "Measured on Google's traffic of 2011, which is not published.",
    ),
    Untested::new(
        "RFC 6937 3.1",
        "Rate halving and PRR with the conservative bound.",
        "There is neither.",
    ),
    Untested::new(
        "RFC 9406 5",
        "HyStart++ reduces timeouts by 36 %.",
        "Our senders repair by SACK and RACK: overshoot causes no timeout with either slow start.",
    ),
    Untested::new(
        "RFC 9406 5",
        "Of 52 billion connections 0.7 % have no timeout instead of one, and 0.7 % one instead of two.",
        "Measured on Windows hosts; their paths are not published.",
    ),
    Untested::new(
        "Cardwell 2017, Figure 9",
        "BBR has 2 to 25 times the throughput of CUBIC between Google's sites.",
        "Their paths and losses are not published.",
    ),
    Untested::new(
        "Cardwell 2017, Figures 11 and 12",
        "BBR reduces the median round trip by 53 %, in the developing world by more than 80 %.",
        "Measured on YouTube's traffic; the cellular network of Figure 12 is given by its figure only.",
    ),
    Untested::new(
        "Cardwell 2017, Figure 5",
        "BBR finds a doubled rate exponentially fast.",
        "No figure is printed. Its bandwidth filter has tests of its own.",
    ),
    Untested::new(
        "Ware 2019, Figure 8",
        "Parts of 2 to 32 BBR flows.",
        "The model is the same; M-BBR-CUBIC tests it with one flow.",
    ),
    Untested::new("Yuan 2025, Figure 1", "BBR version 2.", "There is none."),
    Untested::new(
        "Yuan 2025, 5.3",
        "Implementations of QUIC differ by congestion control of the same name.",
        "One implementation is built in.",
    ),
    Untested::new(
        "Appenzeller 2004, Figure 15",
        "300 flows, and buffers of three times the rule.",
        "M-BUFFERS has 100, 200 and 400 flows, and buffers of up to twice the rule.",
    ),
    Untested::new(
        "Appenzeller 2004, 5.2.1, Figure 15",
        "Utilization by the model and on a router.",
        "The figures differ from the simulation by at most 2.2 points; M-BUFFERS compares with the simulation.",
    ),
    Untested::new(
        "draft-nichols-tsvwg-codel-01 3.3",
        "Rates of 64 kb/s to 100 Mb/s.",
        "M-CODEL has 10 Mb/s: targets below the time of a packet need other settings.",
    ),
    Untested::new(
        "draft-kuhn-quic-4-sat-07, regression tests",
        "Objectives for QUIC over geostationary satellites: 3 s for 2 MB, 20 s for 100 MB at 50 Mb/s, and others.",
        "They are targets, not results, and these experiments are also built without QUIC.",
    ),
    Untested::new(
        "RFC 9332 1",
        "BBR has a floor of about 20 ms of queueing, with peaks of 25 and 60 ms.",
        "The network of these measurements could not be read.",
    ),
];
