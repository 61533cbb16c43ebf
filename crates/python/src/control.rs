//! A congestion control that is written in Python.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lasthop_proto::tcp::config::{CustomGrowth, TcpConfig};
use lasthop_proto::tcp::sender::Window;
use lasthop_proto::tcp::sender::growth::{Acked, Growth, Loss};
use lasthop_proto::units::Time;
use pyo3::prelude::*;

/// What a sender knows when an ACK has come, or when a loss has been found. Documented in `lasthop.Ack`.
#[pyclass(frozen, get_all, module = "lasthop._lasthop")]
pub struct Ack {
    /// Seconds since the run began.
    now: f64,
    /// Bytes that are newly acknowledged; zero for a loss.
    acked: u32,
    /// The round trip that was measured, in seconds.
    rtt: Option<f64>,
    /// The congestion window, in bytes.
    cwnd: u32,
    /// The slow-start threshold, in bytes.
    ssthresh: u32,
    /// Bytes that are outstanding.
    flight: u64,
    /// Bytes of a full segment.
    mss: u32,
}

impl Ack {
    fn new(now: Time, w: &Window, ack: Option<&Acked>) -> Ack {
        Ack {
            now: now.as_secs_f64(),
            acked: ack.map_or(0, |ack| ack.bytes),
            rtt: ack.and_then(|ack| ack.rtt).map(|rtt| rtt.as_secs_f64()),
            cwnd: w.cwnd,
            ssthresh: w.ssthresh,
            flight: w.max.saturating_sub(w.una),
            mss: w.mss,
        }
    }
}

/// A class of the user's, and what was raised by it first.
pub struct Brought {
    class: Py<PyAny>,
    fault: Mutex<Option<PyErr>>,
    failed: AtomicBool,
}

impl Brought {
    pub fn new(class: Py<PyAny>) -> Brought {
        Brought { class, fault: Mutex::new(None), failed: AtomicBool::new(false) }
    }

    /// Makes an object of the class for each connection.
    pub fn maker(
        self: Arc<Brought>,
    ) -> impl Fn(&TcpConfig) -> Box<dyn CustomGrowth> + Send + Sync + 'static {
        move |_| Box::new(Rule::new(self.clone()))
    }

    /// Whether something was raised: then no run is worth finishing.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// What was raised first, once.
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
}

/// A connection's congestion control. After a fault it leaves the window as it is.
#[derive(Clone)]
struct Rule {
    brought: Arc<Brought>,
    methods: Option<Arc<Methods>>,
}

impl Rule {
    fn new(brought: Arc<Brought>) -> Rule {
        let made = Python::attach(|py| {
            let object = brought.class.bind(py).call0()?;
            let method = |name| object.getattr(name).map(Bound::unbind);
            Ok(Arc::new(Methods { on_ack: method("on_ack")?, on_loss: method("on_loss")? }))
        });
        let methods = made.map_err(|error| brought.fail(error)).ok();
        Rule { brought, methods }
    }

    /// What a method answers, in bytes, from one to what a window can hold; nothing after a fault.
    fn ask(&self, call: impl FnOnce(Python<'_>, &Methods) -> PyResult<f64>) -> Option<u32> {
        let methods = self.methods.as_ref().filter(|_| !self.brought.failed())?;
        let answer = Python::attach(|py| {
            let answer = call(py, methods)?;
            if answer.is_finite() && answer >= 0.0 {
                return Ok(answer);
            }
            let message =
                format!("a window of {answer} bytes; it must be a number that is not negative");
            Err(pyo3::exceptions::PyValueError::new_err(message))
        });
        answer.map_err(|error| self.brought.fail(error)).ok().map(|bytes| bytes as u32)
    }
}

impl Growth for Rule {
    fn on_ack(&mut self, window: &mut Window, ack: &Acked) {
        let told = Ack::new(ack.now, window, Some(ack));
        let cwnd = self.ask(|py, methods| methods.on_ack.bind(py).call1((told,))?.extract());
        if let Some(cwnd) = cwnd {
            window.cwnd = cwnd.clamp(window.mss, window.largest.max(window.mss));
        }
    }

    fn after_loss(&mut self, now: Time, window: &Window, loss: Loss) -> u32 {
        let told = Ack::new(now, window, None);
        let timeout = loss == Loss::Timeout;
        self.ask(|py, methods| methods.on_loss.bind(py).call1((told, timeout))?.extract())
            .map_or_else(|| window.half(loss), |bytes| bytes.max(window.mss))
    }
}

impl CustomGrowth for Rule {
    fn boxed_clone(&self) -> Box<dyn CustomGrowth> {
        Box::new(self.clone())
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rule in Python")
    }
}
