//! Path MTU of a tunnel, found by packetization layer path MTU discovery (RFC 8899). The session seals the
//! probes, so that no third party can answer them, and an ICMP message is only a hint.
//!
//! It differs from the RFC to suit tunnels over bad paths. The first length is that of the interface below,
//! since a failed probe loses no data. A length gets more probes before it is rejected, since probes are lost
//! like other packets. Probes follow the known round-trip time, and retries come sooner.

use crate::units::{Span, Time};

/// Length that nearly every path carries: probed first when the longest fails.
const COMMON: u32 = 1280;

/// Unanswered probes after which a length counts as too long. With a loss of one datagram in two each way,
/// one length in ten thousand is rejected wrongly.
const PROBES: u32 = 32;

/// Interval between checks of the length in use.
const CONFIRM: Span = Span::secs(10);

/// Interval between attempts at longer packets.
const RAISE: Span = Span::secs(60);

/// Resolution of the search in bytes.
const GRAIN: u32 = 4;

/// Minimum and maximum interval between two probes.
const PACE: [Span; 2] = [Span::millis(50), Span::secs(1)];

/// A search for the longest packet that passes. All lengths are of IP packets, in bytes.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// Longest length that passes, or is assumed to.
    size: u32,
    /// Longest length that is ever probed.
    most: u32,
    /// Shortest length in use: assumed to pass.
    least: u32,
    /// Shortest length known to fail.
    fails: u32,
    /// Reported length, not yet confirmed.
    hint: Option<u32>,
    trial: Option<Trial>,
    /// A trial of a longer length, suspended while the length in use is checked.
    parked: Option<Trial>,
    pace: Span,
    /// No report of a problem is accepted before this time.
    doubt_at: Time,
    /// When the length in use is checked again, and when longer ones are tried.
    confirm: Time,
    raise: Time,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    size: u32,
    sent: u32,
    at: Time,
}

impl Discovery {
    /// Asserts that the lengths are in order.
    pub fn check(&self) {
        debug_assert!(self.least <= self.most, "bounds: {} to {}", self.least, self.most);
        debug_assert!(
            (self.least..=self.most).contains(&self.size),
            "length in use: {} of {} to {}",
            self.size,
            self.least,
            self.most
        );
        debug_assert!(self.fails >= self.least, "lengths below {} are not tried", self.least);
        debug_assert!(
            self.trial.as_ref().is_none_or(|trial| trial.size <= self.most),
            "a trial of {:?} above {}",
            self.trial.as_ref().map(|trial| trial.size),
            self.most
        );
        debug_assert!(
            self.parked.as_ref().is_none_or(|trial| trial.size > self.size),
            "a suspended trial is of a longer length"
        );
    }

    /// Starts a search between `least` and `most` on a path with this round-trip time; the first probe is
    /// `most`.
    pub fn new(now: Time, least: u32, most: u32, rtt: Span) -> Discovery {
        let most = most.max(least);
        let pace = Span((rtt.0 / 2).clamp(PACE[0].0, PACE[1].0));
        let trial = Some(Trial { size: most, sent: 0, at: now });
        Discovery {
            size: most,
            most,
            least,
            fails: most + 1,
            hint: None,
            trial,
            parked: None,
            pace,
            doubt_at: now,
            confirm: Time::NEVER,
            raise: Time::NEVER,
        }
    }

    /// The longest packet to send.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Checks the length in use after a report of a problem, at most once a second. `hint` is the reported
    /// length.
    pub fn doubt(&mut self, now: Time, hint: Option<u32>) {
        if let Some(hint) = hint {
            if hint >= self.size || self.hint == Some(hint) {
                return;
            }
            self.hint = Some(hint);
        }
        if self.trial.is_none_or(|trial| trial.size > self.size) && self.doubt_at <= now {
            self.doubt_at = now + PACE[1];
            self.parked = self.trial;
            self.trial = Some(Trial { size: self.size, sent: 0, at: now });
        }
    }

    /// Restarts the search because the path has changed.
    pub fn again(&mut self, now: Time) {
        (self.fails, self.hint, self.parked) = (self.most + 1, None, None);
        self.raise = Time::NEVER;
        self.trial = Some(Trial { size: self.most, sent: 0, at: now });
    }

    /// Records that a packet of this length has arrived.
    pub fn passed(&mut self, now: Time, size: u32) {
        let Some(trial) = self.trial.filter(|trial| trial.size == size) else { return };
        self.size = trial.size;
        self.fails = self.fails.max(size + 1);
        match self.parked.take() {
            Some(parked) => self.trial = Some(Trial { at: now, ..parked }),
            None => self.advance(now),
        }
    }

    /// Starts the trial of the next length, or none.
    fn advance(&mut self, now: Time) {
        let between = |size: &u32| (self.size + 1..self.fails).contains(size);
        let middle = (self.fails - self.size > GRAIN).then(|| (self.size + self.fails) / 2);
        let whole = (self.fails > self.most && self.size < self.most).then_some(self.most);
        let hint = self.hint.filter(between);
        let next = whole.or(hint).or(Some(COMMON).filter(between)).or(middle);
        self.trial = next.map(|size| Trial { size, sent: 0, at: now });
        if self.trial.is_none() {
            self.confirm = now + CONFIRM;
        }
    }

    /// The length to probe now, if one is due.
    pub fn on_wake(&mut self, now: Time) -> Option<u32> {
        if self.trial.is_none() && self.rest_ends() <= now {
            if self.raise <= now {
                self.again(now);
            } else {
                self.trial = Some(Trial { size: self.size, sent: 0, at: now });
            }
        }
        let trial = self.trial.as_mut().filter(|trial| trial.at <= now)?;
        if trial.sent < PROBES {
            trial.sent += 1;
            trial.at = now + self.pace;
            return Some(trial.size);
        }
        self.fails = trial.size;
        self.raise = now + RAISE;
        self.parked = None;
        if self.size >= self.fails {
            // The length in use fails: the path has become narrower.
            self.size = self.least;
        }
        self.advance(now);
        self.trial.map(|trial| trial.at).filter(|at| *at <= now)?;
        self.on_wake(now)
    }

    /// Time of the next required call.
    pub fn next_wake(&self) -> Time {
        self.trial.map_or(self.rest_ends(), |trial| trial.at)
    }

    fn rest_ends(&self) -> Time {
        self.confirm.min(self.raise)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Stream;

    /// Runs the search for `span` on a path of width `width` with a loss of `lose` for probes and answers.
    fn search(found: &mut Discovery, from: Time, span: Span, width: u32, lose: f64) -> u32 {
        let mut rng = Stream::new(1, "probes");
        let (mut now, mut probes) = (from, 0);
        while found.next_wake() <= from + span {
            now = now.max(found.next_wake());
            if let Some(size) = found.on_wake(now) {
                probes += 1;
                if size <= width && !rng.chance(lose) {
                    found.passed(now, size);
                }
            }
        }
        probes
    }

    #[test]
    fn an_unrestricted_path_costs_only_periodic_probes() {
        let mut found = Discovery::new(Time::ZERO, 600, 1500, Span::millis(20));
        assert_eq!(found.size(), 1500, "which is not known yet");
        let probes = search(&mut found, Time::ZERO, Span::secs(99), 1500, 0.0);
        assert_eq!((found.size(), probes), (1500, 10));
    }

    #[test]
    fn the_size_follows_a_path_that_narrows_and_widens() {
        let mut found = Discovery::new(Time::ZERO, 600, 1500, Span::millis(20));
        let mut now = Time::ZERO;
        for width in [1500, 1400, 1280, 1006, 1492] {
            search(&mut found, now, Span::secs(100), width, 0.3);
            now += Span::secs(100);
            assert!(found.size() <= width && found.size() + GRAIN > width, "{width}: {found:?}");
        }
    }

    #[test]
    fn only_a_true_mtu_hint_reduces_the_size() {
        let mut found = Discovery::new(Time::ZERO, 600, 1500, Span::millis(20));
        search(&mut found, Time::ZERO, Span::secs(5), 1500, 0.0);
        let mut now = Time::ZERO + Span::secs(5);
        for lie in [68, 576, 1300] {
            found.doubt(now, Some(lie));
            search(&mut found, now, Span::secs(2), 1500, 0.0);
            assert_eq!(found.size(), 1500);
            now += Span::secs(2);
        }
        found.doubt(now, Some(1433));
        search(&mut found, now, Span::secs(2), 1433, 0.0);
        assert_eq!(found.size(), 1433, "a true one is found at once");
    }

    proptest! {
        /// The search finds any width, and never exceeds it.
        #[test]
        fn the_search_finds_the_path_mtu(width in 600..9100_u32, lose in 0.0..0.6_f64) {
            let mut found = Discovery::new(Time::ZERO, 600, 9000, Span::millis(20));
            let most = width.min(9000);
            search(&mut found, Time::ZERO, Span::secs(55), most, lose);
            prop_assert!(found.size() <= most && found.size() + GRAIN > most, "{:?}", found);
        }
    }

    /// The probes of a search without losses on a path of this width, in order.
    fn probes(width: u32, hint: Option<u32>) -> Vec<u32> {
        let mut found = Discovery::new(Time::ZERO, 600, 1500, Span::millis(20));
        if let Some(hint) = hint {
            found.doubt(Time::ZERO, Some(hint));
        }
        let (mut sizes, mut now) = (Vec::new(), Time::ZERO);
        while found.trial.is_some() {
            now = now.max(found.next_wake());
            let Some(size) = found.on_wake(now) else { break };
            if sizes.last() != Some(&size) {
                sizes.push(size);
            }
            if size <= width {
                found.passed(now, size);
                assert_eq!(found.size(), size);
            }
        }
        assert!(found.trial.is_none() && found.confirm == now + CONFIRM, "{found:?}");
        sizes
    }

    /// Order of the probes: the longest, a hint, the common length, then the middle of the open range.
    #[test]
    fn probe_order_is_longest_hint_common_then_middle() {
        assert_eq!(probes(1500, None), [1500]);
        assert_eq!(probes(1280, None), [1500, 1280, 1390, 1335, 1307, 1293, 1286, 1283]);
        assert_eq!(probes(1400, None), [1500, 1280, 1390, 1445, 1417, 1403, 1396, 1399]);
        assert_eq!(probes(1400, Some(1400)), [1500, 1400, 1450, 1425, 1412, 1406, 1403]);
        assert_eq!(probes(600, Some(576)).last(), Some(&602), "an assumed size is not probed");
    }

    /// A length that failed before passes: longer ones are open again.
    #[test]
    fn a_passing_length_raises_the_failure_bound() {
        let mut found = Discovery::new(Time::ZERO, 600, 1500, Span::millis(20));
        found.fails = 1000;
        found.trial = Some(Trial { size: 1200, sent: 3, at: Time::ZERO });
        found.passed(Time::ZERO, 1199);
        assert_eq!((found.size(), found.fails), (1500, 1000), "it was another length");
        found.passed(Time::ZERO, 1200);
        assert_eq!((found.size(), found.fails), (1200, 1201));
        assert_eq!(found.trial.map(|trial| trial.size), None, "nothing is left between");
    }

    /// A report is accepted once a second, and not if its content is already known.
    #[test]
    fn path_mtu_doubts_are_accepted_once_a_second() {
        let mut found = Discovery::new(Time::ZERO, 600, 1500, Span::millis(20));
        found.passed(Time::ZERO, 1500);
        let trial = |found: &Discovery| found.trial.map(|trial| trial.size);
        assert_eq!((found.next_wake(), trial(&found)), (Time::ZERO + CONFIRM, None));
        found.doubt(Time::ZERO, Some(1500));
        assert_eq!(trial(&found), None, "the size in use is not shorter");
        found.doubt(Time::ZERO, Some(1400));
        assert_eq!(trial(&found), Some(1500), "the size in use is probed");
        found.passed(Time::ZERO, 1500);
        let later = Time::ZERO + Span::secs(1);
        found.doubt(Time(later.0 - 1), None);
        assert_eq!(trial(&found), None, "within a second");
        found.doubt(later, Some(1400));
        assert_eq!(trial(&found), None, "the same hint");
        found.doubt(later, None);
        assert_eq!(trial(&found), Some(1500), "after a second");
        let pace = |rtt| Discovery::new(Time::ZERO, 600, 1500, rtt).pace;
        let paces = [20, 100, 400, 9000].map(|ms| pace(Span::millis(ms)));
        assert_eq!(paces, [50, 50, 200, 1000].map(Span::millis), "half a round trip, in bounds");
    }
}
