//! Every system that the papers describe, and whether it runs yet.
//!
//! A row is written before its system is: the list is complete from the first day, and its status honest.

use serde::Serialize;

/// What part of a path a system is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A TCP sender.
    Sender,
    /// A TCP receiver.
    Receiver,
    /// An agent at the base station.
    Agent,
    /// A link layer.
    Link,
    /// Medium access.
    Mac,
    /// A queue in front of a link.
    Queue,
    /// A channel and its errors.
    Channel,
    /// A tool for measuring.
    Tool,
}

/// What turns the crank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// The simulator.
    Sim,
    /// Real packets, with the kernel's TCP at one end at least.
    Live,
}

/// Whether it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// In one of its worlds, by its scenario syntax or command.
    Implemented,
    /// Parts of it.
    Partial,
    /// Not yet.
    Planned,
}

/// A system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct System {
    /// Its name everywhere in this project.
    pub key: &'static str,
    /// What part of a path it is.
    pub kind: Kind,
    /// 1 if the papers built or measured it, 2 if they describe it as related work.
    pub tier: u8,
    /// Where it is meant to run.
    pub worlds: &'static [World],
    /// Whether it runs.
    pub status: Status,
    /// How a scenario file or a command asks for it; empty as long as it is planned.
    #[serde(rename = "where")]
    pub syntax: &'static str,
    /// What it does.
    pub what: &'static str,
}

const SIM: &[World] = &[World::Sim];
const LIVE: &[World] = &[World::Live];
const BOTH: &[World] = &[World::Sim, World::Live];

/// A row of the table.
const fn row(
    key: &'static str,
    (kind, tier, worlds): (Kind, u8, &'static [World]),
    status: Status,
    syntax: &'static str,
    what: &'static str,
) -> System {
    System { key, kind, tier, worlds, status, syntax, what }
}

const fn planned(
    key: &'static str,
    (kind, tier, worlds): (Kind, u8, &'static [World]),
    what: &'static str,
) -> System {
    row(key, (kind, tier, worlds), Status::Planned, "", what)
}

/// All systems, in the order of a path from sender to receiver, tools last.
pub const SYSTEMS: &[System] = &[
    row(
        "tahoe",
        (Kind::Sender, 1, BOTH),
        Status::Implemented,
        "host: tcp = \"tahoe\"",
        "slow start and congestion avoidance; three duplicate ACKs retransmit at once, then slow start",
    ),
    row(
        "reno",
        (Kind::Sender, 1, BOTH),
        Status::Implemented,
        "host: tcp = \"reno\"",
        "Tahoe with fast recovery: duplicate ACKs inflate the window instead of emptying the pipe",
    ),
    row(
        "newreno",
        (Kind::Sender, 1, BOTH),
        Status::Implemented,
        "host: tcp = \"newreno\"",
        "Reno that stays in fast recovery until every loss of the window is repaired (RFC 6582)",
    ),
    row(
        "sack",
        (Kind::Sender, 1, BOTH),
        Status::Implemented,
        "host: tcp = \"sack\"",
        "selective acknowledgements with a scoreboard and an estimate of the pipe (RFC 2018, RFC 6675)",
    ),
    row(
        "smart",
        (Kind::Sender, 1, SIM),
        Status::Implemented,
        "host: tcp = \"smart\", peer: smart = true",
        "the receiver names the segment that caused each ACK; the sender infers the holes",
    ),
    row(
        "eln",
        (Kind::Sender, 1, SIM),
        Status::Implemented,
        "host: eln = \"checksum\" | \"ideal\"",
        "losses that the receiver marks as corruption do not shrink the window (receiver checksum)",
    ),
    row(
        "eln-rxmt",
        (Kind::Sender, 1, SIM),
        Status::Implemented,
        "host: tcp = \"eln-rxmt\" | \"eln\", peer: eln = \"checksum\"",
        "marked ACKs: the first one retransmits, or the third duplicate one, and the window stays",
    ),
    row(
        "ackp-sender",
        (Kind::Sender, 1, SIM),
        Status::Implemented,
        "host: ackp = \"rearm\"",
        "a partial ACK from the base station restarts the retransmission timer and does nothing else",
    ),
    row(
        "ebsn-sender",
        (Kind::Sender, 1, BOTH),
        Status::Implemented,
        "host: ebsn = true",
        "a notification from the base station restarts the timer with the current time-out",
    ),
    row(
        "source-quench",
        (Kind::Sender, 1, BOTH),
        Status::Implemented,
        "host: quench = true; path: agent = \"source-quench\"",
        "ICMP source quench at each failed local attempt; the sender falls back to one segment and slow start",
    ),
    row(
        "right-edge",
        (Kind::Sender, 1, SIM),
        Status::Implemented,
        "host: limited-transmit = true",
        "a new segment on each of the first two duplicate ACKs, so that small windows see a third (RFC 3042)",
    ),
    row(
        "tcp-int",
        (Kind::Sender, 1, SIM),
        Status::Implemented,
        "host: tcp = \"tcp-int\"",
        "connections to the same host share one congestion window and repair each other's losses",
    ),
    row(
        "sender-adaptation",
        (Kind::Sender, 1, SIM),
        Status::Implemented,
        "host: sender-adaptation = true",
        "the window grows by bytes acknowledged and bursts are paced, for paths where ACKs are rare",
    ),
    row(
        "vegas",
        (Kind::Sender, 1, SIM),
        Status::Implemented,
        "host: tcp = \"vegas\"",
        "congestion avoidance by round-trip times, losses noticed by the clock, as SCPS-TP uses it",
    ),
    row(
        "scps-tp",
        (Kind::Sender, 2, SIM),
        Status::Implemented,
        "host: tcp = \"scps-tp\", loss-cause = \"congestion\" | \"corruption\"; peer: snack = true",
        "SNACK option and the configurable default assumption about the cause of losses (CCSDS 714.0-B)",
    ),
    planned(
        "fast-rtx-handoff",
        (Kind::Sender, 2, SIM),
        "fast retransmit as soon as a hand-off is over, instead of waiting for a time-out",
    ),
    planned(
        "t-tcp",
        (Kind::Sender, 2, SIM),
        "transactions whose first segment carries data (RFC 1644)",
    ),
    row(
        "delayed-ack",
        (Kind::Receiver, 1, SIM),
        Status::Implemented,
        "host: delayed-ack = { every = 2, timeout = \"200ms\" }",
        "acknowledge every segment, every other one with a timer, or by the timer alone",
    ),
    row(
        "acc",
        (Kind::Receiver, 1, SIM),
        Status::Implemented,
        "host: acc = true, at both ends",
        "congestion control for ACKs: the receiver sends fewer when the way back is full",
    ),
    row(
        "tcp-options",
        (Kind::Receiver, 1, SIM),
        Status::Implemented,
        "host: mss, window-scale, timestamps, sack, prediction",
        "MSS, window scaling, timestamps with PAWS and SACK, each on or off; header prediction before or after PAWS",
    ),
    row(
        "snoop",
        (Kind::Agent, 1, BOTH),
        Status::Implemented,
        "path: agent = \"snoop\"",
        "caches data, retransmits locally on duplicate ACKs and short time-outs, and hides them from the sender",
    ),
    row(
        "snoop-smart",
        (Kind::Agent, 1, BOTH),
        Status::Implemented,
        "path: agent = \"snoop-smart\"",
        "snoop that also knows which packets got through, from selective acknowledgements",
    ),
    row(
        "snoop-nack",
        (Kind::Agent, 1, BOTH),
        Status::Implemented,
        "path: agent = \"snoop-nack\"; host: nack",
        "for data from the mobile host: the base station asks for what the air has lost",
    ),
    row(
        "ackp",
        (Kind::Agent, 1, BOTH),
        Status::Implemented,
        "path: agent = \"snoop+ackp\"",
        "tells the sender which data reached the base station, so that its timer waits for the local repair",
    ),
    row(
        "ebsn",
        (Kind::Agent, 1, BOTH),
        Status::Implemented,
        "path: agent = \"ebsn\"",
        "tells the sender about each failed local attempt, by ICMP, and keeps nothing about connections",
    ),
    row(
        "seq-cache",
        (Kind::Agent, 1, BOTH),
        Status::Implemented,
        "path: agent = \"seq-cache\"",
        "keeps sequence numbers only; tells the sender that a loss was the radio's, and the sender retransmits",
    ),
    row(
        "split",
        (Kind::Agent, 1, BOTH),
        Status::Implemented,
        "path: agent = \"split\"",
        "ends the connection at the base station and runs a second one over the air (I-TCP)",
    ),
    row(
        "split-sack",
        (Kind::Agent, 1, BOTH),
        Status::Implemented,
        "path: agent = \"split-sack\"",
        "the same with selective acknowledgements over the air",
    ),
    planned(
        "i-tcp-handoff",
        (Kind::Agent, 2, SIM),
        "moves the state of an agent to the next base station at a hand-off",
    ),
    planned(
        "m-tcp",
        (Kind::Agent, 2, SIM),
        "a split connection that keeps end-to-end acknowledgements and outlives disconnections",
    ),
    row(
        "good-packet-size",
        (Kind::Agent, 1, BOTH),
        Status::Implemented,
        "path: agent = \"good-packet-size\"",
        "keeps packets to the size that is good for the state of the channel, by a table; clamps the MSS of SYNs",
    ),
    row(
        "ll",
        (Kind::Link, 1, BOTH),
        Status::Implemented,
        "path: link-layer = \"ll\"",
        "link-layer retransmission with cumulative ACKs and timers, in no particular order",
    ),
    row(
        "ll-sack",
        (Kind::Link, 1, BOTH),
        Status::Implemented,
        "path: link-layer = \"ll-sack\"",
        "link-layer retransmission with selective ACKs",
    ),
    row(
        "local-recovery",
        (Kind::Link, 1, BOTH),
        Status::Implemented,
        "path: link-layer = \"local-recovery\"",
        "retries with random back-off, a limited number of times",
    ),
    row(
        "tulip",
        (Kind::Link, 1, BOTH),
        Status::Implemented,
        "path: link-layer = \"tulip\"",
        "reliable or plain service by packet type, interleaved with the other direction, in-order release",
    ),
    row(
        "fragmentation",
        (Kind::Link, 1, BOTH),
        Status::Implemented,
        "path: fragment = \"128B\"",
        "packets cut to a small wireless MTU; one lost piece loses the packet",
    ),
    row(
        "fec",
        (Kind::Link, 2, BOTH),
        Status::Implemented,
        "path: coding = { block = 255, data = 223 }",
        "block codes by their numbers: bytes on the air, and which errors a frame survives",
    ),
    planned(
        "airmail",
        (Kind::Link, 2, SIM),
        "whole-window retransmission with forward error correction, most of the work at the base station",
    ),
    row(
        "header-compression",
        (Kind::Link, 1, BOTH),
        Status::Implemented,
        "path: link = { header-compression = \"vj\" | \"vj+twice\" | \"vj+feedback\" }",
        "TCP/IP headers of 40 bytes in 3 to 7 (RFC 1144), with the repairs of RFC 2507",
    ),
    row(
        "fama-ncs",
        (Kind::Mac, 1, BOTH),
        Status::Implemented,
        "path: mac = \"fama-ncs\"",
        "the floor is acquired by RTS and CTS before data; tells its neighbours when it transmits or waits",
    ),
    row(
        "dcf",
        (Kind::Mac, 1, BOTH),
        Status::Implemented,
        "path: mac = \"dcf\"",
        "802.11: listen, back off, acknowledge, retry, RTS above a threshold",
    ),
    row(
        "half-duplex-hops",
        (Kind::Mac, 1, BOTH),
        Status::Implemented,
        "path: mac = \"half-duplex-hops\"",
        "packet radio over several hops: stations poll each other, and turn around for each packet",
    ),
    row(
        "drop-tail",
        (Kind::Queue, 1, BOTH),
        Status::Implemented,
        "path: queue = \"50p\" or \"64KiB\"",
        "what does not fit is dropped; measured in packets or bytes",
    ),
    row(
        "red",
        (Kind::Queue, 1, BOTH),
        Status::Implemented,
        "path: discipline = \"red\", or \"red+acks-first\"",
        "random early detection that drops or marks",
    ),
    row(
        "ack-filter",
        (Kind::Queue, 1, BOTH),
        Status::Implemented,
        "path: discipline = \"ack-filter\"",
        "a newer cumulative ACK throws older ones of its connection out of the queue",
    ),
    row(
        "acks-first",
        (Kind::Queue, 1, BOTH),
        Status::Implemented,
        "path: discipline = \"acks-first\", or \"ack-filter+acks-first\"",
        "ACKs overtake data",
    ),
    planned(
        "csdp",
        (Kind::Queue, 2, SIM),
        "serves the mobile hosts in turn, skipping those whose channel is bad",
    ),
    row(
        "exponential-errors",
        (Kind::Channel, 1, BOTH),
        Status::Implemented,
        "path: errors = { model = \"exponential\", mean = \"64KiB\" }",
        "single byte errors at exponential distances; where they fall decides which checksum they break",
    ),
    row(
        "bit-errors",
        (Kind::Channel, 1, BOTH),
        Status::Implemented,
        "path: errors = { model = \"bit-errors\", ber = 1e-6 }",
        "independent bit errors at a given rate",
    ),
    row(
        "packet-bursts",
        (Kind::Channel, 1, BOTH),
        Status::Implemented,
        "path: errors = { model = \"packet-bursts\", packets = 6, mean = \"64KiB\" }",
        "each error destroys several packets in a row",
    ),
    row(
        "two-state",
        (Kind::Channel, 1, BOTH),
        Status::Implemented,
        "path: errors = { model = \"two-state\", good = \"10s\", bad = \"1s\", ber-bad = 1e-2 }",
        "a channel that is good or bad for a while, by time or by bits",
    ),
    row(
        "packet-filter",
        (Kind::Tool, 1, BOTH),
        Status::Implemented,
        "lasthop run -o DIR",
        "captures on each link that Wireshark, tcpdump and tcptrace open",
    ),
    row(
        "tcb-trace",
        (Kind::Tool, 1, BOTH),
        Status::Implemented,
        "lasthop run -o DIR",
        "the TCP control block at each event: windows, round trips, time-outs",
    ),
    row(
        "sequence-plot",
        (Kind::Tool, 1, SIM),
        Status::Implemented,
        "lasthop report DIR",
        "sequence numbers against time, with losses, retransmissions and stalls",
    ),
    row(
        "test-sender",
        (Kind::Tool, 1, LIVE),
        Status::Implemented,
        "lasthop send, lasthop discard",
        "bulk sender and discard receiver on real hosts",
    ),
    row(
        "wireless-config",
        (Kind::Tool, 1, LIVE),
        Status::Implemented,
        "lasthop ctl get, set, watch",
        "reads and changes errors and enhancements of a running base station",
    ),
    row(
        "energy-model",
        (Kind::Tool, 1, SIM),
        Status::Implemented,
        "[host.NAME] battery = \"sens-800\", lasthop energy FILE",
        "battery, radio states and the cost of each packet",
    ),
    row(
        "metrics",
        (Kind::Tool, 1, BOTH),
        Status::Implemented,
        "lasthop run",
        "throughput, goodput on each side, time-outs, delays, stalls, fairness; means with confidence intervals",
    ),
];

/// The system of this key.
pub fn system(key: &str) -> Option<&'static System> {
    SYSTEMS.iter().find(|system| system.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_what_runs_says_how() {
        assert_eq!(SYSTEMS.len(), 58);
        for (i, system) in SYSTEMS.iter().enumerate() {
            assert!(SYSTEMS[..i].iter().all(|other| other.key != system.key), "{}", system.key);
            assert_eq!(
                system.status == Status::Planned,
                system.syntax.is_empty(),
                "{}",
                system.key
            );
        }
    }
}
