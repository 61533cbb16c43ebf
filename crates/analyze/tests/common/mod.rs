//! Captures written by hand: time, direction, segment.

#![allow(dead_code, reason = "each test file uses its part")]

use lasthop_analyze::{Analysis, Config, analyze_capture};
use lasthop_observe::pcapng::{Interface, InterfaceId, Writer};
use lasthop_proto::machine::Side;
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq, Timestamps};

/// A capture in the making. Times are in milliseconds; sequence numbers are relative to each side's first.
pub struct Script {
    writer: Writer<Vec<u8>>,
    on: InterfaceId,
    pub port: u16,
    pub isn: [u32; 2],
    pub window: [u16; 2],
    pub stamps: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
    pub v6: bool,
    /// Last byte of each side's address.
    pub hosts: [u8; 2],
    /// IP identification of each side's next packet; zero in all where there is none.
    pub ids: Option<[u16; 2]>,
    pub ttl: u8,
    /// The acknowledgment number of packets without ACK.
    pub garbage: u32,
    /// Window scale in each side's SYN.
    pub scale: [Option<u8>; 2],
    /// Segment size in each side's SYN.
    pub mss: [Option<u16>; 2],
    /// Whether each side's SYN has SACK-permitted.
    pub sack_permitted: [bool; 2],
    /// Further TCP options of the next packets, in their wire form.
    pub options: Vec<u8>,
    /// Captured bytes of payload of each packet.
    pub payload: u32,
    /// The payload begins at this byte of a stream, for sequence number 0; by default, at 0.
    pub stream_from: [u64; 2],
    /// The ECN bits of packets with data, and of others.
    pub ecn: [u8; 2],
}

impl Script {
    pub fn new() -> Script {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let on = writer.interface(&Interface { name: "test", ..Interface::default() }).unwrap();
        let (isn, window) = ([1000, 90_000], [8000, 8000]);
        let (stamps, sack) = (None, Vec::new());
        Script {
            writer,
            on,
            port: 4000,
            isn,
            window,
            stamps,
            sack,
            v6: false,
            hosts: [1, 2],
            ids: None,
            ttl: 64,
            garbage: 0,
            scale: [None; 2],
            mss: [None; 2],
            sack_permitted: [false; 2],
            ecn: [0; 2],
            options: Vec::new(),
            stream_from: [0; 2],
            payload: 0,
        }
    }

    /// Side `from` (0 is the client) sends `len` bytes at `seq`, acknowledging `ack`.
    pub fn send(&mut self, at: f64, from: usize, flags: Flags, seq: u32, len: u32, ack: u32) {
        let ends = self.hosts.map(|host| {
            if self.v6 {
                let ip = std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host.into());
                Addr::from(std::net::IpAddr::V6(ip))
            } else {
                Addr::v4(10, 0, 0, host)
            }
        });
        let ports = [self.port, 80];
        let abs = |side: usize, n: u32| Seq(self.isn[side].wrapping_add(n));
        let ack = if flags.has(Flags::ACK) { abs(1 - from, ack) } else { Seq(self.garbage) };
        let mut segment = Segment::new(ports[from], ports[1 - from], abs(from, seq), ack, flags);
        segment.window = self.window[from];
        segment.timestamps = self.stamps.map(|(value, echo)| Timestamps { value, echo });
        if flags.has(Flags::SYN) && self.scale[from].is_some() {
            segment.options_mut().window_scale = self.scale[from];
        }
        if flags.has(Flags::SYN) && self.mss[from].is_some() {
            segment.options_mut().mss = self.mss[from];
        }
        if flags.has(Flags::SYN) && self.sack_permitted[from] {
            segment.options_mut().sack_permitted = true;
        }
        for &(left, right) in &self.sack {
            segment.options_mut().sack.push(abs(1 - from, left), abs(1 - from, right));
        }
        if !self.options.is_empty() {
            segment.options_mut().unknown = self.options.clone();
        }
        let offset = self.stream_from[from].wrapping_add(u64::from(seq));
        // The pattern repeats after a few thousand bytes.
        let mix = |at: u64| (at ^ at >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let byte = |at: u64| (mix(mix(at)) >> 56) as u8;
        let body = if self.payload > 0 {
            Body::copy_of(&(0..u64::from(len)).map(|i| byte(offset + i)).collect::<Vec<u8>>())
        } else {
            Body::Pattern { stream: from as u32, len, offset }
        };
        let mut packet = Packet::tcp(ends[from], ends[1 - from], segment, body);
        if let Some(ids) = &mut self.ids {
            packet.id = PacketId(ids[from].into());
            ids[from] = ids[from].wrapping_add(1);
        }
        packet.ttl = self.ttl;
        packet.tos = self.ecn[usize::from(len == 0)];
        let side = if from == 0 { Side::Right } else { Side::Left };
        let at = Time((at * 1e6) as u64);
        self.writer.packet(self.on, at, side, &packet, self.payload, "").unwrap();
    }

    /// The three packets of a handshake that takes `rtt` milliseconds.
    pub fn handshake(&mut self, at: f64, rtt: f64) {
        self.send(at, 0, Flags::SYN, 0, 0, 0);
        self.send(at + rtt * 0.9, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        self.send(at + rtt, 0, Flags::ACK, 1, 0, 1);
    }

    /// The client sends data.
    pub fn data(&mut self, at: f64, seq: u32, len: u32) {
        self.send(at, 0, Flags::ACK, seq, len, 1);
    }

    /// The server acknowledges.
    pub fn ack(&mut self, at: f64, ack: u32) {
        self.send(at, 1, Flags::ACK, 1, 0, ack);
    }

    /// The server acknowledges with SACK blocks.
    pub fn ack_sack(&mut self, at: f64, ack: u32, blocks: &[(u32, u32)]) {
        self.sack = blocks.to_vec();
        self.ack(at, ack);
        self.sack.clear();
    }

    pub fn finish(self) -> Vec<u8> {
        self.writer.into_inner()
    }

    pub fn analyze(self) -> Analysis {
        analyze_capture(&self.finish(), Config::default()).unwrap()
    }
}
