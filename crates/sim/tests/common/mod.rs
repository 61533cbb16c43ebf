//! Random scenarios: everything that a user could write, and more.

pub mod asking;
pub mod cells;
pub mod hops;
pub mod impaired;

use lasthop_proto::agent::{
    AckpMode, AgentConfig, Router, SeqCacheAgent, SnoopAgent, SnoopConfig, SplitConfig,
};
use lasthop_proto::channel::{
    BitErrors, ErrorModel, Exponential, Overlap, PacketBursts, PacketLoss, TwoState, TwoStateBits,
};
use lasthop_proto::link::{CrossTraffic, LineConfig, RadioConfig};
use lasthop_proto::queue::{CodelConfig, Discipline, FqCodelConfig, Limit, PieConfig};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::config::{GivingUp, RtoRule};
use lasthop_proto::tcp::traffic::{OnOff, Periods, Sizes, Web};
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::tcp::{
    AckpReaction, DelayedAck, ElnMode, GrowthRule, Halving, IdleRestart, LossCause, TcpConfig,
    Variant,
};
use lasthop_proto::units::{Bytes, Probability, Rate, Span};
use lasthop_proto::wire::Addr;
use lasthop_scenario::{
    ErrorSpec, Host, HostSide, RadioStage, Scenario, Stack, Stage, StageKind, Traffic, Transfer,
    World,
};

/// Draws a scenario. Equal numbers must always draw equal scenarios, because seeds are pinned.
pub struct Dice(Stream);

/// A preset as it was when the digests were pinned. `ns` differed from ns-2, and the receiver of `linux` acknowledged
/// at other times than Linux. Timeouts and SYNs of `linux` were those of `rfc`, and windows were neither validated nor
/// restarted after idle times.
fn preset_as_pinned(name: &str) -> TcpConfig {
    let tcp = TcpConfig::preset(name).unwrap();
    let rto_rule = match tcp.rto_rule {
        RtoRule::Linux => RtoRule::Rfc6298,
        other => other,
    };
    let tcp = TcpConfig {
        quick_acks: false,
        rto_rule,
        backoff_max: 64,
        giving_up: GivingUp::Count,
        syn_retries: None,
        syn_ack_retries: None,
        opening_limit: None,
        syn_linear: 0,
        dsack: false,
        window_validation: false,
        slow_start_after_idle: IdleRestart::Off,
        ..tcp
    };
    if name != "ns" {
        return tcp;
    }
    let TcpConfig { clock, rto_min, rto_initial, mss, send_buffer, recv_buffer, .. } = tcp;
    let TcpConfig { initial_window, delayed_ack, .. } = tcp;
    TcpConfig {
        clock,
        rto_min,
        rto_initial,
        mss,
        send_buffer,
        recv_buffer,
        initial_window,
        delayed_ack,
        window_validation: false,
        slow_start_after_idle: IdleRestart::Off,
        ..TcpConfig::rfc()
    }
}

impl Dice {
    pub fn new(case: u64) -> Dice {
        Dice(Stream::new(case, "scenario"))
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }

    /// Between `low` and `high` on a logarithmic scale, only by multiplication, which is portable.
    fn scale(&mut self, low: f64, high: f64) -> f64 {
        let values = core::iter::successors(Some(low), |x| Some(x * 1.25));
        let values: Vec<f64> = values.take_while(|x| *x <= high).collect();
        self.pick(&values)
    }

    fn probability(&mut self, low: f64, high: f64) -> Probability {
        Probability::new(self.scale(low, high).min(1.0)).unwrap()
    }

    fn rate(&mut self) -> Rate {
        Rate::from_bps(self.pick(&[
            9_600,
            28_800,
            119_603,
            1_000_000,
            2_000_000,
            10_000_000,
            1 << 30,
        ]))
        .unwrap()
    }

    fn delay(&mut self) -> Span {
        Span::micros(self.pick(&[0, 1, 200, 1_000, 10_000, 75_000, 300_000]))
    }

    fn limit(&mut self) -> Limit {
        match self.below(3) {
            0 => Limit::Bytes(Bytes(self.pick(&[0, 100, 1_600, 10_000, 1 << 20]))),
            _ => Limit::Packets(self.pick(&[0, 1, 2, 5, 20, 50, 1000])),
        }
    }

    fn errors(&mut self) -> Option<ErrorSpec> {
        let model = match self.below(8) {
            0 => ErrorModel::Exponential(Exponential {
                mean: Bytes(self.scale(500.0, 300_000.0) as u64),
            }),
            1 => ErrorModel::BitErrors(BitErrors { ber: self.probability(1e-7, 1e-4) }),
            2 => ErrorModel::PacketBursts(PacketBursts {
                packets: 1 + self.below(8) as u32,
                mean: Bytes(self.scale(3_000.0, 300_000.0) as u64),
                uniform: self.one_in(2),
                overlap: Overlap::Restart,
            }),
            3 => ErrorModel::TwoState(TwoState {
                good: Span::millis(1 + self.below(10_000)),
                bad: Span::millis(1 + self.below(4_000)),
                ber_good: self.probability(1e-9, 1e-5),
                ber_bad: self.probability(1e-5, 1.0),
                deterministic: self.one_in(2),
            }),
            4 => ErrorModel::TwoStateBits(TwoStateBits {
                good_bits: 1 + self.below(1_000_000),
                bad_bits: 1 + self.below(10_000),
                ber_good: Probability::ZERO,
                ber_bad: self.probability(1e-4, 1.0),
            }),
            5 => ErrorModel::PacketLoss(PacketLoss { p: self.probability(0.001, 0.9) }),
            _ => return None,
        };
        Some(ErrorSpec::from(model))
    }

    fn tcp(&mut self) -> TcpConfig {
        let preset = self.pick(&["freebsd-2.1", "ns", "rfc", "linux"]);
        let mut tcp = preset_as_pinned(preset);
        tcp.variant = self.pick(&[Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack]);
        tcp.halving = self.pick(&[Halving::Window, Halving::Flight]);
        tcp.growth = self.pick(&[GrowthRule::Rfc5681, GrowthRule::Bsd]);
        tcp.sack ^= self.one_in(3);
        tcp.timestamps ^= self.one_in(3);
        tcp.window_scale ^= self.one_in(3);
        tcp.limited_transmit ^= self.one_in(3);
        tcp.ackp_karn = self.one_in(2);
        tcp.eln = self.pick(&[ElnMode::Off, ElnMode::Checksum, ElnMode::Ideal]);
        tcp.ackp = self.pick(&[
            AckpReaction::Off,
            AckpReaction::Rearm,
            AckpReaction::Constant,
            AckpReaction::Exponential,
        ]);
        tcp.dupthresh = self.pick(&[1, 2, 3, 3, 3]);
        if self.one_in(3) {
            tcp.mss = self.pick(&[1, 88, 536, 1000, 1460, 8960, 65_000]);
        }
        if self.one_in(3) {
            tcp.recv_buffer = self.pick(&[1, 500, 1_460, 2_000, 65_535, 65_536, 1 << 22]);
        }
        if self.one_in(3) {
            tcp.send_buffer = self.pick(&[1, 500, 1_460, 2_000, 65_535, 65_536, 1 << 22]);
        }
        if self.one_in(3) {
            tcp.delayed_ack = DelayedAck {
                every: self.pick(&[1, 2, 8]),
                timeout: Span::millis(self.pick(&[0, 40, 500])),
            };
        }
        tcp.max_retries = self.pick(&[3, 8, tcp.max_retries]);
        tcp
    }

    fn agent(&mut self) -> AgentConfig {
        // Without later additions to its preset.
        let plain =
            SnoopConfig { priority: false, from_departure: false, ..SnoopConfig::parsa98() };
        let mut snoop = self.pick(&[SnoopConfig::west97(), plain]);
        if self.one_in(3) {
            snoop.cache = Bytes(self.pick(&[0, 3_000, 20_000]));
            snoop.flows = self.pick(&[1, 2, 100]);
            snoop.flow_packets = self.pick(&[1, 4, 128]);
        }
        snoop.rtt_fault = self.one_in(4);
        let ackp = self.pick(&[None, Some(AckpMode::Full), Some(AckpMode::EveryPacket)]);
        match self.below(4) {
            0 => AgentConfig::None(Router),
            1 => AgentConfig::SeqCache(SeqCacheAgent { flows: self.pick(&[1, 2, 100]) }),
            _ => AgentConfig::Snoop(SnoopAgent { snoop, ackp }),
        }
    }

    fn line(&mut self) -> LineConfig {
        let rate = |dice: &mut Dice| (!dice.one_in(5)).then(|| dice.rate());
        LineConfig {
            rate_right: rate(self),
            rate_left: rate(self),
            // Time must pass somewhere on a path.
            delay: Span(self.delay().0 + 1),
            framing: self.pick(&[0, 18, 1500]),
            queue: self.limit(),
            discipline_right: Discipline::Fifo,
            discipline_left: Discipline::Fifo,
        }
    }

    fn radio(&mut self) -> RadioStage {
        let radio = RadioConfig {
            rate: self.rate(),
            delay: self.delay(),
            overhead: Span::micros(self.below(2_000)),
            half_duplex: self.one_in(2),
            queue: self.limit(),
            discipline_right: Discipline::Fifo,
            discipline_left: Discipline::Fifo,
        };
        RadioStage {
            radio,
            errors_right: self.errors(),
            errors_left: self.errors(),
            varying: None,
            hop: None,
            hops: None,
        }
    }

    fn path(&mut self) -> Vec<StageKind> {
        let mut path = vec![StageKind::Link(self.line())];
        for _ in 0..self.below(2) {
            let loss = self.probability(0.0001, 0.2);
            path.push(StageKind::Cross(CrossTraffic {
                loss,
                jitter: self.delay(),
                ..CrossTraffic::default()
            }));
        }
        for _ in 0..1 + self.below(2) {
            path.push(StageKind::Agent(self.agent()));
            path.push(StageKind::Radio(self.radio()));
        }
        path
    }

    fn addr(&mut self, v6: bool, side: u8, n: u8) -> Addr {
        if v6 {
            let text = format!("fd00:{side}::{}", n + 1);
            Addr::from(text.parse::<core::net::IpAddr>().unwrap())
        } else {
            Addr::v4(10, 0, side, n + 1)
        }
    }

    /// A random scenario with at least one split connection.
    pub fn split_scenario(&mut self) -> Scenario {
        let mut scenario = self.scenario();
        let mut split = false;
        for stage in &mut scenario.path {
            if let StageKind::Agent(agent) = &mut stage.kind
                && (!split || self.one_in(2))
            {
                *agent = self.split();
                split = true;
            }
        }
        scenario
    }

    fn split(&mut self) -> AgentConfig {
        let preset = self.pick(&["freebsd-2.1", "ns", "rfc", "linux"]);
        let mut config = SplitConfig::new(preset_as_pinned(preset));
        config.buffer = Bytes(self.pick(&[1, 1_000, 4_000, 64 << 10, 64 << 10, 1 << 20]));
        config.flows = self.pick(&[1, 2, 100]);
        AgentConfig::Split(if self.one_in(2) { config.selective() } else { config })
    }

    pub fn scenario(&mut self) -> Scenario {
        let v6 = self.one_in(3);
        let lefts = 1 + self.below(2) as usize;
        let rights = 1 + self.below(2) as usize;
        let mut hosts = Vec::new();
        for i in 0..lefts + rights {
            let left = i < lefts;
            hosts.push(Host {
                name: format!("host{i}"),
                side: if left { HostSide::Left } else { HostSide::Right },
                addr: self.addr(v6, u8::from(left), i as u8),
                tcp: self.tcp(),
                access: None,
                battery: None,
                stack: Stack::Lasthop,
            });
        }
        let endless = self.one_in(20);
        let transfers = (0..1 + self.below(3)).map(|_| {
            let left = self.below(lefts as u64) as usize;
            let right = lefts + self.below(rights as u64) as usize;
            let (from, to) = if self.one_in(3) { (right, left) } else { (left, right) };
            let bytes = Bytes(match self.below(4) {
                0 => self.below(3_000),
                _ => self.scale(1_000.0, 300_000.0) as u64,
            });
            // Segments of one byte take their time.
            let tiny = hosts[from].tcp.mss.min(hosts[to].tcp.mss).min(hosts[from].tcp.send_buffer);
            let bytes = Bytes(bytes.0.min(u64::from(tiny.min(hosts[to].tcp.recv_buffer)) * 2_000));
            Transfer {
                from,
                to,
                bytes: (!endless).then_some(bytes),
                start: Span::millis(self.below(3) * self.below(2_000)),
                count: if self.one_in(3) { 2 } else { 1 },
                stop: None,
                traffic: Traffic::Bulk,
                cross: false,
                quic: None,
            }
        });
        let transfers = transfers.collect();
        let path = self.path().into_iter().enumerate();
        Scenario {
            name: "random".into(),
            world: World::Sim,
            runs: 1,
            first_seed: 1,
            horizon: Span::secs(if endless { 60 } else { 100_000 }),
            hosts,
            transfers,
            path: path.map(|(i, kind)| Stage { name: format!("stage{i}"), kind }).collect(),
            roaming: None,
        }
    }
}

/// The scenario of `case` with ACK filtering or ACK priority in its queues. It has its own random stream, so the other
/// scenarios stay the same.
pub fn disciplined(case: u64) -> Scenario {
    of_disciplines(
        case,
        &[
            Discipline::Fifo,
            Discipline::AckFilter,
            Discipline::AcksFirst,
            Discipline::AckFilterAcksFirst,
        ],
    )
}

/// The scenario of `case` with delay-based queue disciplines.
pub fn delay_held(case: u64) -> Scenario {
    of_disciplines(
        case,
        &[
            Discipline::Codel(CodelConfig::default()),
            Discipline::FqCodel(FqCodelConfig::default()),
            Discipline::Pie(PieConfig::default()),
        ],
    )
}

fn of_disciplines(case: u64, disciplines: &[Discipline]) -> Scenario {
    let mut scenario = Dice::new(case).scenario();
    let mut dice = Dice(Stream::new(case, "disciplines"));
    let mut discipline = || dice.pick(disciplines);
    for stage in &mut scenario.path {
        let (right, left) = match &mut stage.kind {
            StageKind::Link(line) => (&mut line.discipline_right, &mut line.discipline_left),
            StageKind::Radio(RadioStage { radio, .. }) => {
                (&mut radio.discipline_right, &mut radio.discipline_left)
            }
            _ => continue,
        };
        (*right, *left) = (discipline(), discipline());
    }
    scenario
}

/// The scenario of `case` with modern TCPs. Other drawn values stay, so that each part meets configurations that no
/// name would give it.
pub fn modern(case: u64) -> Scenario {
    let mut scenario = Dice::new(case).scenario();
    let mut dice = Dice(Stream::new(case, "modern"));
    for host in &mut scenario.hosts {
        let key = dice.pick(&["rack", "cubic", "bbr"]);
        let drawn = host.tcp.clone();
        let word = TCPS.iter().find(|word| word.key == key).expect("a word");
        (word.apply)(&mut host.tcp);
        if dice.one_in(3) {
            host.tcp.timestamps = drawn.timestamps;
            host.tcp.window_scale = drawn.window_scale;
            host.tcp.sack = drawn.sack;
        }
        host.tcp.dsack ^= dice.one_in(3);
        host.tcp.pacing ^= dice.one_in(4);
    }
    scenario
}

/// The scenario of `case` with windows shared between connections, and transfers that stop, are on and off, or are
/// sequences of short ones.
pub fn coming_and_going(case: u64) -> Scenario {
    let mut scenario = Dice::new(case).scenario();
    let mut dice = Dice(Stream::new(case, "comings and goings"));
    for host in &mut scenario.hosts {
        host.tcp.integrated = dice.one_in(2);
    }
    let periods = |dice: &mut Dice| Periods {
        mean: Span::millis(dice.pick(&[1, 20, 500])),
        shape: dice.pick(&[None, Some(1.05), Some(3.0)]),
    };
    for transfer in &mut scenario.transfers {
        transfer.count = dice.pick(&[1, 2, 5]);
        // Over the fastest path that is a million segments of one byte.
        let lasts = Span::millis(dice.pick(&[1, 30, 300]));
        transfer.cross = dice.one_in(4);
        match dice.below(4) {
            0 => {}
            1 => transfer.stop = Some(transfer.start + lasts),
            2 => {
                let (on, off) = (periods(&mut dice), periods(&mut dice));
                transfer.traffic = Traffic::OnOff(OnOff { on, off });
            }
            _ => {
                transfer.count = 1;
                transfer.traffic = Traffic::Web(Web {
                    sessions: dice.pick(&[1, 3, 8]),
                    think: Span::millis(dice.pick(&[1, 100, 2_000])),
                    size: Sizes::new(Bytes(dice.pick(&[2, 300])), Bytes(3_000), 1.2).unwrap(),
                });
            }
        }
        if transfer.traffic != Traffic::Bulk {
            transfer.bytes = None;
            let longer = if matches!(transfer.traffic, Traffic::Web(_)) { 10 } else { 1 };
            transfer.stop = Some(transfer.start + lasts * longer);
        }
    }
    scenario
}

/// The scenario of `case` with a named TCP at each host, which may or may not support what the names need.
pub fn worded(case: u64) -> Scenario {
    let mut scenario = Dice::new(case).scenario();
    let mut dice = Dice(Stream::new(case, "words"));
    for host in &mut scenario.hosts {
        let tcp = &mut host.tcp;
        (dice.pick(TCPS).apply)(tcp);
        tcp.smart |= dice.one_in(2);
        tcp.smart_repeat = dice.one_in(2);
        tcp.snack |= dice.one_in(2);
        if dice.one_in(2) {
            tcp.loss_cause = LossCause::Corruption;
        }
        if tcp.eln == ElnMode::Off && dice.one_in(2) {
            tcp.eln = ElnMode::Ideal;
        }
    }
    scenario
}
