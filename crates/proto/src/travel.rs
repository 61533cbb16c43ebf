//! What travels from one base station to another: state as bytes, and bytes as state.
//!
//! Numbers are big-endian, a list is its length and its members, an option a byte and what it holds. A type says by
//! [`travels!`](crate::travel::travels) which of its fields travel; the others are as in a new one. What is read is no
//! larger than the bytes it is read from, but for patterns, which have no bytes. Whether it makes sense is for its type
//! to judge: reading tells only that it is complete.

use crate::units::Span;
use crate::wire::parse::{Mode, view};
use crate::wire::{Addr, Body, FlowKey, Packet, PacketId, Parts, Seq, Timestamps, emit};

/// Positions and counters of flows are far below: sums of them do not overflow.
pub(crate) const FAR: u64 = 1 << 60;

/// Where state is written to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// Bytes of patterns, which are named and not written: in a simulation the payload has none.
    pub(crate) patterns: u64,
}

/// The bytes that are not read yet.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
}

/// What is written and read.
pub(crate) trait Travels: Sized {
    /// Appends it.
    fn write(&self, to: &mut Writer);

    /// Reads it back; `None` if the bytes end before, or cannot have been written.
    fn read(from: &mut Reader<'_>) -> Option<Self>;
}

/// Says which fields of a type travel. With `..` the others are those of its default.
macro_rules! travels {
    ($Type:ident { $($field:ident),+ $(,)? }) => {
        $crate::travel::travels!(@impl $Type { $($field),+ } {});
    };
    ($Type:ident { $($field:ident),+, .. }) => {
        $crate::travel::travels!(@impl $Type { $($field),+ } { ..<$Type>::default() });
    };
    (@impl $Type:ident { $($field:ident),+ } { $($rest:tt)* }) => {
        impl $crate::travel::Travels for $Type {
            fn write(&self, to: &mut $crate::travel::Writer) {
                $($crate::travel::Travels::write(&self.$field, to);)+
            }
            fn read(from: &mut $crate::travel::Reader<'_>) -> Option<$Type> {
                Some($Type { $($field: $crate::travel::Travels::read(from)?,)+ $($rest)* })
            }
        }
    };
}
pub(crate) use travels;

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl Travels for $number {
            fn write(&self, to: &mut Writer) {
                to.bytes.extend(self.to_be_bytes());
            }
            fn read(from: &mut Reader<'_>) -> Option<$number> {
                let bytes = from.take(size_of::<$number>())?;
                bytes.try_into().ok().map(<$number>::from_be_bytes)
            }
        })*
    };
}
numbers! { u8 u16 u32 u64 u128 }

impl Travels for bool {
    fn write(&self, to: &mut Writer) {
        u8::from(*self).write(to);
    }
    fn read(from: &mut Reader<'_>) -> Option<bool> {
        match u8::read(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Travels> Travels for Option<T> {
    fn write(&self, to: &mut Writer) {
        self.is_some().write(to);
        if let Some(it) = self {
            it.write(to);
        }
    }
    fn read(from: &mut Reader<'_>) -> Option<Option<T>> {
        match bool::read(from)? {
            false => Some(None),
            true => T::read(from).map(Some),
        }
    }
}

impl<T: Travels> Travels for Vec<T> {
    fn write(&self, to: &mut Writer) {
        (self.len() as u32).write(to);
        self.iter().for_each(|it| it.write(to));
    }
    fn read(from: &mut Reader<'_>) -> Option<Vec<T>> {
        // Grows with what is there, not with what is announced.
        let count = u32::read(from)?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(T::read(from)?);
        }
        Some(all)
    }
}

impl<T: Travels> Travels for [T; 2] {
    fn write(&self, to: &mut Writer) {
        self.iter().for_each(|it| it.write(to));
    }
    fn read(from: &mut Reader<'_>) -> Option<[T; 2]> {
        Some([T::read(from)?, T::read(from)?])
    }
}

impl<A: Travels, B: Travels> Travels for (A, B) {
    fn write(&self, to: &mut Writer) {
        self.0.write(to);
        self.1.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Option<(A, B)> {
        Some((A::read(from)?, B::read(from)?))
    }
}

impl Travels for Seq {
    fn write(&self, to: &mut Writer) {
        self.0.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Option<Seq> {
        u32::read(from).map(Seq)
    }
}

/// No estimate is longer than this: a day.
const LONGEST: Span = Span::secs(86_400);

impl Travels for Span {
    fn write(&self, to: &mut Writer) {
        self.0.min(LONGEST.0).write(to);
    }
    fn read(from: &mut Reader<'_>) -> Option<Span> {
        u64::read(from).map(Span).filter(|span| *span <= LONGEST)
    }
}

impl Travels for Addr {
    fn write(&self, to: &mut Writer) {
        match self.ip() {
            core::net::IpAddr::V4(ip) => (4u8, u32::from(ip)).write(to),
            core::net::IpAddr::V6(ip) => (6u8, u128::from(ip)).write(to),
        }
    }
    fn read(from: &mut Reader<'_>) -> Option<Addr> {
        match u8::read(from)? {
            4 => u32::read(from).map(|ip| Addr::from(core::net::IpAddr::V4(ip.into()))),
            6 => u128::read(from).map(|ip| Addr::from(core::net::IpAddr::V6(ip.into()))),
            _ => None,
        }
    }
}

travels!(FlowKey { src, dst, src_port, dst_port });
travels!(Timestamps { value, echo });

/// The most that one piece of a byte stream holds: more than any buffer.
const PIECE: u32 = 1 << 30;

impl Travels for Body {
    fn write(&self, to: &mut Writer) {
        match self {
            Body::Pattern { stream, len, offset } => {
                to.patterns += u64::from(*len);
                0u8.write(to);
                ((*stream, *len), *offset).write(to);
            }
            Body::Bytes { len, .. } => {
                (1u8, *len).write(to);
                self.copy_into(*len, &mut to.bytes);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Option<Body> {
        match u8::read(from)? {
            0 => {
                let ((stream, len), offset) = Travels::read(from)?;
                let body = Body::Pattern { stream, len, offset };
                // What a data plane holds cannot travel.
                let fits = len <= PIECE && offset <= 1 << 62 && body.held_at().is_none();
                fits.then_some(body)
            }
            1 => {
                let len = u32::read(from)?;
                from.take(len as usize).map(Body::copy_of)
            }
            _ => None,
        }
    }
}

/// Whether `packet` can be put into bytes, all of which are here.
pub(crate) fn can_travel(packet: &Packet) -> bool {
    packet.body.held_at().is_none()
        && packet.segment().is_some()
        && emit::emit_prefix(packet, 0, &mut Vec::new()).is_ok()
}

/// A packet for which [`can_travel`] holds: its headers as on the wire, and its body.
impl Travels for Packet {
    fn write(&self, to: &mut Writer) {
        let packet = self.clone().with(|packet| packet.id = PacketId(0));
        let mut headers = Vec::new();
        // Nothing is written of what cannot be: it is not read back.
        let _ = emit::emit_prefix(&packet, 0, &mut headers);
        (headers.len() as u16).write(to);
        to.bytes.extend(headers);
        self.body.write(to);
        self.piece.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Option<Packet> {
        let len = u16::read(from)?;
        let headers = from.take(len.into())?;
        let body = Body::read(from)?;
        let piece = u16::read(from)?;
        let wire_len = Some(headers.len() + body.len() as usize);
        let view = view(headers, Mode { verify: false, wire_len }).ok()?;
        let whole = view.bad_option.is_none() && view.body_len == body.len();
        let packet = Packet::new(Parts {
            id: PacketId(0),
            src: view.src,
            dst: view.dst,
            transport: view.transport,
            body,
            tos: view.tos,
            ttl: view.ttl,
            damage: view.damage,
            urgent: false,
            piece,
        });
        (whole && packet.segment().is_some()).then_some(packet)
    }
}

impl<T: Travels> Travels for Box<T> {
    fn write(&self, to: &mut Writer) {
        (**self).write(to);
    }
    fn read(from: &mut Reader<'_>) -> Option<Box<T>> {
        T::read(from).map(Box::new)
    }
}
