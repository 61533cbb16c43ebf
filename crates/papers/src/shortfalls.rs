//! Why claims fail, for the pages of the papers: one reason for each failing claim.

/// What a failure is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The paper contradicts itself; the text quotes it.
    Contradiction,
    /// A parameter of the experiment is unknown; the text names it.
    UnknownSetUp,
    /// Something is missing or different in lasthop's model; the text names it.
    Model,
}

impl Kind {
    pub fn text(self) -> &'static str {
        match self {
            Kind::Contradiction => "the paper contradicts itself",
            Kind::UnknownSetUp => "unknown set-up",
            Kind::Model => "our model",
        }
    }
}

/// Why a claim fails.
#[derive(Clone, Copy, Debug)]
pub struct Shortfall {
    /// The claim.
    pub id: &'static str,
    pub kind: Kind,
    pub text: &'static str,
}

const fn shortfall(id: &'static str, kind: Kind, text: &'static str) -> Shortfall {
    Shortfall { id, kind, text }
}

/// Why the claim `id` fails, if it is known to.
pub fn shortfall_of(id: &str) -> Option<&'static Shortfall> {
    SHORTFALLS.iter().find(|of| of.id == id)
}

/// In the order of reports.
pub const SHORTFALLS: &[Shortfall] = &[
    // west97
    shortfall(
        "W-F10",
        Kind::UnknownSetUp,
        "one run is published. With the window rules of FreeBSD 2.1-STABLE runs as good are twice as frequent as without them (10 and 4 %); the release and its patches are not given",
    ),
    shortfall(
        "W-F12",
        Kind::UnknownSetUp,
        "the pattern of the 17 losses is not given: single ones here, while 5.1 has \"two or more packets being lost in \
         close succession\". In bursts of two packets on average stalls take 61 ± 43 % of the time lost, of four 85 ± 65 %",
    ),
    shortfall("W-F13", Kind::UnknownSetUp, "as W-F12"),
    shortfall(
        "W-WINDOWS",
        Kind::Model,
        "the round trip of a packet is 9.3 ms instead of 6 to 8. The medium access alone is not the reason: two packets \
         have 87 % of the usual window's throughput where a frame takes no time but its bits, and 91 to 93 % with the \
         CSMA/CA of WaveLAN (Tuch 1993), which loses 0.2 % of the frames to collisions, unlike the paper's",
    ),
    shortfall(
        "W-T1",
        Kind::UnknownSetUp,
        "the release and the patches of FreeBSD 2.1 are not given. With the sources of 2.1-STABLE Reno has 5.5 timeouts; without growth at the end of a recovery, and with deflation at three duplicates, it has 7.4 timeouts and 99 KB/s",
    ),
    shortfall(
        "W-SNOOP-WINDOW",
        Kind::UnknownSetUp,
        "the paper measured no other window (\"can be cured or reduced\"); with larger ones snoop's round trips contain \
         a longer queue, and its timer is later",
    ),
    shortfall(
        "W-T2",
        Kind::UnknownSetUp,
        "snoop's timers are not given: with a persist timer of 200 ms it has 118 KB/s and 0.2 timeouts. Reno's timer backs off to 64 s here, and the published 5.3 s for each timeout allow hardly any backoff. Timestamps end it, and bring Reno 1.3 times the throughput, but 5.1 has packets of 1460 bytes",
    ),
    shortfall(
        "W-T3",
        Kind::Contradiction,
        "Reno: 121.7 s are lost with 5.40 timeouts, 22.5 s each, but 10.1 s each in Table 4; and a deviation of 8.1 s \
         allows losses to explain at most 48 s",
    ),
    shortfall(
        "W-T4",
        Kind::UnknownSetUp,
        "snoop's persist timer is not given: with 200 ms it has no timeouts. Longer ones bring more",
    ),
    shortfall(
        "W-SATELLITE",
        Kind::UnknownSetUp,
        "a belief without a measurement: here bursts of six in windows of 256 KB take most of the throughput, and \
         partial acknowledgements change the sender's timer only",
    ),
    // parsa98
    shortfall(
        "T-SACK",
        Kind::Model,
        "the window fills the queue before TULIP's link, which makes the delay longer than that of TCP-SACK alone",
    ),
    shortfall(
        "T-F9",
        Kind::Contradiction,
        "\"nearly identical\" at 15 errors per million, while 5.2.2 finds the fault that slows snoop down at such rates; \
         without the fault snoop has the published throughput",
    ),
    shortfall("T-F12", Kind::UnknownSetUp, "one run is published; of 120 one has a timeout"),
    shortfall(
        "T-F10",
        Kind::UnknownSetUp,
        "the gain of MAC acceleration is the cost of an RTS and CTS for each ACK: their lengths and the ramps of \
         equation 1 are not given",
    ),
    shortfall(
        "T-T1",
        Kind::UnknownSetUp,
        "TCP alone retransmits fewer packets needlessly: REAL's receiver and its ACKs are not described",
    ),
    shortfall(
        "T-F15",
        Kind::Contradiction,
        "4 states a minimum of 40 ms, Figure 18(b) draws 60 ms; the largest ratio is 1.7 with 40 ms and 2.3 with 60",
    ),
    shortfall(
        "T-F16",
        Kind::Model,
        "TCP alone has the queue of a whole window here, and \"very little queuing at the base station\" in the paper",
    ),
    shortfall(
        "T-T2",
        Kind::UnknownSetUp,
        "the deviations of the delay depend on the order of data and ACKs on the channel, which the backoff of \
         FAMA-NCS and the host's processing time decide; the paper gives neither",
    ),
    // bakshi96
    shortfall(
        "B-F3",
        Kind::Model,
        "the window is 6.1 packets when the bad period begins, and seven are lost in the paper: how ns rounds its window \
         is known, the congestion window at 24 s is not",
    ),
    shortfall(
        "B-F4",
        Kind::UnknownSetUp,
        "the waiting times of the link layer are not given: with whole packets instead of fragments the timeout is at 13.78 s",
    ),
    shortfall(
        "B-F7",
        Kind::UnknownSetUp,
        "the number of runs and the averaging are not given, and \"about 30 %\" has no error",
    ),
    shortfall(
        "B-DEVIATION",
        Kind::Contradiction,
        "\"standard deviation for all results less than 4 %\": with exponential periods of 10 and 1 to 4 s the bad time of \
         a single run deviates by 11 to 46 %",
    ),
    // balakrishnan97
    shortfall(
        "D-F2-LAN",
        Kind::UnknownSetUp,
        "which packets source and base station both repeat depends on the base station's timers, which are not given",
    ),
    shortfall(
        "D-F2-WAN",
        Kind::UnknownSetUp,
        "the smallest timer of the base station and the segment size, which are not given: of 60 sets of values those \
         that meet the condition have timers below 141 ms (200 ms is assumed)",
    ),
    shortfall(
        "D-F3-LAN",
        Kind::UnknownSetUp,
        "SMART is \"a simple scheme based on a subset\" of its proposal; which subset is not stated",
    ),
    shortfall(
        "D-F3-WAN",
        Kind::UnknownSetUp,
        "no set of values gives NewReno 2.3 times Reno (at most 1.40 of 467 sampled sets): a NewReno other than that of \
         RFC 6582",
    ),
    shortfall(
        "D-T1",
        Kind::Contradiction,
        "9.6 kb/s with ACKs of 6 bytes carry one each 5 ms and the ACK filter has 7.93 Mb/s; 28.8 kb/s with 40 bytes carry one each 11 ms \
         and it has 9.49",
    ),
    shortfall(
        "D-K",
        Kind::Contradiction,
        "\"one ACK in k\" gets through, but the published throughputs of Reno are fewer packets for each ACK that the \
         return channels can carry",
    ),
    shortfall(
        "D-F7",
        Kind::Contradiction,
        "right-edge recovery avoids 25 % of the timeouts in 5.1.1, and has more than twice the throughput in 5.1.2",
    ),
    shortfall(
        "D-TIMEOUTS",
        Kind::UnknownSetUp,
        "rates, sizes and losses of the traced server's clients are not given",
    ),
    shortfall(
        "D-F8-F9",
        Kind::UnknownSetUp,
        "rates, delays and windows of section 5 are not given; where nothing is random, phases decide which connection \
         starves",
    ),
    // agarwal00
    shortfall(
        "A-SACK",
        Kind::Model,
        "802.11 repairs all losses at this distance, so that SACK has nothing to repair",
    ),
    shortfall(
        "A-OPTIONS",
        Kind::Model,
        "the cost of an option is its bytes on the air here; the cost of processing on a 90 MHz Pentium is not modelled \
         for each option",
    ),
    shortfall(
        "A-DELACK",
        Kind::UnknownSetUp,
        "the power is given for the states of one card and not for the processor, so the energy that a saved ACK \
         saves is unknown",
    ),
    shortfall(
        "A-BEST",
        Kind::Model,
        "RTS and CTS cost stock and changed hosts alike here, so that the difference of lifetimes does not shrink",
    ),
    shortfall(
        "A-ERRORS",
        Kind::Contradiction,
        "\"about 50\" retransmissions need an error rate that the printed 640 kB/s exclude",
    ),
    shortfall("A-T5.1", Kind::UnknownSetUp, "the load of the interfering node is not given"),
];
