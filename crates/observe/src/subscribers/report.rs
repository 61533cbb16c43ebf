//! Figures of subscribers for people and programs.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Addr;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::account::{Account, Transfers, Upload};
use super::trips::RecentTrips;
use crate::grade::Grade;

/// Number of recent round trips that a grade needs.
const GRADED: u64 = 10;

/// A subscriber without a segment for this time does not count in [`Overview::grades`].
const PRESENT: Span = Span::secs(300);

/// An address, or the leading bits of several.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Prefix {
    addr: Addr,
    bits: u8,
}

impl Prefix {
    /// The leading `bits4` bits of an IPv4 address, or `bits6` of an IPv6 address.
    pub(super) fn of(addr: Addr, bits4: u8, bits6: u8) -> Prefix {
        match addr.ip() {
            IpAddr::V4(v4) => {
                let bits = bits4.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                let addr = Ipv4Addr::from(u32::from(v4) & mask);
                Prefix { addr: IpAddr::V4(addr).into(), bits }
            }
            IpAddr::V6(v6) => {
                let bits = bits6.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                let addr = Ipv6Addr::from(u128::from(v6) & mask);
                Prefix { addr: IpAddr::V6(addr).into(), bits }
            }
        }
    }

    /// Its first address.
    pub fn addr(self) -> Addr {
        self.addr
    }

    /// Whether all addresses of `other` are in this prefix.
    pub fn contains(self, other: Prefix) -> bool {
        let same_family = self.addr.is_v4() == other.addr.is_v4();
        let cut = |prefix: Prefix| Prefix::of(prefix.addr, self.bits, self.bits).addr;
        same_family && self.bits <= other.bits && cut(self) == cut(other)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = if self.addr.is_v4() { 32 } else { 128 };
        match self.bits {
            bits if bits == all => self.addr.fmt(f),
            bits => write!(f, "{}/{bits}", self.addr),
        }
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(word: &str) -> Result<Prefix, String> {
        let wrong = || format!("`{word}` is neither an address nor a prefix such as 10.5.0.0/24");
        let (addr, bits) = match word.split_once('/') {
            Some((addr, bits)) => (addr, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (word, None),
        };
        let addr: IpAddr = addr.parse().map_err(|_| wrong())?;
        let most = if addr.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most {
            return Err(wrong());
        }
        Ok(Prefix { addr: addr.into(), bits })
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Prefix, D::Error> {
        let word = String::deserialize(deserializer)?;
        word.parse().map_err(de::Error::custom)
    }
}

/// Figures of a subscriber. Recent figures are of the last 30 to 60 s; a figure that was not measured is `None`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Subscriber {
    /// Its address or prefix.
    pub subscriber: Prefix,
    /// Seconds since its first segment.
    pub age_s: f64,
    /// Seconds since its latest segment.
    pub idle_s: f64,
    /// Recent bytes per second that it has acknowledged.
    pub goodput_down: f64,
    /// Recent bytes per second that servers have acknowledged.
    pub goodput_up: f64,
    /// Round trips between the station and the subscriber.
    pub radio: Option<RecentTrips>,
    /// Round trips between the station and the servers.
    pub server: Option<RecentTrips>,
    /// Recent loss towards the subscriber, from 0 to 1.
    pub loss_down: Option<f64>,
    /// Recent loss from the subscriber, from 0 to 1; `None` where the station does not see each packet.
    pub loss_up: Option<f64>,
    /// Recent loss between the servers and the station, from 0 to 1.
    pub loss_before: Option<f64>,
    /// Median round trip on the radio side less the least one.
    pub increase_s: Option<f64>,
    /// Grade of this increase; `None` with less than ten recent round trips.
    pub grade: Option<Grade>,
    /// Counters since the first segment.
    pub total: Transfers,
    /// Counters of data from the subscriber; `None` where the station does not see each packet.
    pub upload: Option<Upload>,
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Subscriber {
    pub(super) fn of(now: Time, subscriber: Prefix, account: &Account) -> Subscriber {
        let (recent, length) = account.recent(now);
        // The first segment and the report may have the same time.
        let seconds = length.as_secs_f64().max(1e-3);
        let radio = account.radio.recent();
        let increase_s = radio.map(|trips| trips.median_s - trips.min_s);
        let graded = radio.is_some_and(|trips| trips.samples >= GRADED);
        let (transfers, upload) = (recent.transfers, recent.upload);
        Subscriber {
            subscriber,
            age_s: now.since(account.first).as_secs_f64(),
            idle_s: now.since(account.seen).as_secs_f64(),
            goodput_down: transfers.delivered_down as f64 / seconds,
            goodput_up: transfers.delivered_up as f64 / seconds,
            radio,
            server: account.server.recent(),
            loss_down: share(transfers.sent_again, transfers.sent),
            loss_up: share(upload.missing, upload.arrived),
            loss_before: share(
                transfers.missing_before,
                transfers.arrived.saturating_sub(transfers.server_bytes),
            ),
            increase_s,
            grade: increase_s.filter(|_| graded).map(Grade::of),
            total: account.total.transfers,
            upload: Some(account.total.upload).filter(|upload| *upload != Upload::default()),
        }
    }

    /// Recent bytes per second in both directions.
    pub fn goodput(&self) -> f64 {
        self.goodput_down + self.goodput_up
    }
}

/// An order of subscribers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The worst grade first, and the largest increase of the round trip.
    #[default]
    Grade,
    /// The largest loss towards the subscriber first.
    Loss,
    /// The largest goodput of both directions first.
    Goodput,
    /// The largest median round trip on the radio side first.
    RoundTrip,
}

impl Order {
    /// The orders with their names.
    pub const NAMES: [(&'static str, Order); 4] = [
        ("grade", Order::Grade),
        ("loss", Order::Loss),
        ("goodput", Order::Goodput),
        ("round-trip", Order::RoundTrip),
    ];

    /// Compares two subscribers. The address decides between equal ones, so the order is total.
    pub fn compare(self, a: &Subscriber, b: &Subscriber) -> Ordering {
        let median = |s: &Subscriber| s.radio.map_or(-1.0, |trips| trips.median_s);
        let by = |figure: fn(&Subscriber) -> f64| figure(b).total_cmp(&figure(a));
        let first = match self {
            Order::Grade => b.grade.cmp(&a.grade).then(by(|s| s.increase_s.unwrap_or(-1.0))),
            Order::Loss => by(|s| s.loss_down.unwrap_or(-1.0)),
            Order::Goodput => by(Subscriber::goodput),
            Order::RoundTrip => median(b).total_cmp(&median(a)),
        };
        first.then_with(|| by(Subscriber::goodput)).then(a.subscriber.cmp(&b.subscriber))
    }
}

/// Retains the first `most` subscribers of an order, sorted.
pub fn retain_first(subscribers: &mut Vec<Subscriber>, order: Order, most: usize) {
    subscribers.sort_unstable_by(|a, b| order.compare(a, b));
    subscribers.truncate(most);
}

/// The state of the tables, and the number of subscribers by grade.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Overview {
    /// Number of subscribers.
    pub followed: u64,
    /// Limit of subscribers.
    pub most: u64,
    /// Subscribers that were removed to make room for others.
    pub evicted: u64,
    /// Number of connections.
    pub flows: u64,
    /// Connections that were removed to make room for others.
    pub flows_evicted: u64,
    /// Segments that the hosts would not accept, and that were not measured.
    pub refused: u64,
    /// Number of subscribers with each grade, of those with a segment in the last five minutes.
    pub grades: BTreeMap<String, u64>,
    /// Those without a grade.
    pub ungraded: u64,
}

impl Overview {
    /// Counts the grade of a subscriber.
    pub fn add(&mut self, subscriber: &Subscriber) {
        if subscriber.idle_s > PRESENT.as_secs_f64() {
            return;
        }
        match subscriber.grade.and_then(|grade| self.grades.get_mut(grade.name())) {
            Some(count) => *count += 1,
            None => self.ungraded += 1,
        }
    }
}
