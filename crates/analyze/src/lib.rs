//! What happened to TCP in a capture.
//!
//! [`analyze_capture`] reads any pcap or pcapng file, [`Reader`] one that comes in pieces; [`Analyzer`] takes packets one by one. The answer is an
//! [`Analysis`]: every connection with, for each direction, volumes, round-trip times, retransmissions by
//! kind, losses with a verdict on their cause, stalls, and points to plot. Nothing is rendered here.
//!
//! # Definitions
//!
//! Wireshark's counts are kept beside ours ([`WiresharkCounts`]): they follow `tcp_analyze_sequence_number` of its
//! version 4.0 and agree with `tshark` packet by packet. Ours ([`Retransmissions`]) differ knowingly:
//!
//! - Wireshark calls a packet "out of order" when it comes within one round-trip time of the highest sequence number,
//!   so most SACK retransmissions of a busy sender are "out of order" to it. Here the bytes decide: what this
//!   point of capture has seen before is a retransmission; what it has not is out of order only if the gap
//!   is younger than the first round trip, since no sender could have learnt of the loss sooner.
//! - Wireshark has one kind of other retransmission; here they are told apart by what the sender knew: duplicate ACKs
//!   or SACK blocks (fast), an episode in progress (recovery), or a silence that only a timer ends (timeout).
//!
//! # Radio or queue
//!
//! [`Verdict`] is one for each direction: losses that prefer long round trips, by Fisher's exact test, are a queue's;
//! those that do not are not. It is "unclear" more often than wrong; single losses carry no label. `docs/how-to/analyze.md`
//! has the rule and what it cannot tell.
//!
//! # Bounds
//!
//! Time is linear in the number of packets. A connection keeps at most [`Config::points`] plot points,
//! as many samples of what changes over time, [`Config::losses`] losses and stalls, and a few thousand outstanding segments and gaps for each direction; a capture
//! keeps at most [`Config::connections`] connections, and [`Config::listed`] points, samples, losses and stalls of all of them. What exceeds a bound is counted, never silently lost.

mod acks;
mod config;
mod connection;
mod contents;
mod copies;
mod diagnose;
mod direction;
mod handshake;
mod matched;
mod memory;
mod over_time;
mod reading;
mod stats;
mod table;
mod verdict;
mod wireshark;

pub use config::Config;
pub use diagnose::{Confidence, Diagnosis, EcnState, Finding, Negotiated, OneSided, Weight};
pub use matched::{Clocks, Crossing, Delay, LostBetween, Matched, match_captures};
pub use over_time::{InFlight, MeasuredBy, OverTime, RoundTrip, Samples, Volume, Volumes};
pub use reading::{
    Analysis, Cause, Closing, Connection, Direction, Endpoint, Loss, Opening, OrderEvidence, Other,
    Point, PointKind, Retransmission, Retransmissions, Seen, Stall, StallCause, Unread, Verdict,
    WiresharkCounts,
};
pub use stats::Spread;
pub use table::{Analyzer, Reader, analyze_capture};
