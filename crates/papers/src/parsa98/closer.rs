//! A closer look at the start of a transfer: Figure 12 (5.1.3).

use lasthop_observe::sequence::{SendKind, Series};
use lasthop_observe::stats::Summary;

use super::cases::Protocol::{Tulip, Unaided};
use super::cases::{Protocol, Window, bit_errors, case, run, timeouts};
use super::setup::TESTBED;
use crate::figure::sequence;
use crate::{Bench, Bound, Finding, Interrupted};

/// The part of the transfer in Figure 12, in seconds.
const SHOWN: f64 = 2.0;
/// The part in which the episode is searched if it is not in the first two seconds.
const SEARCHED: f64 = 10.0;

/// The start of a transfer.
fn start(bench: &Bench<'_>, protocol: Protocol, seed: u64, seconds: f64) -> Series {
    let mut changes = case(protocol, Window::Large, &bit_errors(15.0));
    changes.push(format!("horizon={seconds}s"));
    let recording = bench.record(TESTBED, &changes, seed);
    recording.series.into_iter().next().unwrap_or_default()
}

/// The longest time without a packet from the source or an ACK to it, after its first packet.
fn longest_idle(series: &Series, until: f64) -> f64 {
    let sent = series.sent.iter().map(|s| s.at_s);
    let mut moments: Vec<f64> = sent.chain(series.acked.iter().map(|(at, _)| *at)).collect();
    moments.push(until);
    moments.sort_by(f64::total_cmp);
    moments.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
}

/// The episode of 5.1.3 in the transfer without help.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// A fast retransmission halves the window.
    fast: f64,
    /// Number of packets lost after it, before the timeout.
    lost: usize,
    /// The timer expires.
    timeout: f64,
    /// Retransmission of a packet that was not lost.
    redundant: f64,
}

/// The first such episode.
fn episode(series: &Series) -> Option<Episode> {
    let ever_lost = |start: u64, end: u64, by: f64| {
        series.lost.iter().any(|l| l.start < end && start < l.end && l.at_s <= by)
    };
    let mut before = 0.0;
    for (i, timeout) in series.timeouts.iter().enumerate() {
        let since = std::mem::replace(&mut before, *timeout);
        let until = series.timeouts.get(i + 1).copied().unwrap_or(f64::INFINITY);
        let fast = series
            .sent
            .iter()
            .find(|s| s.kind == SendKind::Fast && s.at_s > since && s.at_s < *timeout);
        let Some(fast) = fast else { continue };
        let lost = series.lost.iter().filter(|l| l.at_s > fast.at_s && l.at_s < *timeout).count();
        let redundant = series.sent.iter().find(|s| {
            s.kind != SendKind::First
                && s.at_s >= *timeout
                && s.at_s < until
                && !ever_lost(s.start, s.end, s.at_s)
        });
        if let (true, Some(redundant)) = (lost >= 2, redundant) {
            return Some(Episode {
                fast: fast.at_s,
                lost,
                timeout: *timeout,
                redundant: redundant.at_s,
            });
        }
    }
    None
}

/// Figure 12: the first two seconds of a transfer.
pub(super) fn f12(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let seeds = bench.seeds.max(20);
    finding.runs = seeds;
    with_tulip(bench, finding, seeds)?;
    unaided(bench, finding, seeds)
}

/// No long idle period, and no timeout.
fn with_tulip(bench: &mut Bench<'_>, finding: &mut Finding, seeds: u32) -> Result<(), Interrupted> {
    let starts = bench.each_seed(seeds, |seed| start(bench, Tulip, seed, SHOWN))?;
    let idle: Vec<f64> = starts.iter().map(|s| 1000.0 * longest_idle(s, SHOWN)).collect();
    let losses: Vec<f64> = starts.iter().map(|s| s.lost.len() as f64).collect();
    let expired: usize = starts.iter().map(|s| s.timeouts.len()).sum();
    let thrice = |series: &&Series| {
        let times = |start| series.lost.iter().filter(|l| l.start == start).count();
        series.lost.iter().any(|l| times(l.start) >= 3)
    };
    let drawn = starts.iter().position(|series| thrice(&series)).unwrap_or(0);
    finding.figures.push(sequence(
        "Figure 12 (b): the first two seconds with TULIP",
        &starts[drawn],
        Some((0.0, SHOWN)),
        &format!("Seed {}.", bench.first_seed + drawn as u64),
    ));
    let (idle_ms, lost) = (Summary::of(&idle), Summary::of(&losses));
    finding.compare("TULIP, longest idle period", idle_ms, "ms", 200.0);
    finding.compare("TULIP, packets lost", lost, "in 2 s", 17.0);
    // "Lasting not more than 200 ms", in the one run of the paper: the usual one is no longer.
    finding.require_bound(
        "TULIP, longest idle period of a run in ms,",
        idle_ms,
        Bound::AtMost(200.0),
    );
    let longer = idle.iter().filter(|ms| **ms > 400.0).count();
    finding.none("TULIP, runs with an idle period above 400 ms", longer as f64, idle.len());
    finding.near("TULIP, packets lost in 2 s,", lost, 17.0, 0.15);
    finding.none("TULIP, timeouts in 2 s", expired as f64, idle.len());
    let whole = run(bench, Tulip, Window::Large, &bit_errors(15.0))?;
    let all = whole.each(timeouts).iter().sum::<f64>();
    finding.none("TULIP, timeouts in whole transfers", all, whole.all().len());
    let thrice = starts.iter().filter(thrice).count();
    finding.note(format!(
        "One packet is lost three times or more within two seconds in {thrice} of {seeds} seeds"
    ));
    Ok(())
}

/// Without help a seed has the events of 5.1.3.
fn unaided(bench: &Bench<'_>, finding: &mut Finding, seeds: u32) -> Result<(), Interrupted> {
    let mut found = None;
    for (seconds, seed) in
        [SHOWN, SEARCHED].into_iter().flat_map(|s| bench.seeds_of(seeds).map(move |i| (s, i)))
    {
        bench.check_interrupt()?;
        let series = start(bench, Unaided, seed, seconds);
        if let Some(episode) = episode(&series) {
            found = Some((seed, series, episode));
            break;
        }
    }
    finding.require(
        found.is_some(),
        "a trace without help shows a fast retransmission, two losses in the small window, a timeout and a \
         redundant retransmission",
    );
    let Some((seed, series, e)) = found else { return Ok(()) };
    finding.note(format!(
        "Without help, seed {seed}: a fast retransmission at {:.2} s, then {} losses, a timeout at {:.2} s, and \
         at {:.2} s a packet again that had arrived",
        e.fast, e.lost, e.timeout, e.redundant
    ));
    finding.figures.push(sequence(
        "Figure 12 (a): the start of a transfer without help",
        &series,
        Some((0.0, (e.redundant + 0.3).max(SHOWN).min(series.end_s.max(SHOWN)))),
        &format!("Seed {seed}."),
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_observe::sequence::{Lost, SentPacket};

    fn sent(at_s: f64, packet: u64, kind: SendKind) -> SentPacket {
        SentPacket { at_s, start: packet * 1400, end: (packet + 1) * 1400, kind }
    }

    /// The events of 5.1.3, and the same without the redundant packet.
    #[test]
    fn the_episode_of_the_paper_is_recognised() {
        let lost =
            |at_s, packet: u64| Lost { at_s, start: packet * 1400, end: (packet + 1) * 1400 };
        let mut series = Series {
            sent: vec![
                sent(0.1, 5, SendKind::First),
                sent(0.15, 5, SendKind::Fast),
                sent(0.24, 12, SendKind::First),
                sent(0.25, 13, SendKind::First),
                sent(0.26, 14, SendKind::First),
                sent(1.75, 12, SendKind::Timeout),
                sent(1.8, 13, SendKind::Timeout),
            ],
            lost: vec![lost(0.11, 5), lost(0.24, 12), lost(0.25, 13)],
            timeouts: vec![1.75],
            ..Series::default()
        };
        assert!(episode(&series).is_none(), "nothing was redundant");
        series.sent.push(sent(1.81, 14, SendKind::Timeout));
        let episode = episode(&series).unwrap();
        assert_eq!((episode.fast, episode.lost, episode.redundant), (0.15, 2, 1.81));
        series.timeouts.clear();
        assert!(super::episode(&series).is_none(), "no timeout");
    }

    #[test]
    fn idle_time_ends_at_any_send_or_ack() {
        let series = Series {
            sent: vec![sent(0.0, 0, SendKind::First), sent(0.5, 1, SendKind::First)],
            acked: vec![(0.4, 1400), (0.9, 2800)],
            ..Series::default()
        };
        assert!((longest_idle(&series, 1.0) - 0.4).abs() < 1e-9);
        assert!((longest_idle(&series, 2.0) - 1.1).abs() < 1e-9);
    }
}
