//! Events of the kernel's TCP from its tracepoints: timeouts, recoveries and changes of the window, each with
//! its own time.
//!
//! Root is needed, since tracepoints show all connections of the machine. Connections of other testbeds are
//! excluded by the thread that opened a socket and by the socket's cookie. Without tracepoints the reason is
//! reported, and `TCP_INFO` is polled instead ([`crate::endpoint::Sampler`]).
//!
//! The kernel has no tracepoint for segments that arrive after this end has closed its direction. It closes
//! when the last data is written to the socket, not when it is sent. From then on only `TCP_INFO` shows the
//! window; timeouts and recoveries are reported to the end.

mod follow;
mod instance;
mod line;

use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use lasthop_proto::event::Event;
use lasthop_proto::side::StageId;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::FlowKey;
use nix::poll::{PollTimeout, poll};
use nix::unistd::gettid;

use crate::clock::Clock;
use crate::endpoint::TcpInfo;
use crate::sys::cookie::cookie;
use follow::{Followed, Follower};
use instance::Instance;
use line::Line;

pub use instance::sweep;

/// Polling interval for events, ms.
const LOOK_MS: u16 = 2;

/// Longest time between the timestamp of an event and its entry in the buffer.
const LATE: Span = Span::millis(1);

/// Length limit of a line, bytes; the rest of a longer one is discarded.
const LONGEST: usize = 4096;

/// Reads tracepoints in a separate thread until it is dropped.
#[derive(Debug)]
pub struct Tracer {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    state: Mutex<State>,
    /// All events before this time were emitted; nanoseconds of the clock.
    complete: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    follower: Follower,
    /// A duplicate of each socket's descriptor, to read its TCP_INFO.
    sockets: Vec<(u64, OwnedFd)>,
    next: u64,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tracer {
    /// Starts to read events of senders on `ports`, and calls `tell` with each. The calling process must have
    /// its own mount namespace.
    ///
    /// # Errors
    /// If a requirement is missing, with its description as a clause.
    pub fn start(
        ports: &Range<u16>,
        clock: Clock,
        emit: impl FnMut(Event) + Send + 'static,
    ) -> Result<Tracer, String> {
        let instance = Instance::open(ports)?;
        let shared =
            Arc::new(Shared { clock, state: Mutex::default(), complete: AtomicU64::new(0) });
        let stop = Arc::new(AtomicBool::new(false));
        let mut reader = Reader {
            instance,
            shared: shared.clone(),
            stop: stop.clone(),
            emit,
            rest: Vec::new(),
            overlong: false,
        };
        let thread = std::thread::Builder::new().name("tracepoints".to_owned());
        let thread = thread.spawn(move || reader.run());
        let thread = thread.map_err(|error| format!("a thread cannot be started: {error}"))?;
        Ok(Tracer { shared, stop, thread: Some(thread) })
    }

    /// A handle for threads that open connections.
    pub fn watcher(&self) -> Watcher {
        Watcher(self.shared.clone())
    }

    /// All events before this time were emitted. On a busy machine it lags well behind the present.
    pub fn complete_until(&self) -> Time {
        Time(self.shared.complete.load(Ordering::Acquire))
    }

    /// Emits the remaining events and ends. Returns the number of lost events.
    pub fn finish(mut self) -> u64 {
        self.end();
        self.shared.state().follower.events_lost()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panicked thread has printed its message to stderr.
            let _ = thread.join();
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Registers connections with a tracer.
#[derive(Clone, Debug)]
pub struct Watcher(Arc<Shared>);

impl Watcher {
    /// Follows a connection that the calling thread has just begun to open; `None` if the system refuses.
    /// Drop the result before the socket is closed.
    pub fn watch(&self, stream: &TcpStream, flow: FlowKey, stage: StageId) -> Option<Watched> {
        let cookie = cookie(stream.as_fd()).ok()?;
        let socket = stream.as_fd().try_clone_to_owned().ok()?;
        let mut state = self.0.state();
        let id = state.next;
        state.next += 1;
        let about = Followed { id, flow, stage, thread: gettid().as_raw(), cookie };
        state.follower.follow(about);
        state.sockets.push((id, socket));
        Some(Watched { shared: self.0.clone(), id })
    }
}

/// A connection that is followed until this is dropped.
#[derive(Debug)]
pub struct Watched {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let at = state.sockets.iter().position(|(id, _)| *id == self.id);
        let socket = at.map(|at| state.sockets.swap_remove(at).1);
        let info = socket.and_then(|socket| TcpInfo::of(&socket).ok());
        state.follower.close(self.id, self.shared.clock.now(), info);
    }
}

struct Reader<F> {
    instance: Instance,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    emit: F,
    /// Beginning of an incomplete line.
    rest: Vec<u8>,
    /// Whether the input belongs to a line that exceeds the limit.
    overlong: bool,
}

impl<F: FnMut(Event)> Reader<F> {
    fn run(&mut self) {
        loop {
            let stop = self.stop.load(Ordering::Relaxed);
            // An interruption only shortens the interval.
            let _ = poll(&mut [], PollTimeout::from(LOOK_MS));
            let now = self.shared.clock.now();
            let read = self.read();
            let mut state = self.shared.state();
            if read.is_err() {
                state.follower.lost(1);
            }
            let over = stop || read.is_err();
            let until = if over { Time(u64::MAX) } else { Time(now.0.saturating_sub(LATE.0)) };
            state.follower.advance(until, &mut self.emit);
            let complete = state.follower.complete_until(until);
            self.shared.complete.store(complete.0, Ordering::Release);
            if over {
                return;
            }
            let State { follower, sockets, .. } = &mut *state;
            let pending: Vec<u64> = follower.pending().collect();
            for (id, socket) in sockets.iter().filter(|(id, _)| pending.contains(id)) {
                if let Ok(info) = TcpInfo::of(socket) {
                    follower.answer(*id, self.shared.clock.now(), info);
                }
            }
        }
    }

    /// Reads all pending input.
    fn read(&mut self) -> std::io::Result<()> {
        let mut room = [0; 1 << 16];
        loop {
            let count = self.instance.read(&mut room)?;
            if count == 0 {
                return Ok(());
            }
            let shared = self.shared.clone();
            let mut state = shared.state();
            for piece in room[..count].split_inclusive(|byte| *byte == b'\n') {
                self.piece(piece, &mut state.follower);
            }
        }
    }

    /// Handles a line, or a part of one.
    fn piece(&mut self, piece: &[u8], follower: &mut Follower) {
        if self.rest.len() + piece.len() > LONGEST {
            self.overlong = true;
            self.rest.clear();
        }
        if !self.overlong {
            self.rest.extend_from_slice(piece);
        }
        if piece.last() != Some(&b'\n') {
            return;
        }
        match line::parse(&self.rest) {
            _ if self.overlong => follower.lost(1),
            Line::Event(raw) => follower.read(self.shared.clock.from_monotonic(raw.at), raw),
            Line::Lost(events) => follower.lost(events),
            Line::Damaged => follower.lost(1),
            Line::Other => {}
        }
        self.overlong = false;
        self.rest.clear();
    }
}
