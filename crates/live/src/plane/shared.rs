//! Definitions shared by the program in the kernel and the station: `bpf/shared.h` in Rust.

/// A packet that the station decides about. The kernel has already forwarded packets of other kinds.
pub(super) const DIVERTED: u8 = 3;
/// A packet that was meant for the station's decision. The kernel has forwarded it because the station was too slow.
pub(super) const PASSED: u8 = 4;

pub(super) const FORWARD: u32 = 0;
pub(super) const JUDGE: u32 = 1;
pub(super) const HOLD: u32 = 2;
pub(super) const END: u32 = 3;

pub(super) const AWAKE: u32 = 0;
pub(super) const WAKE_ANY: u32 = 1;
pub(super) const WAKE_URGENT: u32 = 2;

/// Length of `struct record`.
pub(super) const RECORD: usize = 32;

/// `struct record`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub at: u64,
    pub len: u32,
    pub captured: u32,
    pub gso_size: u16,
    pub vlan: Option<[u8; 4]>,
    pub side: u8,
    pub act: u8,
    pub verified: bool,
}

impl Record {
    /// Reads the header of a record.
    pub fn read(bytes: &[u8]) -> Option<Record> {
        let b = bytes.first_chunk::<RECORD>()?;
        let word = |at: usize| u32::from_ne_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let [high, low] = u16::from_ne_bytes([b[18], b[19]]).to_be_bytes();
        Some(Record {
            at: u64::from(word(0)) | u64::from(word(4)) << 32,
            len: word(8),
            captured: word(12),
            gso_size: u16::from_ne_bytes([b[16], b[17]]),
            // The protocol is in network byte order.
            vlan: (b[20..22] != [0, 0]).then_some([b[20], b[21], high, low]),
            side: b[22],
            act: b[23],
            verified: word(24) != 0,
        })
    }
}
