//! Options of the handshake that only one end has, or that the path removes.

use lasthop_proto::wire::{Flags, Segment};

use super::limits::LINK_IS_FULL;
use crate::finding::{Confidence, Diagnosis, Finding, Negotiated, OneSided};
use crate::multipath::is_multipath;
use crate::reading::Direction;

/// Minimum number of packets that lack a mandatory option; fewer may be a single error.
const FEWEST: u64 = 3;

/// The options in the SYN or SYN-ACK of one side, and in its later packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opened {
    /// Whether its SYN or SYN-ACK was captured with all options.
    seen: bool,
    mss: Option<u16>,
    scale: Option<u8>,
    sack: bool,
    timestamps: bool,
    multipath: bool,
    /// Whether SYNs of this side differ: an end without an answer retries with fewer options.
    differ: bool,
    /// Later packets with timestamps, and without.
    with: u64,
    without: u64,
}

impl Opened {
    /// Processes a packet of this side. The capture may lack options of a packet that is `cut`.
    pub(super) fn packet(&mut self, segment: &Segment, cut: bool) {
        let options = segment.options();
        let stamped = segment.timestamps.is_some();
        if !segment.flags.has(Flags::SYN) {
            //= rfc7323#section-3.2: once agreed on, every segment but a reset must have timestamps
            if !segment.flags.has(Flags::RST) && (stamped || !cut) {
                *(if stamped { &mut self.with } else { &mut self.without }) += 1;
            }
            return;
        }
        let new = Opened {
            seen: !cut,
            mss: options.mss,
            scale: options.window_scale,
            sack: options.sack_permitted,
            timestamps: stamped,
            multipath: is_multipath(segment),
            ..Opened::default()
        };
        let same = new.scale == self.scale
            && new.sack == self.sack
            && new.timestamps == self.timestamps
            && new.multipath == self.multipath;
        *self = Opened { differ: self.seen && (self.differ || !same), ..new };
    }

    /// The announced segment size in bytes.
    pub(super) fn mss(&self) -> Option<u32> {
        self.mss.filter(|mss| *mss > 0).map(u32::from)
    }

    /// Whether the SYN or SYN-ACK permits SACK.
    pub(super) fn sack(&self) -> bool {
        self.sack
    }

    /// Whether the SYN or SYN-ACK had timestamps.
    pub(super) fn timestamps(&self) -> bool {
        self.timestamps
    }
}

fn one_sided(client: bool, server: bool) -> Option<OneSided> {
    match (client, server) {
        (true, false) => Some(OneSided::Client),
        (false, true) => Some(OneSided::Server),
        _ => None,
    }
}

/// The sides with and without the option.
fn who(by: OneSided) -> &'static str {
    match by {
        OneSided::Client => "the SYN has it and the SYN-ACK has not",
        OneSided::Server => {
            "the SYN-ACK has it and the SYN has not, so something on the path removed or added it"
        }
    }
}

/// The receiver's window.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// Its share of the time as a limit.
    pub share: f64,
    /// Its largest size in bytes.
    pub window: Option<u64>,
    /// Whether it fills a queue, so that the link is full.
    pub queued: bool,
}

/// Diagnoses options that only one end has, if both the SYN and the SYN-ACK were captured.
pub(super) fn diagnose(
    opened: [&Opened; 2],
    opener: Option<usize>,
    limit: Option<Limit>,
) -> Vec<Diagnosis> {
    let Some(opener) = opener else { return Vec::new() };
    let (client, server) = (opened[opener], opened[1 - opener]);
    if !(client.seen && server.seen) || client.differ || server.differ {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Some(by) = one_sided(client.scale.is_some(), server.scale.is_some()) {
        let shift = client.scale.or(server.scale).expect("one side offers it");
        found.push(scale(by, shift, limit));
    }
    for (option, one, other) in [
        (Negotiated::Sack, client.sack, server.sack),
        (Negotiated::Timestamps, client.timestamps, server.timestamps),
        (Negotiated::Multipath, client.multipath, server.multipath),
    ] {
        found.extend(one_sided(one, other).map(|by| unused(option, by)));
    }
    found
}

fn scale(by: OneSided, shift: u8, limit: Option<Limit>) -> Diagnosis {
    let (share, window) = (limit.map(|l| l.share), limit.and_then(|l| l.window));
    let bytes = window.unwrap_or(u16::MAX.into());
    let effect = match share {
        Some(share) => format!(
            "the receiver's window of {bytes} B was the limit for {:.0} % of the time",
            share * 100.0
        ),
        None => "no window exceeds 65535 B".to_owned(),
    };
    let evidence = format!("window scale (shift {shift}) by one side only: {}; {effect}", who(by));
    let remedy = if limit.is_some_and(|l| l.queued) {
        LINK_IS_FULL
    } else {
        "turn window scaling on at the end that has none (Linux: `net.ipv4.tcp_window_scaling=1`); if it is on \
        there, look for a firewall or PEP that removes TCP options, by captures at both ends"
    };
    let finding = Finding::WindowScaleOneSided { by, shift, window, share };
    Diagnosis::new(finding, Confidence::Certain, evidence, remedy)
}

fn unused(option: Negotiated, by: OneSided) -> Diagnosis {
    let evidence = format!("{option} by one side only: {}, so it is not used", who(by));
    let switch = match option {
        Negotiated::Sack => "net.ipv4.tcp_sack=1",
        Negotiated::Timestamps => "net.ipv4.tcp_timestamps=1",
        Negotiated::Multipath => "net.mptcp.enabled=1",
    };
    let remedy = format!(
        "turn it on at the end that has none (Linux: `{switch}`); if it is on there, look for a firewall or PEP that \
         removes TCP options, by captures at both ends"
    );
    Diagnosis::new(Finding::OptionOneSided { option, by }, Confidence::Certain, evidence, &remedy)
}

/// Diagnoses options on which both ends agreed and that later packets of `data` or `back` lack.
pub(super) fn stripped(opened: [&Opened; 2], data: &Direction, back: &Direction) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    let remedy = "look for a firewall or PEP that rewrites options, by captures at both ends, and let it pass them";
    if opened.iter().all(|side| side.seen && side.timestamps) {
        let (without, with) =
            opened.iter().fold((0, 0), |(a, b), side| (a + side.without, b + side.with));
        if opened.iter().any(|side| side.without >= FEWEST && side.without > side.with) {
            let evidence = format!(
                "timestamps are removed on the path: both ends agreed on them, and {without} packets have none"
            );
            let option = Negotiated::Timestamps;
            let finding = Finding::OptionStripped { option, without, with };
            found.push(Diagnosis::new(finding, Confidence::Likely, evidence, remedy));
        }
    }
    let repaired = data.retransmissions.fast + data.retransmissions.recovery;
    let without = back.duplicate_acks;
    if opened.iter().all(|side| side.seen && side.sack)
        && repaired > 0
        && back.sack_acks == 0
        && back.options_cut == 0
        && without >= FEWEST
    {
        let evidence = format!(
            "SACK blocks are removed on the path: both ends agreed on SACK, and none of {without} duplicate ACKs has one, \
             though {repaired} losses were repaired"
        );
        let finding =
            Finding::OptionStripped { option: Negotiated::Sack, without, with: back.sack_acks };
        found.push(Diagnosis::new(finding, Confidence::Likely, evidence, remedy));
    }
    found
}
