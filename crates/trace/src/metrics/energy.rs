//! What a host on a battery has spent.

use lasthop_proto::air::{AirEvent, Station};
use lasthop_proto::energy::{Antenna, Meter, RadioState, Work};
use lasthop_proto::machine::StageId;
use lasthop_proto::units::Time;
use lasthop_proto::wire::Addr;
use serde::{Deserialize, Serialize};

use crate::layout::PoweredInfo;

/// A host that runs on a battery: what it has spent, and what that makes of a full one. Energies in joules, times in
/// seconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct NodeEnergy {
    /// The host.
    pub host: String,
    /// What it is made of.
    pub hardware: String,
    /// What the full battery holds.
    pub capacity_j: f64,
    /// What was drawn, by what drew it.
    pub spent: Spent,
    /// The sum of these.
    pub spent_j: f64,
    /// For how long the radio sent.
    pub transmit_s: f64,
    /// For how long it heard a frame and did not send.
    pub receive_s: f64,
    /// For how long it slept.
    pub doze_s: f64,
    /// For how long it listened and nothing was on the air.
    pub idle_s: f64,
    /// Instructions of the stack, in those of the table of costs.
    pub instructions: f64,
    /// Payload that this host sent and the other end delivered, in bytes.
    pub sent: u64,
    /// Payload that was delivered at this host, in bytes.
    pub received: u64,
    /// How long the full battery lasts: when it was empty, or at the mean power of the run; 0 if nothing was drawn.
    pub lifetime_s: f64,
    /// Whether the battery was empty before the run ended.
    pub emptied: bool,
    /// Payload sent and received for each joule.
    pub bytes_per_joule: f64,
    /// Payload sent and received with a full battery.
    pub bytes_per_battery: f64,
}

/// What was drawn in a run, in joules.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// By the host, whatever happened.
    pub base: f64,
    /// By the radio while it slept.
    pub doze: f64,
    /// By the radio while it listened in vain.
    pub idle: f64,
    /// By the radio while it heard a frame.
    pub receive: f64,
    /// By the radio while it sent.
    pub transmit: f64,
    /// By the work of the stack.
    pub processing: f64,
}

impl NodeEnergy {
    /// Mean power while it lasted, in watts.
    pub fn mean_power_w(&self) -> f64 {
        if self.lifetime_s > 0.0 { self.capacity_j / self.lifetime_s } else { 0.0 }
    }
}

/// One host while a run goes on.
#[derive(Clone)]
pub(super) struct Node {
    info: PoweredInfo,
    meter: Meter,
}

impl Node {
    pub(super) fn new(info: &PoweredInfo) -> Node {
        let antenna = info.radio.map(|(_, antenna)| antenna);
        let meter = Meter::new(info.hardware.clone(), antenna);
        Node { info: info.clone(), meter }
    }

    pub(super) fn air(&mut self, at: Time, stage: StageId, event: &AirEvent) {
        if self.info.radio.is_some_and(|(radio, _)| radio == stage) {
            self.meter.air(at, event);
        }
    }

    pub(super) fn doze(&mut self, at: Time, stage: StageId, station: Station, asleep: bool) {
        let own =
            |(radio, antenna): (StageId, Antenna)| radio == stage && antenna.station == station;
        if self.info.radio.is_some_and(own) {
            self.meter.doze(at, asleep);
        }
    }

    pub(super) fn work(&mut self, at: Time, stage: StageId, work: &Work) {
        if self.info.host == stage {
            self.meter.work(at, work);
        }
    }

    /// `bytes` from `from` have been delivered at the host at `stage`.
    pub(super) fn delivered(&mut self, at: Time, stage: StageId, from: Addr, bytes: u64) {
        if self.info.host == stage {
            self.meter.received(at, bytes);
        } else if self.info.addr == from {
            self.meter.sent(at, bytes);
        }
    }

    pub(super) fn metrics(&self, host: &str, end: Time) -> NodeEnergy {
        let (battery, totals) = self.meter.finish(end);
        let joules = |state| battery.by_radio(state);
        let seconds = |state| battery.time(state).as_secs_f64();
        let spent = Spent {
            base: battery.base(),
            doze: joules(RadioState::Doze),
            idle: joules(RadioState::Idle),
            receive: joules(RadioState::Receive),
            transmit: joules(RadioState::Transmit),
            processing: battery.processing(),
        };
        let (spent_j, capacity_j) = (battery.spent(), battery.hardware().capacity.get());
        let elapsed_s = battery.elapsed().as_secs_f64();
        let bytes = (totals.sent + totals.received) as f64;
        // What a full battery is to what was drawn.
        let times = match battery.empty() {
            Some(_) => 1.0,
            None if spent_j > 0.0 => capacity_j / spent_j,
            None => 0.0,
        };
        NodeEnergy {
            host: host.to_owned(),
            hardware: battery.hardware().name.clone(),
            capacity_j,
            spent,
            spent_j,
            transmit_s: seconds(RadioState::Transmit),
            receive_s: seconds(RadioState::Receive),
            doze_s: seconds(RadioState::Doze),
            idle_s: seconds(RadioState::Idle),
            instructions: totals.instructions,
            sent: totals.sent,
            received: totals.received,
            lifetime_s: elapsed_s * times,
            emptied: battery.empty().is_some(),
            bytes_per_joule: if spent_j > 0.0 { bytes / spent_j } else { 0.0 },
            bytes_per_battery: bytes * times,
        }
    }
}
