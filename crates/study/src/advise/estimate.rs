//! What a capture tells about a link.

use lasthop_analyze::{Cause, Direction, Opening, PointKind};
use lasthop_proto::units::{Probability, Rate, Span};
use lasthop_trace::stats::quantile;

use crate::Error;
use crate::capture::{Capture, Transfer};

/// Bytes of IP and TCP headers, timestamps included.
const HEADERS: f64 = 52.0;
/// The shortest window over which the rate is looked for, in seconds.
const WINDOW: f64 = 0.2;
/// Round trips that such a window has at least.
const ROUND_TRIPS: f64 = 4.0;
/// ACKs for each packet with data: with fewer, the way back is taken to be too slow for all of them.
const FEW_ACKS: f64 = 1.0 / 6.0;

/// A value, and how it was found out.
pub type Estimated<T> = (T, String);

/// What was found out, and how.
#[derive(Debug, Default)]
pub struct Estimate {
    /// The largest rate that was seen.
    pub rate: Option<Estimated<Rate>>,
    /// Rate of the ACKs, if they are few.
    pub rate_back: Option<Estimated<Rate>>,
    /// Delay of the whole path one way.
    pub delay: Option<Estimated<Span>>,
    /// Share of the packets lost.
    pub loss: Option<Estimated<Probability>>,
    /// Mean number of packets lost in a row.
    pub burst: Option<Estimated<f64>>,
    /// The sender's TCP, as far as it shows.
    pub sender: Option<Estimated<String>>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Estimate {
    /// What the largest transfer of a capture tells; `help` says what would be a better one.
    ///
    /// # Errors
    ///
    /// If no transfer is in it, or no round trip to measure.
    pub fn of(capture: &Capture, help: &str) -> Result<Estimate, Error> {
        let transfers = capture.transfers();
        let Some(transfer) = transfers.first() else {
            let what = match capture.analysis.tcp_packets {
                0 => "no TCP in it".to_owned(),
                n => format!("{n} packets of TCP, and none with data"),
            };
            return Err(Error::input(format!("{}: {what}", capture.file), help));
        };
        let handshake = transfer.connection.handshake_rtt.map(Span::as_secs_f64);
        let shortest = transfer.data.rtt.map(|rtt| rtt.min);
        let rtt = handshake.into_iter().chain(shortest).fold(f64::INFINITY, f64::min);
        if !rtt.is_finite() {
            return Err(Error::input(
                format!("{}: {} has no round trip to measure", capture.file, transfer.title()),
                "give a capture with both directions of a longer transfer",
            ));
        }
        let count = transfers.len();
        let largest = format!("the largest of {count} transfers: {}", transfer.title());
        let delay = Span::from_secs_f64(rtt / 2.0);
        let sack = transfer.data.sack_permitted && transfer.back.sack_permitted;
        let seen = transfer.connection.opening == Opening::Handshake;
        let mut estimate = Estimate {
            delay: Some((delay, "half of the shortest round trip".to_owned())),
            rate: rate(transfer.data, rtt),
            rate_back: rate_back(transfer),
            sender: (seen && !sack)
                .then(|| ("newreno".to_owned(), "the ends did not agree on SACK".to_owned())),
            notes: vec![largest],
            ..Estimate::default()
        };
        losses(transfer.data, &mut estimate);
        Ok(estimate)
    }
}

/// The rate of the ACKs, if they are so few that the way back must be the reason.
fn rate_back(transfer: &Transfer<'_>) -> Option<Estimated<Rate>> {
    let acks = transfer.back.packets as f64 / transfer.data.data_packets.max(1) as f64;
    let seconds = transfer.seconds();
    if acks >= FEW_ACKS || seconds <= 0.0 {
        return None;
    }
    let bits = transfer.back.packets as f64 * HEADERS * 8.0 / seconds;
    let packets = 1.0 / acks;
    let how = format!("only one ACK for {packets:.0} packets came back, and so many bits a second");
    Some((Rate::from_bps(bits as u64)?, how))
}

/// The rate that nine tenths of all windows stay below.
fn rate(data: &Direction, rtt: f64) -> Option<Estimated<Rate>> {
    let window = WINDOW.max(ROUND_TRIPS * rtt);
    let acks: Vec<(f64, f64)> = data
        .points
        .iter()
        .filter(|point| point.kind == PointKind::Ack)
        .map(|point| (point.at.as_secs_f64(), point.offset as f64))
        .collect();
    let mut rates = Vec::new();
    let mut first = 0;
    for (i, (at, offset)) in acks.iter().enumerate() {
        while first + 1 < i && at - acks[first + 1].0 >= window {
            first += 1;
        }
        let (from, begun) = acks[first];
        if at - from >= window {
            rates.push((offset - begun) / (at - from));
        }
    }
    let payload = data.bytes as f64 / data.data_packets.max(1) as f64;
    let whole = (payload + HEADERS) / payload.max(1.0);
    let overall = data.throughput.map(|bits| bits / 8.0);
    let bytes = quantile(&rates, 0.9).or(overall)?;
    let rate = Rate::from_bps((bytes * whole * 8.0) as u64)?;
    let how = format!(
        "acknowledged in the best windows of {window:.1} s; what a sender does not fill does not show, \
         so it may be more"
    );
    Some((rate, how))
}

/// Losses, and how they come.
fn losses(data: &Direction, estimate: &mut Estimate) {
    let lost = data.losses.len() as u64 + data.losses_omitted;
    let share = lost as f64 / data.data_packets.max(1) as f64;
    if data.verdict.cause == Cause::Queue {
        let how = format!("{lost} losses, but a full queue's: {}", data.verdict.evidence);
        estimate.loss = Some((Probability::ZERO, how));
        estimate.notes.push(
            "the losses came when the queue was full; repairing them over the link would only fill it again"
                .to_owned(),
        );
        return;
    }
    let Some(p) = Probability::new(share) else { return };
    estimate.loss = Some((p, format!("{lost} losses of {} packets with data", data.data_packets)));
    let mut ordered: Vec<(i64, i64)> =
        data.losses.iter().map(|loss| (loss.offset, loss.offset + i64::from(loss.len))).collect();
    ordered.sort_unstable();
    ordered.dedup();
    let runs = 1 + ordered.windows(2).filter(|pair| pair[0].1 < pair[1].0).count();
    if !ordered.is_empty() {
        let mean = ordered.len() as f64 / runs as f64;
        estimate.burst = Some((mean, format!("{} lost segments in {runs} runs", ordered.len())));
    }
}
