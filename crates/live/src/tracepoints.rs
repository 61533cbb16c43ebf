//! What the kernel's TCP does, from its tracepoints: each time-out, recovery and change of the window at its own time.
//!
//! It takes root, since tracepoints show all connections of the machine. Those of other testbeds are told apart by
//! the thread that opened a socket and by the socket's cookie. What is missing is said, and then `TCP_INFO` is
//! asked again and again instead ([`crate::endpoint::Sampler`]).
//!
//! The kernel has no tracepoint for segments that come in after this end has closed its direction, which is when the
//! last of the data is written, not sent. From then on the window is known by `TCP_INFO` alone; time-outs and
//! recoveries are told to the end.

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
use lasthop_proto::place::StageId;
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

/// How often is looked for events, in milliseconds.
const LOOK_MS: u16 = 2;

/// How long a processor may take to write down an event after the time that it shows.
const LATE: Span = Span::millis(1);

/// A line is shorter than this; the rest of a longer one is thrown away.
const LONGEST: usize = 4096;

/// Reads tracepoints in a thread of its own until it is dropped.
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
    /// Up to when all events were told, in nanoseconds of the clock.
    complete: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    follower: Follower,
    /// Our own hold on each socket, to ask for its TCP_INFO.
    sockets: Vec<(u64, OwnedFd)>,
    next: u64,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tracer {
    /// Begins to read what concerns senders on `ports`; every event goes to `tell`. The calling process must have a
    /// mount namespace of its own.
    ///
    /// # Errors
    /// What is missing, as a clause.
    pub fn start(
        ports: &Range<u16>,
        clock: Clock,
        tell: impl FnMut(Event) + Send + 'static,
    ) -> Result<Tracer, String> {
        let instance = Instance::open(ports)?;
        let shared =
            Arc::new(Shared { clock, state: Mutex::default(), complete: AtomicU64::new(0) });
        let stop = Arc::new(AtomicBool::new(false));
        let mut reader = Reader {
            instance,
            shared: shared.clone(),
            stop: stop.clone(),
            tell,
            rest: Vec::new(),
            overlong: false,
        };
        let thread = std::thread::Builder::new().name("tracepoints".to_owned());
        let thread = thread.spawn(move || reader.run());
        let thread = thread.map_err(|error| format!("a thread cannot be started: {error}"))?;
        Ok(Tracer { shared, stop, thread: Some(thread) })
    }

    /// For threads that open connections.
    pub fn watcher(&self) -> Watcher {
        Watcher(self.shared.clone())
    }

    /// Up to when all events have been told. On a busy machine this is well before now.
    pub fn complete_until(&self) -> Time {
        Time(self.shared.complete.load(Ordering::Acquire))
    }

    /// Tells what is left and ends. Returns how many events were lost.
    pub fn finish(mut self) -> u64 {
        self.end();
        self.shared.state().follower.events_lost()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has told why on stderr.
            let _ = thread.join();
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Has connections followed.
#[derive(Clone, Debug)]
pub struct Watcher(Arc<Shared>);

impl Watcher {
    /// Follows a connection that the calling thread has just begun to open; `None` if the system does not let us.
    /// Drop what it returns before the socket is closed.
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
    tell: F,
    /// The beginning of a line.
    rest: Vec<u8>,
    /// Whether what comes belongs to a line that is too long.
    overlong: bool,
}

impl<F: FnMut(Event)> Reader<F> {
    fn run(&mut self) {
        loop {
            let stop = self.stop.load(Ordering::Relaxed);
            // Interrupted or not, it is time to look.
            let _ = poll(&mut [], PollTimeout::from(LOOK_MS));
            let now = self.shared.clock.now();
            let read = self.read();
            let mut state = self.shared.state();
            if read.is_err() {
                state.follower.lost(1);
            }
            let over = stop || read.is_err();
            let until = if over { Time(u64::MAX) } else { Time(now.0.saturating_sub(LATE.0)) };
            state.follower.advance(until, &mut self.tell);
            let complete = state.follower.complete_until(until);
            self.shared.complete.store(complete.0, Ordering::Release);
            if over {
                return;
            }
            let State { follower, sockets, .. } = &mut *state;
            let wanted: Vec<u64> = follower.wanted().collect();
            for (id, socket) in sockets.iter().filter(|(id, _)| wanted.contains(id)) {
                if let Ok(info) = TcpInfo::of(socket) {
                    follower.answer(*id, self.shared.clock.now(), info);
                }
            }
        }
    }

    /// Reads all that is there.
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

    /// A line, or a part of one.
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
