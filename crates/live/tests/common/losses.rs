//! Deterministic losses of a hop: the index of a segment in its transfer determines how often it is lost.

use std::os::fd::{AsRawFd as _, OwnedFd};

use lasthop_live::sys::bpf::{self, MapKind};

use super::inside;

/// Payload of a segment with timestamps at an MTU of 1500, bytes.
const SEGMENT: u32 = 1448;

/// Multiplier and shift of a hash whose losses have gaps of all lengths, like random ones.
const SPREAD: u32 = 0x9e37_79b1;
const SHIFT: u32 = 15;
const MIX: u32 = 0x85eb_ca6b;

/// Number of losses of segment `number`, counted from 0: one of 128 is lost once, and one of eight of these
/// twice.
pub fn losses(number: u32) -> u32 {
    let hash = (number + 1).wrapping_mul(SPREAD);
    let hash = (hash ^ hash >> SHIFT).wrapping_mul(MIX);
    match (hash >> 25, hash >> 22 & 7) {
        (0, 0) => 2,
        (0, _) => 1,
        _ => 0,
    }
}

/// Number of lost transmissions in a transfer of `len` bytes.
pub fn losses_of(len: usize) -> u64 {
    (0..(len as u32).div_ceil(SEGMENT)).map(|number| u64::from(losses(number))).sum()
}

const HASH: u32 = 1;

/// BPF instructions and the labels of jumps.
#[derive(Default)]
struct Code {
    bytes: Vec<[u8; 8]>,
    jumps: Vec<(usize, &'static str)>,
    labels: Vec<(&'static str, usize)>,
}

impl Code {
    fn op(&mut self, op: u8, dst: u8, src: u8, off: i16, imm: u32) {
        let ([o, p], [a, b, c, d]) = (off.to_le_bytes(), imm.to_le_bytes());
        self.bytes.push([op, dst | src << 4, o, p, a, b, c, d]);
    }

    fn jump(&mut self, op: u8, dst: u8, imm: u32, to: &'static str) {
        self.jumps.push((self.bytes.len(), to));
        self.op(op, dst, 0, 0, imm);
    }

    fn label(&mut self, name: &'static str) {
        self.labels.push((name, self.bytes.len()));
    }

    /// Calls a helper with a map, a key and optionally a value on the stack.
    fn map_call(&mut self, helper: u32, map: &OwnedFd, key: i32, value: Option<(i32, u32)>) {
        self.op(0x18, 1, 1, 0, map.as_raw_fd() as u32);
        self.op(0, 0, 0, 0, 0);
        self.op(0xbf, 2, 10, 0, 0);
        self.op(0x07, 2, 0, 0, key as u32);
        if let Some((value, flags)) = value {
            self.op(0xbf, 3, 10, 0, 0);
            self.op(0x07, 3, 0, 0, value as u32);
            self.op(0xb7, 4, 0, 0, flags);
        }
        self.op(0x85, 0, 0, 0, helper);
    }

    /// Loads `len` bytes of the packet at `from` to the stack; exits if the packet is shorter.
    fn load(&mut self, from: u32, to: i32, len: u32) {
        self.op(0xbf, 1, 6, 0, 0);
        self.op(0xb7, 2, 0, 0, from);
        self.op(0xbf, 3, 10, 0, 0);
        self.op(0x07, 3, 0, 0, to as u32);
        self.op(0xb7, 4, 0, 0, len);
        self.op(0x85, 0, 0, 0, 26);
        self.jump(0x55, 0, 0, "out");
    }

    fn finished(mut self) -> Vec<u8> {
        for (at, to) in &self.jumps {
            let target = self.labels.iter().find(|(name, _)| name == to).unwrap().1;
            let off = (target - at - 1) as i16;
            self.bytes[*at][2..4].copy_from_slice(&off.to_le_bytes());
        }
        self.bytes.concat()
    }
}

/// Drops data that arrives at `dev` as [`losses`] determines, until it is dropped itself. It handles one IPv4
/// connection, whose SYN it must see.
pub struct Losses(#[expect(dead_code, reason = "they stay open")] Vec<OwnedFd>);

impl Losses {
    pub fn start(namespace: &'static str, dev: &'static str) -> Losses {
        inside(namespace, move || {
            let map = |kind, entries| {
                bpf::map(MapKind { kind, key: 4, value: 4, entries, flags: 0 }).unwrap()
            };
            let (first, once, twice) = (map(bpf::ARRAY, 1), map(HASH, 65_536), map(HASH, 65_536));
            let code = program(&first, &once, &twice);
            let program = bpf::load(&code, c"MIT OR Apache-2.0", "losses").unwrap();
            let index = nix::net::if_::if_nametoindex(dev).unwrap();
            let link = bpf::attach(&program, index).unwrap();
            Losses(vec![first, once, twice, program, link])
        })
    }
}

fn program(first: &OwnedFd, once: &OwnedFd, twice: &OwnedFd) -> Vec<u8> {
    const LOOKUP: u32 = 1;
    const UPDATE: u32 = 2;
    const NO_EXIST: u32 = 1;
    let mut c = Code::default();
    c.op(0xbf, 6, 1, 0, 0); // r6 = the packet
    c.op(0xb7, 7, 0, 0, u32::MAX); // r7 = TCX_NEXT
    c.load(38, -4, 4); // sequence number
    c.load(47, -8, 1); // flags
    c.op(0x61, 8, 10, -4, 0);
    c.op(0xdc, 8, 0, 0, 32); // r8 = sequence number in the machine's order
    c.op(0x62, 10, 0, -12, 0);
    c.op(0x71, 1, 10, -8, 0);
    c.op(0x57, 1, 0, 0, 2);
    c.jump(0x15, 1, 0, "data");
    c.op(0x63, 10, 8, -16, 0);
    c.map_call(UPDATE, first, -12, Some((-16, 0))); // the number of the SYN
    c.jump(0x05, 0, 0, "out");
    c.label("data");
    c.op(0x61, 1, 6, 0, 0);
    c.jump(0xb5, 1, 200, "out"); // short frames are ACKs
    c.map_call(LOOKUP, first, -12, None);
    c.jump(0x15, 0, 0, "out");
    c.op(0x61, 1, 0, 0, 0);
    c.op(0x1c, 8, 1, 0, 0);
    c.op(0x04, 8, 0, 0, u32::MAX); // without the SYN itself
    c.op(0x34, 8, 0, 0, SEGMENT); // r8 = number of the segment
    c.op(0x63, 10, 8, -16, 0);
    c.op(0x62, 10, 0, -20, 1);
    c.op(0xbc, 9, 8, 0, 0);
    c.op(0x04, 9, 0, 0, 1);
    c.op(0x24, 9, 0, 0, SPREAD);
    c.op(0xbc, 1, 9, 0, 0);
    c.op(0x74, 1, 0, 0, SHIFT);
    c.op(0xac, 9, 1, 0, 0);
    c.op(0x24, 9, 0, 0, MIX); // r9 = its hash
    c.op(0xbc, 1, 9, 0, 0);
    c.op(0x74, 1, 0, 0, 25);
    c.jump(0x55, 1, 0, "out");
    c.map_call(UPDATE, once, -16, Some((-20, NO_EXIST)));
    c.jump(0x15, 0, 0, "lost");
    c.op(0xbc, 1, 9, 0, 0);
    c.op(0x74, 1, 0, 0, 22);
    c.op(0x54, 1, 0, 0, 7);
    c.jump(0x55, 1, 0, "out");
    c.map_call(UPDATE, twice, -16, Some((-20, NO_EXIST)));
    c.jump(0x55, 0, 0, "out");
    c.label("lost");
    c.op(0xb7, 7, 0, 0, 2); // r7 = TC_ACT_SHOT
    c.label("out");
    c.op(0xbf, 0, 7, 0, 0);
    c.op(0x95, 0, 0, 0, 0);
    c.finished()
}
