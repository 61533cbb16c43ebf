//! Size of state that moves from one base station to another.
//!
//! A number has its bytes, a list its length and its elements, an option a byte and its value. A type lists its
//! transferred fields with [`travels!`](crate::travel::travels).

use crate::units::Span;
use crate::wire::{Addr, Body, FlowKey, Packet, Seq, Timestamps, emit};

/// A type with a size in transit.
pub(crate) trait Travels {
    /// Bytes in transit. Payload counts in full, even if the simulation does not store it.
    fn size(&self) -> u64;
}

/// Lists the transferred fields of a type.
macro_rules! travels {
    ($Type:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::travel::Travels for $Type {
            fn size(&self) -> u64 {
                [$($crate::travel::Travels::size(&self.$field)),+].into_iter().sum()
            }
        }
    };
}
pub(crate) use travels;

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl Travels for $number {
            fn size(&self) -> u64 {
                size_of::<$number>() as u64
            }
        })*
    };
}
numbers! { bool u8 u16 u32 u64 Seq Span }

impl<T: Travels> Travels for Option<T> {
    fn size(&self) -> u64 {
        1 + self.as_ref().map_or(0, T::size)
    }
}

impl<T: Travels> Travels for [T] {
    fn size(&self) -> u64 {
        4 + self.iter().map(T::size).sum::<u64>()
    }
}

impl<T: Travels> Travels for Vec<T> {
    fn size(&self) -> u64 {
        self.as_slice().size()
    }
}

impl<T: Travels> Travels for [T; 2] {
    fn size(&self) -> u64 {
        self.iter().map(T::size).sum()
    }
}

impl<A: Travels, B: Travels> Travels for (A, B) {
    fn size(&self) -> u64 {
        self.0.size() + self.1.size()
    }
}

impl<T: Travels> Travels for Box<T> {
    fn size(&self) -> u64 {
        (**self).size()
    }
}

/// A byte for the family, and the address.
impl Travels for Addr {
    fn size(&self) -> u64 {
        if self.ip().is_ipv4() { 5 } else { 17 }
    }
}

travels!(FlowKey { src, dst, src_port, dst_port });
travels!(Timestamps { value, echo });

/// A byte for the kind; a pattern has its number and offset, too.
impl Travels for Body {
    fn size(&self) -> u64 {
        match self {
            Body::Pattern { len, .. } => 17 + u64::from(*len),
            Body::Bytes { len, .. } => 5 + u64::from(*len),
        }
    }
}

/// The headers of `packet` as on the wire; `None` if it is invalid.
fn headers(packet: &Packet) -> Option<u64> {
    let mut headers = Vec::new();
    emit::emit_prefix(packet, 0, &mut headers).ok()?;
    Some(headers.len() as u64)
}

/// Whether `packet` can be transferred and all its bytes are available here.
pub(crate) fn can_travel(packet: &Packet) -> bool {
    packet.body.held_at().is_none() && packet.segment().is_some() && headers(packet).is_some()
}

/// A packet for which [`can_travel`] holds: headers with their length, body, and piece.
impl Travels for Packet {
    fn size(&self) -> u64 {
        2 + headers(self).unwrap_or(0) + self.body.size() + 2
    }
}
