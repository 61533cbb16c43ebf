//! Matching of packets in two captures of one path: losses between them, and changes of the delay between them.
//!
//! Packets are identified by fields that routers do not change: ends, sequence numbers, length, flags, timestamps.
//! Segments longer than any in the other capture, because an interface splits or merges segments, are split first.
//! If addresses or ports are translated between the captures, directions match by their sequence numbers. Where a PEP or
//! proxy splits connections, sequence numbers and segments differ. Then directions match by the bytes of their payload, or by
//! their ends; and the time at which a byte passed counts, in the place of that of a packet.

mod clocks;
mod payload;
mod translation;

use std::collections::{BTreeMap, BTreeSet};

use lasthop_observe::capture::{self, CaptureError, Content, Decoder};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Damage, Flags, FlowKey, Segment, Transport};
use serde::Serialize;

use crate::config::Config;
use crate::over_time::Samples;
use crate::reading::Endpoint;
use crate::stats::{Series, Spread};

pub use clocks::Clocks;
pub(crate) use payload::first_bytes;

/// Tolerance in nanoseconds for the match of two equal packets: their delay may be shorter than all other delays by
/// at most this time.
const SLACK: i64 = 500_000;

/// Assumed segment size without a captured handshake: that of Ethernet.
const USUAL_MSS: u32 = 1460;

/// Results of two captures of one path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Matched {
    /// Difference of the clocks; `None` if no packet is in both captures.
    pub clocks: Option<Clocks>,
    /// Directions of connections with packets in both captures, in the order of their ends.
    pub crossings: Vec<Crossing>,
    /// Directions between equal ends without equal packets or bytes.
    pub unmatched: u64,
}

/// One direction of a connection between the two points of capture.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Crossing {
    /// The sender.
    pub from: Endpoint,
    /// The receiver.
    pub to: Endpoint,
    /// Sender and receiver in the second capture, if their addresses or ports are translated in between.
    pub translated: Option<[Endpoint; 2]>,
    /// Whether a PEP or proxy splits the connection in between, or merges segments: the ends of the segments of the first
    /// capture match by their place in the stream of bytes.
    pub split: bool,
    /// Whether the packets pass the second capture first.
    pub backwards: bool,
    /// Packets at the point that they pass first, in the common time of the captures.
    pub packets: u64,
    /// Packets in both captures.
    pub matched: u64,
    /// Packets in the first capture only: lost in between, or missed by the second capture.
    pub lost: u64,
    /// Lost packets with payload.
    pub lost_data: u64,
    /// Packets in the second capture only: sent in between, or missed by the first capture.
    pub added: u64,
    /// Delay between the points, above the minimum of this direction, in seconds.
    pub delay: Option<Spread>,
    /// Delays over time, by the clock of the first capture.
    pub delays: Samples<Delay>,
    /// The lost packets, at most [`Config::losses`].
    pub losses: Vec<LostBetween>,
}

/// Delay of one packet between the captures.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Delay {
    /// Time at the first capture, by its clock.
    pub at: Time,
    /// Delay above the minimum of its direction, in seconds.
    pub above: f64,
}

/// A packet that was lost between the captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LostBetween {
    /// Time at the first point, by the clock of the first capture.
    pub at: Time,
    /// Sequence number.
    pub seq: u32,
    /// Bytes of payload; zero for an ACK.
    pub len: u32,
}

/// Identification of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Known {
    seq: u32,
    len: u32,
    flags: u16,
    stamp: Option<u32>,
    /// For a packet without payload: acknowledgement, window and end of the first SACK block.
    ack: Option<(u32, u16, u32)>,
}

/// One direction of a connection in one capture.
#[derive(Clone, Debug, Default)]
struct Flow {
    packets: Vec<(Known, i64)>,
    longest: u32,
    /// MSS announced by its sender.
    mss: Option<u32>,
    /// Its initial sequence number.
    isn: Option<u32>,
}

type Flows = BTreeMap<FlowKey, Flow>;

/// All TCP packets of a capture by direction of connection. With `verify`, packets with a wrong checksum are
/// omitted.
fn flows(file: &[u8], verify: bool) -> Result<Flows, CaptureError> {
    let mut flows = Flows::new();
    let mut decoder = Decoder::new(verify);
    // Records after an invalid one are ignored, as in an analysis.
    for frame in capture::open(file)?.map_while(Result::ok) {
        decoder.frame(&frame, |content| {
            let Content::Packet(view) = content else { return };
            let Transport::Tcp(segment) = &view.transport else { return };
            if view.damage != Damage::None {
                return;
            }
            let (src_port, dst_port) = (segment.src_port, segment.dst_port);
            let key = FlowKey { src: view.src, dst: view.dst, src_port, dst_port };
            let flow = flows.entry(key).or_default();
            flow.longest = flow.longest.max(view.body_len);
            if segment.flags.has(Flags::SYN) {
                flow.mss = segment.options().mss.map(u32::from);
                flow.isn.get_or_insert(segment.seq.0);
            }
            flow.packets.push((known(segment, view.body_len), frame.at.0 as i64));
        });
    }
    Ok(flows)
}

fn known(segment: &Segment, len: u32) -> Known {
    let sack = segment.options().sack;
    let block = sack.as_slice().first().map_or(0, |(_, right)| right.0);
    Known {
        seq: segment.seq.0,
        len,
        // PSH is on the last part of a split segment.
        flags: segment.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST).0,
        stamp: segment.timestamps.map(|timestamps| timestamps.value),
        ack: (len == 0).then_some((segment.ack.0, segment.window, block)),
    }
}

impl Flow {
    /// Times by packet; packets longer than `unit` are split.
    fn times(&self, unit: u32) -> BTreeMap<Known, Vec<i64>> {
        let mut times: BTreeMap<Known, Vec<i64>> = BTreeMap::new();
        for &(known, at) in &self.packets {
            let (mut seq, mut left) = (known.seq, known.len);
            while left > unit && unit > 0 {
                times.entry(Known { seq, len: unit, ..known }).or_default().push(at);
                (seq, left) = (seq.wrapping_add(unit), left - unit);
            }
            times.entry(Known { seq, len: left, ..known }).or_default().push(at);
        }
        times
    }

    /// Ends of segments with new data, as offsets from the sequence number `base`, and when they passed.
    fn reached(&self, base: u32) -> Vec<(i64, i64)> {
        let mut packets: Vec<_> = self.packets.iter().filter(|(known, _)| known.len > 0).collect();
        packets.sort_by_key(|(_, at)| *at);
        let mut most: Option<i64> = None;
        let mut reached = Vec::new();
        for (known, at) in packets {
            let offset = known.seq.wrapping_sub(base);
            let near = most.map_or(0, |most| most as u32);
            let end = most.unwrap_or(0)
                + i64::from(offset.wrapping_sub(near) as i32)
                + i64::from(known.len);
            if most.is_none_or(|most| end > most) {
                most = Some(end);
                reached.push((end, *at));
            }
        }
        reached
    }
}

/// When each end of a segment with new data in the first direction passed both captures; `bases` are the numbers of one byte.
fn passed(flows: [&Flow; 2], bases: [u32; 2]) -> [BTreeMap<Known, Vec<i64>>; 2] {
    let [first, second] = [0, 1].map(|side| flows[side].reached(bases[side]));
    let mut before = first.first().map_or(0, |(end, _)| *end);
    let ends: Vec<(i64, Known)> = first
        .iter()
        .map(|(end, _)| {
            let len = (end - core::mem::replace(&mut before, *end)) as u32;
            let seq = bases[0].wrapping_add(*end as u32).wrapping_sub(len);
            (*end, Known { seq, len, flags: 0, stamp: None, ack: None })
        })
        .collect();
    [first, second].map(|reached| {
        let from = reached.first().map_or(i64::MAX, |(end, _)| *end);
        let at = |end: i64| {
            let passed = reached.partition_point(|(reached, _)| *reached < end);
            reached.get(passed).filter(|_| end >= from).map(|(_, at)| vec![*at])
        };
        ends.iter().filter_map(|(end, known)| Some((*known, at(*end)?))).collect()
    })
}

/// The packets of one direction in both captures: when they passed the first and the second.
struct Both {
    key: FlowKey,
    /// The ends in the second capture, if they differ.
    translated: Option<FlowKey>,
    first: BTreeMap<Known, Vec<i64>>,
    second: BTreeMap<Known, Vec<i64>>,
    split: bool,
    backwards: bool,
}

impl Both {
    /// Whether most packets with data are in one capture only.
    fn differs(&self) -> bool {
        let data = |times: &BTreeMap<Known, Vec<i64>>| times.keys().filter(|k| k.len > 0).count();
        let equal = self.first.keys().filter(|k| k.len > 0 && self.second.contains_key(k)).count();
        2 * equal < data(&self.first).min(data(&self.second))
    }

    /// Times of packets that are once in each capture by the first clock, each with the second clock's time minus the
    /// first one's.
    fn differences(&self) -> Vec<(i64, i64)> {
        let once = self.first.iter().filter_map(|(known, at)| {
            let other = self.second.get(known)?;
            let ([at], [then]) = (&at[..], &other[..]) else { return None };
            Some((*at, then - at))
        });
        once.collect()
    }

    fn median(&self) -> Option<i64> {
        let mut all: Vec<i64> = self.differences().into_iter().map(|(_, d)| d).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }
}

/// Matches the packets of two captures of one path.
///
/// # Errors
/// One of the files is not a capture.
pub fn match_captures(
    first: &[u8],
    second: &[u8],
    config: Config,
) -> Result<Matched, CaptureError> {
    let files = [first, second];
    let (first, second) = (flows(first, config.verify)?, flows(second, config.verify)?);
    let mut names = translation::names(&first, &second);
    let alone = |flows: &Flows, of: &dyn Fn(&FlowKey) -> bool| -> BTreeSet<FlowKey> {
        flows.keys().filter(|key| !of(key)).copied().collect()
    };
    let named: BTreeSet<FlowKey> = names.values().copied().collect();
    let of_first = alone(&first, &|key| named.contains(key) || second.contains_key(key));
    let of_second = alone(&second, &|key| names.contains_key(key) || first.contains_key(key));
    let mut equal = BTreeMap::new();
    if !of_first.is_empty() && !of_second.is_empty() {
        let positions =
            (payload::positions(files[0], &of_first)?, payload::positions(files[1], &of_second)?);
        for (key, (name, numbers)) in payload::equal(&positions.0, &positions.1) {
            names.insert(key, name);
            names.entry(key.reversed()).or_insert(name.reversed());
            equal.insert(name, numbers);
        }
    }
    let second: Flows = second
        .into_iter()
        .map(|(key, flow)| (names.get(&key).copied().unwrap_or(key), flow))
        .collect();
    let originals: BTreeMap<FlowKey, FlowKey> =
        names.into_iter().map(|(key, name)| (name, key)).collect();
    let span = |flows: &Flows| {
        let times = || flows.values().flat_map(|flow| flow.packets.iter().map(|(_, at)| *at));
        Some((times().min()?, times().max()?))
    };
    let (Some(of_first), Some(of_second)) = (span(&first), span(&second)) else {
        return Ok(Matched { clocks: None, crossings: Vec::new(), unmatched: 0 });
    };
    let mut all: Vec<Both> = first
        .iter()
        .filter_map(|(key, flow)| {
            let other = second.get(key)?;
            let peer = first.get(&key.reversed()).or_else(|| second.get(&key.reversed()));
            let options = if flow.packets.iter().any(|(k, _)| k.stamp.is_some()) { 12 } else { 0 };
            let mss = peer.and_then(|peer| peer.mss).unwrap_or(USUAL_MSS);
            let mss = mss - options.min(mss);
            let unit = flow.longest.min(other.longest).min(mss);
            let (first, second) = (flow.times(unit), other.times(unit));
            let translated = originals.get(key).copied();
            Some(Both { key: *key, translated, first, second, split: false, backwards: false })
        })
        .collect();
    let differ = || all.iter().filter(|both| both.differs());
    let unknown = differ().map(|both| both.key).filter(|key| !equal.contains_key(key)).collect();
    let original = |key: &FlowKey| originals.get(key).copied().unwrap_or(*key);
    let positions = (
        payload::positions(files[0], &unknown)?,
        payload::positions(files[1], &unknown.iter().map(original).collect())?,
    );
    for (key, (name, numbers)) in payload::equal(&positions.0, &positions.1) {
        if original(&name) == key {
            equal.insert(name, numbers);
        }
    }
    let bases = |key: &FlowKey| {
        let others = payload::is_varied(positions.0.get(key))
            && payload::is_varied(positions.1.get(&original(key)));
        let opened = || Some([first[key].isn?, second[key].isn?]).filter(|_| !others);
        equal.get(key).copied().or_else(opened)
    };
    let differ = all.iter().filter(|both| both.differs()).map(|both| both.key);
    let split: BTreeSet<FlowKey> = differ.filter(|key| bases(key).is_some()).collect();
    for both in &mut all {
        // The ACKs of a split connection answer segments of one side.
        if split.contains(&both.key) || split.contains(&both.key.reversed()) {
            let flows = [&first[&both.key], &second[&both.key]];
            let passed = bases(&both.key).map(|bases| passed(flows, bases)).unwrap_or_default();
            [both.first, both.second] = passed;
            both.split = true;
        }
    }
    // Forward delays increase the difference of the clocks, backward delays decrease it. So the direction with the
    // larger difference is forward.
    let medians: BTreeMap<FlowKey, i64> =
        all.iter().filter_map(|both| Some((both.key, both.median()?))).collect();
    for both in &mut all {
        let (own, back) = (medians.get(&both.key), medians.get(&both.key.reversed()));
        both.backwards = own.zip(back).is_some_and(|(own, back)| own < back);
    }
    let none = |both: &&Both| !both.split && !medians.contains_key(&both.key);
    let unmatched = all.iter().filter(none).count() as u64;
    let points = |backwards: bool| -> Vec<(i64, i64)> {
        let of = all.iter().filter(|both| both.backwards == backwards);
        of.flat_map(Both::differences).collect()
    };
    let clocks = Clocks::of(points(false), points(true));
    let crossings = match &clocks {
        None => Vec::new(),
        Some(clocks) => {
            let cross = |both| crossing(both, clocks, of_first, of_second, config);
            all.iter().filter_map(cross).collect()
        }
    };
    Ok(Matched { clocks, crossings, unmatched })
}

fn crossing(
    both: &Both,
    clocks: &Clocks,
    first: (i64, i64),
    second: (i64, i64),
    config: Config,
) -> Option<Crossing> {
    // Converts times to the first capture's clock.
    let ours = |times: &BTreeMap<Known, Vec<i64>>| -> BTreeMap<Known, Vec<i64>> {
        let moved = |(known, at): (&Known, &Vec<i64>)| {
            (*known, at.iter().map(|at| clocks.to_first(*at)).collect())
        };
        times.iter().map(moved).collect()
    };
    let second_times = ours(&both.second);
    let other = (clocks.to_first(second.0), clocks.to_first(second.1));
    let (before, behind) =
        if both.backwards { (&second_times, &both.first) } else { (&both.first, &second_times) };
    let once = before.iter().filter_map(|(known, at)| {
        let ([at], [then]) = (&at[..], &behind.get(known)?[..]) else { return None };
        Some(then - at)
    });
    let (least, most) = once.fold((i64::MAX, i64::MIN), |(low, high), d| (low.min(d), high.max(d)));
    if least > most {
        return None;
    }
    let mut found = Found::default();
    for (known, at) in before {
        let then = behind.get(known).map_or(&[][..], Vec::as_slice);
        found.pair(*known, at, then, least);
    }
    // Packets outside of the common time of the captures are ignored; a packet may take as long as the slowest one.
    let (from, to) = (first.0.max(other.0), first.1.min(other.1));
    let (from, to) = (from - least.min(0), to - most.max(0));
    found.missing.retain(|(_, at)| (from..=to).contains(at));
    found.missing.sort_by_key(|(_, at)| *at);
    found.pairs.sort_unstable();
    let unknown = behind.iter().filter(|(known, _)| !before.contains_key(known));
    let late = unknown.flat_map(|(_, at)| at).filter(|at| (from + most..=to).contains(at));
    let added = late.count() as u64 + found.added;
    let (mut spread, mut delays) = (Series::default(), Samples::default());
    for (at, delay) in &found.pairs {
        let above = (delay - least).max(0) as f64 / 1e9;
        spread.add(above);
        delays.add(config.points, Delay { at: Time(*at as u64), above });
    }
    let lost = found.missing.iter().map(|(known, at)| LostBetween {
        at: Time(*at as u64),
        seq: known.seq,
        len: known.len,
    });
    let end = |addr: lasthop_proto::wire::Addr, port| Endpoint { addr: addr.ip(), port };
    Some(Crossing {
        from: end(both.key.src, both.key.src_port),
        to: end(both.key.dst, both.key.dst_port),
        translated: both
            .translated
            .map(|key| [end(key.src, key.src_port), end(key.dst, key.dst_port)]),
        split: both.split,
        backwards: both.backwards,
        packets: (found.pairs.len() + found.missing.len()) as u64,
        matched: found.pairs.len() as u64,
        lost: found.missing.len() as u64,
        lost_data: found.missing.iter().filter(|(known, _)| known.len > 0).count() as u64,
        added,
        delay: spread.spread(),
        delays,
        losses: lost.take(config.losses).collect(),
    })
}

/// Matched, lost and added packets between the two points.
#[derive(Debug, Default)]
struct Found {
    /// Time of each matched packet at the first point, and its delay.
    pairs: Vec<(i64, i64)>,
    missing: Vec<(Known, i64)>,
    added: u64,
}

impl Found {
    /// Pairs equal packets: each arrival at the second point with the latest possible packet at the first point.
    fn pair(&mut self, known: Known, before: &[i64], behind: &[i64], least: i64) {
        let mut next = 0;
        for then in behind {
            let could = |at: i64| then - at >= least - SLACK;
            let candidates = before[next..].iter().take_while(|at| could(**at)).count();
            if candidates == 0 {
                self.added += 1;
                continue;
            }
            let last = next + candidates - 1;
            self.missing.extend(before[next..last].iter().map(|at| (known, *at)));
            self.pairs.push((before[last], then - before[last]));
            next = last + 1;
        }
        self.missing.extend(before[next..].iter().map(|at| (known, *at)));
    }
}
