//! Packets in the form that machines process, and in bytes.
//!
//! A [`Packet`] is a parsed IP header and TCP [`Segment`] plus a [`Body`]. In the simulator a body is only a
//! length with an identity; in the live worlds it is shared bytes. [`parse`] and [`emit`] convert between
//! packets and bytes; [`checksum`] is the Internet checksum.

pub mod body;
pub mod checksum;
pub mod ecn;
pub mod emit;
pub mod icmp;
pub mod opening;
pub mod options;
pub mod packet;
pub mod parse;
pub mod protocol;
pub mod segment;
pub mod seq;

pub use body::Body;
pub use ecn::EcnCounts;
pub use icmp::{Notice, Quote, TooBig};
pub use packet::{
    Addr, CE, Damage, ECT, ECT1, FlowKey, Fragment, Packet, PacketId, Parts, Transport,
};
pub use segment::{
    Acc, Ackp, Eln, Flags, Nack, Options, SackBlocks, Scps, Segment, Smart, Snack, Stamp,
    Timestamps,
};
pub use seq::Seq;
