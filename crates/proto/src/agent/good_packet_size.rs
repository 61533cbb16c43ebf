//! A good packet size for the state of the channel (bakshi96 4.1).
//!
//! The paper proposes a fixed table at the base station, which maps an error characteristic of the wireless
//! link to its best packet size. It does not specify how sources learn this size. Here the base station
//! lowers the maximum segment size (MSS) in passing SYNs, in both directions, as current routers do for
//! tunnels. No host changes, and no state per connection is needed. It affects later connections only.

use serde::Serialize;

use super::admit::admit;
use super::{AgentConfig, BaseStation, Config, Read};
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::event::{AgentNote, EventKind, Interest};
use crate::machine::{Machine, Out, Side};
use crate::units::{Bytes, Span, Time};
use crate::wire::{Damage, Flags, Packet, Segment, Transport};

/// State of the channel, and a table of good packet sizes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PacketSizes {
    /// Mean lengths of a bad period, ascending, each with the good packet size from there on: bytes of an IP
    /// packet with headers. Never empty.
    pub table: Vec<(Span, u32)>,
    /// Present mean length of bad periods.
    pub bad_period: Span,
}

impl PacketSizes {
    /// The packet sizes with the highest throughput for a mean good period of 10 s. bakshi96 5.1 has two:
    /// 512 bytes for a mean bad period of 1 s, 384 for 3 s.
    pub fn bakshi96() -> PacketSizes {
        PacketSizes {
            table: vec![(Span::secs(1), 512), (Span::secs(3), 384)],
            bad_period: Span::secs(1),
        }
    }

    /// The good packet size for the present mean bad period, in bytes. It is in the last row whose period
    /// is not longer than this one, or in the first row if all are longer.
    pub fn now(&self) -> u32 {
        let row = self.table.iter().rev().find(|(period, _)| *period <= self.bad_period);
        row.or(self.table.first()).map_or(u32::MAX, |(_, size)| *size)
    }

    /// The MSS that gives a full packet the good size, in IPv4 or in IPv6.
    //= rfc9293#section-3.7.1: the MSS excludes the IP and TCP headers without options
    pub fn mss(&self, v4: bool) -> u16 {
        let headers = if v4 { 40 } else { 60 };
        self.now().saturating_sub(headers).clamp(1, u16::MAX.into()) as u16
    }
}

impl Config for PacketSizes {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "good-packet-size",
        system: System::new(
            Kind::Agent,
            "good-packet-size",
            "path: agent = \"good-packet-size\"",
            "limits packets to the best size for the state of the channel, from a table; clamps the MSS of SYNs",
            "bakshi96 4.1",
        ),
        read,
    }];
    type Agent = PacketSize;

    fn agent(&self) -> PacketSize {
        PacketSize::new(self)
    }

    fn plan(&self) -> String {
        format!("packets up to {} bytes", self.now())
    }

    fn helps_both_ways(&self) -> bool {
        true
    }
}

/// Limit of rows in a table of packet sizes.
const MAX_ROWS: usize = 100;

/// Reads a single size, or a table and the state.
fn read(k: &mut Keys<'_>) -> AgentConfig {
    // The smallest MTU of IPv4 (RFC 791), with room for payload, and the largest packet.
    const SIZES: core::ops::RangeInclusive<Bytes> = Bytes(68)..=Bytes(65_535);
    const ROWS: &str = "a row for each state of the channel, by ascending mean bad period, for example \
        `packet-sizes = [{ bad = \"1s\", size = \"512B\" }, { bad = \"3s\", size = \"384B\" }]`";
    let mut sizes = PacketSizes::bakshi96();
    let mut fixed = None;
    k.maybe("packet-size", &mut fixed, SIZES, "the best size of an IP packet now");
    let doc = "the mean length of the channel's bad periods now";
    k.within("bad-period", &mut sizes.bad_period, Span::ZERO..=Span::secs(86_400), doc);
    let mut table: Vec<(Span, u32)> = Vec::new();
    k.tables("packet-sizes", "the best size for mean bad periods from each value on", |row| {
        let bad = (Span::secs(1), "\"1s\"");
        let bad = row.needed("bad", bad, Span::ZERO..=Span(u64::MAX), "the mean bad period");
        let size = row.needed("size", (Bytes(512), "\"512B\""), SIZES, "the size of an IP packet");
        // A list of keys has no row.
        if !row.has("bad") {
            return;
        }
        if table.last().is_some_and(|(before, _)| *before >= bad) {
            let message =
                format!("`{}` is not longer than that of the row before", row.path("bad"));
            row.refuse("bad", message, "expected bad periods and packet sizes", ROWS);
        }
        table.push((bad, size.0 as u32));
    });
    if k.has("packet-sizes") {
        if table.is_empty() || table.len() > MAX_ROWS {
            let message =
                format!("`{}` is not a list of 1 to {MAX_ROWS} rows", k.path("packet-sizes"));
            k.refuse("packet-sizes", message, "expected bad periods and packet sizes", ROWS);
        } else {
            sizes.table = table;
        }
    }
    if let Some(size) = fixed {
        if let Some(other) = k.first(&["bad-period", "packet-sizes"]) {
            k.refuse(
                "packet-size",
                format!("`packet-size` and `{other}` exclude each other"),
                "which of them?",
                "write the size, `packet-size = \"512B\"`, or a table and the state of the channel",
            );
        }
        sizes = PacketSizes { table: vec![(Span::ZERO, size.0 as u32)], bad_period: Span::ZERO };
    }
    AgentConfig::GoodPacketSize(sizes)
}

/// The default MSS of a peer without the option.
//= rfc9293#section-3.7.1: 536 for IPv4 and 1220 for IPv6
const fn assumed_mss(v4: bool) -> u16 {
    if v4 { 536 } else { 1220 }
}

/// Limit of a TCP header with options, bytes; the MSS option takes four.
const HEADER_MAX: u32 = 60;

/// The agent that clamps the MSS of passing SYNs.
#[derive(Clone, Copy, Debug)]
pub struct PacketSize {
    /// Limits of the announced MSS: over IPv6, over IPv4.
    mss: [u16; 2],
}

impl PacketSize {
    /// An agent for the state that `sizes` describes.
    pub fn new(sizes: &PacketSizes) -> PacketSize {
        PacketSize { mss: [sizes.mss(false), sizes.mss(true)] }
    }

    fn clamp(&self, packet: &mut Packet, out: &mut Out) {
        let v4 = packet.src.is_v4();
        let mss = self.mss[usize::from(v4)];
        let flow = packet.flow();
        let Transport::Tcp(segment) = &mut packet.transport else { return };
        let announced = segment.options().mss;
        if announced.unwrap_or(assumed_mss(v4)) <= mss {
            return;
        }
        if announced.is_none() && segment.header_len() + 4 > HEADER_MAX {
            return;
        }
        segment.options_mut().mss = Some(mss);
        if let Some(flow) = flow
            && out.accepts(Interest::RESULTS)
        {
            out.event(EventKind::Agent { flow, note: AgentNote::SegmentClamped { mss } });
        }
    }
}

impl BaseStation for PacketSize {}

impl Machine for PacketSize {
    fn check(&self) {
        debug_assert!(self.holds() == 0, "the agent buffers nothing");
    }

    fn on_packet(&mut self, _now: Time, from: Side, packet: Packet, out: &mut Out) {
        let Some(mut packet) = admit(from, packet, out) else { return };
        // A damaged segment would get a correct checksum, which would hide its damage.
        let opens = packet.segment().is_some_and(|segment| segment.flags.has(Flags::SYN));
        // The signature covers the changed bytes.
        let signed = packet.segment().is_some_and(Segment::is_signed);
        if opens && !signed && packet.damage == Damage::None {
            self.clamp(&mut packet, out);
        }
        out.send(from.other(), packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_as_steps() {
        let mut sizes = PacketSizes::bakshi96();
        for (period, size) in
            [(0, 512), (999, 512), (1000, 512), (2999, 512), (3000, 384), (9000, 384)]
        {
            sizes.bad_period = Span::millis(period);
            assert_eq!(sizes.now(), size, "{period} ms");
        }
    }
}
