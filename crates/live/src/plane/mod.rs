//! The kernel as data plane: it forwards between the two interfaces and shows the station what its agent needs.
//!
//! ```text
//! frame -> program of the station (tcx) -> base filter (clsact) -> other interface
//!             | copies, and what the agent must judge
//!             v
//!           ring -> station -> packet sockets
//! ```
//!
//! The programs hang on descriptors of this process: when it dies the kernel takes them away, and the base filter goes
//! on forwarding. When it lives and does not keep up, the program forwards by itself. What is in the ring is the
//! cache: packets keep the place of their bytes there (`Body::held`), until `Plane::expire` gives it back.

mod absence;
pub mod base;
mod ending;
mod object;
mod order;
pub mod orphans;
mod record;
mod shared;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use lasthop_proto::agent::Needs;
use lasthop_proto::machine::Side;
use lasthop_proto::units::Span;
use lasthop_proto::wire::FlowKey;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags, EpollTimeout};
use serde::{Deserialize, Serialize};

use crate::sys::bpf::{self, MapKind, Ring, SharedControl};
use ending::Endings;
use object::Object;
pub(crate) use record::Taken;
use shared::{AWAKE, END, FORWARD, HOLD, JUDGE, WAKE_ANY, WAKE_URGENT};

/// `bpf/station.bpf.c`, as clang translates it.
static OBJECT: &[u8] = include_bytes!("../../bpf/station.bpf.o");

/// Bytes of the ring, and how many of them hold what was read already.
const RING: u32 = 32 << 20;
const KEPT: u64 = 16 << 20;

/// What is given back at once.
const STEP: u64 = 1 << 20;

/// How far apart the records lie whose places are remembered.
const MARK: u64 = 64 << 10;

/// Unread bytes that wake the station.
const WAKE_AT: u64 = 8 << 20;

/// How long the program waits for a station to which it leaves all packets, and which does not get on.
pub const LIMIT: Span = Span::millis(5);

/// The same where only duplicate ACKs are left to the station. Nothing else waits for them, and a sender that receives
/// them this late still repairs the loss before its timer expires (200 ms at least).
pub const LIMIT_DUPLICATES: Span = Span::millis(20);

/// The same for other connections where some end at the station. Then its loop reports that it is alive every [`GLANCE_MS`], so
/// that the first packet after a silence does not wait for a station that is gone.
pub const LIMIT_OTHERS: Span = Span::millis(20);

/// The same for connections that end at the station. What passes it by breaks them: a host that has seen a timestamp of the
/// other host takes those of the station for old (PAWS, RFC 7323 5) and drops all that it sends. So the program waits
/// longer than a busy machine keeps a program from its processors, and resets both ends then. A sender that repeats a
/// segment after 200, 600 and 1400 ms is reset within a second.
pub const LIMIT_ENDING: Span = Span::millis(500);

/// While data flows, what was copied is read this often at least.
pub const GLANCE_MS: u16 = 5;

/// What is older when it is read is not acted on: the station was stopped.
const STALE: Span = Span::millis(250);

/// A diverted packet that is older would only arrive behind newer ones. The agent sees it, but it is not sent on.
const LATE: Span = Span::millis(20);

/// Flows that are remembered because packets of theirs were sent again, until the station has noted that.
const RESENT: usize = 64;

/// Flows whose acknowledgements the program follows; the least recently used is forgotten first.
const FLOWS: u32 = 65_536;

/// Why the kernel cannot be the data plane.
#[derive(Debug)]
pub struct Refusal {
    /// What was tried.
    pub what: &'static str,
    /// What the system said.
    pub error: io::Error,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.error)
    }
}

impl Refusal {
    /// What would help.
    pub fn remedy(&self) -> &'static str {
        match self.error.kind() {
            io::ErrorKind::PermissionDenied => {
                "the kernel forwards for a station with CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW in the first user \
                 namespace"
            }
            io::ErrorKind::ResourceBusy => "stop the other station of these interfaces",
            _ => {
                "the kernel forwards for a station since Linux 6.6, with CONFIG_BPF_SYSCALL, CONFIG_NET_CLS_BPF and \
                  CONFIG_NET_SCH_INGRESS"
            }
        }
    }
}

/// What the program counted, and the station of what it showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PlaneCounts {
    /// Copied for the agent and forwarded.
    pub copied: u64,
    /// Left to the agent to decide.
    pub diverted: u64,
    /// Forwarded without a copy: the ring was full.
    pub no_room: u64,
    /// Forwarded although meant for the station, because it did not keep up.
    pub by_itself: u64,
    /// How often the program woke the station.
    pub wakes: u64,
    /// Segments of connections that ended at the station, which the program answered by a reset because the station did not keep
    /// up.
    #[serde(default)]
    pub resets: u64,
    /// Copies that were too old to be acted on when they were read.
    pub stale: u64,
    /// Diverted packets that were not sent on because newer ones had overtaken them.
    pub late: u64,
    /// Cached bytes whose room in the ring was needed.
    pub expired_bytes: u64,
}

impl PlaneCounts {
    /// The counts of packets by name.
    pub fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("copied", self.copied),
            ("diverted", self.diverted),
            ("no-room", self.no_room),
            ("by-itself", self.by_itself),
            ("wakes", self.wakes),
            ("resets", self.resets),
            ("stale", self.stale),
            ("late", self.late),
        ]
    }
}

/// Frames at the two interfaces, by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Passed {
    pub packets: [u64; 2],
    pub bytes: [u64; 2],
    /// Forwarded by the kernel to the other side.
    pub forwarded: [u64; 2],
}

/// Base filters that go again if their station does not come to run, unless they stood there before.
struct Attempt(Option<[u32; 2]>);

impl Drop for Attempt {
    fn drop(&mut self) {
        // One may not be there yet.
        self.0.iter().flatten().for_each(|index| drop(base::clear(*index)));
    }
}

/// The kernel as data plane between two interfaces. Dropped before its station runs, it leaves nothing behind; afterwards
/// the kernel goes on to forward, until [`Plane::clear`].
pub struct Plane {
    control: SharedControl,
    ring: Ring,
    ring_fd: OwnedFd,
    counts: OwnedFd,
    /// The programs stay attached while these are open.
    _links: [OwnedFd; 2],
    attempt: Attempt,
    indices: [u32; 2],
    processors: usize,
    /// Of diverted packets: those that were handled.
    done: u64,
    beat: u64,
    /// Places in the ring where a record begins, one for each [`MARK`].
    marks: VecDeque<u64>,
    order: order::Order,
    own: PlaneCounts,
    /// Whether something was read since the station last slept.
    active: bool,
    more: bool,
    /// Whether what was read since the station last slept was too old.
    outdated: bool,
    /// Flows of which cached packets were sent again since [`Plane::resent`].
    resent: RefCell<Vec<FlowKey>>,
    needs: Needs,
    /// The connections that end at the station, and whether some may.
    endings: Endings,
    ends: bool,
    /// Of the connections that the program gave up: those that the station knows of.
    lost: u64,
}

fn step<T>(what: &'static str, result: io::Result<T>) -> Result<T, Refusal> {
    result.map_err(|error| Refusal { what, error })
}

/// How many processors the system may ever have.
fn processors() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|n| n.parse::<usize>().ok());
    last.map(|n| n + 1).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The programs with the maps that they share.
struct Programs {
    maps: [(&'static str, OwnedFd); 5],
    endings: ending::Map,
    code: [OwnedFd; 4],
}

impl Programs {
    fn load() -> Result<Programs, Refusal> {
        let make = |name, kind, key, value, entries, flags| {
            let kind = MapKind { kind, key, value, entries, flags };
            step("a map for the program in the kernel", bpf::map(kind)).map(|fd| (name, fd))
        };
        let maps = [
            make("ring", bpf::RINGBUF, 0, 0, RING, 0)?,
            make("control", bpf::ARRAY, 4, 176, 1, bpf::MMAPABLE)?,
            make("counts", bpf::PERCPU_ARRAY, 4, 80, 1, 0)?,
            make("peers", bpf::ARRAY, 4, 4, 2, 0)?,
            make("flows", bpf::LRU_HASH, 36, 72, FLOWS, 0)?,
        ];
        let endings = step(
            "a map for the program in the kernel",
            ending::Map::new(ending::NAME, ending::MOST),
        )?;
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let what = "the program for the kernel";
        if cfg!(target_endian = "big") {
            return Err(Refusal { what, error: io::ErrorKind::Unsupported.into() });
        }
        let object = step(what, Object::read(OBJECT).ok_or_else(invalid))?;
        let license = step(what, object.license().ok_or_else(invalid))?;
        let mut fds: Vec<(&str, i32)> =
            maps.iter().map(|(name, fd)| (*name, fd.as_raw_fd())).collect();
        fds.push(("endings", endings.as_fd().as_raw_fd()));
        let load = |name: &str| {
            let code = step(what, object.program(name, &fds).ok_or_else(invalid))?;
            step(what, bpf::load(&code, license, name))
        };
        let code = [load("left_in")?, load("right_in")?, load("base_left")?, load("base_right")?];
        Ok(Programs { maps, endings, code })
    }

    fn map(&self, name: &str) -> &OwnedFd {
        let found = self.maps.iter().find(|(known, _)| *known == name);
        found.map_or(&self.maps[0].1, |(_, fd)| fd)
    }
}

/// Whether this process may load the programs; nothing is attached.
///
/// # Errors
/// What it lacks.
pub fn probe() -> Result<(), Refusal> {
    Programs::load().map(drop)
}

impl Plane {
    /// Has the kernel forward between two interfaces, by their indices; left first.
    ///
    /// # Errors
    /// When the system refuses; nothing is left behind then.
    pub fn start(indices: [u32; 2]) -> Result<Plane, Refusal> {
        let programs = Programs::load()?;
        let Programs { code: [left, right, base_left, base_right], .. } = &programs;
        for (side, peer) in [(0, indices[1]), (1, indices[0])] {
            step(
                "a map for the program in the kernel",
                bpf::set(programs.map("peers"), side, peer),
            )?;
        }
        let what = "memory shared with the kernel";
        let control = step(what, SharedControl::new(programs.map("control")))?;
        let ring = step(what, Ring::new(programs.map("ring"), RING))?;
        control.peer[0].store(indices[1], Relaxed);
        control.peer[1].store(indices[0], Relaxed);
        control.limit.store(LIMIT.0, Relaxed);
        control.wake_at.store(WAKE_AT, Relaxed);
        let alone = indices.map(base::is_there) == [false; 2];
        let attempt = Attempt(alone.then_some(indices));
        let what = "the base filter";
        step(what, base::set(indices[0], base_left))?;
        step(what, base::set(indices[1], base_right))?;
        let what = "a program at the interface (tcx)";
        let links = [
            step(what, bpf::attach(left, indices[0]))?,
            step(what, bpf::attach(right, indices[1]))?,
        ];
        let copy = |name| step("a descriptor", programs.map(name).try_clone());
        let (ring_fd, counts) = (copy("ring")?, copy("counts")?);
        control.patience[0].store(LIMIT_OTHERS.0, Relaxed);
        control.patience[1].store(LIMIT_ENDING.0, Relaxed);
        Ok(Plane {
            control,
            ring,
            ring_fd,
            counts,
            _links: links,
            attempt,
            indices,
            processors: step("how many processors there are", processors())?,
            done: 0,
            beat: 0,
            marks: VecDeque::new(),
            order: order::Order::new(),
            own: PlaneCounts::default(),
            active: false,
            more: false,
            outdated: false,
            resent: RefCell::default(),
            needs: Needs::Nothing,
            endings: Endings::new(programs.endings),
            ends: false,
            lost: 0,
        })
    }

    /// The station runs: whatever becomes of it, packets go on.
    pub(crate) fn stays(&mut self) {
        self.attempt.0 = None;
    }

    /// Takes the base filter away: from now on nothing passes unless somebody else forwards.
    ///
    /// # Errors
    /// Those of the system.
    pub fn clear(&self) -> io::Result<()> {
        self.indices.into_iter().try_for_each(|index| base::clear(index).map(drop))
    }

    /// What the agents need now.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Has the program show what is needed from now on.
    pub(crate) fn set_needs(&mut self, needs: Needs) {
        let mode = match needs {
            Needs::Nothing => FORWARD,
            Needs::Heads | Needs::Duplicates => JUDGE,
            Needs::Everything if self.ends => END,
            Needs::Everything => HOLD,
        };
        self.control.heads.store(u32::from(needs == Needs::Heads), Relaxed);
        // Nothing waits as far as the program is concerned, whatever was there before.
        self.publish(mode);
        self.control.stale.store(0, SeqCst);
        self.control.mode.store(mode, SeqCst);
        self.needs = needs;
    }

    /// Has the program wait so long for a station that does not get on.
    pub(crate) fn set_limit(&self, limit: Span) {
        self.control.limit.store(limit.0, Relaxed);
    }

    fn publish(&mut self, mode: u32) {
        let done = match mode {
            HOLD | END => self.held(),
            _ => self.done,
        };
        self.control.done.store(done, SeqCst);
        self.beat();
    }

    fn beat(&mut self) {
        self.beat += 1;
        self.control.beat.store(self.beat, SeqCst);
    }

    fn held(&self) -> u64 {
        self.control.held.iter().map(|held| held.load(SeqCst)).sum()
    }

    /// Frames from `side` that were left to the packet sockets so far.
    pub(crate) fn held_from(&self, side: Side) -> u64 {
        self.control.held[side.index()].load(SeqCst)
    }

    /// The packet sockets have nothing that was left to them before `held` (of [`Plane::held_mark`]).
    pub(crate) fn caught_up(&mut self, held: u64) {
        self.control.done.store(held, SeqCst);
        self.beat();
    }

    /// What is left to the packet sockets by now; to be asked before they are read.
    pub(crate) fn held_mark(&self) -> u64 {
        self.held()
    }

    /// The ring, to be waited for: it is ready once after each wake by the program.
    pub(crate) fn watch(&self, epoll: &Epoll, tag: u64) -> io::Result<()> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        Ok(epoll.add(&self.ring_fd, EpollEvent::new(flags, tag))?)
    }

    /// How far the ring has been read.
    pub(crate) fn position(&self) -> u64 {
        self.ring.position()
    }

    /// How far the program has written the ring: what it forwarded before, lies before that.
    pub(crate) fn written(&self) -> u64 {
        self.ring.written()
    }

    /// Flows of which cached packets were sent again since the last call.
    pub(crate) fn resent(&self) -> Vec<FlowKey> {
        self.resent.take()
    }

    /// There is more in the ring than was taken: the station does not sleep.
    pub(crate) fn has_more(&mut self) {
        self.more = true;
    }

    /// The station is about to sleep for `longest` at most: for how long instead.
    pub(crate) fn doze(&mut self, longest: EpollTimeout) -> EpollTimeout {
        let glance = EpollTimeout::from(GLANCE_MS);
        match self.control.mode.load(Relaxed) {
            JUDGE => {}
            END if longest > glance => return glance,
            _ => return longest,
        }
        if core::mem::take(&mut self.more) || !self.may_sleep() {
            return EpollTimeout::ZERO;
        }
        let glances = self.control.sleeping.load(Relaxed) == WAKE_URGENT;
        if glances && longest > glance { glance } else { longest }
    }

    /// Tells the program when to wake the station; false if there is something to do already.
    fn may_sleep(&mut self) -> bool {
        let sleep = if core::mem::take(&mut self.active) { WAKE_URGENT } else { WAKE_ANY };
        self.control.sleeping.store(sleep, SeqCst);
        let waiting = self.control.announced.load(SeqCst) - self.control.revoked.load(SeqCst);
        let unread = sleep == WAKE_ANY && self.ring.written() != self.ring.position();
        if waiting != self.done || unread {
            self.control.sleeping.store(AWAKE, SeqCst);
            return false;
        }
        true
    }

    /// The station is awake.
    pub(crate) fn awake(&self) {
        self.control.sleeping.store(AWAKE, SeqCst);
    }

    /// What the program counted.
    pub fn counts(&self) -> PlaneCounts {
        let [copied, diverted, no_room, by_itself, wakes, resets] = self.sums()[4..] else {
            return self.own;
        };
        PlaneCounts { copied, diverted, no_room, by_itself, wakes, resets, ..self.own }
    }

    fn sums(&self) -> [u64; 10] {
        bpf::sums(&self.counts, self.processors).unwrap_or_default()
    }

    /// What arrived at the interfaces, and what the kernel forwarded.
    pub(crate) fn passed(&self) -> Passed {
        let n = self.sums();
        let held = [Side::Left, Side::Right].map(|side| self.held_from(side));
        let forwarded = [n[0].saturating_sub(held[0]), n[1].saturating_sub(held[1] + n[5])];
        Passed { packets: [n[0], n[1]], bytes: [n[2], n[3]], forwarded }
    }
}

#[cfg(test)]
mod guarded;
#[cfg(test)]
mod resets;
#[cfg(test)]
mod tests;
