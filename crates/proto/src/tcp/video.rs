//! Video by segments. A client fetches segments in order over a connection that stays open, and plays the
//! received ones. For each segment it chooses a rate from a ladder.
//!
//! All segments have the same duration, and each has exactly the bytes of its rate: varying sizes within a
//! film are not modelled.

use serde::Serialize;

use crate::units::{Bytes, Rate, Span, Time};
use crate::wire::FlowKey;

/// A video that a client plays.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Video {
    /// Playing time of a segment.
    pub segment: Span,
    /// Number of segments.
    pub segments: u32,
    /// Available rates.
    pub ladder: Ladder,
    /// Rate adaptation.
    pub abr: Abr,
    /// Maximum buffer level: a segment is requested only if it will fit.
    pub buffer: Span,
    /// Buffer level at which playback begins.
    pub startup: Span,
    /// Buffer level at which playback resumes after a stall.
    pub resume: Span,
    /// Size of a request.
    pub request: Bytes,
}

impl Video {
    /// The size of a segment of this rate.
    pub fn size(&self, rate: Rate) -> Bytes {
        let bits = u128::from(rate.bps()) * u128::from(self.segment.0) / 1_000_000_000;
        Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX).max(1))
    }
}

/// Rates of a video, the lowest first.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ladder {
    rates: [Rate; Ladder::MOST],
    len: usize,
}

impl Ladder {
    /// Maximum number of rates.
    pub const MOST: usize = 12;

    /// A ladder of these rates; `None` if there are none or too many, or if they do not increase.
    pub fn new(given: &[Rate]) -> Option<Ladder> {
        let rises = given.windows(2).all(|pair| pair[0] < pair[1]);
        let mut rates = [*given.first()?; Ladder::MOST];
        rates.get_mut(..given.len()).filter(|_| rises)?.copy_from_slice(given);
        Some(Ladder { rates, len: given.len() })
    }

    /// The rates.
    pub fn rates(&self) -> &[Rate] {
        &self.rates[..self.len]
    }
}

impl Serialize for Ladder {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.rates())
    }
}

/// Rate adaptation for the next segment. All variants begin with the lowest rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Abr {
    /// Only by the buffer level: BBA-0 of Huang, Johari, McKeown, Trunnell and Watson, "A Buffer-Based
    /// Approach to Rate Adaptation" (SIGCOMM 2014), algorithm 1.
    Buffer {
        /// Buffer level below which the lowest rate is chosen.
        reservoir: Span,
        /// Distance above the reservoir from which the highest rate is chosen; between them the map is
        /// linear.
        cushion: Span,
    },
    /// By the speed of the last segments: the highest rate below a share of their harmonic mean. The
    /// estimate is that of FESTIVE (Jiang, Sekar and Zhang, CoNEXT 2012), without its delayed and gradual
    /// switching.
    Rate {
        /// Number of segments in the mean.
        window: u32,
        /// The share.
        safety: f64,
    },
}

impl Abr {
    /// The index in `ladder` after index `last` with buffer level `level`; `speeds` are those of the segments
    /// in bits per second, the last one last.
    pub fn choose(&self, ladder: &Ladder, last: usize, level: Span, speeds: &[f64]) -> usize {
        let rates = ladder.rates();
        let top = rates.len() - 1;
        match *self {
            Abr::Buffer { reservoir, .. } if level <= reservoir => 0,
            Abr::Buffer { reservoir, cushion } if level >= reservoir + cushion => top,
            Abr::Buffer { reservoir, cushion } => {
                let [low, high] = [rates[0], rates[top]].map(|rate| rate.bps() as f64);
                let share = (level.0 - reservoir.0) as f64 / cushion.0 as f64;
                let mapped = low + (high - low) * share;
                let bps = |rung: usize| rates[rung].bps() as f64;
                if mapped >= bps((last + 1).min(top)) {
                    rates.iter().rposition(|rate| (rate.bps() as f64) < mapped).unwrap_or(0)
                } else if mapped <= bps(last.saturating_sub(1)) {
                    rates.iter().position(|rate| rate.bps() as f64 > mapped).unwrap_or(top)
                } else {
                    last
                }
            }
            Abr::Rate { window, safety } => {
                let counted = &speeds[speeds.len().saturating_sub(window as usize)..];
                let sum: f64 = counted.iter().map(|speed| 1.0 / speed).sum();
                let most = safety * counted.len() as f64 / sum;
                rates.iter().rposition(|rate| rate.bps() as f64 <= most).unwrap_or(0)
            }
        }
    }
}

/// One client.
#[derive(Clone, Debug)]
pub(super) struct Player {
    /// Client and server, as events name them.
    pub(super) client: FlowKey,
    pub(super) video: Video,
    /// No request is sent from this time on.
    pub(super) stop: Option<Time>,
    pub(super) connection: Option<usize>,
    /// Requested and received segments.
    pub(super) requested: u32,
    pub(super) there: u32,
    /// The last chosen rate, and the time of its request.
    pub(super) rung: usize,
    pub(super) since: Time,
    speeds: Vec<f64>,
    /// Playing time in the buffer during a stall; otherwise the time at which the buffer runs empty.
    stored: Span,
    until: Option<Time>,
    /// Whether it has played before.
    began: bool,
}

impl Player {
    /// Asserts the invariants of playback.
    pub(super) fn check(&self) {
        debug_assert!(self.there <= self.requested, "segments arrive after their request");
        debug_assert!(self.requested <= self.video.segments, "segments of the video");
        debug_assert!(self.requested <= self.there + 1, "one request at a time");
        debug_assert!(self.rung < self.video.ladder.len, "rung of the ladder: {}", self.rung);
        debug_assert!(
            self.stored <= self.video.buffer + self.video.segment,
            "buffer of {} holds {}",
            self.video.buffer,
            self.stored
        );
        debug_assert!(self.speeds.iter().all(|speed| speed.is_finite() && *speed >= 0.0), "speeds");
    }

    pub(super) fn new(client: FlowKey, video: Video, stop: Option<Time>) -> Player {
        Player {
            client,
            video,
            stop,
            connection: None,
            requested: 0,
            there: 0,
            rung: 0,
            since: Time::ZERO,
            speeds: Vec::new(),
            stored: Span::ZERO,
            until: None,
            began: false,
        }
    }

    /// The buffer level.
    fn level(&self, now: Time) -> Span {
        self.until.map_or(self.stored, |until| until.since(now))
    }

    /// Records the arrival of the requested segment, and returns its rate.
    pub(super) fn arrives(&mut self, now: Time) -> Rate {
        let rate = self.video.ladder.rates()[self.rung];
        let took = now.since(self.since).as_secs_f64().max(1e-9);
        self.speeds.push(self.video.size(rate).0 as f64 * 8.0 / took);
        self.there += 1;
        match &mut self.until {
            Some(until) => *until += self.video.segment,
            None => self.stored = self.stored + self.video.segment,
        }
        rate
    }

    /// Whether a request is pending.
    pub(super) fn waits(&self) -> bool {
        self.requested > self.there
    }

    /// Whether no more segments will arrive.
    pub(super) fn has_all(&self, now: Time) -> bool {
        let over = self.stop.is_some_and(|stop| now >= stop);
        self.there == self.video.segments || over && self.there == self.requested
    }

    /// Whether playback begins or resumes now.
    pub(super) fn plays(&mut self, now: Time) -> bool {
        let enough = if self.began { self.video.resume } else { self.video.startup };
        let goes = self.until.is_none()
            && self.stored > Span::ZERO
            && (self.stored >= enough || self.has_all(now));
        if goes {
            self.until = Some(now + core::mem::take(&mut self.stored));
            self.began = true;
        }
        goes
    }

    /// Whether the buffer runs empty now.
    pub(super) fn runs_dry(&mut self, now: Time) -> bool {
        let dry = self.until.is_some_and(|until| until <= now);
        if dry {
            self.until = None;
        }
        dry
    }

    /// Time of the next request, if a segment remains and no request is pending: once there is room for it.
    pub(super) fn next_request_time(&self, now: Time) -> Option<Time> {
        if self.waits() || self.has_all(now) {
            return None;
        }
        let most = self.video.buffer.saturating_sub(self.video.segment);
        Some(match self.until {
            Some(until) if until.since(now) > most => Time(until.0.saturating_sub(most.0)),
            _ => now,
        })
    }

    /// Chooses the rate of the next segment, and returns its size.
    pub(super) fn choose(&mut self, now: Time) -> Bytes {
        if self.requested > 0 {
            let Video { abr, ladder, .. } = &self.video;
            self.rung = abr.choose(ladder, self.rung, self.level(now), &self.speeds);
        }
        self.requested += 1;
        self.since = now;
        self.video.size(self.video.ladder.rates()[self.rung])
    }

    /// When the buffer is empty.
    pub(super) fn dry_at(&self) -> Option<Time> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(kilobits: &[u64]) -> Ladder {
        let rates: Vec<Rate> = kilobits.iter().map(|k| Rate::from_bps(k * 1000).unwrap()).collect();
        Ladder::new(&rates).unwrap()
    }

    #[test]
    fn bba_0_follows_its_map_and_stays_between_rungs() {
        let ladder = ladder(&[1000, 2000, 3000, 5000]);
        // From 1 Mbit/s at 90 s to 5 Mbit/s at 216 s: 4 Mbit/s over 126 s.
        let bba = Abr::Buffer { reservoir: Span::secs(90), cushion: Span::secs(126) };
        let choose = |last, ms| bba.choose(&ladder, last, Span::millis(ms), &[]);
        assert_eq!([choose(3, 0), choose(3, 90_000)], [0, 0], "the reservoir");
        assert_eq!([choose(0, 216_000), choose(0, 240_000)], [3, 3], "above the cushion");
        // The map reaches 2 Mbit/s at 121.5 s: then the next rate below it, which is still the lowest, and
        // just above it.
        assert_eq!([choose(0, 121_499), choose(0, 121_500), choose(0, 121_600)], [0, 0, 1]);
        // From the second rung it goes up only at 3 Mbit/s (153 s) and down only at 1 Mbit/s (90 s).
        assert_eq!([choose(1, 152_000), choose(1, 153_100), choose(1, 90_001)], [1, 2, 1]);
        // From the third one down at 2 Mbit/s, to the lowest rate above the map.
        assert_eq!([choose(2, 122_000), choose(2, 121_000), choose(3, 121_000)], [2, 1, 1]);
    }

    #[test]
    fn the_rate_rule_uses_a_harmonic_mean_share() {
        let ladder = ladder(&[1000, 2000, 3000, 5000]);
        let abr = Abr::Rate { window: 2, safety: 0.8 };
        let choose = |speeds: &[f64]| abr.choose(&ladder, 0, Span::ZERO, speeds);
        // 0.8 times 2 / (1/10 + 1/2) is 2.67 Mbit/s; earlier segments do not count.
        assert_eq!(choose(&[1.0, 10e6, 2e6]), 1);
        assert_eq!([choose(&[2.5e6]), choose(&[2.49e6]), choose(&[1e3])], [1, 0, 0]);
        assert_eq!(choose(&[100e6]), 3);
    }

    #[test]
    fn a_ladder_has_at_most_twelve_increasing_rates() {
        let rate = |bps| Rate::from_bps(bps).unwrap();
        assert!(Ladder::new(&[]).is_none() && Ladder::new(&[rate(2), rate(2)]).is_none());
        let many: Vec<Rate> = (1..=13).map(rate).collect();
        assert!(Ladder::new(&many).is_none() && Ladder::new(&many[..12]).is_some());
    }
}
