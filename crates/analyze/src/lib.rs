//! Analysis of the TCP connections in a capture.
//!
//! [`analyze_capture`] reads any pcap or pcapng file, [`Reader`] reads one in pieces, and [`Analyzer`] accepts single
//! packets. The result is an [`Analysis`]: all connections with, for each direction, volumes, round-trip times,
//! retransmissions by kind, losses with a verdict on their cause, stalls, and points of a plot. Rendering is elsewhere.
//!
//! # Definitions
//!
//! The counts ([`Retransmissions`]) differ intentionally from those of Wireshark (`tcp.analysis.*`):
//!
//! - Wireshark calls a packet "out of order" if it arrives within one round-trip time of the highest sequence number.
//!   Therefore most SACK retransmissions of a busy sender are "out of order". Here the bytes decide: bytes that have
//!   passed the point of capture before are a retransmission. New bytes are out of order only if the gap is younger than
//!   the first round trip, since no sender could have detected the loss sooner.
//! - Wireshark has one kind of other retransmissions. Here their kind depends on the evidence at the sender: duplicate
//!   ACKs or SACK blocks (fast), an episode in progress (recovery), or a silence that only a timer ends (timeout).
//!
//! # Radio or queue
//!
//! Each direction has one [`Verdict`]: losses that are more frequent at long round trips, by Fisher's exact test, are
//! those of a queue. The verdict is "unclear" more often than wrong, and single losses have no label.
//! `docs/how-to/analyze.md` has the rule and its limits.
//!
//! # Bounds
//!
//! Time is linear in the number of packets. A connection stores at most [`Config::points`] plot points, as many
//! samples of values over time, [`Config::losses`] losses and stalls, and a few thousand outstanding segments and
//! gaps for each direction. A capture stores at most [`Config::connections`] connections, and [`Config::listed`]
//! points, samples, losses and stalls of all of them. Entries beyond a bound are counted.

mod acks;
mod config;
mod connection;
mod contents;
mod copies;
mod diagnose;
mod direction;
mod finding;
mod frames;
mod handshake;
mod matched;
mod memory;
mod multipath;
mod over_time;
mod reading;
mod stats;
mod table;
mod translated;
mod verdict;

pub use config::Config;
pub use finding::{Confidence, Diagnosis, EcnState, Finding, Negotiated, OneSided, Weight};
pub use matched::{Clocks, Crossing, Delay, LostBetween, Matched, match_captures};
pub use over_time::{InFlight, MeasuredBy, OverTime, RoundTrip, Samples, Volume, Volumes};
pub use reading::{
    Analysis, Cause, Closing, Connection, Direction, Endpoint, Loss, LossLocation, Opening,
    OrderEvidence, Other, Point, PointKind, Retransmission, Retransmissions, Signature, Stall,
    StallCause, Unread, Verdict, WifiStation,
};
pub use stats::Spread;
pub use table::{Analyzer, Reader, analyze_capture, analyze_together};
