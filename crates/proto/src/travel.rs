//! Transfer of state from one base station to another: serialization and parsing.
//!
//! Numbers are big-endian, a list is its length and its elements, an option a byte and its value. A type
//! lists its transferred fields with [`travels!`](crate::travel::travels); the other fields have their
//! defaults. A parsed value is no larger than its bytes, except for patterns, which have no bytes. Parsing
//! verifies only completeness; each type must validate its own contents.

use crate::units::Span;
use crate::wire::parse::{Mode, view};
use crate::wire::{Addr, Body, FlowKey, Packet, PacketId, Parts, Seq, Timestamps, emit};

/// Bound far above the positions and counters of flows: sums of them do not overflow.
pub(crate) const FAR: u64 = 1 << 60;

/// Destination of serialized state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// Bytes of patterns, which are named and not written: payload has no bytes in a simulation.
    pub(crate) patterns: u64,
}

/// The bytes that are not parsed yet.
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

/// A type that can be serialized and parsed.
pub(crate) trait Travels: Sized {
    /// Appends the value.
    fn write(&self, to: &mut Writer);

    /// Parses a value; `None` if the bytes are too short or invalid.
    fn read(from: &mut Reader<'_>) -> Option<Self>;
}

/// Lists the transferred fields of a type. With `..` the others have their defaults.
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
        // The list grows with the available bytes, not with the announced count.
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

/// Bound of estimates: a day.
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

/// Bound of one piece of a byte stream in bytes: more than any buffer.
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
                // Bytes stored in a data plane cannot be transferred.
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

/// Whether `packet` can be serialized and all its bytes are available here.
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
        // An invalid packet is not written, and parsing rejects it.
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
            label: view.label,
            ttl: view.ttl,
            damage: view.damage,
            urgent: false,
            piece,
            fragmentable: false,
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
