//! Airtime fairness among the stations of a radio hop: a queue per station, served by the time that its frames take
//! on the air (Høiland-Jørgensen, Kazior, Täht, Hurtig and Brunstrom, "Ending the Anomaly", USENIX ATC 2017,
//! section 3.2; mac80211 of Linux).
//!
//! Each station has a queue of a given discipline, and a deficit. A transmission to a station or from it reduces
//! its deficit by its airtime. A station is served while its deficit is positive; when no station with packets has a
//! positive one, all of them get a `quantum`, as often as needed. So a slow station has the same share of the
//! time as a fast one, and not the same share of the packets.
//!
//! Medium access takes frames only when it sends them, so at most one aggregate is below this scheduler, and
//! Linux' limit of queued airtime (AQL) is always met. Without stations of a radio hop all packets take the same
//! time, and the discipline is that of one station.

use std::collections::VecDeque;

use serde::Serialize;

use super::fq_codel::FqCodelConfig;
use super::{Discipline, Read};
use crate::air::Station;
use crate::describe::{Descriptor, Keys, Kind, SIM, System};
use crate::units::Span;

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "airtime",
    system: System::new(
        Kind::Queue,
        "airtime",
        "path: discipline-right = \"airtime\"",
        "a queue per mobile station, served by airtime: a slow station does not slow the others",
        "\"Ending the Anomaly\", USENIX ATC 2017, 3.2",
    )
    .runs(SIM)
    .tier(0),
    read: |k, _| Discipline::Airtime(AirtimeConfig::keys(k)),
}];

/// The discipline of each station's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Each {
    /// First in, first out.
    Fifo,
    /// A queue per flow with `CoDel`.
    #[default]
    FqCodel,
}

/// Configuration of airtime fairness.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct AirtimeConfig {
    /// The discipline of each station's queue.
    pub each: Each,
    /// Airtime that stations get when all have used theirs.
    pub quantum: Span,
}

impl Default for AirtimeConfig {
    fn default() -> AirtimeConfig {
        AirtimeConfig { each: Each::FqCodel, quantum: Span::micros(300) }
    }
}

impl AirtimeConfig {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> AirtimeConfig {
        let mut c = AirtimeConfig::default();
        k.table("airtime", "options of airtime fairness", |k| {
            let words = [("fq-codel", Each::FqCodel), ("fifo", Each::Fifo)];
            k.word("each", &mut c.each, &words, "the discipline of each station's queue");
            let quanta = Span::micros(1)..=Span::millis(100);
            let doc = "the airtime that stations get when all have used theirs";
            k.within("quantum", &mut c.quantum, quanta, doc);
        });
        c
    }

    /// The queues of flows where there are no stations.
    pub fn flows(&self) -> FqCodelConfig {
        FqCodelConfig::default()
    }

    /// The discipline of one station's queue.
    pub fn discipline(&self) -> Discipline {
        match self.each {
            Each::Fifo => Discipline::Fifo,
            Each::FqCodel => Discipline::FqCodel(FqCodelConfig::default()),
        }
    }
}

/// The deficits of the stations, and the order in which those with packets are served.
#[derive(Clone, Debug)]
pub struct Airtime {
    quantum: i64,
    /// By station, in nanoseconds.
    deficits: Vec<i64>,
    /// Stations with packets, the next one first.
    active: VecDeque<Station>,
}

impl Airtime {
    /// No station has packets.
    pub fn new(config: &AirtimeConfig, stations: u8) -> Airtime {
        let quantum = config.quantum.0.max(1) as i64;
        Airtime { quantum, deficits: vec![0; usize::from(stations)], active: VecDeque::new() }
    }

    /// Records that `station` has packets.
    pub fn activate(&mut self, station: Station) {
        if !self.active.contains(&station) {
            self.active.push_back(station);
        }
    }

    /// Records that `station` has no packets. An unused deficit does not accumulate.
    pub fn deactivate(&mut self, station: Station) {
        self.active.retain(|other| *other != station);
        let deficit = &mut self.deficits[station.index()];
        *deficit = (*deficit).min(self.quantum);
    }

    /// Number of quanta until `station` may be served.
    fn rounds(&self, station: Station) -> i64 {
        let debt = 1 - self.deficits[station.index()];
        debt.max(0).div_euclid(self.quantum) + i64::from(debt.max(0) % self.quantum > 0)
    }

    /// The station to be served next.
    pub fn next(&self) -> Option<Station> {
        self.active.iter().copied().min_by_key(|station| self.rounds(*station))
    }

    /// Whether `station` may be served now, compared with the others.
    pub fn serves(&self, station: Station) -> bool {
        self.next().is_none_or(|next| self.rounds(station) <= self.rounds(next))
    }

    /// Serves `station`: all stations get the quanta that it needs.
    pub fn serve(&mut self, station: Station) {
        let rounds = self.rounds(station);
        if rounds == 0 {
            return;
        }
        for other in &self.active {
            self.deficits[other.index()] += rounds * self.quantum;
        }
        // The next round begins with another station.
        self.active.retain(|other| *other != station);
        self.active.push_back(station);
    }

    /// Records a transmission to `station` or from it.
    pub fn charge(&mut self, station: Station, airtime: Span) {
        if let Some(deficit) = self.deficits.get_mut(station.index()) {
            *deficit = deficit.saturating_sub(airtime.0 as i64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stations always have packets; the frames of the slow one take ten times as long.
    #[test]
    fn stations_have_equal_shares_of_the_time() {
        let mut air = Airtime::new(&AirtimeConfig::default(), 4);
        (1..4).for_each(|station| air.activate(Station(station)));
        let mut used = [0_u64; 4];
        for _ in 0..3000 {
            let station = air.next().unwrap();
            air.serve(station);
            let micros = if station == Station(3) { 2000 } else { 200 };
            air.charge(station, Span::micros(micros));
            used[station.index()] += micros;
        }
        let total: u64 = used.iter().sum();
        for (station, used) in used.iter().enumerate().skip(1) {
            let share = *used as f64 / total as f64;
            assert!((share - 1.0 / 3.0).abs() < 0.02, "{station}: {share}");
        }
    }

    #[test]
    fn a_station_without_packets_saves_no_time() {
        let mut air = Airtime::new(&AirtimeConfig::default(), 3);
        air.activate(Station(1));
        air.activate(Station(2));
        for _ in 0..100 {
            air.serve(Station(1));
            air.charge(Station(1), Span::millis(1));
        }
        air.deactivate(Station(2));
        air.activate(Station(2));
        assert_eq!(air.next(), Some(Station(2)));
        air.serve(Station(2));
        air.charge(Station(2), Span::millis(1));
        assert!(air.deficits[2] <= 0, "{:?}", air.deficits);
    }
}
