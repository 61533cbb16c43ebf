//! A run in steps, whose caller controls the sender's window or rate.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lasthop_observe::Sink;
use lasthop_proto::event::{Event, EventKind, Interest, Op, Tcb, TcpKind};
use lasthop_proto::tcp::config::{Custom, CustomCongestionControl};
use lasthop_proto::tcp::sender::Window;
use lasthop_proto::tcp::sender::congestion_control::{
    Acked, CongestionControl, Loss, Sample, SampleUse,
};
use lasthop_proto::units::{Rate, Span, Time};
use lasthop_scenario::Scenario;
use lasthop_sim::Reason;
use pyo3::prelude::*;

use crate::error;
use crate::plan::Plan;

/// The controlled values, in effect from the next ACK on: window in bytes, or rate in bytes per second; zero is unset.
#[derive(Clone, Debug, Default)]
struct ControlInput {
    window: Arc<AtomicU64>,
    rate: Arc<AtomicU64>,
}

/// A sender with an externally controlled window, also during recovery.
#[derive(Clone, Debug, Default)]
struct ExternalControl(ControlInput);

impl CongestionControl for ExternalControl {
    fn on_ack(&mut self, _: &mut Window, _: &Acked) {}

    fn sample_use(&self) -> SampleUse {
        SampleUse::SetsWindow
    }

    fn on_sample(&mut self, w: &mut Window, sample: &Sample) {
        let rate = self.0.rate.load(Ordering::Relaxed);
        let target = match (rate, sample.rtt) {
            (0, _) => self.0.window.load(Ordering::Relaxed),
            // Twice the flight of the rate: the rate decides, and lost packets do not stop it.
            (rate, Some(rtt)) => (2.0 * rate as f64 * rtt.as_secs_f64()) as u64,
            (_, None) => 0,
        };
        if target > 0 {
            let least = if rate > 0 { 4 * w.mss } else { w.mss };
            w.cwnd = (target.min(u32::MAX.into()) as u32).clamp(least, w.largest.max(least));
        }
    }

    fn ssthresh_after_loss(&mut self, _: Time, w: &Window, _: Loss) -> u32 {
        w.ssthresh
    }

    fn pacing(&self) -> Option<Rate> {
        Rate::from_bps(self.0.rate.load(Ordering::Relaxed).saturating_mul(8))
    }
}

impl CustomCongestionControl for ExternalControl {
    fn boxed_clone(&self) -> Box<dyn CustomCongestionControl> {
        Box::new(self.clone())
    }
}

/// Counts since the last step.
#[derive(Default)]
struct Counts {
    resent: u64,
    timeouts: u64,
}

impl Sink for Counts {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Packet { op: Op::Originated(cause), packet, .. }
                if cause.is_host_retransmission() =>
            {
                self.resent += u64::from(packet.body.len());
            }
            EventKind::Tcp(tcp) if tcp.kind == TcpKind::Timeout => self.timeouts += 1,
            _ => {}
        }
    }
}

struct State {
    session: lasthop_sim::Session<Scenario>,
    counts: Counts,
    una: u64,
    delivered: u64,
}

/// The observation after a step: bytes acknowledged, delivered and retransmitted in it, timeouts in it; then smoothed
/// round trip and its variation in seconds, bytes in flight, congestion window, and whether recovery is in progress.
type Observation = (f64, f64, f64, f64, f64, f64, f64, f64, f64);

/// A run of one cell of a plan, made in steps.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub struct Session {
    state: Mutex<State>,
    wheel: ControlInput,
}

#[pymethods]
impl Session {
    /// Before the first event. The sender of the first transfer is controlled externally if `steered`.
    #[new]
    fn new(
        py: Python<'_>,
        plan: &Plan,
        cell: usize,
        seed: u64,
        steered: bool,
    ) -> PyResult<Session> {
        let mut scenario = plan.scenario(py, cell)?.clone();
        let wheel = ControlInput::default();
        let Some(transfer) = scenario.transfers.first() else {
            return Err(error::argument(
                py,
                "nothing is transferred",
                "a scenario for a sender has a transfer",
            ));
        };
        if steered {
            let inner = wheel.clone();
            let make = move |_: &_| {
                Box::new(ExternalControl(inner.clone())) as Box<dyn CustomCongestionControl>
            };
            scenario.hosts[transfer.from].tcp.custom =
                Some(Box::new(Custom::new("outside", "", make)));
        }
        let counts = Counts::default();
        let session = lasthop_sim::Session::new(scenario, seed, &counts);
        if session.control_block(0).is_none() {
            return Err(error::argument(
                py,
                "the first transfer has no connection of its own",
                "give a bulk transfer first, such as `transfer = { from = \"fixed\", to = \"mobile\" }`",
            ));
        }
        let state = State { session, counts, una: 0, delivered: 0 };
        Ok(Session { state: Mutex::new(state), wheel })
    }

    /// Sets the window in bytes.
    fn set_window(&self, bytes: f64) {
        self.wheel.window.store(bytes.max(1.0) as u64, Ordering::Relaxed);
    }

    /// Sets the rate in bytes per second.
    fn set_rate(&self, rate: f64) {
        self.wheel.rate.store(rate.max(1.0) as u64, Ordering::Relaxed);
    }

    /// Advances the run by `nanoseconds`. Returns the observation, and the state of the transfer: `""` while it
    /// continues, else `complete`, `aborted`, or the reason of the run's end.
    fn step(&self, py: Python<'_>, nanoseconds: u64) -> PyResult<(Observation, &'static str)> {
        py.detach(|| {
            let mut state =
                self.state.lock().map_err(|_| error::value("this session has failed"))?;
            Ok(state.step(Span(nanoseconds)))
        })
    }

    /// Seconds since the start.
    #[getter]
    fn now(&self) -> PyResult<f64> {
        let state = self.state.lock().map_err(|_| error::value("this session has failed"))?;
        Ok(state.session.now().as_secs_f64())
    }
}

impl State {
    fn step(&mut self, span: Span) -> (Observation, &'static str) {
        let until = self.session.now() + span;
        self.session.run_until(until, &mut self.counts);
        let counts = core::mem::take(&mut self.counts);
        let Some((tcb, end)) = self.session.control_block(0).zip(self.session.transfer(0)) else {
            return (Observation::default(), "idle");
        };
        let acked = tcb.snd_una.saturating_sub(self.una);
        let delivered = end.delivered.saturating_sub(self.delivered);
        (self.una, self.delivered) = (tcb.snd_una, end.delivered);
        let over = match (end.complete, end.aborted, self.session.ended()) {
            (true, ..) => "complete",
            (_, true, _) => "aborted",
            (.., None) => "",
            (.., Some(Reason::Finished)) => "finished",
            (.., Some(Reason::Horizon)) => "horizon",
            (.., Some(Reason::Idle)) => "idle",
            (.., Some(Reason::Stuck)) => "stuck",
        };
        (observation(&tcb, acked, delivered, &counts), over)
    }
}

fn observation(tcb: &Tcb, acked: u64, delivered: u64, counts: &Counts) -> Observation {
    (
        acked as f64,
        delivered as f64,
        counts.resent as f64,
        counts.timeouts as f64,
        tcb.srtt.as_secs_f64(),
        tcb.rttvar.as_secs_f64(),
        tcb.snd_max.saturating_sub(tcb.snd_una) as f64,
        f64::from(tcb.cwnd),
        f64::from(u8::from(tcb.in_recovery)),
    )
}
