//! Congestion controls written in Python.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lasthop_proto::tcp::config::{CustomCongestionControl, TcpConfig, Variant};
use lasthop_proto::tcp::sender::Window;
use lasthop_proto::tcp::sender::congestion_control::{
    Acked, CongestionControl, Loss, Repair, Sample, SampleUse,
};
use lasthop_proto::units::{Rate, Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error;

/// The state of a sender after an ACK or a detected loss. Documented in `lasthop.Ack`.
#[pyclass(frozen, get_all, module = "lasthop._lasthop")]
pub struct Ack {
    /// Seconds since the start of the run.
    now: f64,
    /// Bytes by which the left edge moved; zero for a loss.
    acked: u64,
    /// The measured round trip in seconds.
    rtt: Option<f64>,
    /// The shortest round trip of the connection in seconds.
    min_rtt: Option<f64>,
    /// The smoothed round trip in seconds.
    srtt: Option<f64>,
    /// The congestion window, in bytes.
    cwnd: u32,
    /// The slow-start threshold, in bytes.
    ssthresh: u32,
    /// Unacknowledged bytes.
    flight: u64,
    /// Bytes of a full segment.
    mss: u32,
    /// Segments of the first window.
    initial_window: u32,
    /// Bytes in the network after this ACK, without those that are sacked or lost.
    in_flight: u64,
    /// The same before this ACK.
    prior_in_flight: u64,
    /// Newly delivered bytes, cumulatively or selectively acknowledged.
    delivered: u64,
    /// Bytes newly found to be lost.
    lost: u32,
    /// Bytes newly reported as marked.
    marked: u32,
    /// Bytes delivered since the connection opened.
    total_delivered: u64,
    /// Bytes lost since the connection opened.
    total_lost: u64,
    /// Bytes reported as marked since the connection opened.
    total_marked: u64,
    /// The measured delivery rate in bytes per second.
    delivery_rate: Option<f64>,
    /// Delivered bytes when the segment was sent that the delivery rate is measured by.
    prior_delivered: Option<u64>,
    /// The application had too little to send, so the path may be faster than the delivery rate.
    app_limited: bool,
    /// The pacing rate of this control in bytes per second.
    pacing_rate: Option<f64>,
    /// `open`, `recovery` or `loss`.
    state: &'static str,
}

/// Methods that a class may override.
#[derive(Clone, Copy, Debug)]
struct Overrides {
    control: bool,
    start: bool,
    mark: bool,
    undo: bool,
    restart: bool,
}

impl Overrides {
    fn of(class: &Bound<'_, PyAny>) -> PyResult<Overrides> {
        let base = class.py().import("lasthop.control")?.getattr("CongestionControl")?;
        let differs =
            |name: &str| -> PyResult<bool> { Ok(!class.getattr(name)?.is(&base.getattr(name)?)) };
        Ok(Overrides {
            control: differs("control")?,
            start: differs("on_start")?,
            mark: differs("on_mark")?,
            undo: differs("on_undo")?,
            restart: differs("on_restart")?,
        })
    }
}

/// A user's class, and the first exception that it raised.
pub struct PythonControl {
    class: Py<PyAny>,
    overrides: Overrides,
    scalable: bool,
    fault: Mutex<Option<PyErr>>,
    failed: AtomicBool,
}

impl PythonControl {
    pub fn new(class: Bound<'_, PyAny>) -> PyResult<PythonControl> {
        Ok(PythonControl {
            overrides: Overrides::of(&class)?,
            scalable: class.getattr("scalable")?.is_truthy()?,
            class: class.unbind(),
            fault: Mutex::new(None),
            failed: AtomicBool::new(false),
        })
    }

    /// Fails if the control needs samples and a sender with this configuration has none.
    pub fn suits(&self, py: Python<'_>, config: &TcpConfig) -> PyResult<()> {
        if !self.overrides.control || config.variant == Variant::Rack {
            return Ok(());
        }
        let name = self.class.bind(py).getattr("__qualname__")?;
        Err(error::argument(
            py,
            &format!("`{name}.control` needs delivery rates, which this sender does not measure"),
            "set a sender that records its segments: `.set(\"tcp\", \"rack\")`, or `\"bbr\"` for a paced one",
        ))
    }

    /// Fails if the control needs samples: without SACK at `host` Reno would replace it.
    pub fn needs_sack(&self, py: Python<'_>, host: &str) -> PyResult<()> {
        if !self.overrides.control {
            return Ok(());
        }
        let name = self.class.bind(py).getattr("__qualname__")?;
        Err(error::argument(
            py,
            &format!("`{name}.control` needs delivery rates, and the host `{host}` has no SACK"),
            &format!(
                "set `.set(\"host.{host}.sack\", True)`, or a sender for all hosts: `.set(\"tcp\", \"rack\")`"
            ),
        ))
    }

    /// Creates an object of the class for each connection.
    pub fn maker(
        self: Arc<PythonControl>,
    ) -> impl Fn(&TcpConfig) -> Box<dyn CustomCongestionControl> + Send + Sync + 'static {
        move |config| Box::new(Rule::new(self.clone(), config))
    }

    /// An exception was raised, so no run needs to finish.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// The first exception; later calls return `None`.
    pub fn take_fault(&self) -> Option<PyErr> {
        self.failed.store(false, Ordering::Relaxed);
        self.fault.lock().ok()?.take()
    }

    fn fail(&self, error: PyErr) {
        if let Ok(mut fault) = self.fault.lock() {
            fault.get_or_insert(error);
        }
        self.failed.store(true, Ordering::Relaxed);
    }
}

/// The bound methods of one object.
struct Methods {
    on_ack: Py<PyAny>,
    on_loss: Py<PyAny>,
    control: Py<PyAny>,
    on_start: Py<PyAny>,
    on_mark: Py<PyAny>,
    on_undo: Py<PyAny>,
    on_restart: Py<PyAny>,
}

/// Measurements of a connection.
#[derive(Clone, Debug, Default)]
struct Measured {
    sample: Option<Sample>,
    una: u64,
    min_rtt: Option<Span>,
    srtt: Option<Span>,
    lost: u64,
    marked: u64,
}

impl Measured {
    fn round_trip(&mut self, rtt: Span) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.srtt = Some(self.srtt.map_or(rtt, |srtt| Span((7 * srtt.0 + rtt.0) / 8)));
    }

    /// Bytes by which the left edge moved since the last call.
    fn advance(&mut self, w: &Window) -> u64 {
        let acked = w.una.saturating_sub(self.una);
        self.una = w.una;
        acked
    }
}

/// A connection's congestion control. After an exception it keeps the window.
#[derive(Clone)]
struct Rule {
    brought: Arc<PythonControl>,
    methods: Option<Arc<Methods>>,
    measured: Measured,
    pacing: Option<Rate>,
    initial_window: u32,
    paced: bool,
    records: bool,
}

impl Rule {
    fn new(brought: Arc<PythonControl>, config: &TcpConfig) -> Rule {
        let made = Python::attach(|py| {
            brought.suits(py, config)?;
            let object = brought.class.bind(py).call0()?;
            let method = |name| object.getattr(name).map(Bound::unbind);
            Ok(Arc::new(Methods {
                on_ack: method("on_ack")?,
                on_loss: method("on_loss")?,
                control: method("control")?,
                on_start: method("on_start")?,
                on_mark: method("on_mark")?,
                on_undo: method("on_undo")?,
                on_restart: method("on_restart")?,
            }))
        });
        let methods = made.map_err(|error| brought.fail(error)).ok();
        Rule {
            brought,
            methods,
            measured: Measured::default(),
            pacing: None,
            initial_window: config.initial_window,
            paced: config.pacing,
            records: config.variant == Variant::Rack,
        }
    }

    /// The state after an event; `news` is the sample that this event brings.
    fn state(&self, now: Time, w: &Window, acked: u64, rtt: Option<Span>, news: bool) -> Ack {
        let seconds = |span: Span| span.as_secs_f64();
        let last = self.measured.sample.as_ref();
        let sample = last.filter(|_| news);
        let rate = last.and_then(|sample| sample.rate);
        let flight = w.max.saturating_sub(w.una);
        Ack {
            now: now.as_secs_f64(),
            acked,
            rtt: rtt.map(seconds),
            min_rtt: self.measured.min_rtt.map(seconds),
            srtt: self.measured.srtt.map(seconds),
            cwnd: w.cwnd,
            ssthresh: w.ssthresh,
            flight,
            mss: w.mss,
            initial_window: self.initial_window,
            in_flight: last.map_or(flight, |sample| sample.pipe.1),
            prior_in_flight: last.map_or(flight, |sample| sample.pipe.0),
            delivered: sample.map_or(acked, |sample| sample.delivered.into()),
            lost: sample.map_or(0, |sample| sample.lost),
            marked: sample.map_or(0, |sample| sample.ce_bytes),
            total_delivered: last.map_or(w.una, |sample| sample.total),
            total_lost: self.measured.lost,
            total_marked: self.measured.marked,
            delivery_rate: rate
                .map(|rate| rate.delivered as f64 / rate.interval.as_secs_f64().max(1e-9)),
            prior_delivered: rate.map(|rate| rate.prior),
            app_limited: rate.is_some_and(|rate| rate.app_limited),
            pacing_rate: self.pacing.map(|rate| rate.bps() as f64 / 8.0),
            state: match last.map(|sample| sample.repair) {
                None | Some(Repair::None) => "open",
                Some(Repair::Recovery) => "recovery",
                Some(Repair::Timeout) => "loss",
            },
        }
    }

    /// The result of a method; `None` after an exception.
    fn call<T>(&self, call: impl FnOnce(Python<'_>, &Methods) -> PyResult<T>) -> Option<T> {
        let methods = self.methods.as_ref().filter(|_| !self.brought.failed())?;
        let answer = Python::attach(|py| call(py, methods));
        answer.map_err(|error| self.brought.fail(error)).ok()
    }

    /// Sets the window and the pacing rate.
    fn set(&mut self, window: &mut Window, cwnd: u32, rate: Option<f64>) {
        window.cwnd = cwnd.clamp(window.mss, window.largest.max(window.mss));
        if let Some(rate) = rate {
            self.pacing = pacing(rate);
        }
    }
}

fn pacing(rate: f64) -> Option<Rate> {
    Rate::from_bps(((8.0 * rate) as u64).max(1))
}

/// A window in bytes.
fn bytes(answer: f64) -> PyResult<u32> {
    if answer.is_finite() && answer >= 0.0 {
        return Ok(answer as u32);
    }
    let message = format!("a window of {answer} bytes; it must be a number that is not negative");
    Err(PyValueError::new_err(message))
}

/// A pacing rate in bytes per second, for a sender that is `paced`.
fn rate(answer: Option<f64>, paced: bool) -> PyResult<Option<f64>> {
    let Some(rate) = answer else { return Ok(None) };
    if !(rate.is_finite() && rate > 0.0) {
        let message = format!("a pacing rate of {rate} bytes per second; it must be positive");
        return Err(PyValueError::new_err(message));
    }
    if !paced {
        return Err(PyValueError::new_err(
            "a pacing rate for a sender that does not pace; set it: `.set(\"pacing\", True)`",
        ));
    }
    Ok(Some(rate))
}

impl CongestionControl for Rule {
    fn opened(&mut self, now: Time, _: &Window, rtt: Span) {
        self.measured.round_trip(rtt);
        if self.brought.overrides.start {
            let at = (now.as_secs_f64(), rtt.as_secs_f64());
            self.call(|py, methods| methods.on_start.bind(py).call1(at).map(drop));
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Acked) {
        self.measured.advance(window);
        let state = self.state(ack.now, window, ack.bytes.into(), ack.rtt, true);
        let answer =
            self.call(|py, methods| bytes(methods.on_ack.bind(py).call1((state,))?.extract()?));
        if let Some(cwnd) = answer {
            self.set(window, cwnd, None);
        }
    }

    fn on_round_trip(&mut self, _: Time, _: &mut Window, rtt: Span) {
        self.measured.round_trip(rtt);
    }

    fn ssthresh_after_loss(&mut self, now: Time, window: &Window, loss: Loss) -> u32 {
        let (state, timeout) = (self.state(now, window, 0, None, false), loss == Loss::Timeout);
        let answer = self.call(|py, methods| {
            bytes(methods.on_loss.bind(py).call1((state, timeout))?.extract()?)
        });
        answer.map_or_else(|| window.half(loss), |bytes| bytes.max(window.mss))
    }

    fn undone(&mut self, window: &mut Window, prior: u32) {
        let answer = self.brought.overrides.undo.then(|| {
            let now = self.measured.sample.map_or(Time::ZERO, |sample| sample.now);
            let state = self.state(now, window, 0, None, false);
            self.call(|py, methods| {
                let answer: Option<f64> =
                    methods.on_undo.bind(py).call1((state, prior))?.extract()?;
                answer.map(bytes).transpose()
            })
        });
        match answer.flatten().flatten() {
            Some(cwnd) => self.set(window, cwnd, None),
            None if self.brought.overrides.control => {}
            None => window.cwnd = window.cwnd.max(prior),
        }
    }

    fn ssthresh_after_mark(&mut self, now: Time, window: &Window) -> Option<u32> {
        if !self.brought.overrides.mark {
            return Some(self.ssthresh_after_loss(now, window, Loss::Detected));
        }
        let state = self.state(now, window, 0, None, false);
        let answer = self.call(|py, methods| {
            let answer: Option<f64> = methods.on_mark.bind(py).call1((state,))?.extract()?;
            answer.map(bytes).transpose()
        });
        answer.flatten().map(|bytes| bytes.max(window.mss))
    }

    fn scalable(&self) -> bool {
        self.brought.scalable
    }

    fn sample_use(&self) -> SampleUse {
        match (self.brought.overrides.control, self.records) {
            (true, _) => SampleUse::SetsWindow,
            (false, true) => SampleUse::Optional,
            (false, false) => SampleUse::Ignored,
        }
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        self.measured.lost += u64::from(sample.lost);
        self.measured.marked += u64::from(sample.ce_bytes);
        self.measured.sample = Some(*sample);
        if !self.brought.overrides.control {
            return;
        }
        let acked = self.measured.advance(window);
        let state = self.state(sample.now, window, acked, sample.rtt, true);
        let paced = self.paced;
        let answer = self.call(|py, methods| {
            let answer = methods.control.bind(py).call1((state,))?;
            if answer.is_instance_of::<PyTuple>() {
                let (cwnd, pace) = answer.extract()?;
                return Ok((bytes(cwnd)?, rate(pace, paced)?));
            }
            Ok((bytes(answer.extract()?)?, None))
        });
        if let Some((cwnd, rate)) = answer {
            self.set(window, cwnd, rate);
        }
    }

    fn restart(&mut self, now: Time, idle: bool) {
        if !self.brought.overrides.restart {
            return;
        }
        let (now, paced) = (now.as_secs_f64(), self.paced);
        let answer = self.call(|py, methods| {
            rate(methods.on_restart.bind(py).call1((now, idle))?.extract()?, paced)
        });
        if let Some(Some(rate)) = answer {
            self.pacing = pacing(rate);
        }
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }
}

impl CustomCongestionControl for Rule {
    fn boxed_clone(&self) -> Box<dyn CustomCongestionControl> {
        Box::new(self.clone())
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rule in Python")
    }
}
