//! What theory allows on the path of a scenario: see `lasthop_lab::bounds`.

use lasthop_lab::RunResult;
use lasthop_lab::bounds::{TcpPath, capacity, mathis, pftk};
use lasthop_proto::tcp::config::{Clock, DelayedAck};
use lasthop_proto::units::Rate;
use lasthop_scenario::{HostSide, Scenario, StageKind};
use lasthop_trace::layout::Role;
use serde::Serialize;

/// Bytes of IP and TCP headers without options.
const HEADERS: f64 = 40.0;

/// What theory allows, in bytes of payload per second; nothing where a formula does not hold.
#[derive(Clone, Debug, Serialize)]
pub struct Bounds {
    /// Share of the packets with data that the path lost or damaged under the baseline.
    pub loss: f64,
    /// Round-trip time of a full segment without queues, in seconds.
    pub rtt_s: f64,
    /// The slowest stage less the losses: no scheme can deliver more.
    pub capacity: Option<f64>,
    /// TCP end to end by Mathis and others, capacity permitting.
    pub mathis: Option<f64>,
    /// TCP end to end by Padhye and others (PFTK), capacity permitting.
    pub pftk: Option<f64>,
}

impl Bounds {
    /// The bounds of `scenario`, with the losses that `runs` of it met.
    pub fn of(scenario: &Scenario, runs: &[RunResult]) -> Bounds {
        let Some(transfer) = scenario.transfers.first() else {
            return Bounds { loss: 0.0, rtt_s: 0.0, capacity: None, mathis: None, pftk: None };
        };
        let (from, to) = (&scenario.hosts[transfer.from], &scenario.hosts[transfer.to]);
        let rightward = from.side == HostSide::Left;
        let mss = f64::from(from.tcp.mss.min(to.tcp.mss));
        let packet = mss + HEADERS;
        let mut rtt = 0.0;
        let mut slowest: Option<f64> = None;
        let mut survive = 1.0;
        for stage in &scenario.path {
            let mut pass = |bytes: f64, rate: Option<Rate>, overhead: f64, is_data: bool| {
                let Some(rate) = rate else { return };
                let seconds = overhead + bytes * 8.0 / rate.bps() as f64;
                rtt += seconds;
                if is_data {
                    slowest = Some(slowest.unwrap_or(0.0).max(seconds));
                }
            };
            let delay = match &stage.kind {
                StageKind::Link(line) => {
                    let (there, back) = ends(rightward, line.rate_right, line.rate_left);
                    pass(packet + f64::from(line.framing), there, 0.0, true);
                    pass(HEADERS + f64::from(line.framing), back, 0.0, false);
                    line.delay
                }
                StageKind::Serial(serial) => {
                    let (there, back) =
                        ends(rightward, serial.line.rate_right, serial.line.rate_left);
                    pass(packet + f64::from(serial.line.framing), there, 0.0, true);
                    pass(HEADERS + f64::from(serial.line.framing), back, 0.0, false);
                    survive *= 1.0 - serial.frame_loss.get();
                    serial.line.delay
                }
                StageKind::Radio(radio) => {
                    let overhead = radio.radio.overhead.as_secs_f64();
                    pass(packet, Some(radio.radio.rate), overhead, true);
                    pass(HEADERS, Some(radio.radio.rate), overhead, false);
                    radio.radio.delay
                }
                StageKind::Cross(cross) => {
                    survive *= 1.0 - cross.loss.get();
                    continue;
                }
                StageKind::Agent(_) => continue,
            };
            rtt += 2.0 * delay.as_secs_f64();
        }
        let (sent, damaged) = runs
            .iter()
            .flat_map(|run| &run.metrics.stages)
            .filter(|stage| stage.role == Role::Radio)
            .fold((0, 0), |(sent, damaged), stage| {
                (sent + stage.data_packets, damaged + stage.damaged_data)
            });
        if sent > 0 {
            survive *= 1.0 - damaged as f64 / sent as f64;
        }
        let loss = 1.0 - survive;
        let rate = slowest.filter(|s| *s > 0.0).map(|seconds| packet * 8.0 / seconds);
        let capacity = rate.map(|rate| capacity(rate, mss, packet, loss));
        let window = f64::from(from.tcp.send_buffer.min(to.tcp.recv_buffer));
        let window = if from.tcp.window_scale && to.tcp.window_scale {
            window
        } else {
            window.min(65_535.0)
        };
        let tick = match from.tcp.clock {
            Clock::Ticks { slow, .. } => slow.as_secs_f64(),
            Clock::Fine { granularity } => granularity.as_secs_f64(),
        };
        let path = TcpPath {
            mss,
            rtt,
            t0: from.tcp.rto_min.as_secs_f64().max(rtt + tick),
            b: match to.tcp.delayed_ack.every {
                // Where time alone counts, an ACK goes at the latest for half of the window.
                DelayedAck::BY_TIME => (window / mss / 2.0).floor().max(1.0),
                every => f64::from(every.max(1)),
            },
            w_max: (window / mss).floor().max(1.0),
        };
        let flows: u32 = scenario.transfers.iter().map(|transfer| transfer.count).sum();
        let limited = |rate: f64| {
            let all = rate.min(path.w_max * mss / rtt) * f64::from(flows);
            (rtt > 0.0).then(|| capacity.map_or(all, |most| all.min(most)))
        };
        Bounds {
            loss,
            rtt_s: rtt,
            capacity,
            mathis: limited(mathis(&path, loss)),
            pftk: limited(pftk(&path, loss)),
        }
    }
}

fn ends<T>(rightward: bool, right: T, left: T) -> (T, T) {
    if rightward { (right, left) } else { (left, right) }
}
