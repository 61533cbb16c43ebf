//! Contents of a diagnosis.

use core::fmt;
use core::net::SocketAddr;

use lasthop_observe::timeouts::TimeoutCauses;
use serde::Serialize;

use crate::reading::{Endpoint, Opening};

/// How sure a diagnosis is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Another cause explains the packets as well.
    Possible,
    /// Another cause needs a coincidence.
    Likely,
    /// The packets themselves show it.
    Certain,
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confidence::Possible => "possible",
            Confidence::Likely => "likely",
            Confidence::Certain => "certain",
        })
    }
}

/// Effect of a diagnosis on the throughput of its transfer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Weight {
    /// It does not limit the throughput, or the capture does not show that it does.
    Informs,
    /// It limits the throughput or the delay, along with the link.
    Limits,
    /// It alone determines the throughput, which is then independent of the link.
    Decides,
}

/// Minimum share of the time for which one limit explains a transfer.
const MOSTLY: f64 = 0.5;

/// The side that alone announced an option in its SYN or SYN-ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OneSided {
    /// The SYN has the option, the SYN-ACK lacks it.
    Client,
    /// The SYN-ACK has the option, the SYN lacks it: the path removed it from the SYN, or added it to the SYN-ACK.
    Server,
}

/// An option of the handshake that both ends must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Negotiated {
    /// SACK-permitted (RFC 2018).
    Sack,
    /// Timestamps (RFC 7323).
    Timestamps,
    /// MPTCP (RFC 8684).
    Multipath,
}

impl fmt::Display for Negotiated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Negotiated::Sack => "SACK",
            Negotiated::Timestamps => "timestamps",
            Negotiated::Multipath => "MPTCP",
        })
    }
}

/// State of ECN on the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EcnState {
    /// Agreed on and used; no packet is marked.
    Unmarked,
    /// Queues have marked packets.
    Marked,
    /// Agreed on, and cleared on the path.
    Bleached,
}

/// A fault or a limit, with the numbers that show it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// The connection opened late or never.
    Opening {
        /// How it opened.
        opening: Opening,
        /// Transmissions of the SYN.
        syns: u64,
        /// Transmissions of the SYN-ACK.
        syn_acks: u64,
        /// Seconds without a connection.
        waited: f64,
        /// Their share of the time of the connection in the capture.
        share: f64,
    },
    /// Only the ACKs of the receiver were captured.
    OnlyAcks {
        /// ACKs.
        acks: u64,
        /// Bytes that they acknowledge.
        acked_bytes: u64,
        /// Rate of these bytes in bits per second, from the first ACK to the last.
        rate: Option<f64>,
        /// Duplicate ACKs.
        duplicate_acks: u64,
        /// ACKs with SACK blocks.
        sack_acks: u64,
    },
    /// Only data was captured, no ACK of the receiver.
    OnlyData {
        /// Packets with payload.
        data_packets: u64,
        /// Payload bytes, each once.
        unique_bytes: u64,
        /// Retransmitted packets.
        sent_again: u64,
    },
    /// No segment of a certain size or more arrives; smaller ones do.
    MtuBlackHole {
        /// The smallest payload in bytes that did not arrive.
        from: u32,
        /// The largest payload in bytes that arrived; `None` if no data did.
        passed: Option<u32>,
        /// Segments that did not arrive.
        segments: u64,
        /// Transmissions of them.
        transmissions: u64,
        /// Number of arrivals after the first missing segment was sent: smaller segments, or duplicate ACKs for them.
        smaller_arrived: u64,
    },
    /// One end announced a window scale and the other did not: neither window exceeds 65,535 bytes.
    WindowScaleOneSided {
        /// The side that announced it.
        by: OneSided,
        /// The shift that was announced.
        shift: u8,
        /// The largest window of the receiver in bytes.
        window: Option<u64>,
        /// Share of the time in which that window was the limit, if it can be measured here.
        share: Option<f64>,
    },
    /// One end announced an option and the other did not, so it is not used.
    OptionOneSided {
        /// The option.
        option: Negotiated,
        /// The side that announced it.
        by: OneSided,
    },
    /// Both ends agreed on an option, and it is missing in packets that must have it.
    OptionStripped {
        /// The option.
        option: Negotiated,
        /// Packets without it.
        without: u64,
        /// Packets with it.
        with: u64,
    },
    /// SACK blocks cover bytes that the sender cannot have outstanding.
    SackOutsideWindow {
        /// ACKs whose first block is outside.
        outside: u64,
        /// ACKs with SACK blocks.
        blocks: u64,
    },
    /// Explicit congestion notification (RFC 3168) of connections that agreed on it.
    Ecn {
        /// State of ECN.
        state: EcnState,
        /// Whether it is accurate ECN (RFC 9768): the receiver counts marks.
        accurate: bool,
        /// Packets with new data.
        data: u64,
        /// Packets with new data and an ECN codepoint.
        ect: u64,
        /// Packets that were marked before the point of capture.
        ce: u64,
        /// Packets by which the receiver reports marks; with accurate ECN, marks that it reports.
        echoes: u64,
    },
    /// Timeouts by the duplicate ACKs before them, and by the remedy that avoids them (balakrishnan97 5.1.1).
    Timeouts {
        /// All.
        total: u64,
        /// Those that repeated data that had arrived, by DSACK blocks.
        needless: u64,
        /// By cause and by remedy.
        #[serde(flatten)]
        causes: TimeoutCauses,
    },
    /// The last segments of a flight were lost: only a timeout repaired them.
    TailLoss {
        /// Flights whose tail was lost.
        losses: u64,
        /// Timeouts of the sender.
        timeouts: u64,
        /// Seconds from the last packet to the retransmission.
        waited: f64,
    },
    /// A policer drops packets that exceed a rate.
    Policer {
        /// Its rate in bits per second, with IP headers; a lower bound if the burst is of 8 packets or fewer.
        rate: f64,
        /// Bytes that passed above that rate before the first loss.
        burst: u64,
        /// Losses.
        losses: u64,
        /// Losses with a round trip or more between them.
        events: u64,
        /// Events at which the bucket is empty.
        empty: u64,
        /// Lower quartile of the round trips before these events, minus the shortest round trip, in seconds.
        longer: f64,
    },
    /// The data of this sender waits long in a queue.
    Bufferbloat {
        /// The shortest round trip, in seconds.
        shortest: f64,
        /// 90th percentile of the round trips, in seconds.
        long: f64,
        /// Correlation of round trips and outstanding data.
        correlation: f64,
    },
    /// A reset in the name of this end came from another host.
    InjectedReset {
        /// Such resets.
        resets: u64,
        /// Hops left in the latest one.
        reset_hops: u8,
        /// The fewest and most hops left in other packets of this end.
        hops: [u8; 2],
        /// Packets of this end after the reset.
        after: u64,
    },
    /// Packets of another connection arrived from an address that was not translated.
    Untranslated {
        /// The number of that connection.
        of: u32,
        /// The address and port of their sender.
        from: Endpoint,
        /// Number of these packets.
        packets: u64,
    },
    /// The peer sent no packet any more.
    Unanswered {
        /// Seconds of silence before it, at least 30; zero for less.
        idle: f64,
        /// Transmissions without an answer.
        transmissions: u64,
        /// Seconds from the first of them to the end of the connection in the capture.
        waited: f64,
        /// Their share of the time of the connection in the capture.
        share: f64,
    },
    /// This end let its peer wait before a response, or before the next request.
    ThinkTime {
        /// Whether it is the client.
        client: bool,
        /// Number of waits.
        times: u64,
        /// Seconds in total, without the round trips between the ends.
        waited: f64,
        /// Their share of the time from the first packet to the last data.
        share: f64,
        /// The longest one in seconds.
        longest: f64,
    },
    /// Requests wait for the answers to the requests before them, so that each one costs a round trip.
    RoundTrips {
        /// Requests that followed an answer.
        exchanges: u64,
        /// Seconds: a round trip for each.
        waited: f64,
        /// Their share of the time from the first packet to the last data.
        share: f64,
    },
    /// Packets of several segments never arrive, single segments do.
    MergedDropped {
        /// Merged packets.
        merged: u64,
        /// Single segments that arrived.
        singles: u64,
    },
    /// Another host answers in the place of an end.
    Middlebox {
        /// Hops left in packets with data.
        data_hops: u8,
        /// Hops left in ACKs or resets.
        answer_hops: u8,
        /// Number of these ACKs or resets.
        answers: u64,
    },
    /// The receiver's window was closed for long: the receiving application does not read.
    ClosedWindow {
        /// Seconds.
        closed: f64,
        /// Their share of the transfer's duration.
        share: f64,
        /// Whether it is still closed when the connection ends in the capture.
        to_end: bool,
    },
    /// Packets waited before the point of capture, which is behind the bottleneck.
    HeldBack {
        /// Silences.
        stalls: u64,
        /// Their seconds.
        waited: f64,
        /// Their share of the transfer's duration.
        share: f64,
        /// The longest time in seconds from the transmission of a packet to the point of capture, without that of the
        /// packet before the silence.
        longest: f64,
    },
    /// Nagle's algorithm holds back small segments until the ACK of the data before (RFC 9293, 3.7.4).
    Nagle {
        /// Number of segments.
        times: u64,
        /// Seconds in total.
        waited: f64,
        /// Their share of the time from the first packet with data to the last.
        share: f64,
    },
    /// Limits of the sender, as shares of the time from its first packet with data to the last.
    Limits {
        /// The receiver's window.
        receive_window: f64,
        /// The part of `receive_window` with a window clearly smaller than the largest: the receiving application reads
        /// too slowly.
        small_window: f64,
        /// The application had nothing to send.
        application: f64,
        /// The congestion window, or the send buffer.
        congestion_window: f64,
        /// The part of `congestion_window` with constant outstanding data: the send buffer.
        send_buffer: f64,
        /// Nagle's algorithm.
        nagle: f64,
        /// The largest window of the receiver in bytes.
        window: Option<u64>,
    },
}

/// A named fault with its evidence and remedy.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Diagnosis {
    /// Kind of the finding, with its numbers.
    #[serde(flatten)]
    pub finding: Finding,
    /// How sure it is.
    pub confidence: Confidence,
    /// The name and the evidence, in a sentence.
    pub evidence: String,
    /// The remedy, in a sentence.
    pub remedy: String,
}

impl Diagnosis {
    pub(super) fn new(
        finding: Finding,
        confidence: Confidence,
        evidence: String,
        remedy: &str,
    ) -> Diagnosis {
        Diagnosis { finding, confidence, evidence, remedy: remedy.to_owned() }
    }

    /// Packets of the connection `of` that came from the untranslated address `from`.
    pub(crate) fn untranslated(of: u32, from: Endpoint, packets: u64) -> Diagnosis {
        let evidence = format!(
            "address translation missed packets ({packets}): the sequence numbers are those of connection {of}, the address is {}, \
             which the other end does not know",
            SocketAddr::new(from.addr, from.port)
        );
        let remedy = "look at the connection tracking of the translating host: it treats packets outside of its window as invalid and passes \
            them untranslated (Linux: drop `ctstate INVALID`, or `net.netfilter.nf_conntrack_tcp_be_liberal=1`)";
        let finding = Finding::Untranslated { of, from, packets };
        Diagnosis::new(finding, Confidence::Likely, evidence, remedy)
    }

    /// Effect on the throughput.
    pub fn weight(&self) -> Weight {
        match &self.finding {
            Finding::MtuBlackHole { .. }
            | Finding::Policer { .. }
            | Finding::MergedDropped { .. } => Weight::Decides,
            Finding::SackOutsideWindow { .. }
            | Finding::OptionStripped { .. }
            | Finding::Bufferbloat { .. } => Weight::Limits,
            Finding::WindowScaleOneSided { share: Some(share), .. }
            | Finding::Opening { share, opening: Opening::Handshake, .. }
            | Finding::Nagle { share, .. }
            | Finding::RoundTrips { share, .. }
            | Finding::ClosedWindow { share, .. }
                if *share >= MOSTLY =>
            {
                Weight::Limits
            }
            Finding::ThinkTime { share, .. }
                if *share >= MOSTLY && self.confidence > Confidence::Possible =>
            {
                Weight::Limits
            }
            Finding::ClosedWindow { to_end: true, .. }
            | Finding::HeldBack { .. }
            | Finding::Unanswered { .. }
            | Finding::Untranslated { .. }
            | Finding::InjectedReset { .. } => Weight::Limits,
            Finding::Opening { opening: Opening::Refused | Opening::Rejected, .. } => {
                Weight::Limits
            }
            // A scan sends one SYN to each port.
            Finding::Opening { opening, syns, syn_acks, .. }
                if *opening != Opening::Handshake && (*syns).max(*syn_acks) > 1 =>
            {
                Weight::Limits
            }
            Finding::Limits { receive_window, application, send_buffer, .. }
                if receive_window.max(*application).max(*send_buffer) >= MOSTLY =>
            {
                Weight::Limits
            }
            _ => Weight::Informs,
        }
    }

    /// Whether it explains why a transfer is slow or failed.
    pub fn is_cause(&self) -> bool {
        self.weight() > Weight::Informs
    }

    /// Whether it is about the host that answers the data of the other side.
    pub fn is_of_answers(&self) -> bool {
        matches!(self.finding, Finding::Middlebox { .. })
    }

    /// Whether it explains the missing segments, so that they are no random losses of the link.
    pub fn explains_losses(&self) -> bool {
        matches!(
            self.finding,
            Finding::MtuBlackHole { .. } | Finding::Policer { .. } | Finding::MergedDropped { .. }
        )
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}); {}", self.evidence, self.confidence, self.remedy)
    }
}
