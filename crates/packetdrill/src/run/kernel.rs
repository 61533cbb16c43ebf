//! The world of the machine's TCP: real sockets in a network namespace, whose only interface ends in this
//! process.
//!
//! The calling process must not have threads yet: it moves into new namespaces, which end with it.

mod calls;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use lasthop_live::sys::calls as sys;
use lasthop_live::testbed::{Error, Tunnelled};

use super::{Info, Nanos, Reply, Started, World};
use crate::script::Call;
use crate::script::shell::DEFAULTS;

/// Maximum wait for a call that a script does not mark as blocking.
const PATIENCE: Duration = Duration::from_secs(2);

/// The option with the name of a socket's congestion control.
const TCP_CONGESTION: i32 = 13;

/// Whether sockets can use this congestion control.
fn has_congestion_control(name: &str) -> bool {
    let Ok(fd) = sys::socket(2, 1, 6) else { return false };
    let set = sys::setsockopt(fd as i32, 6, TCP_CONGESTION, name.as_bytes()).is_ok();
    let _ = sys::close(fd as i32);
    set
}

/// The world of the machine's TCP.
#[derive(Debug)]
pub struct Kernel {
    device: Tunnelled,
    packets: Receiver<(Instant, Vec<u8>)>,
    started: Instant,
    /// Descriptors of the script and of the process.
    fds: BTreeMap<i64, i32>,
    last: Option<i32>,
    /// The congestion control of new sockets: a separate network may not change its default.
    congestion: Option<String>,
    /// Initial settings of every run that were rejected.
    refused: Vec<String>,
    /// The blocking call, and the descriptor that the script expects from it.
    waiting: Option<(Call, Receiver<(Instant, Reply)>)>,
}

impl Kernel {
    /// Moves the process into a separate network, with the usual initial settings of scripts.
    ///
    /// # Errors
    ///
    /// The operation that the system forbids, and how to allow it.
    pub fn enter() -> Result<Kernel, Error> {
        let device = Tunnelled::enter("192.168.0.1/16", "192.168.0.2")?;
        let reader = device
            .share()
            .map_err(|error| Error::new(format!("cannot share the device: {error}"), ""))?;
        let (sender, packets) = channel();
        thread::spawn(move || {
            while let Ok(bytes) = reader.read() {
                if sender.send((now(), bytes)).is_err() {
                    return;
                }
            }
        });
        let mut kernel = Kernel {
            device,
            packets,
            started: now(),
            fds: BTreeMap::new(),
            last: None,
            congestion: None,
            refused: Vec::new(),
            waiting: None,
        };
        for (name, value) in DEFAULTS {
            // Linux has had no FACK, and so no such setting, since 4.15.
            if !kernel.set(name, value) && *name != "tcp_fack" {
                kernel.refused.push(format!("{name}={value}"));
            }
        }
        Ok(kernel)
    }

    fn since(&self, at: Instant) -> Nanos {
        at.saturating_duration_since(self.started).as_nanos() as Nanos
    }

    fn left(&mut self, until: Nanos) -> Duration {
        Duration::from_nanos(until.saturating_sub(self.now()))
    }

    /// Records the descriptor that a call has created.
    fn note(&mut self, call: &Call, reply: Reply) -> Reply {
        let makes = matches!(call.name.as_str(), "socket" | "accept" | "accept4");
        if !makes || reply.value < 0 {
            return reply;
        }
        let real = reply.value as i32;
        if let (Some(name), "socket") = (&self.congestion, call.name.as_str()) {
            // The name was validated when it was set.
            let _ = sys::setsockopt(real, 6, TCP_CONGESTION, name.as_bytes());
        }
        self.last = Some(real);
        let free = (3..).find(|n| !self.fds.contains_key(n)).expect("a free number");
        let wanted = super::values::number(&call.result);
        let fd = wanted.filter(|n| *n >= 0).unwrap_or(free);
        self.fds.insert(fd, real);
        Reply { value: fd, ..reply }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the kernel's timers run by the clock of the machine"
)]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "so do scripts that run against it")]
fn rest(left: Duration) {
    thread::sleep(left);
}

impl World for Kernel {
    fn now(&mut self) -> Nanos {
        self.since(now())
    }

    fn wait(&mut self, at: Nanos) {
        let left = self.left(at);
        if !left.is_zero() {
            rest(left);
        }
    }

    fn sent(&mut self, until: Nanos) -> Option<(Nanos, Vec<u8>)> {
        let left = self.left(until);
        let (at, bytes) = match left.is_zero() {
            true => self.packets.try_recv().ok()?,
            false => self.packets.recv_timeout(left).ok()?,
        };
        Some((self.since(at), bytes))
    }

    fn arrive(&mut self, bytes: Vec<u8>) {
        // A packet rejected by the kernel counts as dropped by it.
        let _ = self.device.write(&bytes);
    }

    fn call(&mut self, call: &Call) -> Result<Started, String> {
        let job = calls::prepare(call, &self.fds)?;
        if call.name == "close"
            && let Some(fd) = call.args.first().and_then(super::values::number)
        {
            self.fds.remove(&fd);
        }
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let reply = job();
            let _ = sender.send((now(), reply));
        });
        // A blocking call gets a moment to enter the kernel before the next packet arrives.
        let patience = if call.until.is_some() { Duration::from_millis(1) } else { PATIENCE };
        match receiver.recv_timeout(patience) {
            Ok((_, reply)) => Ok(Started::Done(self.note(call, reply))),
            Err(RecvTimeoutError::Timeout) => {
                self.waiting = Some((call.clone(), receiver));
                Ok(Started::Blocks)
            }
            Err(RecvTimeoutError::Disconnected) => Err("a call that does not return".to_owned()),
        }
    }

    fn finished(&mut self, until: Nanos) -> Option<(Nanos, Reply)> {
        let left = self.left(until);
        let (call, receiver) = self.waiting.take()?;
        let (at, reply) = receiver.recv_timeout(left).ok()?;
        Some((self.since(at), self.note(&call, reply)))
    }

    fn info(&mut self) -> Result<Info, String> {
        let fd = self.last.ok_or("tcp_info without a socket")?;
        let bytes = sys::tcp_info(fd).map_err(|error| format!("tcp_info: {error}"))?;
        Ok(fields(&bytes))
    }

    fn refused(&self) -> &[String] {
        &self.refused
    }

    fn set(&mut self, name: &str, value: &str) -> bool {
        if name != "tcp_congestion_control" {
            return Tunnelled::set(name, value);
        }
        let known = has_congestion_control(value);
        if known {
            self.congestion = Some(value.to_owned());
        }
        known
    }
}

/// The fields of `struct tcp_info` that the kernel has written.
fn fields(bytes: &[u8]) -> Info {
    let number = |at: usize, len: usize| {
        let mut whole = [0; 8];
        whole[..len].copy_from_slice(bytes.get(at..at + len)?);
        Some(u64::from_le_bytes(whole).min(i64::MAX as u64) as i64)
    };
    let table = include_str!("tcp_info.txt").lines().filter(|line| !line.starts_with('#'));
    let words: Vec<&str> = table.flat_map(str::split_whitespace).collect();
    let field = |field: &[&'static str]| {
        let &[name, at, len] = field else { return None };
        Some((name, number(at.parse().ok()?, len.parse().ok()?)?))
    };
    words.chunks(3).filter_map(field).collect()
}
