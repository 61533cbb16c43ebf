//! Random scenarios whose radios are hops with stations.

use lasthop_proto::hop::HopConfig;
use lasthop_proto::link::LinkLayerConfig;
use lasthop_proto::link::airmail::AirmailConfig;
use lasthop_proto::link::airmail::levels::Strength;
use lasthop_proto::link::fec::{Code, Coding};
use lasthop_proto::mac::{DcfConfig, FamaConfig, MacConfig};
use lasthop_proto::queue::Discipline;
use lasthop_proto::queue::csdp::{CsdpConfig, Knowledge, Policy};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::Span;
use lasthop_proto::wire::Addr;
use lasthop_scenario::{HostSide, RadioStage, Scenario, StageKind};

use super::Dice;

/// The scenario of `case` with hops as its radios, with any medium access, and mobile hosts with their own stations.
pub fn hopping(case: u64) -> Scenario {
    let mut scenario = Dice::new(case).scenario();
    let mut dice = Dice(Stream::new(case, "hops"));
    let right = scenario.hosts.iter().filter(|host| host.side == HostSide::Right);
    let mobiles: Vec<Addr> = right.map(|host| host.addr).collect();
    let last = scenario.path.len() - 1;
    for (i, stage) in scenario.path.iter_mut().enumerate() {
        let StageKind::Radio(stage) = &mut stage.kind else { continue };
        let mac = match dice.below(3) {
            0 => MacConfig::Ideal,
            1 => MacConfig::FamaNcs(FamaConfig {
                acceleration: dice.one_in(2),
                short_answer: dice.pick(&[0, 40, 1500]),
                backoff: dice.pick(&[2, 10, 40]),
            }),
            _ => MacConfig::Dcf(DcfConfig {
                rts_threshold: dice.pick(&[0, 500, 2347]),
                cw_min: dice.pick(&[7, 31, 127]),
                short_retries: Some(dice.pick(&[1, 7, 20])),
                long_retries: Some(dice.pick(&[1, 4, 20])),
                ..DcfConfig::default()
            }),
        };
        stage.radio.half_duplex |= mac != MacConfig::Ideal;
        stage.hop = Some(Box::new(HopConfig {
            mac,
            fragment: dice.one_in(4).then(|| dice.pick(&[64, 128, 576])),
            coding: dice.pick(&codings()),
            mobiles: if i == last { mobiles.clone() } else { Vec::new() },
            ..HopConfig::default()
        }));
    }
    scenario
}

/// The scenario of [`hopping`] with channel-state-dependent scheduling at base stations, and AIRMAIL on the hops.
pub fn scheduled(case: u64) -> Scenario {
    let mut scenario = hopping(case);
    let mut dice = Dice(Stream::new(case, "schedules"));
    for stage in &mut scenario.path {
        let (right, left, hop) = match &mut stage.kind {
            StageKind::Link(line) => (&mut line.discipline_right, &mut line.discipline_left, None),
            StageKind::Radio(RadioStage { radio, hop, .. }) => {
                (&mut radio.discipline_right, &mut radio.discipline_left, hop.as_mut())
            }
            _ => continue,
        };
        let mut csdp = || {
            Discipline::Csdp(CsdpConfig {
                policy: dice.pick(&[Policy::RoundRobin, Policy::LongestQueueFirst, Policy::Fifo]),
                channel: dice.pick(&[Knowledge::None, Knowledge::Failures, Knowledge::Oracle]),
                backoff: Span::millis(dice.pick(&[1, 50, 2_000])),
                attempts: dice.pick(&[1, 2, 7]),
                tries: dice.pick(&[1, 3, 100]),
            })
        };
        (*right, *left) = (csdp(), csdp());
        let Some(hop) = hop else { continue };
        if dice.one_in(2) {
            hop.link = LinkLayerConfig::Airmail(AirmailConfig {
                window: dice.pick(&[1, 2, 32, 128]),
                byte_fec: dice.pick(&[None, Some(Strength::Light), Some(Strength::Strong)]),
                packet_fec: dice.pick(&[None, Some(0), Some(3)]),
                ..AirmailConfig::default()
            });
        }
        if let MacConfig::Dcf(dcf) = &mut hop.mac {
            dcf.nav_reset = dice.one_in(2);
        }
    }
    scenario
}

/// No coding, pure overhead, and an error-correcting code.
fn codings() -> [Coding; 3] {
    [Coding::NONE, Coding::Overhead(1.5), Coding::Block(Code::reed_solomon(255, 223).unwrap())]
}
