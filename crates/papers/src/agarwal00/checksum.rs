//! Section 3.3: the checksum in words of any size and order, and in one pass with the copy.

use core::hint::black_box;

use lasthop_proto::rng::Stream;
use lasthop_proto::wire::checksum::reference::{Order, by_definition, in_words};
use lasthop_proto::wire::checksum::{Sum, checksum};
use lasthop_report::model::{Column, Measured, Table};

use super::clock::{Task, Times, by_turns};
use crate::bench::{Bench, Interrupted};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub(super) fn experiment(id: &str) -> Option<Experiment> {
    (id == "A-CHECKSUM").then_some(run)
}

/// What a segment carries at the MTU of Ethernet and at that of 802.11b, and the largest packet that a host makes today.
const SIZES: [usize; 3] = [1448, 2244, 65_536];
/// More bytes than caches hold, for what an application has not touched lately.
const FRESH: usize = 32 << 20;
const ROUNDS: usize = 9;
/// Bytes that each measurement moves in a round.
const BYTES: usize = 1 << 19;

fn run(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(1);
    example(&mut finding);
    pieces(&mut finding);
    let mut table = Table {
        title: "3.3: nanoseconds for a packet on this machine".into(),
        columns: vec![Column::number("bytes"), Column::text("they are")],
        rows: Vec::new(),
    };
    table.columns.extend(WAYS.map(Column::number));
    for size in SIZES {
        for fresh in [false, true] {
            if bench.stopped() {
                return Err(Interrupted);
            }
            let times = time(size, fresh);
            judge(&mut finding, size, fresh, &times);
            let state = if fresh { "fresh from memory" } else { "in the cache" };
            let cells = times.iter().map(|times| short(times.least()));
            table.rows.push([size.to_string(), state.into()].into_iter().chain(cells).collect());
        }
    }
    finding.tables.push(table);
    finding.note(
        "Times are of the machine on which this ran, and hold for no other. The copy is the library's, with the widest \
         registers there are; the nearer the bytes are, the less a wait for them hides the additions",
    );
    Ok(finding)
}

/// The six bytes of the paper.
fn example(finding: &mut Finding) {
    let bytes = [0x50, 0x51, 0x52, 0x53, 0x54, 0x55];
    let twin = [0x51, 0x50, 0x53, 0x52, 0x55, 0x54];
    let (sum, swapped) = (by_definition(&bytes), by_definition(&twin));
    finding.require(
        !checksum(&bytes) == sum && !checksum(&twin) == swapped && swapped == sum.swap_bytes(),
        format!(
            "0x5051 + 0x5253 + 0x5455 = {sum:#06x}, and swapped words add up to {swapped:#06x}"
        ),
    );
    finding.note(format!(
        "The paper prints 0x575A and 0x5A57 for its example; its words add up to {sum:#06x} and {swapped:#06x}, which are \
         each other's swap as it says"
    ));
}

/// Random pieces of any length and alignment, in words of every size and order, and copied.
fn pieces(finding: &mut Finding) {
    const PIECES: u64 = 2000;
    let mut chance = Stream::new(1, "pieces");
    let bytes: Vec<u8> = (0..4096).map(|_| chance.next_u64() as u8).collect();
    let differ = (0..PIECES)
        .filter(|_| {
            let (from, len) = (chance.below(16) as usize, chance.below(2300) as usize);
            let piece = &bytes[from..from + len];
            let sum = by_definition(piece);
            let words = [Order::Big, Order::Little].into_iter().all(|order| {
                [
                    in_words::<2>(piece, order),
                    in_words::<4>(piece, order),
                    in_words::<8>(piece, order),
                ] == [sum; 3]
            });
            let mut copy = vec![0; len];
            let mut copied = Sum::default();
            copied.copy(piece, &mut copy);
            !words || !checksum(piece) != sum || copied.fold() != sum || copy != piece
        })
        .count();
    finding.require(
        differ == 0,
        format!(
            "{differ} of {PIECES} random pieces differ by word size, byte order, alignment, or in one pass with the copy"
        ),
    );
}

/// What is timed.
const WAYS: [&str; 5] =
    ["16-bit words", "wide words", "copy", "copy and sum in one pass", "copy, then sum"];

/// Times of each of [`WAYS`] for packets of `size` bytes, always the same ones or always others.
fn time(size: usize, fresh: bool) -> [Times; 5] {
    let span = if fresh { FRESH } else { size };
    let from: Vec<u8> = (0..span).map(|i| (i * 7 + i / 13) as u8).collect();
    let mut to = [vec![1; span], vec![1; span], vec![1; span]];
    let [copied, combined, twice] = &mut to;
    let times = (BYTES / size).max(4);
    let from = &from;
    // Each goes on where it stopped, so that no round finds what an earlier one has left in the cache.
    let steps = || {
        let mut at = 0;
        move || {
            at = if at + 2 * size > span { 0 } else { at + size };
            at..at + size
        }
    };
    let (mut a, mut b, mut c, mut d, mut e) = (steps(), steps(), steps(), steps(), steps());
    let few = (times / 8).max(1);
    let mut tasks: [Task<'_>; 5] = [
        (
            few as u32,
            Box::new(move || {
                (0..few).for_each(|_| {
                    black_box(by_definition(black_box(&from[a()])));
                })
            }),
        ),
        (
            times as u32,
            Box::new(move || {
                (0..times).for_each(|_| {
                    black_box(checksum(black_box(&from[b()])));
                })
            }),
        ),
        (
            times as u32,
            Box::new(move || {
                (0..times).for_each(|_| {
                    let place = c();
                    black_box(&mut copied[place.clone()]).copy_from_slice(black_box(&from[place]));
                })
            }),
        ),
        (
            times as u32,
            Box::new(move || {
                (0..times).for_each(|_| {
                    let place = d();
                    let mut sum = Sum::default();
                    sum.copy(black_box(&from[place.clone()]), black_box(&mut combined[place]));
                    black_box(sum.checksum());
                })
            }),
        ),
        (
            times as u32,
            Box::new(move || {
                (0..times).for_each(|_| {
                    let place = e();
                    let to = black_box(&mut twice[place.clone()]);
                    to.copy_from_slice(black_box(&from[place]));
                    black_box(checksum(to));
                })
            }),
        ),
    ];
    let times = by_turns(ROUNDS, &mut tasks);
    drop(tasks);
    times.try_into().unwrap_or_else(|_| unreachable!("as many as there are ways"))
}

fn judge(finding: &mut Finding, size: usize, fresh: bool, times: &[Times; 5]) {
    let [slow, wide, copy, combined, twice] = times.each_ref().map(Times::least);
    let state = if fresh { "fresh" } else { "in the cache" };
    for (way, times) in WAYS.iter().zip(times) {
        let label = format!("{size} bytes {state}, {way}");
        finding.measured.push(Measured::new(label, &times.summary(), "ns", None));
    }
    finding.require(
        slow >= 4.0 * wide,
        format!(
            "{size} bytes {state}: wide words are {} times as fast as 16-bit words",
            short(slow / wide)
        ),
    );
    finding.require(
        slow + copy >= 4.0 * combined,
        format!(
            "{size} bytes {state}: one pass is {} times as fast as a copy and 16-bit words",
            short((slow + copy) / combined)
        ),
    );
    finding.note(format!(
        "{size} bytes {state}: one pass takes {} of a plain copy, a copy and then a sum {}",
        short(combined / copy),
        short(twice / copy)
    ));
}
