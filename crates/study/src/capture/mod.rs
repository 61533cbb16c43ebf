//! A capture as text, plots and a page.

pub mod congestion;
mod files;
mod filter;
pub mod matched;
mod over_time;
mod page;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use lasthop_analyze::{
    Analysis, Cause, Closing, Connection, Diagnosis, Direction, Endpoint, Finding, Opening,
    OrderEvidence, Retransmissions, StallCause, WifiStation,
};
use lasthop_observe::capture::Dropped;
use lasthop_proto::units::{Span, Time};
use lasthop_report::number::{KIB, in_mbit, plural, short};
use serde::Serialize;

use congestion::{Recognition, congestion};

pub use files::{Content, files};
pub use filter::Filter;
use over_time::over_time;
pub use page::series;
pub use tables::summary;

/// A part of the round trip below this, in seconds and as a share, is processing time of the host.
const ASIDE: f64 = 0.001;
const ASIDE_SHARE: f64 = 0.1;

/// Maximum number of 802.11 transmitters in the heading.
const STATIONS: usize = 4;

/// Maximum number of causes in the heading.
const CAUSES: usize = 3;

/// Ratio of all packets to the copies from which on only some packets are duplicated.
const SPORADIC: u64 = 4;

/// Maximum number of transfers described individually.
pub const DESCRIBED: usize = 8;

/// A file and its analysis.
#[derive(Debug, Serialize)]
pub struct Capture {
    /// File name as given.
    pub file: String,
    #[serde(flatten)]
    pub analysis: Analysis,
    /// Connections removed by a [`Filter`].
    pub left_out: u64,
}

/// A direction of a connection with data.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    pub connection: &'a Connection,
    /// The sender's packets.
    pub data: &'a Direction,
    /// The receiver's packets.
    pub back: &'a Direction,
    from: Endpoint,
    to: Endpoint,
}

impl Capture {
    /// The directions with data, those with most bytes first.
    pub fn transfers(&self) -> Vec<Transfer<'_>> {
        let mut all: Vec<_> = self.analysis.connections.iter().flat_map(Transfer::both).collect();
        all.retain(|transfer| transfer.data.unique_bytes > 0);
        all.sort_by_key(|transfer| core::cmp::Reverse(transfer.data.unique_bytes));
        all
    }

    /// Directions without captured data about which the capture gives evidence.
    pub fn silent(&self) -> Vec<Transfer<'_>> {
        let mut all: Vec<_> = self.analysis.connections.iter().flat_map(Transfer::both).collect();
        all.retain(|silent| silent.data.unique_bytes == 0 && !silent.data.diagnoses.is_empty());
        all
    }

    /// For each connection the diagnosis that explains best why it is slow or failed: that with most bytes, then those with
    /// a fault, then those that wait for an application or a buffer.
    fn causes(&self) -> Vec<String> {
        let all: Vec<_> = self.transfers().into_iter().chain(self.silent()).collect();
        let mut seen = BTreeSet::new();
        let subflows = subflows(&self.analysis.connections);
        let mut found = Vec::new();
        for transfer in &all {
            let number = transfer.connection.number;
            if !seen.insert(number) {
                continue;
            }
            // The smaller direction waits for requests.
            let both = transfer.data.diagnoses.iter().map(|diagnosis| (diagnosis, true));
            let both =
                both.chain(transfer.back.diagnoses.iter().map(|diagnosis| (diagnosis, false)));
            let is_share = |d: &Diagnosis| matches!(d.finding, Finding::Limits { .. });
            // A subflow without data to send waits for the scheduler, which prefers another one.
            let first = transfer.connection.multipath;
            let several = first.is_some_and(|first| subflows[&first].len() > 1);
            let shares = |main: bool| main && !several;
            let waits = |d: &Diagnosis| {
                matches!(d.finding, Finding::ThinkTime { .. }) && self.is_of_another(transfer)
            };
            let causes = both
                .filter(|(d, main)| d.is_cause() && (shares(*main) || !is_share(d)) && !waits(d));
            let best = causes.max_by_key(|(d, main)| (d.weight(), !is_share(d), *main));
            if let Some((best, _)) = best {
                let line = format!("cause ({number}): {} ({})", best.evidence, best.confidence);
                let waits = matches!(best.finding, Finding::ThinkTime { .. });
                found.push((!found.is_empty() && (waits || is_share(best)), line));
            }
        }
        found.sort_by_key(|(waits, _)| *waits);
        let more = found.len().saturating_sub(CAUSES) as u64;
        let mut lines: Vec<String> = found.into_iter().take(CAUSES).map(|(_, line)| line).collect();
        if more > 0 {
            lines.push(format!(
                "and causes of {}, below or in --json",
                plural(more, "more connection")
            ));
        }
        lines
    }

    /// Whether a connection between the same hosts carries more data meanwhile, as that of a control connection: the silences of
    /// this one explain nothing.
    fn is_of_another(&self, transfer: &Transfer<'_>) -> bool {
        let bytes = |c: &Connection| c.to_server.unique_bytes + c.to_client.unique_bytes;
        let own = transfer.connection;
        self.analysis.connections.iter().any(|c| {
            let hosts = (c.client.addr, c.server.addr) == (own.client.addr, own.server.addr);
            hosts && c.began <= own.ended && own.began <= c.ended && bytes(c) > bytes(own)
        })
    }

    /// Facts about the file as a whole, unreadable packets included.
    pub fn heading(&self) -> Vec<String> {
        let Analysis { packets, tcp_packets, connections, .. } = &self.analysis;
        let all = connections.len() as u64 + self.left_out;
        let mut lines = vec![format!(
            "{}, {} of them TCP; {}",
            plural(*packets, "packet"),
            tcp_packets,
            plural(all, "connection")
        )];
        lines.extend(self.causes());
        if self.left_out > 0 {
            lines.push(format!("{} of them left out by the filters", self.left_out));
        }
        lines.extend(unread(&self.analysis));
        lines.extend(other(&self.analysis));
        let a = &self.analysis;
        let of = [
            (a.damaged_packets, "left out for a wrong checksum"),
            (a.missed_packets, "not read in time, and missing here"),
            (a.ignored_packets, "left out because there are too many connections"),
        ];
        for (n, reason) in of.into_iter().filter(|(n, _)| *n > 0) {
            lines.push(format!("note: {} {reason}", plural(n, "packet")));
        }
        for dropped in &a.dropped {
            let Dropped { interface, by_interface, by_system, before_packets } = dropped;
            let at = if interface.is_empty() { String::new() } else { format!(" at {interface}") };
            lines.push(format!(
                "note: the capture itself dropped packets{at}: {by_interface} by the interface, {by_system} by the system{}; they are missing \
                 here",
                if *before_packets > 0 { format!(", {before_packets} by notes at packets") } else { String::new() }
            ));
        }
        if a.clock_steps > 0 {
            lines.push(format!(
                "note: times go back {}, by {:.3} s in total: the clock was set back, or files were appended; later times are \
                 corrected",
                plural(a.clock_steps, "time"),
                a.clock_back
            ));
        }
        let (frames, retries) = a.wifi.iter().fold((0, 0), |(frames, retries), station| {
            (frames + station.frames, retries + station.retries)
        });
        if frames > 0 {
            let share = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
            let stations = a.wifi.iter().take(STATIONS).map(|station| {
                let WifiStation { address, frames, retries, rate } = station;
                let rate = rate
                    .map_or(String::new(), |rate| format!(", {} on average", in_mbit(rate / 8.0)));
                format!("{address} {retries} of {frames} ({:.1} %{rate})", share(*retries, *frames))
            });
            lines.push(format!(
                "802.11: {retries} of {frames} data frames are retries of the link ({:.1} %); by transmitter: {}",
                share(retries, frames),
                stations.collect::<Vec<_>>().join(", ")
            ));
        }
        if a.copied_packets > 0 {
            lines.push(format!(
                "note: {} of TCP {} a second time, {}: left out",
                plural(a.copied_packets, "packet"),
                if a.copied_packets == 1 { "is here" } else { "are here" },
                if a.copied_packets * SPORADIC < a.tcp_packets {
                    "as from a network that duplicates packets, or from two interfaces for a part of them"
                } else {
                    "as from a mirror port or two interfaces of one router"
                }
            ));
        }
        let directions = || connections.iter().flat_map(|c| [&c.to_server, &c.to_client]);
        let total = |of: fn(&Direction) -> u64| directions().map(of).sum::<u64>();
        lines.extend(multipath(connections));
        for connection in connections.iter().take(DESCRIBED) {
            if let Some(of) = connection.translated {
                lines.push(format!(
                    "note: connection {} is connection {of} on the other side of address translation: its sequence numbers are the same",
                    connection.number
                ));
            }
            if let Some(half) =
                connection.half.and_then(|half| connections.iter().find(|c| c.number == half))
            {
                let way = |c: &Connection| {
                    let rtt = c.handshake_rtt.map_or(0.0, Span::as_secs_f64);
                    let bytes = c.to_server.unique_bytes.max(c.to_client.unique_bytes);
                    format!(
                        "round trip {} ms, {} KiB",
                        short((rtt * 1e4).round() / 10.0),
                        short((bytes as f64 / KIB * 10.0).round() / 10.0)
                    )
                };
                lines.push(format!(
                    "note: connections {} ({}) and {} ({}) are two halves: a PEP or proxy between them splits one connection, with sequence \
                     numbers of its own",
                    half.number, way(half), connection.number, way(connection)
                ));
            }
        }
        let early = total(|direction| direction.acked_before_seen);
        if early > 0 {
            lines.push(format!(
                "note: {} with data behind the ACK that covers it: the order in the file is not that on the wire",
                plural(early, "packet")
            ));
        }
        let missed = total(|direction| direction.missed_bytes);
        if missed > 0 {
            lines.push(format!(
                "note: {missed} B were acknowledged and are not in the capture, which has missed packets: volumes and rates are \
                 too low"
            ));
        }
        let cut = total(|direction| direction.options_cut);
        if cut > 0 {
            lines.push(format!(
                "note: the TCP options of {} are cut off by the snap length (capture with `-s 128`), or malformed",
                plural(cut, "packet")
            ));
        }
        if !connections.is_empty() && connections.iter().all(|c| c.ended == Time::ZERO) {
            lines.push(
                "note: the packets have no times, as in simple packet blocks of pcapng: round trips, rates, stalls and \
                 the kinds of retransmissions are unknown"
                    .to_owned(),
            );
        }
        if a.truncated {
            lines.push(
                "note: the file ends within a packet; this covers what came before".to_owned(),
            );
        }
        if let Some(error) = &a.error {
            lines.push(format!("note: reading stopped early: {error}"));
        }
        lines
    }
}

/// Unread packets with the reason: "123 packets not read: 120 ESP, 3 of unknown link type 147".
pub fn unread(analysis: &Analysis) -> Option<String> {
    let kinds = analysis.unread.iter().map(|unread| (unread.packets, unread.reason.to_string()));
    listed(analysis.unread_packets, "not read", kinds)
}

/// Subflows of each MPTCP connection, by the number of the first one.
fn subflows(connections: &[Connection]) -> BTreeMap<u32, Vec<&Connection>> {
    let mut subflows: BTreeMap<u32, Vec<&Connection>> = BTreeMap::new();
    for connection in connections {
        if let Some(first) = connection.multipath {
            subflows.entry(first).or_default().push(connection);
        }
    }
    subflows
}

/// Connections with several subflows of MPTCP.
fn multipath(connections: &[Connection]) -> Vec<String> {
    let subflows = subflows(connections);
    let several = subflows.values().filter(|subflows| subflows.len() > 1);
    let line = |subflows: &Vec<&Connection>| {
        let each = |c: &&Connection| {
            let bytes = c.to_server.unique_bytes + c.to_client.unique_bytes;
            format!("{} ({} KiB)", c.number, short((bytes as f64 / KIB * 10.0).round() / 10.0))
        };
        let all: Vec<String> = subflows.iter().take(DESCRIBED).map(each).collect();
        format!(
            "note: {} subflows of one MPTCP connection, by their tokens: {}; each has losses and round trips of its own",
            subflows.len(),
            all.join(", ")
        )
    };
    several.take(CAUSES).map(line).collect()
}

/// Packets that are not TCP, by protocol.
fn other(analysis: &Analysis) -> Option<String> {
    let kinds = analysis.other.iter().map(|other| (other.packets, other.protocol.to_string()));
    listed(analysis.other_packets, "of other protocols", kinds)
}

fn listed(
    all: u64,
    description: &str,
    kinds: impl ExactSizeIterator<Item = (u64, String)>,
) -> Option<String> {
    /// Maximum number of kinds listed individually.
    const MAX_LISTED: usize = 6;
    let more = kinds.len().saturating_sub(MAX_LISTED);
    let mut parts: Vec<String> =
        kinds.take(MAX_LISTED).map(|(packets, kind)| format!("{packets} {kind}")).collect();
    if more > 0 {
        parts.push(format!("{more} more kinds (--json has them all)"));
    }
    (all > 0).then(|| format!("{} {description}: {}", plural(all, "packet"), parts.join(", ")))
}

impl<'a> Transfer<'a> {
    /// The client of the connection is the sender.
    pub fn is_from_client(&self) -> bool {
        self.from == self.connection.client
    }

    fn both(connection: &'a Connection) -> [Transfer<'a>; 2] {
        let Connection { client, server, to_server, to_client, .. } = connection;
        let (data, back, from, to) = (to_server, to_client, *client, *server);
        let forth = Transfer { connection, data, back, from, to };
        [forth, Transfer { data: back, back: data, from: to, to: from, ..forth }]
    }

    pub fn title(&self) -> String {
        format!("{} > {}", end(&self.from), end(&self.to))
    }

    /// A file name: `connection-3-to-server`.
    pub fn file_name(&self) -> String {
        let to = if self.to == self.connection.server { "server" } else { "client" };
        format!("connection-{}-to-{to}", self.connection.number)
    }

    /// Seconds from the first packet of the connection to the last.
    pub fn seconds(&self) -> f64 {
        seconds(self.connection.began, self.connection.ended)
    }

    /// Seconds of the round trip between the point of capture and the sender, zero if they are few; `None` without a
    /// captured handshake.
    pub fn near(&self) -> Option<f64> {
        let (whole, server) = self.connection.handshake_rtt.zip(self.connection.syn_ack)?;
        let part = if self.is_from_client() { whole.saturating_sub(server) } else { server };
        let (part, whole) = (part.as_secs_f64(), whole.as_secs_f64());
        Some(if part > ASIDE && part > ASIDE_SHARE * whole { part } else { 0.0 })
    }

    /// The verdict as a sentence.
    fn judged(&self) -> String {
        let verdict = &self.data.verdict;
        let cause = match verdict.cause {
            Cause::NoLoss => return verdict.evidence.clone(),
            Cause::Radio => "radio, mostly",
            Cause::Queue => "queue, mostly",
            Cause::Both => "radio and queue",
            Cause::Unclear => "unclear",
        };
        format!("{cause}: {}", verdict.evidence)
    }

    /// The probable congestion control of the sender, if one is likely enough.
    fn control(&self) -> Option<String> {
        let Recognition { control, confidence, evidence, .. } = congestion(self);
        let sure = (confidence * 100.0).min(99.0);
        control
            .map(|control| format!("looks like {}, {sure:.0} % sure: {evidence}", control.name()))
    }

    /// The diagnoses of a direction whose data was not captured.
    pub fn diagnoses(&self) -> Vec<(&'static str, String)> {
        let diagnoses = self.data.diagnoses.iter();
        diagnoses.map(|diagnosis| ("diagnosis", diagnosis.to_string())).collect()
    }

    /// Name and value of each figure.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let Transfer { connection, data, back, .. } = self;
        let kb = |bytes: u64| format!("{} KiB", short((bytes as f64 / KIB * 10.0).round() / 10.0));
        let opening = match connection.opening {
            Opening::Handshake => "",
            Opening::Refused => ", refused",
            Opening::Rejected => ", rejected by an ICMP error",
            Opening::Unanswered => ", without an answer to its SYN",
            Opening::Unconfirmed => ", without an ACK of its SYN-ACK",
            Opening::MidConnection => ", open before the capture began",
        };
        let closing = match connection.closing {
            Closing::Fin => "",
            Closing::HalfClosed => ", closed by one side",
            Closing::Reset => ", reset",
            Closing::Open => ", not closed in the capture",
        };
        let segments = match data.data_segments {
            n if n == data.data_packets => String::new(),
            n => format!(" of {}", plural(n, "segment")),
        };
        let mut facts = vec![(
            "data",
            format!(
                "{} in {}{segments}, {:.2} s{opening}{closing}",
                kb(data.unique_bytes),
                plural(data.data_packets, "packet"),
                data.duration.unwrap_or(0.0)
            ),
        )];
        if let Some(throughput) = data.throughput {
            let goodput = data.goodput.map_or(String::new(), |g| format!("; goodput {:.4}", g));
            facts.push(("throughput", format!("{}{goodput}", in_mbit(throughput / 8.0))));
        }
        if let Some(rtt) = &data.rtt {
            let ms = |s: f64| short((s * 1e4).round() / 10.0);
            facts.push((
                "round trip",
                format!(
                    "{} ms mean, {} to {} ms, {}",
                    ms(rtt.mean),
                    ms(rtt.min),
                    ms(rtt.max),
                    plural(rtt.samples, "sample")
                ),
            ));
        }
        facts.push(("retransmitted", retransmissions(&data.retransmissions)));
        if let Some(signature) = data.signature {
            let all = plural(data.packets, "packet");
            facts.push(("signed", format!("{} of {all}, by {signature}", data.signed)));
        }
        facts.push(("dup ACKs", back.duplicate_acks.to_string()));
        if data.out_of_order > 0 {
            facts.push(("reordered", plural(data.out_of_order, "packet")));
        }
        if let Some(evidence) = order_evidence(&data.order_evidence) {
            facts.push(("evidence", evidence));
        }
        if data.restarts > 0 {
            let again = plural(data.restarts.into(), "time");
            facts.push(("restarted", format!("{again}, with a new initial sequence number")));
        }
        if !data.losses.is_empty() {
            let all = data.lost_segments;
            let share = 100.0 * all as f64 / data.data_segments.max(1) as f64;
            let judged = data.verdict.losses;
            let silent = data.losses.iter().filter(|loss| !loss.reported).count();
            let silent = match silent {
                0 => String::new(),
                n => format!("; {n} known by silence alone: the segment or its ACK was lost"),
            };
            facts
                .push(("losses", format!("{all} ({share:.2} % of the segments); {judged} of them count for the verdict{silent}")));
        }
        facts.push(("stalls", silences(data, false).unwrap_or_else(|| "none".to_owned())));
        facts.extend(silences(data, true).map(|idle| ("idle", idle)));
        facts.push(("verdict", self.judged()));
        facts.extend(self.control().map(|control| ("sender", control)));
        facts.extend(self.diagnoses());
        facts
    }
}

fn retransmissions(all: &Retransmissions) -> String {
    let kinds = [
        (all.fast, "fast"),
        (all.recovery, "in recovery"),
        (all.timeout, "by timeout"),
        (all.after_timeout, "after a timeout"),
        (all.spurious, "after their ACK"),
        (all.other, "otherwise"),
    ];
    let needless = match all.needless {
        0 => String::new(),
        n => format!("; {n} of them needlessly"),
    };
    let kinds: Vec<String> =
        kinds.into_iter().filter(|(n, _)| *n > 0).map(|(n, kind)| format!("{n} {kind}")).collect();
    match all.total() {
        0 => "nothing".to_owned(),
        total => format!("{}: {}{needless}", plural(total, "packet"), kinds.join(", ")),
    }
}

/// Evidence whether packets that filled gaps were reordered or retransmitted, with its confidence.
fn order_evidence(order: &OrderEvidence) -> Option<String> {
    let kinds = [
        (order.timestamps, "timestamps"),
        (order.ip_ids, "IP ids"),
        (order.unreported, "missing reports of the peer"),
        (order.round_trip, "round trips"),
        (order.age_alone, "their age alone, which is a guess"),
    ];
    let kinds: Vec<String> = kinds
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, method)| format!("{n} by {method}"))
        .collect();
    (!kinds.is_empty()).then(|| format!("packets that filled gaps: {}", kinds.join(", ")))
}

/// Silences of a sender by cause: with `idle` those without data to send, otherwise all others.
fn silences(data: &Direction, idle: bool) -> Option<String> {
    let causes = [
        (StallCause::Timeout, "waiting for the timer"),
        (StallCause::ZeroWindow, "closed window"),
        (StallCause::ApplicationIdle, "with nothing to send"),
        (StallCause::AckDelayed, "late ACK"),
        (StallCause::HeldBack, "held back before the point of capture"),
        (StallCause::Unclear, "unclear"),
    ];
    let parts: Vec<String> = causes
        .into_iter()
        .filter(|(cause, _)| (*cause == StallCause::ApplicationIdle) == idle)
        .filter_map(|(cause, words)| {
            let of = || data.stalls.iter().filter(|stall| stall.cause == cause);
            let time: f64 = of().map(|stall| seconds(stall.from, stall.to)).sum();
            (of().count() > 0).then(|| format!("{} {words} ({time:.1} s)", of().count()))
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn seconds(from: Time, to: Time) -> f64 {
    to.0.saturating_sub(from.0) as f64 / 1e9
}

fn end(end: &Endpoint) -> String {
    std::net::SocketAddr::new(end.addr, end.port).to_string()
}
