//! Radio hops with any medium access under random traffic: packets are conserved, runs end, and a late clock
//! causes only delay.

use lasthop_proto::channel::{BitErrors, Channel, ErrorModel};
use lasthop_proto::hop::{Hop, HopConfig};
use lasthop_proto::link::fec::Coding;
use lasthop_proto::link::{Radio, RadioConfig};
use lasthop_proto::mac::{DcfConfig, FamaConfig, MacConfig, PowerSaveConfig};
use lasthop_proto::machine::Side;
use lasthop_proto::queue::Limit;
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Bytes, Probability, Span, Time};
use lasthop_proto::wire::{Addr, Packet};
use proptest::prelude::*;

use super::driver::radio;
use super::support::{Outcome, packet, play, play_packets};

type Arrivals = Vec<(Time, Side, u32)>;

const BASE: Addr = Addr::v4(1, 1, 1, 1);

fn mobile(n: u64) -> Addr {
    Addr::v4(2, 2, 2, n as u8)
}

fn arrivals() -> impl Strategy<Value = Arrivals> {
    let one = (0_u64..4_000_000, any::<bool>(), prop_oneof![Just(40u32), 41u32..1500]);
    prop::collection::vec(one, 1..60).prop_map(|steps| {
        let mut now = Time::ZERO;
        let step = |(gap, left, bytes)| {
            now += Span(gap);
            (now, if left { Side::Left } else { Side::Right }, bytes)
        };
        steps.into_iter().map(step).collect()
    })
}

fn macs() -> impl Strategy<Value = MacConfig> {
    let fama =
        (any::<bool>(), 0_u32..200, 2_u32..20).prop_map(|(acceleration, short_answer, backoff)| {
            MacConfig::FamaNcs(FamaConfig { acceleration, short_answer, backoff })
        });
    let timeout = prop_oneof![Just(None), (1_u64..300).prop_map(|ms| Some(Span::millis(ms)))];
    let save = (150_u64..400, 1_u16..4, 1_u32..70, timeout).prop_map(
        |(beacon, listen, buffer, timeout)| {
            Some(PowerSaveConfig { beacon: Span::millis(beacon), listen, buffer, timeout })
        },
    );
    let save = prop_oneof![Just(None), save];
    let dcf = (1_u32..64, 0_u32..2000, 1_u32..8, any::<bool>(), save).prop_map(
        |(cw, rts, tries, eifs, power_save)| {
            MacConfig::Dcf(DcfConfig {
                cw_min: cw,
                cw_max: cw * 8,
                rts_threshold: rts,
                short_retries: Some(tries),
                long_retries: Some(tries),
                eifs,
                timeout: None,
                control_rate: None,
                nav_reset: false,
                power_save,
                ..DcfConfig::default()
            })
        },
    );
    prop_oneof![Just(MacConfig::Ideal), fama, dcf]
}

fn sleeps(mac: &MacConfig) -> bool {
    matches!(mac, MacConfig::Dcf(dcf) if dcf.power_save.is_some())
}

#[derive(Clone, Debug)]
struct Case {
    radio: RadioConfig,
    hop: HopConfig,
    mobiles: u64,
    seed: u64,
    ber: Option<f64>,
}

fn cases() -> impl Strategy<Value = Case> {
    let limits = prop_oneof![
        (0u32..6).prop_map(Limit::Packets),
        (0u64..4000).prop_map(|n| Limit::Bytes(Bytes(n))),
        Just(Limit::Packets(1000)),
    ];
    let delay = prop_oneof![Just(0), 1_u64..20_000, 20_000_u64..20_000_000].prop_map(Span);
    let fragment = prop_oneof![Just(None), (64_u32..600).prop_map(Some)];
    let ber = prop_oneof![Just(None), (1e-6..2e-4).prop_map(Some)];
    let rest = (1_u64..6, any::<u64>(), 1.0..2.0);
    (macs(), limits, delay, fragment, ber, rest).prop_map(
        |(mac, queue, delay, fragment, ber, (mobiles, seed, coding))| Case {
            // Each beacon causes polls without end: if the beacon interval were shorter than a window, all of
            // them would collide.
            radio: RadioConfig {
                queue,
                ..radio(if sleeps(&mac) { Span::micros(1) } else { delay })
            },
            hop: HopConfig {
                mac,
                fragment,
                coding: Coding::Overhead(coding),
                mobiles: (0..mobiles).map(mobile).collect(),
                ..HopConfig::default()
            },
            mobiles,
            seed,
            ber,
        },
    )
}

impl Case {
    fn machine(&self) -> Hop {
        let channel = |part: String| {
            let ber = Probability::new(self.ber?)?;
            Some(Channel::new(
                &ErrorModel::BitErrors(BitErrors { ber }),
                Stream::new(self.seed, &part),
            ))
        };
        let channels = |i| [channel(format!("left{i}")), channel(format!("right{i}"))];
        let channels = (0..self.mobiles).map(channels).collect();
        Hop::new(&self.radio, &self.hop, channels, |part| Stream::new(self.seed, part))
    }

    fn packet(&self, id: u64, from: Side, bytes: u32) -> Packet {
        let host = mobile(id.wrapping_mul(7) % self.mobiles);
        let (src, dst) = if from == Side::Left { (BASE, host) } else { (host, BASE) };
        packet(id, bytes).with(|packet| {
            packet.src = src;
            packet.dst = dst;
        })
    }

    /// [`play_packets`] asserts conservation at each step, and an empty machine in the end.
    fn play(&self, arrivals: &Arrivals, late: impl Fn(Time) -> Time) -> Outcome {
        play_packets(&mut self.machine(), arrivals, late, |id, from, bytes| {
            self.packet(id, from, bytes)
        })
    }
}

proptest! {
    #[test]
    fn everything_offered_ends(case in cases(), arrivals in arrivals()) {
        let outcome = case.play(&arrivals, |wake| wake);
        prop_assert_eq!(outcome.out.len() + outcome.dropped.len(), arrivals.len());
        if case.ber.is_none() && case.radio.queue == Limit::Packets(1000) {
            let collide = matches!(case.hop.mac, MacConfig::Dcf(_));
            prop_assert!(collide || outcome.dropped.is_empty(), "{:?}", outcome.dropped);
        }
    }

    #[test]
    fn a_late_clock_makes_nothing_but_lateness(
        case in cases(),
        arrivals in arrivals(),
        tick in 30_000_u64..50_000_000,
    ) {
        let exact = case.play(&arrivals, |wake| wake);
        let late = case.play(&arrivals, |wake| Time(wake.0.next_multiple_of(tick)));
        let by_id = |outcome: &Outcome| {
            let mut out: Vec<_> = outcome.out.iter().map(|(at, side, id)| (*id, side.index(), *at)).collect();
            out.sort_unstable();
            out
        };
        let causes = |outcome: &Outcome| {
            let mut dropped: Vec<_> = outcome.dropped.iter().map(|(_, id, cause)| (*id, *cause)).collect();
            dropped.sort_unstable();
            dropped
        };
        prop_assert_eq!(causes(&exact), causes(&late));
        prop_assert_eq!(exact.out.len(), late.out.len());
        for (a, b) in by_id(&exact).into_iter().zip(by_id(&late)) {
            prop_assert_eq!((a.0, a.1), (b.0, b.1));
            prop_assert!(a.2 <= b.2 && b.2 <= Time(a.2.0.next_multiple_of(tick)), "{:?} {:?}", a, b);
        }
    }

    /// A hop without link layer and with ideal access is equivalent to a plain radio. Queues are long, since
    /// a station of a hop holds one more frame: the one passed to medium access.
    #[test]
    fn an_ideal_hop_is_a_radio(arrivals in arrivals(), half_duplex in any::<bool>()) {
        let config = RadioConfig {
            half_duplex,
            overhead: Span::micros(500),
            ..radio(Span::millis(1))
        };
        let rng = Stream::new(1, "mac");
        let mut hop = Hop::new(&config, &HopConfig::default(), vec![[None, None]], |_| rng.clone());
        let mut plain = Radio::new(config, None, None);
        let sorted = |mut outcome: Outcome| {
            outcome.out.sort_by_key(|(at, side, _)| (*at, side.index()));
            outcome
        };
        prop_assert_eq!(sorted(play(&mut hop, &arrivals)), sorted(play(&mut plain, &arrivals)));
    }
}

/// Mobile hosts with separate stations have equal shares, in either direction.
#[test]
fn mobile_hosts_share_the_channel() {
    for mac in [MacConfig::FamaNcs(FamaConfig::default()), MacConfig::Dcf(DcfConfig::default())] {
        let case = Case {
            radio: RadioConfig { queue: Limit::Packets(2000), ..radio(Span::micros(1)) },
            hop: HopConfig { mac, mobiles: vec![mobile(0), mobile(1)], ..HopConfig::default() },
            mobiles: 2,
            seed: 1,
            ber: None,
        };
        // Numbers are even for the first host and odd for the second.
        let arrivals: Arrivals = (0..2000).map(|_| (Time::ZERO, Side::Right, 1000)).collect();
        let outcome = case.play(&arrivals, |wake| wake);
        let first = &outcome.out[..1000];
        let even = first.iter().filter(|(_, _, id)| id % 2 == 0).count();
        assert!((430..=570).contains(&even), "{even} of 1000 with {:?}", case.hop.mac);
    }
}
