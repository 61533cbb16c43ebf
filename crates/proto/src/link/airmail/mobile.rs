//! The end of a mobile host. It has no timers: it sends its packets, and otherwise only answers.

use crate::air::Station;
use crate::event::{Cause, LinkNote};
use crate::link::end::Above;
use crate::link::frame::{Frame, Load};
use crate::units::Time;

use super::AirmailConfig;
use super::header::{AirmailHeader, Status};
use super::levels::Strength;
use super::parity::{Parity, suffices};
use super::window::{Incoming, Outgoing};

/// Successive statuses without a packet after which it is lost. The second one was sent after the first had
/// been received, and everything sent before that must have arrived.
const UNKNOWN: u8 = 2;

/// The end of a mobile host.
#[derive(Clone, Debug)]
pub struct Mobile {
    station: Station,
    window: u16,
    outgoing: Outgoing,
    incoming: Incoming,
    /// Whether the base station has polled.
    polled: bool,
    /// The strength that the base station requests.
    strength: Strength,
    /// The window with received parity, and the indices of its parity packets.
    parity: Option<(Parity, Vec<u8>)>,
    /// The packet whose frame is at medium access.
    sending: Option<u32>,
}

impl Mobile {
    /// Asserts the invariants of both directions.
    pub fn check(&self) {
        self.outgoing.check(self.window);
    }

    /// Reports stored packets for the base station.
    pub(super) fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool)) {
        self.outgoing.stored_loads(each);
    }

    /// The end at `station`.
    pub(super) fn new(config: &AirmailConfig, station: Station) -> Mobile {
        Mobile {
            station,
            window: config.window,
            outgoing: Outgoing::default(),
            incoming: Incoming::new(config.order, config.window),
            polled: false,
            strength: config.byte_fec.unwrap_or_default(),
            parity: None,
            sending: None,
        }
    }

    pub(super) fn on_frame(
        &mut self,
        _: Time,
        from: Station,
        header: AirmailHeader,
        load: Load,
        above: &mut dyn Above,
    ) {
        self.incoming.record_transmission(header.transmission);
        self.polled |= header.poll;
        if let Some(status) = header.status {
            self.strength = status.strength;
            self.take_in(from, &status, above);
        }
        if let Some(seq) = header.seq {
            self.incoming.receive(from, seq, load, above);
        }
        if let Some(parity) = header.parity {
            let index = parity.index;
            match &mut self.parity {
                Some((known, indices)) if known.first == parity.first => {
                    if !indices.contains(&index) {
                        indices.push(index);
                    }
                }
                other => *other = Some((*parity, vec![index])),
            }
        }
        self.make_up(from, above);
    }

    /// Handles the status of the base station.
    fn take_in(&mut self, from: Station, status: &Status, above: &mut dyn Above) {
        if !self.outgoing.take_in(&status.ack) {
            return above.note(from, LinkNote::BadAck);
        }
        let known = |slot: &&mut super::window::Slot| slot.acked || slot.again.is_some();
        for slot in self.outgoing.slots.iter_mut().filter(|s| s.left && !known(s)) {
            slot.unknown += 1;
            if slot.unknown >= UNKNOWN {
                slot.again = Some(Cause::LinkNack);
            }
        }
    }

    /// Restores the missing packets of a window from its parity, if there is enough.
    fn make_up(&mut self, from: Station, above: &mut dyn Above) {
        let Some((parity, indices)) = &self.parity else { return };
        let number = |i: usize| parity.first.wrapping_add(i as u32);
        let missing: Vec<usize> =
            (0..parity.packets.len()).filter(|i| !self.incoming.has(number(*i))).collect();
        if !suffices(missing.len(), indices.len()) {
            return;
        }
        for i in missing {
            let load = parity.packets[i].clone();
            self.incoming.receive(from, number(i), load, above);
        }
        self.parity = None;
    }

    pub(super) fn on_sent(&mut self, _: Time) {
        let sent = self.sending.take().and_then(|seq| self.outgoing.slot(seq));
        if let Some(slot) = sent {
            slot.left = true;
        }
    }

    /// The status, if the base station has polled.
    //= ayanoglu95: the mobile terminal combines several acknowledgments into one
    fn answer(&mut self) -> Option<Status> {
        let polled = core::mem::take(&mut self.polled);
        polled.then(|| Status {
            ack: self.incoming.ack(),
            came: self.incoming.came as u8,
            strength: Strength::None,
        })
    }

    /// A frame that contains only the polled status.
    pub(super) fn status(&mut self) -> Option<Frame> {
        let status = Some(self.answer()?);
        let transmission = self.outgoing.count();
        let strength = self.strength;
        let header = AirmailHeader { transmission, status, strength, ..AirmailHeader::default() };
        Some(header.frame(self.station, Station::BASE, Load::None))
    }

    pub(super) fn next_frame(&mut self, above: &mut dyn Above) -> Option<Frame> {
        let index = match self.outgoing.again() {
            // Retransmissions precede new packets.
            Some((i, cause)) => {
                above.repeat(Station::BASE, &self.outgoing.slots[i].load, cause);
                Some(i)
            }
            None if self.outgoing.slots.len() < usize::from(self.window) => {
                above.take(Station::BASE).map(|load| self.outgoing.push(load))
            }
            None => None,
        };
        let Some(i) = index else { return self.status() };
        let (seq, transmission, load) = self.outgoing.send(i);
        self.sending = Some(seq);
        let (status, strength) = (self.answer(), self.strength);
        let header = AirmailHeader {
            seq: Some(seq),
            transmission,
            status,
            strength,
            ..AirmailHeader::default()
        };
        Some(header.frame(self.station, Station::BASE, load))
    }
}
