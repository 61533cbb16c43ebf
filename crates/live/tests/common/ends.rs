//! Two hosts at the ends of a station that are played by the test: it determines each segment.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use lasthop_live::header::VNET;
use lasthop_live::sys::packet_socket::PacketSocket;
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::parse::{Mode, view};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq, Transport};

use super::{receive, send_plain, socket};

/// Two hosts played by the test, at the ends of the station.
pub struct Hosts {
    pub sockets: [PacketSocket; 2],
    /// Initial sequence numbers, left first.
    pub isn: [u32; 2],
    /// Duplicate ACKs that reached the fixed host.
    pub leaked: Cell<u64>,
    /// Segments that have arrived at each side and were not read yet.
    came: [RefCell<VecDeque<Read>>; 2],
}

/// The tested fields of a segment, relative to the initial numbers: flags, sequence number, acknowledgement,
/// payload.
pub type Read = (Flags, u32, u32, u32);

impl Hosts {
    pub fn new() -> Hosts {
        let sockets = [socket("fh", "fl"), socket("mh", "mr")];
        Hosts { sockets, isn: [0; 2], leaked: Cell::new(0), came: Default::default() }
    }

    /// A segment from one side, with numbers relative to the initial ones.
    pub fn packet(&self, from: usize, flags: Flags, at: u32, acks: u32, len: u32) -> Packet {
        let addr = |side: usize| Addr::v4(10, 8, 0, 1 + side as u8);
        let port = |side: usize| if side == 0 { 80 } else { 4000 };
        let (seq, ack) = (Seq(self.isn[from]) + at, Seq(self.isn[1 - from]) + acks);
        // Without the ACK flag the field is arbitrary.
        let ack = if flags.has(Flags::ACK) { ack } else { Seq(acks) };
        let mut segment = Segment::new(port(from), port(1 - from), seq, ack, flags);
        segment.window = 60_000;
        let bytes: Vec<u8> = (0..len).map(|i| (at + i) as u8).collect();
        Packet::tcp(addr(from), addr(1 - from), segment, Body::copy_of(&bytes))
    }

    /// The frame of a segment from one side, with numbers relative to the initial ones.
    fn frame(&self, from: usize, flags: Flags, at: u32, acks: u32, len: u32) -> Vec<u8> {
        let mac = |side: usize| [2, 0, 0, 0, 0, 1 + side as u8];
        let mut frame = [mac(1 - from), mac(from)].concat();
        frame.extend([8, 0]);
        emit(&self.packet(from, flags, at, acks, len), &mut frame).unwrap();
        frame
    }

    pub fn send(&self, from: usize, flags: Flags, at: u32, acks: u32, len: u32) {
        send_plain(&self.sockets[from], &[self.frame(from, flags, at, acks, len)]);
    }

    /// Fields of a `segment` that arrives at `side`.
    pub fn read(&self, side: usize, segment: &Segment, len: u32) -> Read {
        let (own, other) = (Seq(self.isn[1 - side]), Seq(self.isn[side]));
        let ack = if segment.flags.has(Flags::ACK) { (segment.ack - other) as u32 } else { 0 };
        (segment.flags, (segment.seq - own) as u32, ack, len)
    }

    /// The segments among `frames` that arrived at `side`.
    pub fn read_all(&self, side: usize, frames: &[impl AsRef<[u8]>]) -> Vec<Read> {
        let read = |frame: &[u8]| {
            let bytes = frame.get(VNET + 14..)?;
            let seen = view(bytes, Mode { verify: true, wire_len: None }).ok()?;
            let Transport::Tcp(segment) = &seen.transport else { return None };
            Some(self.read(side, segment, seen.body_len))
        };
        frames.iter().filter_map(|frame| read(frame.as_ref())).collect()
    }

    /// The next segment that arrives at `side`, within a second.
    pub fn next(&self, side: usize) -> Option<Read> {
        let mut came = self.came[side].borrow_mut();
        while came.is_empty() {
            let frames = receive(&self.sockets[side], 1);
            if frames.is_empty() {
                return None;
            }
            came.extend(self.read_all(side, &frames));
        }
        came.pop_front()
    }

    /// Sends a segment and checks that it arrives unchanged.
    pub fn pass(&self, from: usize, flags: Flags, at: u32, acks: u32, len: u32) {
        self.send(from, flags, at, acks, len);
        let came = self.next(1 - from);
        let ack = if flags.has(Flags::ACK) { acks } else { 0 };
        assert_eq!(came, Some((flags, at, ack, len)), "from {from}, {:?}", self.isn);
    }
}
