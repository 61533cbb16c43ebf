//! Congestion controls written in Python.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lasthop_proto::tcp::config::{CustomGrowth, TcpConfig};
use lasthop_proto::tcp::sender::Window;
use lasthop_proto::tcp::sender::growth::{Acked, Growth, Loss};
use lasthop_proto::units::Time;
use pyo3::prelude::*;

/// The state of a sender after an ACK or a detected loss. Documented in `lasthop.Ack`.
#[pyclass(frozen, get_all, module = "lasthop._lasthop")]
pub struct Ack {
    /// Seconds since the start of the run.
    now: f64,
    /// Newly acknowledged bytes; zero for a loss.
    acked: u32,
    /// The measured round trip in seconds.
    rtt: Option<f64>,
    /// The congestion window, in bytes.
    cwnd: u32,
    /// The slow-start threshold, in bytes.
    ssthresh: u32,
    /// Unacknowledged bytes.
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

/// A user's class, and the first exception that it raised.
pub struct PythonControl {
    class: Py<PyAny>,
    fault: Mutex<Option<PyErr>>,
    failed: AtomicBool,
}

impl PythonControl {
    pub fn new(class: Py<PyAny>) -> PythonControl {
        PythonControl { class, fault: Mutex::new(None), failed: AtomicBool::new(false) }
    }

    /// Creates an object of the class for each connection.
    pub fn maker(
        self: Arc<PythonControl>,
    ) -> impl Fn(&TcpConfig) -> Box<dyn CustomGrowth> + Send + Sync + 'static {
        move |_| Box::new(Rule::new(self.clone()))
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
}

/// A connection's congestion control. After an exception it keeps the window.
#[derive(Clone)]
struct Rule {
    brought: Arc<PythonControl>,
    methods: Option<Arc<Methods>>,
}

impl Rule {
    fn new(brought: Arc<PythonControl>) -> Rule {
        let made = Python::attach(|py| {
            let object = brought.class.bind(py).call0()?;
            let method = |name| object.getattr(name).map(Bound::unbind);
            Ok(Arc::new(Methods { on_ack: method("on_ack")?, on_loss: method("on_loss")? }))
        });
        let methods = made.map_err(|error| brought.fail(error)).ok();
        Rule { brought, methods }
    }

    /// The window returned by a method, in bytes, clamped to the valid range; `None` after an exception.
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
