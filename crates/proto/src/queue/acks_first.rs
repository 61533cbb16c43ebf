//! ACKs first: two classes, ACKs and everything else, and as long as there is an ACK it goes next.
//!
//! On a slow return link a data packet takes a quarter of a second, and ACKs that wait behind two of them let the
//! forward transfer run dry. Here they wait at most for the packet in transmission.
//!
//! **What is an ACK** is [`is_pure_ack`], whatever options it has. A FIN or SYN goes with the data, so that it
//! does not overtake what it ends.
//!
//! **Starvation.** The priority is strict, as in the paper: ACKs that come at the link's rate or faster leave
//! nothing for data. The paper combined it with ACK congestion control, which slows the ACKs down. Here the filter
//! can stand before the ACKs, which bounds how many wait, but not the share of the link that they get.
//!
//! **Room** is shared. The paper's router has one buffer, so an ACK that finds it full of data is dropped.

use crate::machine::{Out, Side};

use super::{AckFilter, Fifo, Order, Room, Waiting, is_pure_ack};

/// Two classes in strict order.
//= balakrishnan97#4.4.1: priority scheduling of ACKs at the router of the return channel
//= rfc3449#section-5.4.2: ACKs get a higher priority than data; no state for connections is needed
#[derive(Debug)]
pub struct AcksFirst {
    acks: Acks,
    data: Fifo,
}

/// The class that goes first.
#[derive(Debug)]
enum Acks {
    Plain(Fifo),
    Filtered(AckFilter),
}

impl AcksFirst {
    /// An empty queue; `filtered` ACKs clear the older ones of their connection.
    pub fn new(filtered: bool) -> AcksFirst {
        let acks = if filtered {
            Acks::Filtered(AckFilter::default())
        } else {
            Acks::Plain(Fifo::default())
        };
        AcksFirst { acks, data: Fifo::default() }
    }
}

impl Order for AcksFirst {
    fn enter(&mut self, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        let ack = is_pure_ack(&waiting.packet);
        match &mut self.acks {
            Acks::Plain(acks) if ack => acks.enter(side, waiting, room, out),
            Acks::Filtered(acks) if ack => acks.enter(side, waiting, room, out),
            Acks::Filtered(acks) => {
                // A SYN among the data is how the filter learns that a connection begins.
                acks.watch(&waiting.packet);
                self.data.enter(side, waiting, room, out);
            }
            Acks::Plain(_) => self.data.enter(side, waiting, room, out),
        }
    }

    fn leave(&mut self) -> Option<Waiting> {
        let ack = match &mut self.acks {
            Acks::Plain(acks) => acks.leave(),
            Acks::Filtered(acks) => acks.leave(),
        };
        ack.or_else(|| self.data.leave())
    }
}
