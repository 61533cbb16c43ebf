//! The example of 3.4, Figure 6, packet by packet: two TULIP ends, and a channel with the losses of the figure.

use std::collections::{BTreeMap, VecDeque};

use lasthop_proto::air::Station;
use lasthop_proto::event::{Cause, LinkNote};
use lasthop_proto::link::end::{Above, LinkEnd, MacSignal};
use lasthop_proto::link::frame::{Frame, Header, Load, Timing};
use lasthop_proto::link::tulip::{Tulip, TulipConfig};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq};
use lasthop_report::model::Figure;
use lasthop_report::plot::{Message, Messages};

use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted};

/// The network layer above an end.
#[derive(Default)]
struct Network {
    waiting: VecDeque<Packet>,
    released: Vec<u64>,
}

impl Above for Network {
    fn waits(&self, _: Station) -> bool {
        !self.waiting.is_empty()
    }

    fn next_destination(&self) -> Option<Station> {
        (!self.waiting.is_empty()).then_some(MOBILE)
    }

    fn take(&mut self, _: Station) -> Option<Load> {
        self.waiting.pop_front().map(Load::Packet)
    }

    fn release(&mut self, _: Station, load: Load) {
        self.released.extend(load.packet().map(|packet| packet.id.0));
    }

    fn give_up(&mut self, _: Station, _: Load, _: Cause) {}
    fn repeat(&mut self, _: Station, _: &Load, _: Cause) {}
    fn attempt_failed(&mut self, _: &Load, _: u32, _: bool) {}
    fn note(&mut self, _: Station, _: LinkNote) {}
}

const MOBILE: Station = Station(1);

/// Packet `id`, with 1400 bytes of TCP data.
fn packet(id: u64) -> Packet {
    let segment = Segment::new(1, 2, Seq(id as u32 * 1400), Seq(0), Flags::ACK);
    let body = Body::Pattern { stream: 1, len: 1400, offset: 0 };
    let tcp = Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, body);
    tcp.with(|packet| packet.id = PacketId(id))
}

/// The base station, the mobile, and 1 Mb/s between them.
struct Exchange {
    now: Time,
    ends: [Tulip; 2],
    above: [Network; 2],
    timing: Timing,
    /// The events in the notation of the figure.
    log: Vec<String>,
    /// Number of transmissions of each packet.
    sent: BTreeMap<u32, usize>,
    /// Number of transmissions of packets and of acknowledgements, and which of them are lost.
    count: [usize; 2],
    lost: [&'static [usize]; 2],
}

impl Exchange {
    fn new() -> Exchange {
        let timing = Timing {
            byte_ps: 8_000_000,
            frame: Span::micros(500),
            propagation: Span::micros(1),
            turnaround: Span::micros(10),
            processing: Span::ZERO,
            turn: Span::ZERO,
        };
        let end = |i| Tulip::new(&TulipConfig::default(), Station(i), 2, timing);
        Exchange {
            now: Time::ZERO,
            ends: [end(0), end(1)],
            above: Default::default(),
            timing,
            log: Vec::new(),
            sent: BTreeMap::new(),
            count: [0; 2],
            lost: [&[], &[]],
        }
    }

    /// The base station sends the packets `ids`. `lost` has the lost transmissions: numbers of packet transmissions and
    /// of acknowledgements, from 1.
    fn play(&mut self, ids: core::ops::Range<u64>, lost: [&'static [usize]; 2]) {
        self.above[0].waiting.extend(ids.map(packet));
        (self.log, self.count, self.lost) = (Vec::new(), [0; 2], lost);
        self.sent.clear();
        // A generous limit: a fault shows as a wrong log, not as a hang.
        for _ in 0..200 {
            let frame = self.ends[0].next_frame(self.now, &mut self.above[0]);
            if let Some(frame) = frame {
                if let Some(reply) = self.transmit(0, frame) {
                    self.transmit(1, reply);
                }
            } else if let Some(at) = self.ends[0].next_wake() {
                self.now = self.now.max(at);
                self.ends[0].on_wake(self.now, &mut self.above[0]);
            } else {
                return;
            }
        }
    }

    /// Sends the frame of end `i`; if it is not lost, the other end receives it and returns its answer.
    fn transmit(&mut self, i: usize, frame: Frame) -> Option<Frame> {
        self.count[i] += 1;
        let lost = self.lost[i].contains(&self.count[i]);
        self.write(&frame, lost);
        let (to, airtime) = (frame.to, self.timing.on_air(frame.bytes));
        self.ends[i].on_mac(self.now, MacSignal::Trans { to, airtime }, &mut self.above[i]);
        self.now += airtime;
        self.ends[i].on_mac(self.now, MacSignal::Done { to, acked: None }, &mut self.above[i]);
        if lost {
            return None;
        }
        self.now = self.now + self.timing.propagation + self.timing.turnaround;
        let (other, from) = (1 - i, frame.from);
        let before = self.above[other].released.len();
        self.ends[other].on_frame(self.now, frame, &mut self.above[other]);
        let released = &self.above[other].released[before..];
        if !released.is_empty() {
            self.log.push(format!("up {released:?}"));
        }
        let list = self.ends[other].retransmission_list(from);
        if !list.is_empty() {
            self.log.push(format!("R{list:?}"));
        }
        self.ends[other].reply(self.now, from, &mut self.above[other])
    }

    fn write(&mut self, frame: &Frame, lost: bool) {
        let Header::Arq(header) = &frame.header else { return };
        let lost = if lost { " lost" } else { "" };
        if let Some(seq) = header.seq {
            let times = self.sent.entry(seq).or_default();
            self.log.push(format!("{seq}{}{lost}", "*".repeat(*times)));
            *times += 1;
        } else if let Some(ack) = &header.ack {
            let bits = (0..ack.vector.len()).map(|i| if ack.vector.get(i) { '1' } else { '0' });
            let bits: String = bits.collect();
            self.log.push(format!("{} [{bits}]{lost}", ack.cumulative));
        }
    }
}

/// The events of 3.4 in order: packets with a star for each earlier transmission, acknowledgements with bit vectors,
/// retransmission lists, and deliveries.
const FIGURE_6: [&str; 24] = [
    "7",
    "up [7]",
    "7 [00000000]",
    "8",
    "up [8]",
    "8 [00000000]",
    "9 lost",
    "10",
    "8 [01000000]",
    "R[9]",
    "9* lost",
    "11 lost",
    "12",
    "8 [01010000]",
    "R[9, 11]",
    "9**",
    "up [9, 10]",
    "10 [01000000] lost",
    "11*",
    "up [11, 12]",
    "12 [00000000] lost",
    "13",
    "up [13]",
    "13 [00000000]",
];

/// The exchange of Figure 6.
fn figure_6() -> Vec<String> {
    let mut exchange = Exchange::new();
    exchange.play(0..7, [&[], &[]]);
    // Packets 9, 9* and 11 are lost, and the acknowledgements of 9** and 11*.
    exchange.play(7..14, [&[3, 5, 6], &[5, 6]]);
    exchange.log
}

/// 3.4: order, releases and bit vectors are those of the figure.
pub(super) fn f6(_: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let log = figure_6();
    let mut rows = table(
        "Figure 6, packet by packet (a star for each time that a packet was sent before)",
        "<as described in 3.4 | <as measured",
    );
    for i in 0..log.len().max(FIGURE_6.len()) {
        let expected = FIGURE_6.get(i).copied().unwrap_or_default();
        let went = log.get(i).map(String::as_str).unwrap_or_default();
        rows.rows.push(row(&[&expected, &went]));
    }
    finding.tables.push(rows);
    let alike =
        FIGURE_6.iter().zip(&log).filter(|(expected, went)| **expected == went.as_str()).count();
    finding.compare("events as described", alike as f64, "", FIGURE_6.len() as f64);
    finding.require(
        log == FIGURE_6,
        format!("{alike} of {} events come as described, in their order", FIGURE_6.len()),
    );
    finding.note("The figure writes the second retransmission of 9 with one star as well");
    let title = "Figure 6: an example of a transmission, window 8".to_owned();
    let parties = ["base station", "mobile"].map(str::to_owned).to_vec();
    let plot = Messages {
        title: title.clone(),
        parties,
        messages: log.iter().map(|e| drawn(e)).collect(),
    };
    let caption = "As measured here: packets to the right, acknowledgements with their bit vectors to the left, \
                   retransmission lists R at the base station, released packets at the mobile.";
    finding.figures.push(Figure::new(&plot.plot(), &title, caption));
    Ok(())
}

/// An event of the log in the diagram.
fn drawn(event: &str) -> Message {
    let lost = event.ends_with(" lost");
    let text = event.trim_end_matches(" lost").to_owned();
    let (from, to) = match () {
        () if text.starts_with("up ") => (1, 1),
        () if text.starts_with('R') => (0, 0),
        () if text.contains('[') => (1, 0),
        () => (0, 1),
    };
    Message { from, to, text, lost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_is_that_of_the_figure() {
        assert_eq!(figure_6(), FIGURE_6);
    }

    #[test]
    fn other_losses_give_another_exchange() {
        let mut exchange = Exchange::new();
        exchange.play(0..7, [&[], &[]]);
        exchange.play(7..14, [&[3], &[]]);
        assert_ne!(exchange.log, FIGURE_6);
        assert_eq!(exchange.above[1].released, (0..14).collect::<Vec<_>>());
    }
}
