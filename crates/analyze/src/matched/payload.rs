//! Directions of two captures with other sequence numbers, by the bytes of their payload.
//!
//! The bytes choose the positions that are compared: those at which a hash of the last bytes has a certain value. So equal
//! bytes have equal positions, however segments divide them.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_observe::capture::{self, CaptureError, Frame};
use lasthop_proto::wire::{FlowKey, Seq, Transport};

/// Number of hashed bytes, and the mean distance of two positions in bytes.
const HASHED: usize = 32;
const APART: u64 = 128;

/// Maximum number of positions of a direction, minimum number of equal ones, and their minimum share of the smaller number:
/// other connections may have parts in common, as certificates.
const MOST: usize = 4096;
const FEWEST: usize = 3;
const SHARE: usize = 4;

/// Odd multiplier of the hash.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Sequence number behind each hashed part of the payload; `None` for a hash at several numbers.
type Positions = BTreeMap<u64, Option<u32>>;

/// Positions in the payload of the directions in `wanted`.
pub(super) fn positions(
    file: &[u8],
    wanted: &BTreeSet<FlowKey>,
) -> Result<BTreeMap<FlowKey, Positions>, CaptureError> {
    let mut found: BTreeMap<FlowKey, Positions> = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(found);
    }
    for frame in capture::open(file)?.map_while(Result::ok) {
        let Some((key, first, payload)) = payload(&frame) else { continue };
        if !wanted.contains(&key) {
            continue;
        }
        let of = found.entry(key).or_default();
        for (end, hash) in hashes(payload) {
            if of.len() >= MOST {
                break;
            }
            let seq = (first + end as u32).0;
            let known = of.entry(hash).or_insert(Some(seq));
            *known = known.filter(|known| *known == seq);
        }
    }
    Ok(found)
}

/// The captured payload of a TCP packet, with its flow and the number of its first byte.
fn payload<'a>(frame: &Frame<'a>) -> Option<(FlowKey, Seq, &'a [u8])> {
    let (Some(Ok(view)), (ip, _)) = (frame.view(false), frame.ip()?) else { return None };
    let Transport::Tcp(segment) = &view.transport else { return None };
    let (src_port, dst_port) = (segment.src_port, segment.dst_port);
    let key = FlowKey { src: view.src, dst: view.dst, src_port, dst_port };
    let header = if key.src.is_v4() { usize::from(ip[0] & 15) * 4 } else { 40 };
    let rest = ip.get(header + usize::from(ip.get(header + 12)? >> 4) * 4..)?;
    Some((key, segment.seq, &rest[..rest.len().min(view.body_len as usize)]))
}

/// A hash of the first bytes of the payload in `frame`, if it is a packet of `flow`.
pub(crate) fn first_bytes(frame: &Frame<'_>, flow: FlowKey) -> Option<u64> {
    let (_, _, payload) = payload(frame).filter(|(key, ..)| *key == flow)?;
    let words = payload.first_chunk::<HASHED>()?.as_chunks::<8>().0;
    let mix = |hash: u64, word: &[u8; 8]| (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
    Some(words.iter().fold(0, |hash, word| mix(hash, word).rotate_left(32)))
}

/// Whether the payload of a direction distinguishes its bytes from others.
pub(super) fn is_varied(positions: Option<&Positions>) -> bool {
    positions.is_some_and(|positions| positions.values().flatten().count() >= 2 * FEWEST)
}

/// The chosen hashes, each with the number of bytes up to its end.
fn hashes(payload: &[u8]) -> impl Iterator<Item = (usize, u64)> {
    // Byte `n` before the end has the factor `FACTOR` to the power of `n`.
    let first = (0..HASHED).fold(1u64, |power, _| power.wrapping_mul(FACTOR));
    let mut hash = 0u64;
    payload.iter().enumerate().filter_map(move |(at, byte)| {
        let before = at.checked_sub(HASHED).map_or(0, |at| u64::from(payload[at]) + 1);
        hash = hash.wrapping_mul(FACTOR).wrapping_add(u64::from(*byte) + 1);
        hash = hash.wrapping_sub(first.wrapping_mul(before));
        let mixed = (hash ^ hash >> 32).wrapping_mul(FACTOR);
        (at + 1 >= HASHED && (mixed >> 32).is_multiple_of(APART)).then_some((at + 1, mixed))
    })
}

/// For each direction of the second capture the one of the first with the same bytes, and two sequence numbers of the same
/// byte.
pub(super) fn equal(
    first: &BTreeMap<FlowKey, Positions>,
    second: &BTreeMap<FlowKey, Positions>,
) -> BTreeMap<FlowKey, (FlowKey, [u32; 2])> {
    let mut at: BTreeMap<u64, (FlowKey, u32)> = BTreeMap::new();
    for (key, positions) in first {
        let known = positions.iter().filter_map(|(hash, seq)| Some((*hash, (*key, (*seq)?))));
        at.extend(known);
    }
    let mut equal = BTreeMap::new();
    for (key, positions) in second {
        let mut shifts: BTreeMap<(FlowKey, u32), (usize, [u32; 2])> = BTreeMap::new();
        for (hash, seq) in positions {
            let (Some(seq), Some((other, known))) = (seq, at.get(hash)) else { continue };
            let shift = seq.wrapping_sub(*known);
            shifts.entry((*other, shift)).or_insert((0, [*known, *seq])).0 += 1;
        }
        let best = shifts.into_iter().max_by_key(|(_, (count, _))| *count);
        let Some(((other, _), (count, numbers))) = best else { continue };
        let all = positions.len().min(first.get(&other).map_or(0, BTreeMap::len));
        if count >= FEWEST && count * SHARE >= all {
            equal.insert(*key, (other, numbers));
        }
    }
    equal
}
