//! Datagrams: their number, delay and jitter.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use lasthop_proto::udp::Datagram;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::FlowKey;
use serde::{Deserialize, Serialize};

use super::short::quantile;
use super::voice::{Score, score};
use crate::layout::DatagramInfo;

/// The datagrams of a table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Datagrams {
    /// Address of the senders.
    pub from: String,
    /// Address of the receiver.
    pub to: String,
    /// Whether they are cross traffic.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub cross: bool,
    /// Sent datagrams.
    pub sent: u64,
    /// Arrived datagrams.
    pub arrived: u64,
    /// Missing datagrams with an arrived successor.
    pub lost: u64,
    /// Repeated arrivals.
    pub duplicates: u64,
    /// Datagrams that arrived after a successor.
    pub late: u64,
    /// Bytes of arrived IP packets, without duplicates.
    pub delivered: u64,
    /// Share of lost datagrams.
    pub loss: f64,
    /// Mean delay, seconds.
    pub delay_mean_s: f64,
    /// Median delay, seconds.
    pub delay_p50_s: f64,
    /// 95th percentile of the delay, seconds.
    pub delay_p95_s: f64,
    /// 99th percentile of the delay, seconds.
    pub delay_p99_s: f64,
    /// Longest delay, seconds.
    pub delay_max_s: f64,
    /// Mean difference of the delays of successive arrivals, seconds.
    pub jitter_s: f64,
    /// Quality of calls, if they are calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<Score>,
    /// Increase of the round-trip time under load, if they are probes that returned before and during
    /// transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
}

/// Increase of the round-trip time under load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Load {
    /// Median round-trip time of probes sent before the first transfer, seconds.
    pub idle_s: f64,
    /// Median round-trip time of probes sent during transfers, seconds.
    pub loaded_s: f64,
    /// The difference, seconds.
    pub rise_s: f64,
    /// Round trips per minute under load.
    pub rpm: f64,
    /// Grade of the increase.
    pub grade: Grade,
}

/// Grade of an increase of the round-trip time, with the bounds of Waveform's bufferbloat test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Grade {
    /// Less than 5 ms.
    #[serde(rename = "A+")]
    Best,
    /// Less than 30 ms.
    A,
    /// Less than 60 ms.
    B,
    /// Less than 200 ms.
    C,
    /// Less than 400 ms.
    D,
    /// At least 400 ms.
    F,
}

impl Grade {
    fn of(rise_s: f64) -> Grade {
        match rise_s * 1000.0 {
            rise if rise < 5.0 => Grade::Best,
            rise if rise < 30.0 => Grade::A,
            rise if rise < 60.0 => Grade::B,
            rise if rise < 200.0 => Grade::C,
            rise if rise < 400.0 => Grade::D,
            _ => Grade::F,
        }
    }
}

/// Receiver's data of a source.
#[derive(Clone, Debug, Default)]
struct SourceRecord {
    sent: u64,
    /// Next expected number, and missing numbers before it.
    next: u64,
    missing: BTreeSet<u64>,
    duplicates: u64,
    late: u64,
    delivered: u64,
    delays: Vec<Span>,
    /// Send times of the missing datagrams.
    times: Vec<Time>,
    differences: f64,
}

/// Data of all sources.
#[derive(Debug, Default)]
pub(super) struct Sources(BTreeMap<FlowKey, SourceRecord>);

impl Sources {
    /// Records a sent or arrived datagram. Ignores one that no known source has sent.
    pub fn event(&mut self, at: Time, datagram: &Datagram, arrived: bool) {
        if !arrived {
            self.0.entry(datagram.flow).or_default().sent += 1;
        } else if let Some(record) = self.0.get_mut(&datagram.flow)
            && datagram.number < record.sent
        {
            record.arrives(at, datagram);
        }
    }

    /// The datagrams of a table. `loaded` is the time of transfers, if there were any.
    pub fn of(&self, info: &DatagramInfo, loaded: Option<Range<Time>>) -> Datagrams {
        let fits =
            |flow: &FlowKey| (flow.src, flow.dst, flow.dst_port) == (info.from, info.to, info.port);
        let those = || self.0.iter().filter(|(flow, _)| fits(flow)).map(|(_, record)| record);
        let sum = |of: fn(&SourceRecord) -> u64| those().map(of).sum::<u64>();
        let mut delays: Vec<Span> = those().flat_map(|record| &record.delays).copied().collect();
        delays.sort();
        let lost = sum(|record| record.missing.len() as u64);
        let voice = info.voice.map(|voice| score(voice, &delays, lost));
        let delays: Vec<f64> = delays.into_iter().map(Span::as_secs_f64).collect();
        let arrived = delays.len() as u64;
        let pairs = sum(|record| (record.delays.len() as u64).saturating_sub(1));
        let [delay_p50_s, delay_p95_s, delay_p99_s, delay_max_s] =
            [0.50, 0.95, 0.99, 1.0].map(|q| quantile(&delays, q));
        Datagrams {
            from: info.from.to_string(),
            to: info.to.to_string(),
            cross: info.cross,
            sent: sum(|record| record.sent),
            arrived,
            lost,
            duplicates: sum(|record| record.duplicates),
            late: sum(|record| record.late),
            delivered: sum(|record| record.delivered),
            loss: lost as f64 / (lost + arrived).max(1) as f64,
            delay_mean_s: delays.iter().sum::<f64>() / delays.len().max(1) as f64,
            delay_p50_s,
            delay_p95_s,
            delay_p99_s,
            delay_max_s,
            jitter_s: those().map(|record| record.differences).sum::<f64>() / pairs.max(1) as f64,
            voice,
            load: loaded.filter(|_| info.probe).and_then(|loaded| load(those(), &loaded)),
        }
    }
}

/// Increase of the round-trip time of these sources under load.
fn load<'s>(
    those: impl Iterator<Item = &'s SourceRecord> + Clone,
    loaded: &Range<Time>,
) -> Option<Load> {
    let median = |when: &dyn Fn(Time) -> bool| {
        let pairs = those.clone().flat_map(|record| record.times.iter().zip(&record.delays));
        let mut trips: Vec<f64> =
            pairs.filter(|(at, _)| when(**at)).map(|(_, trip)| trip.as_secs_f64()).collect();
        trips.sort_by(f64::total_cmp);
        (!trips.is_empty()).then(|| quantile(&trips, 0.5))
    };
    let idle_s = median(&|at| at < loaded.start)?;
    let loaded_s = median(&|at| loaded.contains(&at))?;
    let rise_s = (loaded_s - idle_s).max(0.0);
    Some(Load { idle_s, loaded_s, rise_s, rpm: 60.0 / loaded_s, grade: Grade::of(rise_s) })
}

impl SourceRecord {
    fn arrives(&mut self, at: Time, datagram: &Datagram) {
        if datagram.number >= self.next {
            self.missing.extend(self.next..datagram.number);
            self.next = datagram.number + 1;
        } else if self.missing.remove(&datagram.number) {
            self.late += 1;
        } else {
            self.duplicates += 1;
            return;
        }
        self.delivered += u64::from(datagram.bytes);
        let delay = at.since(datagram.sent);
        if let Some(last) = self.delays.last() {
            self.differences += (delay.as_secs_f64() - last.as_secs_f64()).abs();
        }
        self.delays.push(delay);
        self.times.push(datagram.sent);
    }
}

#[cfg(test)]
mod tests {
    use lasthop_proto::wire::Addr;

    use super::*;

    /// The bounds are exclusive: a value at a bound has the next grade.
    #[test]
    fn a_grade_ends_below_its_bound() {
        use Grade::*;
        let bounds = [(5, Best, A), (30, A, B), (60, B, C), (200, C, D), (400, D, F)];
        for (ms, below, at) in bounds {
            let of = |micros: i64| Grade::of(micros as f64 / 1e6);
            assert_eq!([of(ms * 1000 - 1), of(ms * 1000)], [below, at], "{ms} ms");
        }
        assert_eq!([Grade::of(-1.0), Grade::of(0.0), Grade::of(9.0)], [Best, Best, F]);
    }

    #[test]
    fn an_unsent_datagram_is_not_counted() {
        let [src, dst] = [1, 2].map(|n| Addr::v4(10, 0, 0, n));
        let flow = FlowKey { src, dst, src_port: 1024, dst_port: 20_000 };
        let datagram = |number| Datagram { flow, number, sent: Time::ZERO, bytes: 100 };
        let mut sources = Sources::default();
        sources.event(Time::ZERO, &datagram(0), true);
        assert!(sources.0.is_empty());
        sources.event(Time::ZERO, &datagram(0), false);
        sources.event(Time::ZERO, &datagram(u64::MAX), true);
        sources.event(Time::ZERO, &datagram(0), true);
        let record = &sources.0[&flow];
        assert_eq!(
            (record.sent, record.next, record.missing.len(), record.delays.len()),
            (1, 1, 0, 1)
        );
    }
}
