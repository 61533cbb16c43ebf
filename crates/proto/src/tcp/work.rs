//! What the stack of a host does for each segment, counted in [`Operation`]s.
//!
//! It is counted as the stack of agarwal00 does it, Linux 2.2: a byte is copied and added to the checksum in one pass,
//! when the application writes it and when it is handed to the application. A segment that is sent again is there
//! already, with its sum. Headers are summed by themselves. Every byte of every packet crosses to the card or from it.

use crate::energy::{Operation, Work};
use crate::event::{Cause, What};
use crate::machine::Out;
use crate::wire::{Damage, Packet, Transport};

/// What a connection did with a segment that it was handed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Steps {
    /// Its timestamp was held against the last one.
    pub paws: bool,
    /// It was the one that header prediction expects, and went the fast path.
    pub predicted: bool,
    /// Its timestamps were read: what is echoed from now on, and how long the round trip took.
    pub stamped: bool,
    /// Its window was scaled.
    pub scaled: bool,
    /// Its payload went to the application, or waits for what is missing before it.
    pub kept: bool,
    /// SACK blocks that went into the scoreboard.
    pub blocks: u8,
}

/// Tells what it took to send `packet` for `cause`; `scaled` says whether its window is scaled.
pub(super) fn tell_sent(packet: &Packet, cause: Cause, scaled: bool, out: &mut Out) {
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
    out.event(What::Work(work));
}

/// A packet that a host takes in, before anything was done with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    work: Work,
    /// Bytes behind the header, if they were worth a look.
    payload: u32,
}

impl Arrival {
    /// What `packet` costs whatever becomes of it.
    pub fn of(packet: &Packet) -> Arrival {
        let mut work = Work::default();
        work.add(Operation::CardByte, packet.wire_len());
        if packet.damage == Damage::Ip {
            // It ends where the header of IP is found to be wrong.
            work.add(Operation::SummedByte, packet.ip_header_len());
            return Arrival { work, payload: 0 };
        }
        work.add(Operation::SummedByte, summed_header(packet));
        Arrival { work, payload: packet.body.len() }
    }

    /// Tells what was done: how its connection was looked up, if it was, and what that did with it.
    pub fn tell(self, looked: Option<Operation>, steps: Option<Steps>, out: &mut Out) {
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
        let bytes = if steps.kept { Operation::CopiedSummedByte } else { Operation::SummedByte };
        work.add(bytes, payload);
        work.add(Operation::Paws, steps.paws.into());
        work.add(Operation::Timestamps, steps.stamped.into());
        work.add(Operation::WindowScale, steps.scaled.into());
        work.add(Operation::SackBlock, steps.blocks.into());
        out.event(What::Work(work));
    }
}

/// Bytes of headers that a checksum covers: IPv6 has none of its own.
fn summed_header(packet: &Packet) -> u32 {
    let header = packet.header_len();
    match packet.transport {
        Transport::Tcp(_) | Transport::Icmp(_) if !packet.src.is_v4() => {
            header - packet.ip_header_len()
        }
        _ => header,
    }
}
