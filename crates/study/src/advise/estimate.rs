//! Estimates the parameters of a link from a capture.

use lasthop_analyze::{Cause, Direction, Loss, Opening, PointKind, StallCause};
use lasthop_observe::stats::quantile;
use lasthop_proto::units::{Probability, Rate, Span};
use lasthop_report::number::plural;

use super::faults::{self, Fault, Findings, is_decided};
use super::kinds::LinkKind;
use super::link::MTU;
use super::{signature, unseen};
use crate::Error;
use crate::capture::congestion::{Recognition, congestion};
use crate::capture::{Capture, Transfer, unread};

/// Bytes of IP and TCP headers, timestamps included.
const HEADERS: f64 = 52.0;
/// Bytes of IP and TCP headers without options.
const HEADERS_ALONE: u32 = 40;
/// The smallest MTU of scenario files.
const LEAST_MTU: u32 = 68;
/// Minimum number of packets for the limit of a flight.
const FEWEST: u64 = 200;
/// Minimum number of packets of a queue; less is noise of the round trip.
const LEAST_QUEUE: u64 = 5;
/// The assumed queue, in packets.
const USUAL_QUEUE: u64 = 50;
/// The quantile of windows, and of trains, that gives a rate.
const MOST: f64 = 0.9;
/// Maximum number of segments per ACK in a train; after a repair the ACK jumps.
const JUMP: f64 = 4.0;
/// Minimum number of losses of one recovery that count as a run.
const RUN: u32 = 3;
/// The quantile of round trips that counts as the longest: a station that pauses once is no queue.
const ALL_BUT: f64 = 0.99;
/// Position between the shortest (0) and the longest (1) round trip from which a queue counts as nearly full.
const LONG: f64 = 0.75;
/// Minimum ratio of the longest to the shortest round trip for that.
const VARIED: f64 = 1.5;
/// The shortest window for rates, in seconds.
const WINDOW: f64 = 0.2;
/// Minimum length of such a window in round trips.
const ROUND_TRIPS: f64 = 4.0;
/// ACKs per data packet; with fewer, the return path is assumed to be too slow for all ACKs.
const FEW_ACKS: f64 = 1.0 / 6.0;

/// Quantile of the times between two ACKs that a slow return path separates.
const CLOSEST: f64 = 0.1;

/// Minimum number of consecutively acknowledged segments that show the rate of a busy link.
const TRAIN: f64 = 10.0;
/// Minimum ratio of two rates that count as different.
const SAME: f64 = 1.15;
/// Minimum share of transmissions at the maximum flight that shows a limit.
const HELD: f64 = 0.5;
/// Minimum share of the announced window at which a flight counts as limited by it.
const REACHED: f64 = 0.9;
/// Minimum number of transmissions at that maximum.
const OFTEN: f64 = 10.0;
/// Minimum share of idle time that is reported.
const IDLE: f64 = 0.1;

/// A value, and how it was estimated.
pub type Estimation<T> = (T, String);

/// Estimated parameters, with the method.
#[derive(Debug, Default)]
pub struct Estimate {
    /// The largest observed rate.
    pub rate: Option<Estimation<Rate>>,
    /// Rate of the ACKs, if they are few.
    pub rate_back: Option<Estimation<Rate>>,
    /// One-way delay of the whole path.
    pub delay: Option<Estimation<Span>>,
    /// Loss rate of packets.
    pub loss: Option<Estimation<Probability>>,
    /// Mean number of consecutive losses.
    pub burst: Option<Estimation<f64>>,
    /// Bounds of the link rate, where the largest observed rate may be lower.
    pub rates: Option<(Rate, Rate)>,
    /// The queue in front of the link.
    pub queue: Option<Estimation<String>>,
    /// The largest packet, in bytes.
    pub mtu: Option<Estimation<u32>>,
    /// The receiver's window in bytes, if it was the limit.
    pub window: Option<Estimation<u64>>,
    /// Bytes transferred.
    pub transfer: Option<u64>,
    /// The kind of the link, if recognized.
    pub kind: Option<Estimation<LinkKind>>,
    /// The sender's TCP, if recognized.
    pub sender: Option<Estimation<String>>,
    /// The behaviour of the sender.
    pub captured: Option<CapturedSender>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Faults that explain why the transfer is slow; those that determine its rate come first.
    pub faults: Vec<Fault>,
}

/// The behaviour of a captured sender, to be compared with a model.
#[derive(Clone, Debug)]
pub struct CapturedSender {
    /// Payload without retransmissions, in bytes per second.
    pub throughput: f64,
    /// Lost segments per segment with data.
    pub loss: f64,
    /// Mean round trip in seconds.
    pub rtt: f64,
    /// The congestion control that fits best.
    pub recognition: Recognition,
    /// The cause of the losses.
    pub cause: Cause,
    /// Share of the time without data to send, if it is large.
    pub idle: Option<f64>,
}

impl Estimate {
    /// Estimates from the largest transfer of a capture; `help` describes a better capture.
    ///
    /// # Errors
    ///
    /// There is no transfer, or no round trip to measure.
    pub fn of(capture: &Capture, help: &str) -> Result<Estimate, Error> {
        let transfers = capture.transfers();
        let Some(transfer) = transfers.first() else {
            if let Some(silent) = capture.silent().first() {
                let diagnosis = &silent.data.diagnoses[0];
                return Err(Error::input(
                    format!("{}: {}: {}", capture.file, silent.title(), diagnosis.evidence),
                    diagnosis.remedy.clone(),
                ));
            }
            let message = match capture.analysis.tcp_packets {
                0 => match unread(&capture.analysis) {
                    Some(unread) => format!("no TCP could be read in it; {unread}"),
                    None => "no TCP in it".to_owned(),
                },
                n => format!("{} of TCP, and none with data", plural(n, "packet")),
            };
            return Err(Error::input(format!("{}: {message}", capture.file), help));
        };
        let Findings { faults, notes: informs } = faults::find(capture, transfer);
        let handshake = transfer.connection.handshake_rtt.map(Span::as_secs_f64);
        let near = transfer.near().unwrap_or(0.0);
        let shortest = transfer.data.rtt.map(|rtt| rtt.min + near);
        let rtt = handshake.into_iter().chain(shortest).fold(f64::INFINITY, f64::min);
        if !rtt.is_finite() {
            if is_decided(&faults) {
                return Ok(Estimate { faults, notes: informs, ..Estimate::default() });
            }
            let message =
                format!("{}: {} has no round trip to measure", capture.file, transfer.title());
            return Err(match transfer.data.diagnoses.first() {
                Some(known) => {
                    Error::input(format!("{message}; {}", known.evidence), known.remedy.clone())
                }
                None => Error::input(
                    message,
                    "give a capture with both directions of a longer transfer",
                ),
            });
        }
        let count = transfers.len();
        let largest = match count {
            1 => format!("the only transfer: {}", transfer.title()),
            n => format!("the largest of {n} transfers: {}", transfer.title()),
        };
        let delay = Span::from_secs_f64(rtt / 2.0);
        let captured = captured(transfer, near);
        let bounded = bounded(transfer, &captured.recognition);
        let mut estimate = Estimate {
            delay: Some((delay, "half of the shortest round trip".to_owned())),
            rate_back: rate_back(transfer),
            sender: sender(transfer, &captured.recognition),
            kind: signature::recognized(transfer.data),
            transfer: Some(transfer.data.unique_bytes),
            mtu: mtu(transfer),
            window: bounded.clone().or_else(|| window(transfer, &captured.recognition)),
            captured: Some(captured),
            notes: [largest].into_iter().chain(unread(&capture.analysis)).collect(),
            faults,
            ..Estimate::default()
        };
        if near > 0.0 {
            estimate.notes.push(format!(
                "the capture was not made at the sender: {:.1} ms of the round trip lie on its side, by the handshake",
                near * 1e3
            ));
        }
        rates(transfer.data, rtt, &mut estimate);
        // A window limit hides the full length of the queue.
        if bounded.is_none() {
            queue(transfer.data, rtt - near, &mut estimate);
        }
        losses(transfer.data, bounded.is_some(), &mut estimate);
        unseen::note(transfer, &mut estimate);
        estimate.notes.extend(informs);
        Ok(estimate)
    }
}

fn captured(transfer: &Transfer<'_>, near: f64) -> CapturedSender {
    let data = transfer.data;
    let stalls = data.stalls.iter().filter(|stall| stall.cause == StallCause::ApplicationIdle);
    let idle: f64 = stalls.map(|stall| stall.to.since(stall.from).as_secs_f64()).sum();
    let idle = idle / data.duration.unwrap_or(0.0).max(1e-9);
    CapturedSender {
        throughput: data.throughput.unwrap_or(0.0) / 8.0,
        loss: data.lost_segments as f64 / data.data_segments.max(1) as f64,
        rtt: data.rtt.map_or(0.0, |rtt| rtt.mean + near),
        recognition: congestion(transfer),
        cause: data.verdict.cause,
        idle: (idle > IDLE).then_some(idle),
    }
}

/// The sender, by its response to losses or by missing SACK negotiation.
fn sender(transfer: &Transfer<'_>, recognition: &Recognition) -> Option<Estimation<String>> {
    let sack = transfer.data.sack_permitted && transfer.back.sack_permitted;
    let whole = transfer.data.options_cut + transfer.back.options_cut == 0;
    if transfer.connection.opening == Opening::Handshake && !sack && whole {
        return Some(("newreno".to_owned(), "the ends did not agree on SACK".to_owned()));
    }
    let control = recognition.control?;
    let how = format!(
        "it looks like {}, {:.0} % sure: {}",
        control.name(),
        (recognition.confidence * 100.0).min(99.0),
        recognition.evidence
    );
    Some((control.word().to_owned(), how))
}

/// The largest packet, unless it is the usual one.
fn mtu(transfer: &Transfer<'_>) -> Option<Estimation<u32>> {
    let [a, b] = [transfer.data.mss, transfer.back.mss];
    let mss = u32::from(a?.min(b?));
    let mtu = mss.saturating_add(HEADERS_ALONE).max(LEAST_MTU);
    (mtu != MTU).then(|| (mtu, format!("the ends agreed on segments of {mss} B")))
}

/// The receiver's window, if the flight reached it repeatedly, so that it limits the sender.
fn bounded(transfer: &Transfer<'_>, recognition: &Recognition) -> Option<Estimation<u64>> {
    let announced = transfer.back.window_max?;
    let often = recognition.level * transfer.data.data_segments as f64 >= OFTEN;
    (often && recognition.most >= REACHED * announced as f64).then(|| {
        let how = "announced by the receiver, and the flight reached it again and again".to_owned();
        (announced, how)
    })
}

/// The receiver's window, if no other limit explains the flight.
fn window(transfer: &Transfer<'_>, recognition: &Recognition) -> Option<Estimation<u64>> {
    let held = recognition.level > HELD && recognition.waits.is_none_or(|waits| waits < HELD);
    held.then(|| {
        let how = format!(
            "the flight had this size at {:.0} % of the transmissions: a receive window or a send buffer",
            recognition.level * 100.0
        );
        (recognition.most.max(f64::from(LEAST_MTU)) as u64, how)
    })
    .filter(|_| transfer.data.data_segments > FEWEST)
}

/// The queue: the difference between the longest and the shortest round trip.
fn queue(data: &Direction, shortest: f64, estimate: &mut Estimate) {
    let (Some((rate, _)), Some(longest)) = (&estimate.rate, longest(data)) else { return };
    let waited = (longest - shortest).max(0.0) * rate.bps() as f64 / 8.0;
    let packet = payload(data) + HEADERS;
    let packets = (waited / packet).ceil() as u64;
    // Without losses the queue may be longer; a short one has no effect.
    if packets >= LEAST_QUEUE && (data.lost_segments > 0 || packets > USUAL_QUEUE) {
        let above = (longest - shortest) * 1e3;
        let how = format!("the longest round trips were {above:.0} ms above the shortest");
        estimate.queue = Some((format!("{packets}p"), how));
    }
}

/// The longest round trip without outliers, in seconds.
fn longest(data: &Direction) -> Option<f64> {
    let samples = &data.over_time.round_trips.kept;
    let all: Vec<f64> = samples.iter().map(|sample| sample.rtt).collect();
    quantile(&all, ALL_BUT).or(data.rtt.map(|rtt| rtt.max))
}

/// The round trip from which a queue counts as nearly full, in seconds; `None` if round trips vary too little.
fn full_queue(data: &Direction) -> Option<f64> {
    let (shortest, longest) = (data.rtt?.min, longest(data)?);
    (longest > shortest * VARIED).then_some(shortest + LONG * (longest - shortest))
}

/// Payload of a segment in bytes.
fn payload(data: &Direction) -> f64 {
    data.bytes as f64 / data.data_segments.max(1) as f64
}

/// The rate of the ACKs, if they are so few that the return path must be slow. Receivers that merge segments send few ACKs
/// too, but such ACKs come closer together, or sooner than a slow path can transmit one.
fn rate_back(transfer: &Transfer<'_>) -> Option<Estimation<Rate>> {
    let acks = transfer.back.packets as f64 / transfer.data.data_segments.max(1) as f64;
    let seconds = transfer.seconds();
    if acks >= FEW_ACKS || seconds <= 0.0 {
        return None;
    }
    let points = transfer.data.points.iter().filter(|point| point.kind == PointKind::Ack);
    let times: Vec<f64> = points.map(|point| point.at.as_secs_f64()).collect();
    let gaps: Vec<f64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    let each = seconds / transfer.back.packets.max(1) as f64;
    let apart = quantile(&gaps, CLOSEST).is_some_and(|gap| gap >= each / 2.0);
    if !apart || transfer.data.rtt.is_none_or(|rtt| rtt.min < each) {
        return None;
    }
    let bits = transfer.back.packets as f64 * HEADERS * 8.0 / seconds;
    let packets = 1.0 / acks;
    let how = format!("the rate of the ACKs: only one for {packets:.0} packets came back");
    Some((Rate::from_bps(bits as u64)?, how))
}

/// The rate of acknowledged data in the best windows, or of trains of segments, where these were faster.
fn rates(data: &Direction, rtt: f64, estimate: &mut Estimate) {
    let acks: Vec<(f64, f64)> = data
        .points
        .iter()
        .filter(|point| point.kind == PointKind::Ack)
        .map(|point| (point.at.as_secs_f64(), point.offset as f64))
        .collect();
    let payload = payload(data);
    let whole = (payload + HEADERS) / payload.max(1.0) * 8.0;
    let seconds = WINDOW.max(ROUND_TRIPS * rtt);
    let rate = |bytes: f64| Rate::from_bps((bytes * whole) as u64);
    // A few segments that leave at once show the rate of the sender's interface.
    let long = data.data_segments as f64 >= TRAIN;
    let overall = data.throughput.filter(|_| long).map(|bits| bits / 8.0);
    let seen = quantile(&over(&acks, |(at, _), (from, _)| at - from >= seconds), MOST).or(overall);
    // Segments sent together leave the link at its rate.
    let together = acks.chunk_by(|(_, before), (_, ack)| ack - before <= JUMP * payload);
    let trains =
        together.flat_map(|acks| over(acks, |(_, to), (_, from)| to - from >= TRAIN * payload));
    let train = quantile(&trains.collect::<Vec<f64>>(), MOST);
    let (Some(seen), Some(train)) = (seen, train.or(seen)) else { return };
    let (Some(low), Some(high)) = (rate(seen), rate(train)) else { return };
    let windows = format!("acknowledged in the best windows of {seconds:.1} s");
    let apart = train > seen * SAME;
    estimate.rates = apart.then_some((low, high));
    estimate.rate = Some(if apart && full_queue(data).is_some() {
        // Segments with more waiting time than propagation time came out of a busy link; ACKs may bunch on their way.
        let how = format!(
            "{windows}, with a standing queue; segments sent together were acknowledged at up to {high}"
        );
        (low, how)
    } else if apart {
        let how = format!(
            "between {low}, {windows}, and {high}, at which segments sent together were acknowledged"
        );
        (high, how)
    } else {
        (low, format!("{windows}; the link may be faster if the sender did not fill it"))
    });
}

/// Bytes per second over each shortest part of `acks` for which `enough` is true.
fn over(acks: &[(f64, f64)], enough: impl Fn((f64, f64), (f64, f64)) -> bool) -> Vec<f64> {
    let mut rates = Vec::new();
    let mut first = 0;
    for (i, ack) in acks.iter().enumerate() {
        while first + 1 < i && enough(*ack, acks[first + 1]) {
            first += 1;
        }
        let from = acks[first];
        if enough(*ack, from) && ack.0 > from.0 {
            rates.push((ack.1 - from.1) / (ack.0 - from.0));
        }
    }
    rates
}

/// Losses of the link, without those of a full queue.
///
/// If the receiver's window is the limit, round trips are longest at the full flight although no queue is full.
fn losses(data: &Direction, bounded: bool, estimate: &mut Estimate) {
    let verdict = &data.verdict;
    if verdict.cause == Cause::Queue {
        let lost = plural(data.lost_segments, "loss");
        let how = format!("{lost}, but a full queue's: {}", verdict.evidence);
        estimate.loss = Some((Probability::ZERO, how));
        estimate.notes.push(
            "the losses happened with a full queue; their repair over the link would only fill it again"
                .to_owned(),
        );
        return;
    }
    let full = full_queue(data).filter(|_| !bounded);
    let is_link = |loss: &&Loss| verdict.cause == Cause::Radio || !overflow(loss, full);
    let remaining = || data.losses.iter().filter(is_link);
    let segments: u64 = remaining().map(|loss| u64::from(loss.segments)).sum();
    let (share, how) = share(data, full, segments, bounded);
    let Some(p) = Probability::new(share) else { return };
    estimate.loss = Some((p, how));
    // Each segment once, also if its retransmission was lost too.
    let mut remaining: Vec<(i64, i64, u32)> = remaining()
        .map(|loss| (loss.offset, loss.offset + i64::from(loss.len), loss.segments))
        .collect();
    remaining.sort_unstable();
    remaining.dedup();
    let runs = 1 + remaining.windows(2).filter(|pair| pair[0].1 < pair[1].0).count();
    if !remaining.is_empty() {
        let segments: u64 = remaining.iter().map(|(.., segments)| u64::from(*segments)).sum();
        let mean = segments as f64 / runs as f64;
        estimate.burst = Some((
            mean,
            format!("{} in {}", plural(segments, "lost segment"), plural(runs as u64, "run")),
        ));
    }
}

/// The loss rate of the link, and its source, if `remaining` losses are not queue overflows; the queue is
/// full from the round trip `full` on.
fn share(data: &Direction, full: Option<f64>, remaining: u64, bounded: bool) -> (f64, String) {
    let verdict = &data.verdict;
    let lost = data.lost_segments;
    let listed: u64 = data.losses.iter().map(|loss| u64::from(loss.segments)).sum();
    let left_out = listed - remaining;
    let trials = verdict.segments.saturating_sub(verdict.long_segments);
    let queues = !bounded && verdict.cause != Cause::Radio;
    if queues && verdict.long_segments > 0 && trials > 0 {
        let losses = verdict.losses.saturating_sub(verdict.long_losses);
        let how = format!(
            "{} of {trials} packets, without those at the longest round trips, where a queue may have been full",
            plural(losses, "independent loss")
        );
        return (losses as f64 / trials as f64, how);
    }
    if queues && verdict.segments >= FEWEST && lost > 0 {
        // Several losses in one flight, as at the end of slow start, count as one event.
        let (mut first, mut losses) = (0, 0);
        while let Some(loss) = data.losses.get(first) {
            losses += u64::from(!at_full(loss, full));
            first += loss.burst.max(1) as usize;
        }
        let samples = &data.over_time.round_trips.kept;
        let short = samples.iter().filter(|sample| full.is_none_or(|full| sample.rtt <= full));
        let share = short.count() as f64 / samples.len().max(1) as f64;
        let trials = (verdict.segments as f64 * share).max(1.0);
        let how = format!(
            "{} of {trials:.0} packets; all {lost} would be {:.2} %, but those of one flight are one event, and at the \
             longest round trips a full queue's",
            plural(losses, "independent loss"),
            lost as f64 / data.data_segments.max(1) as f64 * 100.0
        );
        return (losses as f64 / trials, how);
    }
    let count = lost.saturating_sub(left_out);
    let mut how = format!("{} of {} segments with data", plural(count, "loss"), data.data_segments);
    if left_out > 0 {
        how += &format!("; {left_out} more came in runs at the longest round trips: a full queue");
    }
    (count as f64 / data.data_segments.max(1) as f64, how)
}

/// The loss happened at a round trip of a full queue.
fn at_full(loss: &Loss, full: Option<f64>) -> bool {
    full.is_some_and(|full| loss.rtt_before.is_some_and(|before| before > full))
}

/// The loss looks like a queue overflow, as at the end of slow start: in a run, at a long round trip.
fn overflow(loss: &Loss, full: Option<f64>) -> bool {
    loss.burst >= RUN && at_full(loss, full)
}
