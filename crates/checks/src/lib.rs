//! A little of everything that the pure crates can do, behind two functions that need nothing from outside.
//!
//! `tests/purity.rs` compiles this crate to WebAssembly. The module must not import anything, and every run
//! must have the same digest there as here: same scenario, same seed, same bytes.

use core::fmt::{self, Write};

use lasthop_proto::agent::{AckpMode, AgentConfig, SnoopConfig};
use lasthop_proto::channel::ErrorModel;
use lasthop_proto::event::{Event, Wants};
use lasthop_proto::link::{CrossTraffic, LineConfig, RadioConfig};
use lasthop_proto::queue::Limit;
use lasthop_proto::tcp::{AckpReaction, TcpConfig, Variant};
use lasthop_proto::units::{Bytes, Probability, Rate, Span};
use lasthop_proto::wire::Addr;
use lasthop_scenario::{
    ErrorSpec, Host, HostSide, RadioStage, Scenario, Stage, StageKind, Transfer,
};
use lasthop_trace::Sink;

/// How many cases [`digest`] knows.
pub const CASES: u32 = 12;

/// Runs a case with a seed and digests everything that happened.
///
/// A case is a TCP, an agent, a preset and a channel; over all cases each is met at least once.
pub fn digest(case: u32, seed: u64) -> u64 {
    let mut digest = Digest::default();
    let end = lasthop_sim::run(&scenario(case), seed, &mut digest);
    // The agents' state is left out: its size in bytes depends on the size of a pointer.
    digest.add(format_args!("{:?}", (end.at, end.reason, end.hops, end.wakes)));
    digest.add(format_args!("{:?}", (end.transfers, end.stages)));
    digest.hash
}

/// [`CASES`], for those who load the module.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_cases() -> u32 {
    CASES
}

/// [`digest`], for those who load the module.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_digest(case: u32, seed: u64) -> u64 {
    digest(case, seed)
}

/// FNV-1a over the events as they print: every field counts, floating-point numbers to their last bit.
struct Digest {
    hash: u64,
}

impl Default for Digest {
    fn default() -> Digest {
        Digest { hash: 0xcbf2_9ce4_8422_2325 }
    }
}

impl Digest {
    fn add(&mut self, text: fmt::Arguments<'_>) {
        // Writing into a number cannot fail.
        let _ = self.write_fmt(text);
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        Ok(())
    }
}

impl Sink for Digest {
    fn wants(&self) -> Wants {
        Wants::EVERYTHING
    }
    fn event(&mut self, event: &Event) {
        self.add(format_args!("{event:?}"));
    }
}

fn scenario(case: u32) -> Scenario {
    let variants = [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack];
    let presets: [fn() -> TcpConfig; 4] =
        [TcpConfig::freebsd_2_1, TcpConfig::rfc, TcpConfig::ns, TcpConfig::linux];
    let snoop = |config: SnoopConfig, ackp| AgentConfig::Snoop { snoop: config, ackp };
    let agents = [
        AgentConfig::None,
        snoop(SnoopConfig::west97(), Some(AckpMode::Full)),
        AgentConfig::SeqCache { flows: 8 },
        snoop(SnoopConfig::parsa98(), None),
        snoop(SnoopConfig::west97(), Some(AckpMode::EveryPacket)),
    ];
    let case = case as usize;
    let tcp = TcpConfig {
        variant: variants[case % variants.len()],
        sack: variants[case % variants.len()] == Variant::Sack,
        ackp: AckpReaction::Rearm,
        eln: true,
        ..presets[case / 3 % presets.len()]()
    };
    let host = |name: &str, side, net| Host {
        name: name.to_owned(),
        side,
        addr: Addr::v4(10, 0, net, 1),
        tcp: tcp.clone(),
    };
    let errors = Some(ErrorSpec { model: errors(case) });
    let path = [
        ("internet", StageKind::Cross(CrossTraffic { loss: p(0.002), jitter: Span::millis(3) })),
        ("ethernet", StageKind::Link(line())),
        ("base", StageKind::Agent(agents[case % agents.len()].clone())),
        (
            "radio",
            StageKind::Radio(RadioStage {
                radio: radio(case % 2 == 0),
                errors_right: errors.clone(),
                errors_left: errors,
            }),
        ),
    ];
    let path = path.map(|(name, kind)| Stage { name: name.to_owned(), kind });
    Scenario {
        name: format!("case-{case}"),
        runs: 1,
        first_seed: 1,
        horizon: Span::secs(600),
        hosts: vec![host("fixed", HostSide::Left, 1), host("mobile", HostSide::Right, 2)],
        transfers: vec![Transfer {
            from: 0,
            to: 1,
            bytes: Some(Bytes(100_000)),
            start: Span::ZERO,
            count: 2,
        }],
        path: path.into(),
    }
}

fn errors(case: usize) -> ErrorModel {
    let (ber_good, ber_bad) = (p(1e-6), p(1e-3));
    let models = [
        ErrorModel::Exponential { mean: Bytes(16_384) },
        ErrorModel::BitErrors { ber: p(5e-6) },
        ErrorModel::PacketBursts { packets: 4, mean: Bytes(65_536), uniform: false },
        ErrorModel::TwoState {
            good: Span::millis(300),
            bad: Span::millis(40),
            ber_good,
            ber_bad,
            deterministic: false,
        },
        ErrorModel::TwoStateBits { good_bits: 500_000, bad_bits: 20_000, ber_good, ber_bad },
        ErrorModel::PacketLoss { p: p(0.03) },
    ];
    models[case % models.len()].clone()
}

fn line() -> LineConfig {
    LineConfig {
        rate_right: Rate::from_bps(10_000_000),
        rate_left: Rate::from_bps(10_000_000),
        delay: Span::millis(5),
        framing: 14,
        queue: Limit::Packets(20),
    }
}

fn radio(half_duplex: bool) -> RadioConfig {
    RadioConfig {
        rate: Rate::from_bps(2_000_000).unwrap_or_else(|| unreachable!("not zero")),
        delay: Span::millis(1),
        overhead: Span::micros(700),
        half_duplex,
        queue: Limit::Bytes(Bytes(30_000)),
    }
}

fn p(p: f64) -> Probability {
    Probability::new(p).unwrap_or(Probability::ZERO)
}
