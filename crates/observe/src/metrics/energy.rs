//! Energy consumption of battery-powered hosts.

use lasthop_proto::air::{AirEvent, Station};
use lasthop_proto::energy::{Antenna, Meter, RadioState, Work};
use lasthop_proto::machine::StageId;
use lasthop_proto::units::Time;
use lasthop_proto::wire::Addr;
use serde::{Deserialize, Serialize};

use crate::layout::PoweredInfo;

/// Energy consumption of a battery-powered host, and its extrapolation to a full battery. Energies are in
/// joules, times in seconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct NodeEnergy {
    /// The host.
    pub host: String,
    /// Name of its hardware.
    pub hardware: String,
    /// Capacity of the full battery.
    pub capacity_j: f64,
    /// Consumption by consumer.
    pub spent: Spent,
    /// Sum of the consumption.
    pub spent_j: f64,
    /// Time in which the radio transmitted.
    pub transmit_s: f64,
    /// Time in which it received a frame and did not transmit.
    pub receive_s: f64,
    /// Time in which it slept.
    pub doze_s: f64,
    /// Time in which it listened to an idle channel.
    pub idle_s: f64,
    /// Instructions of the stack, in units of the cost table.
    pub instructions: f64,
    /// Payload that this host sent and the other end delivered, bytes.
    pub sent: u64,
    /// Payload delivered at this host, bytes.
    pub received: u64,
    /// Lifetime of the full battery: the time when it was empty, or the extrapolation of the mean power; 0
    /// without consumption.
    pub lifetime_s: f64,
    /// Whether the battery was empty before the end of the run.
    pub emptied: bool,
    /// Sent and received payload per joule.
    pub bytes_per_joule: f64,
    /// Sent and received payload per full battery.
    pub bytes_per_battery: f64,
}

/// Consumption in a run, joules.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Constant consumption of the host.
    pub base: f64,
    /// Radio while asleep.
    pub doze: f64,
    /// Radio while idle.
    pub idle: f64,
    /// Radio while receiving.
    pub receive: f64,
    /// Radio while transmitting.
    pub transmit: f64,
    /// Work of the stack.
    pub processing: f64,
}

impl NodeEnergy {
    /// Mean power during the lifetime, watts.
    pub fn mean_power_w(&self) -> f64 {
        if self.lifetime_s > 0.0 { self.capacity_j / self.lifetime_s } else { 0.0 }
    }
}

/// One host during a run.
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

    /// Records `bytes` bytes from `from`, delivered at the host at `stage`.
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
        // Ratio of the full battery to the consumption.
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
