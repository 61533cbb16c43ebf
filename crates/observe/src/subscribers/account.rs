//! The account of one subscriber: totals, the recent past, and round trips.

use lasthop_proto::units::{Span, Time};
use serde::{Deserialize, Serialize};

use super::trips::Trips;

/// Length of a window. Recent figures are those of the present window and of the one before.
pub(super) const WINDOW: Span = Span::secs(30);

/// Number of windows after which the least round trip is measured anew.
const PERIOD: u64 = 20;

/// Counters of a subscriber that the station counts with each data plane. Bytes are payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Transfers {
    /// Bytes that the subscriber acknowledged for the first time.
    pub delivered_down: u64,
    /// Bytes that the servers acknowledged for the first time.
    pub delivered_up: u64,
    /// Bytes that arrived from the servers, with retransmissions.
    pub arrived: u64,
    /// Those below the highest number that the station had not seen: lost or overtaken before the station.
    pub missing_before: u64,
    /// Bytes that the servers retransmitted after the station had seen them.
    pub server_bytes: u64,
    /// Packets with such bytes.
    pub server_packets: u64,
    /// Bytes that went to the radio side, with retransmissions.
    pub sent: u64,
    /// Those that had gone there before, from the servers and from the station.
    pub sent_again: u64,
    /// Bytes of them that the station itself retransmitted.
    pub local_bytes: u64,
    /// Packets with such bytes.
    pub local_packets: u64,
}

/// Counters of data from a subscriber, where the station sees each of its packets. Bytes are payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Upload {
    /// Bytes that arrived for the first time.
    pub arrived: u64,
    /// Those below the highest number: lost or overtaken on the radio side.
    pub missing: u64,
    /// Bytes that the subscriber retransmitted after the station had seen them.
    pub client_bytes: u64,
    /// Packets with such bytes.
    pub client_packets: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub transfers: Transfers,
    pub upload: Upload,
}

#[derive(Clone, Debug)]
pub(super) struct Account {
    /// Time of the first segment.
    pub first: Time,
    /// Time of the latest segment.
    pub seen: Time,
    /// Time of its last move to the most recently used place.
    pub touched: Time,
    pub total: Counts,
    /// Distinguishes it from other accounts in the same slot.
    pub number: u64,
    /// The present window, and the one before.
    windows: [Counts; 2],
    /// Start of the present window.
    begun: Time,
    /// Windows since the least round trip was measured anew.
    elapsed: u64,
    pub radio: Trips,
    pub server: Trips,
}

impl Default for Account {
    fn default() -> Account {
        Account::new(Time::ZERO, 0)
    }
}

impl Account {
    pub(super) fn new(now: Time, number: u64) -> Account {
        Account {
            first: now,
            seen: now,
            touched: now,
            number,
            total: Counts::default(),
            windows: [Counts::default(); 2],
            begun: now,
            elapsed: 0,
            radio: Trips::default(),
            server: Trips::default(),
        }
    }

    /// Counts in the total and in the present window.
    pub(super) fn count(&mut self, add: impl Fn(&mut Counts)) {
        add(&mut self.total);
        add(&mut self.windows[0]);
    }

    /// Begins the windows that are due at `now`.
    #[inline]
    pub(super) fn roll(&mut self, now: Time) {
        if now.since(self.begun) >= WINDOW {
            self.begin_windows(now.since(self.begun).0 / WINDOW.0);
        }
    }

    #[cold]
    fn begin_windows(&mut self, count: u64) {
        let before = if count == 1 { self.windows[0] } else { Counts::default() };
        self.windows = [Counts::default(), before];
        self.begun += WINDOW * count;
        for trips in [&mut self.radio, &mut self.server] {
            trips.halve(count);
            (0..((self.elapsed + count) / PERIOD).min(2)).for_each(|_| trips.rotate());
        }
        self.elapsed = (self.elapsed + count) % PERIOD;
    }

    /// The counters of the present window and of the one before, and their length. Call [`Account::roll`] first.
    pub(super) fn recent(&self, now: Time) -> (Counts, Span) {
        let [present, before] = self.windows;
        let length = now.since(self.begun) + WINDOW;
        (present.plus(&before), length.min(now.since(self.first)))
    }
}

impl Counts {
    fn plus(&self, other: &Counts) -> Counts {
        let (a, b) = (&self.transfers, &other.transfers);
        let transfers = Transfers {
            delivered_down: a.delivered_down + b.delivered_down,
            delivered_up: a.delivered_up + b.delivered_up,
            arrived: a.arrived + b.arrived,
            missing_before: a.missing_before + b.missing_before,
            server_bytes: a.server_bytes + b.server_bytes,
            server_packets: a.server_packets + b.server_packets,
            sent: a.sent + b.sent,
            sent_again: a.sent_again + b.sent_again,
            local_bytes: a.local_bytes + b.local_bytes,
            local_packets: a.local_packets + b.local_packets,
        };
        let (a, b) = (&self.upload, &other.upload);
        let upload = Upload {
            arrived: a.arrived + b.arrived,
            missing: a.missing + b.missing,
            client_bytes: a.client_bytes + b.client_bytes,
            client_packets: a.client_packets + b.client_packets,
        };
        Counts { transfers, upload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::secs(secs)
    }

    #[test]
    fn recent_figures_are_those_of_two_windows() {
        let mut account = Account::new(at(100), 1);
        account.count(|counts| counts.transfers.sent += 10);
        assert_eq!(account.recent(at(105)).1, Span::secs(5), "it is new");
        account.roll(at(131));
        account.count(|counts| counts.transfers.sent += 5);
        let (recent, length) = account.recent(at(140));
        assert_eq!((recent.transfers.sent, length), (15, Span::secs(40)));
        account.roll(at(161));
        let (recent, length) = account.recent(at(162));
        assert_eq!((recent.transfers.sent, length), (5, Span::secs(32)));
        account.roll(at(1000));
        assert_eq!(account.recent(at(1000)).0.transfers, Transfers::default());
        assert_eq!(account.total.transfers.sent, 15);
    }

    #[test]
    fn the_least_round_trip_is_of_the_last_two_periods() {
        let mut account = Account::new(at(0), 1);
        account.radio.add(Span::millis(10));
        for (now, min) in [(599, Some(0.01)), (601, Some(0.01)), (1199, Some(0.01)), (1201, None)] {
            account.roll(at(now));
            account.radio.add(Span::millis(50));
            let least = account.radio.recent().unwrap().min_s;
            assert_eq!(least, min.unwrap_or(0.05), "after {now} s");
        }
        account.roll(at(3000));
        assert_eq!(account.radio.recent(), None);
    }
}
