//! Section 3.3: the checksum over words of any size and byte order, and combined with the copy.

use core::hint::black_box;
use core::ops::Range;

use lasthop_proto::rng::Stream;
use lasthop_proto::wire::checksum::reference::{Order, by_definition, in_words};
use lasthop_proto::wire::checksum::{Sum, checksum};

use super::clock::{Task, Times, time_interleaved};
use crate::table::table;
use crate::{Bench, Finding, Interrupted, short};

/// Segment payload at the MTU of Ethernet and of 802.11b, and the largest packet of modern hosts.
const SIZES: [usize; 3] = [1448, 2244, 65_536];
/// Larger than any cache, for data that an application has not touched recently.
const FRESH: usize = 32 << 20;
const ROUNDS: usize = 9;
/// Bytes processed per measurement and round.
const BYTES: usize = 1 << 19;

pub(super) fn run(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    example(finding);
    pieces(finding);
    let headings = format!("bytes | <they are | {}", WAYS.join(" | "));
    let mut rows = table("3.3: nanoseconds for a packet on this machine", &headings);
    for size in SIZES {
        for fresh in [false, true] {
            bench.check_interrupt()?;
            let times = time(size, fresh);
            judge(finding, size, fresh, &times);
            let state = if fresh { "fresh from memory" } else { "in the cache" };
            let cells = times.iter().map(|times| short(times.least()));
            rows.rows.push([size.to_string(), state.into()].into_iter().chain(cells).collect());
        }
    }
    finding.tables.push(rows);
    finding.note(
        "Times are of the machine on which this ran, and hold for no other. The copy is the library's, with the \
         widest registers there are; the nearer the bytes are, the less a wait for them hides the additions",
    );
    Ok(())
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
        "The paper prints 0x575A and 0x5A57 for its example; its words add up to {sum:#06x} and {swapped:#06x}, which \
         are each other's swap as it says"
    ));
}

/// Random pieces of any length and alignment, as words of every size and byte order, and copied.
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
    let ways = "word size, byte order, alignment, or in one pass with the copy";
    finding.require(differ == 0, format!("{differ} of {PIECES} random pieces differ by {ways}"));
}

/// The measured variants.
const WAYS: [&str; 5] =
    ["16-bit words", "wide words", "copy", "copy and sum in one pass", "copy, then sum"];

/// Processes `times` packets of `size` bytes out of `span`. It continues where it stopped, so that no round finds data
/// of an earlier one in the cache.
fn task<'a>(
    times: usize,
    (size, span): (usize, usize),
    mut work: impl FnMut(Range<usize>) + 'a,
) -> Task<'a> {
    let mut at = 0;
    let all = move || {
        for _ in 0..times {
            at = if at + 2 * size > span { 0 } else { at + size };
            work(at..at + size);
        }
    };
    (times as u32, Box::new(all))
}

/// Times of each of [`WAYS`] for packets of `size` bytes, always the same or always different ones.
fn time(size: usize, fresh: bool) -> [Times; 5] {
    let span = if fresh { FRESH } else { size };
    let from: Vec<u8> = (0..span).map(|i| (i * 7 + i / 13) as u8).collect();
    let mut to = [vec![1; span], vec![1; span], vec![1; span]];
    let [copied, combined, twice] = &mut to;
    let times = (BYTES / size).max(4);
    let few = (times / 8).max(1);
    let from = |place| black_box(&from[place]);
    let mut tasks: [Task<'_>; 5] = [
        task(few, (size, span), |place| {
            black_box(by_definition(from(place)));
        }),
        task(times, (size, span), |place| {
            black_box(checksum(from(place)));
        }),
        task(times, (size, span), |place| {
            black_box(&mut copied[place.clone()]).copy_from_slice(from(place));
        }),
        task(times, (size, span), |place| {
            let mut sum = Sum::default();
            sum.copy(from(place.clone()), black_box(&mut combined[place]));
            black_box(sum.checksum());
        }),
        task(times, (size, span), |place| {
            let to = black_box(&mut twice[place.clone()]);
            to.copy_from_slice(from(place));
            black_box(checksum(to));
        }),
    ];
    let times = time_interleaved(ROUNDS, &mut tasks);
    drop(tasks);
    times.try_into().unwrap_or_else(|_| unreachable!("as many as there are ways"))
}

fn judge(finding: &mut Finding, size: usize, fresh: bool, times: &[Times; 5]) {
    let [slow, wide, copy, combined, twice] = times.each_ref().map(Times::least);
    let case = format!("{size} bytes {}", if fresh { "fresh" } else { "in the cache" });
    for (way, times) in WAYS.iter().zip(times) {
        finding.measure(format!("{case}, {way}"), times.summary(), "ns");
    }
    let faster = short(slow / wide);
    let text = format!("{case}: wide words are {faster} times as fast as 16-bit words");
    finding.require(slow >= 4.0 * wide, text);
    let faster = short((slow + copy) / combined);
    let text = format!("{case}: one pass is {faster} times as fast as a copy and 16-bit words");
    finding.require(slow + copy >= 4.0 * combined, text);
    finding.note(format!(
        "{case}: one pass takes {} of a plain copy, a copy and then a sum {}",
        short(combined / copy),
        short(twice / copy)
    ));
}
