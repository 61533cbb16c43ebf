//! Random scenarios in which hosts move between cells.

use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Rate, Span};
use lasthop_scenario::roaming::{
    Handoff, Policy, RadioCell, Roaming, StateMoves, Stay, Stays, Tour,
};
use lasthop_scenario::{HostSide, Scenario, Stage, StageKind};

use super::Dice;

/// The scenario of `case` with several copies of the stages behind its wired part, in cells that the hosts on the right
/// visit in all possible ways.
pub fn roaming(case: u64) -> Scenario {
    let mut scenario = Dice::new(case).scenario();
    let mut dice = Dice(Stream::new(case, "cells"));
    let wired = scenario.path.iter().position(|stage| matches!(stage.kind, StageKind::Agent(_)));
    let cells = (0..1 + dice.below(4)).map(|i| cell(&mut dice, i)).collect::<Vec<_>>();
    scenario.path.truncate(wired.unwrap_or(1));
    let gap = dice.one_in(2);
    let between = Span::millis(dice.pick(&[0, 1, 80, 1_000]));
    let handoff = Handoff {
        gap: if gap { between } else { Span::ZERO },
        overlap: if gap { Span::ZERO } else { between },
        announced: dice.one_in(2),
        packets: dice.pick(&[Policy::Drop, Policy::Keep, Policy::Forward, Policy::Multicast]),
        buffer: dice.pick(&[1, 10, 500]),
        reroute: Span::millis(dice.pick(&[0, 0, 30, 500, 10_000])),
        state: dice.one_in(2).then(|| StateMoves {
            delay: Span::millis(dice.pick(&[0, 10, 2_000])),
            rate: Rate::from_bps(dice.pick(&[0, 100_000, 10_000_000])),
        }),
    };
    let right = scenario.hosts.iter().enumerate().filter(|(_, h)| h.side == HostSide::Right);
    let tours = right.map(|(host, _)| tour(&mut dice, host, cells.len(), between)).collect();
    for host in &mut scenario.hosts {
        host.tcp.fast_rtx_handoff = dice.one_in(3);
        // Hosts without a cell for a long time must not abort.
        host.tcp.max_retries = host.tcp.max_retries.max(8);
    }
    // Hosts move as long as a run lasts.
    scenario.horizon = scenario.horizon.min(Span::secs(2_000));
    scenario.roaming = Some(Box::new(Roaming { cells, tours, handoff }));
    scenario
}

fn cell(dice: &mut Dice, number: u64) -> RadioCell {
    let mut kinds = Vec::new();
    let backhaul = dice.one_in(2);
    if backhaul {
        kinds.push(StageKind::Link(dice.line()));
    }
    if dice.one_in(2) {
        kinds.push(StageKind::Agent(dice.agent()));
    }
    kinds.push(if dice.one_in(5) {
        StageKind::Link(dice.line())
    } else {
        StageKind::Radio(dice.radio())
    });
    let path = kinds.into_iter().enumerate();
    let path = path.map(|(i, kind)| Stage { name: format!("cell{number}-stage{i}"), kind });
    RadioCell { name: format!("cell{number}"), path: path.collect(), base: usize::from(backhaul) }
}

fn tour(dice: &mut Dice, host: usize, cells: usize, between: Span) -> Tour {
    let time = |dice: &mut Dice| between + Span::millis(dice.pick(&[50, 300, 1_000, 8_000]));
    let stays = match dice.below(4) {
        0 => Stays::Every(time(dice)),
        1 => Stays::Dwell(time(dice)),
        _ => {
            let mut from = Span::millis(dice.pick(&[0, 0, 700]));
            let mut list = Vec::new();
            for _ in 0..1 + dice.below(12) {
                let cell = dice.below(cells as u64) as usize;
                let stays = time(dice);
                let until = dice.one_in(4).then(|| from + Span(1 + dice.below(stays.0)));
                list.push(Stay { cell, from, until });
                from = from + stays;
            }
            // The last visit has no end, or nothing would ever arrive.
            list.iter_mut().last().expect("a visit").until = None;
            Stays::List(list)
        }
    };
    Tour { host, cells: (0..cells).collect(), stays }
}
