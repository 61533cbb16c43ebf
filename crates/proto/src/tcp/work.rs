//! Work of a host's stack for each segment, counted in [`Operation`]s.
//!
//! The count follows the stack of agarwal00, Linux 2.2. A byte is copied and added to the checksum in one
//! pass, when the application writes it and when it is delivered to the application. A retransmitted segment
//! is stored already, with its sum. Headers are summed separately. Every byte of every packet crosses to the
//! card or from it.

use crate::energy::{Operation, Work};
use crate::event::{Cause, EventKind};
use crate::machine::Out;
use crate::wire::{Damage, Packet, Transport};

/// Processing steps of a connection for a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Steps {
    /// Whether its timestamp was compared with the last one.
    pub paws: bool,
    /// Whether header prediction was right, and it took the fast path.
    pub predicted: bool,
    /// Whether its timestamps were read: the next echo, and the round-trip time.
    pub stamped: bool,
    /// Whether its window was scaled.
    pub scaled: bool,
    /// Whether its payload was delivered to the application, or stored until a hole is filled.
    pub stored: bool,
    /// SACK blocks added to the scoreboard.
    pub blocks: u8,
}

/// Reports the work of sending `packet` for `cause`; `scaled` is whether its window is scaled.
pub(super) fn report_sent(packet: &Packet, cause: Cause, scaled: bool, out: &mut Out) {
    let Some(segment) = packet.segment() else { return };
    let mut work = Work::default();
    work.add(Operation::Send, 1);
    work.add(Operation::SummedByte, summed_header(packet));
    if !cause.is_host_retransmission() {
        work.add(Operation::CopiedSummedByte, packet.body.len());
    }
    work.add(Operation::CardByte, packet.wire_len());
    work.add(Operation::Timestamps, segment.timestamps.is_some().into());
    if segment.has_options() {
        work.add(Operation::SackBlock, segment.options().sack.as_slice().len() as u32);
    }
    work.add(Operation::WindowScale, scaled.into());
    out.event(EventKind::Work(work));
}

/// A packet that a host has received and not processed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    work: Work,
    /// Bytes after the header, if they were processed.
    payload: u32,
}

impl Arrival {
    /// The costs of `packet` that are independent of its fate.
    pub fn of(packet: &Packet) -> Arrival {
        let mut work = Work::default();
        work.add(Operation::CardByte, packet.wire_len());
        if packet.damage == Damage::Ip {
            // Processing ends where the IP header is found to be damaged.
            work.add(Operation::SummedByte, packet.ip_header_len());
            return Arrival { work, payload: 0 };
        }
        work.add(Operation::SummedByte, summed_header(packet));
        Arrival { work, payload: packet.body.len() }
    }

    /// Reports the work: the kind of connection lookup, if any, and the steps of the connection.
    pub fn report(self, looked: Option<Operation>, steps: Option<Steps>, out: &mut Out) {
        let Arrival { mut work, payload } = self;
        if let Some(looked) = looked {
            work.add(looked, 1);
        }
        let steps = match steps {
            Some(steps) if steps.predicted => {
                work.add(Operation::Predicted, 1);
                steps
            }
            Some(steps) => {
                work.add(Operation::Processed, 1);
                steps
            }
            None => Steps::default(),
        };
        let bytes = if steps.stored { Operation::CopiedSummedByte } else { Operation::SummedByte };
        work.add(bytes, payload);
        work.add(Operation::Paws, steps.paws.into());
        work.add(Operation::Timestamps, steps.stamped.into());
        work.add(Operation::WindowScale, steps.scaled.into());
        work.add(Operation::SackBlock, steps.blocks.into());
        out.event(EventKind::Work(work));
    }
}

/// Bytes of headers that a checksum covers: IPv6 has no header checksum.
fn summed_header(packet: &Packet) -> u32 {
    let header = packet.header_len();
    match packet.transport {
        Transport::Tcp(_) | Transport::Icmp(_) if !packet.src.is_v4() => {
            header - packet.ip_header_len()
        }
        _ => header,
    }
}
