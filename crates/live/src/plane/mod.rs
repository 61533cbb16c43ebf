//! The kernel as data plane: it forwards between the two interfaces, and copies packets for the agent to the station.
//!
//! ```text
//! frame -> program of the station (tcx) -> base filter (clsact) -> other interface
//!             | copies, and packets that the agent decides about
//!             v
//!           ring -> station -> packet sockets
//! ```
//!
//! The programs are attached by descriptors of this process. If it dies, the kernel removes them, and the base filter
//! continues to forward. If it is too slow, the program forwards without it. The ring is the cache: a packet has the
//! position of its bytes in the ring (`Body::held`), until `Plane::expire` releases them.

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

/// Size of the ring in bytes, and the part of it for data that was already read.
const RING: u32 = 32 << 20;
const RETAINED: u64 = 16 << 20;

/// Minimum number of bytes that are released together.
const STEP: u64 = 1 << 20;

/// Distance of the records with stored positions, in bytes.
const MARK: u64 = 64 << 10;

/// Number of unread bytes that wakes the station.
const WAKE_AT: u64 = 8 << 20;

/// Time for which the program waits for a station without progress, if it leaves all packets to the station.
pub const LIMIT: Span = Span::millis(5);

/// The same time if only duplicate ACKs are left to the station. No other packet waits for them. A sender that receives
/// them this late still repairs the loss before its timer expires (at least 200 ms).
pub const LIMIT_DUPLICATES: Span = Span::millis(20);

/// The same time for other connections, if some connections end at the station. The station's loop then reports
/// every [`GLANCE_MS`] that it is alive. So the first packet after a silence does not wait for a dead station.
pub const LIMIT_OTHERS: Span = Span::millis(20);

/// The same time for connections that end at the station. A packet that bypasses the station breaks such a
/// connection: after a timestamp of the other host, a host rejects those of the station as old (PAWS, RFC 7323 5).
/// So the program waits longer than a busy machine delays a process, and then resets both ends. A sender that
/// retransmits after 200, 600 and 1400 ms is reset within a second.
pub const LIMIT_ENDING: Span = Span::millis(500);

/// Maximum interval between two reads of the ring while data flows, in milliseconds.
pub const GLANCE_MS: u16 = 5;

/// Maximum age of a record that is processed. The station was stopped if it is older.
const STALE: Span = Span::millis(250);

/// Maximum age of a diverted packet that is forwarded: an older one would arrive after newer ones. The agent processes
/// it in any case.
const LATE: Span = Span::millis(20);

/// Maximum number of flows with retransmitted packets that wait for the station.
const RESENT: usize = 64;

/// Maximum number of flows whose acknowledgements the program tracks; the least recently used is removed first.
const FLOWS: u32 = 65_536;

/// Reason why the kernel cannot be the data plane.
#[derive(Debug)]
pub struct Refusal {
    /// The part of the data plane that failed.
    pub part: &'static str,
    /// The error of the system.
    pub error: io::Error,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.error)
    }
}

impl Refusal {
    /// A remedy for the user.
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

/// Counts of the program, and those of the station about its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PlaneCounts {
    /// Copied for the agent and forwarded.
    pub copied: u64,
    /// Left to the decision of the agent.
    pub diverted: u64,
    /// Forwarded without a copy: the ring was full.
    pub no_room: u64,
    /// Forwarded instead of left to the station, because the station was too slow.
    pub by_itself: u64,
    /// Number of times that the program woke the station.
    pub wakes: u64,
    /// Segments of connections that end at the station, which the program answered by a reset because the station was
    /// too slow.
    #[serde(default)]
    pub resets: u64,
    /// Copies that were too old when they were read.
    pub stale: u64,
    /// Diverted packets that were not forwarded because newer ones had overtaken them.
    pub late: u64,
    /// Cached bytes that were removed because the ring was full.
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

/// Base filters that are removed if their station does not start, unless they existed before.
struct Attempt(Option<[u32; 2]>);

impl Drop for Attempt {
    fn drop(&mut self) {
        // One of them may not exist yet.
        self.0.iter().flatten().for_each(|index| drop(base::clear(*index)));
    }
}

/// The kernel as data plane between two interfaces. If it is dropped before its station runs, it removes everything.
/// Afterwards the kernel continues to forward, until [`Plane::clear`].
pub struct Plane {
    control: SharedControl,
    ring: Ring,
    ring_fd: OwnedFd,
    counts: OwnedFd,
    /// The programs: at both interfaces, and the base filters.
    code: [OwnedFd; 4],
    /// The programs stay attached while these are open.
    links: Vec<OwnedFd>,
    attempt: Attempt,
    indices: [u32; 2],
    processors: usize,
    /// Number of handled diverted packets.
    done: u64,
    beat: u64,
    /// Positions of records in the ring, one for each [`MARK`] bytes.
    marks: VecDeque<u64>,
    order: order::Order,
    own: PlaneCounts,
    /// Whether a record was read since the station last slept.
    active: bool,
    more: bool,
    /// Whether a record since the station last slept was too old.
    outdated: bool,
    /// Flows with retransmitted cached packets since the last [`Plane::resent`].
    resent: RefCell<Vec<FlowKey>>,
    needs: Needs,
    /// The connections that end at the station, and whether there may be any.
    endings: Endings,
    ends: bool,
    /// Number of connections that the program has reset and the station has processed.
    lost: u64,
}

fn step<T>(part: &'static str, result: io::Result<T>) -> Result<T, Refusal> {
    result.map_err(|error| Refusal { part, error })
}

/// Maximum number of processors of the system.
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
        let part = "the program for the kernel";
        if cfg!(target_endian = "big") {
            return Err(Refusal { part, error: io::ErrorKind::Unsupported.into() });
        }
        let object = step(part, Object::read(OBJECT).ok_or_else(invalid))?;
        let license = step(part, object.license().ok_or_else(invalid))?;
        let mut fds: Vec<(&str, i32)> =
            maps.iter().map(|(name, fd)| (*name, fd.as_raw_fd())).collect();
        fds.push(("endings", endings.as_fd().as_raw_fd()));
        let load = |name: &str| {
            let code = step(part, object.program(name, &fds).ok_or_else(invalid))?;
            step(part, bpf::load(&code, license, name))
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
/// The missing feature or privilege.
pub fn probe() -> Result<(), Refusal> {
    Programs::load().map(drop)
}

impl Plane {
    /// Starts forwarding between two interfaces, given by their indices; left first.
    ///
    /// # Errors
    /// If the system refuses. All changes are undone then.
    pub fn start(indices: [u32; 2]) -> Result<Plane, Refusal> {
        let mut plane = Plane::load(indices)?;
        plane.attach()?;
        Ok(plane)
    }

    /// Prepares to forward between two interfaces; no packet passes before [`Plane::attach`].
    pub(crate) fn load(indices: [u32; 2]) -> Result<Plane, Refusal> {
        let programs = Programs::load()?;
        for (side, peer) in [(0, indices[1]), (1, indices[0])] {
            step(
                "a map for the program in the kernel",
                bpf::set(programs.map("peers"), side, peer),
            )?;
        }
        let part = "memory shared with the kernel";
        let control = step(part, SharedControl::new(programs.map("control")))?;
        let ring = step(part, Ring::new(programs.map("ring"), RING))?;
        control.peer[0].store(indices[1], Relaxed);
        control.peer[1].store(indices[0], Relaxed);
        control.limit.store(LIMIT.0, Relaxed);
        control.wake_at.store(WAKE_AT, Relaxed);
        let copy = |name| step("a descriptor", programs.map(name).try_clone());
        let (ring_fd, counts) = (copy("ring")?, copy("counts")?);
        control.patience[0].store(LIMIT_OTHERS.0, Relaxed);
        control.patience[1].store(LIMIT_ENDING.0, Relaxed);
        Ok(Plane {
            control,
            ring,
            ring_fd,
            counts,
            code: programs.code,
            links: Vec::new(),
            attempt: Attempt(None),
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

    /// Starts forwarding.
    pub(crate) fn attach(&mut self) -> Result<(), Refusal> {
        let (indices, [left, right, base_left, base_right]) = (self.indices, &self.code);
        let alone = indices.map(base::is_there) == [false; 2];
        self.attempt = Attempt(alone.then_some(indices));
        let part = "the base filter";
        step(part, base::set(indices[0], base_left))?;
        step(part, base::set(indices[1], base_right))?;
        let part = "a program at the interface (tcx)";
        self.links = vec![
            step(part, bpf::attach(left, indices[0]))?,
            step(part, bpf::attach(right, indices[1]))?,
        ];
        Ok(())
    }

    /// Records that the station runs. From now on packets pass also without it.
    pub(crate) fn stays(&mut self) {
        self.attempt.0 = None;
    }

    /// Removes the base filter. From now on no packet passes, unless another program forwards.
    ///
    /// # Errors
    /// Those of the system.
    pub fn clear(&self) -> io::Result<()> {
        self.indices.into_iter().try_for_each(|index| base::clear(index).map(drop))
    }

    /// Removes the base filter from each interface that still exists.
    pub(crate) fn abandon(&self) {
        self.indices.into_iter().for_each(|index| drop(base::clear(index)));
    }

    /// The packets that the agents need now.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Sets which packets the program copies or leaves to the station.
    pub(crate) fn set_needs(&mut self, needs: Needs) {
        let mode = match needs {
            Needs::Nothing => FORWARD,
            Needs::Heads | Needs::Duplicates => JUDGE,
            Needs::Everything if self.ends => END,
            Needs::Everything => HOLD,
        };
        self.control.heads.store(u32::from(needs == Needs::Heads), Relaxed);
        // The program then assumes that no packet waits for the station.
        self.publish(mode);
        self.control.stale.store(0, SeqCst);
        self.control.mode.store(mode, SeqCst);
        self.needs = needs;
    }

    /// Sets how long the program waits for a station without progress.
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

    /// Number of frames from `side` that were left to the packet sockets.
    pub(crate) fn held_from(&self, side: Side) -> u64 {
        self.control.held[side.index()].load(SeqCst)
    }

    /// Records that all frames before `held` (of [`Plane::held_mark`]) were read from the packet sockets.
    pub(crate) fn caught_up(&mut self, held: u64) {
        self.control.done.store(held, SeqCst);
        self.beat();
    }

    /// Number of frames left to the packet sockets. Called before they are read.
    pub(crate) fn held_mark(&self) -> u64 {
        self.held()
    }

    /// Adds the ring to `epoll`. It is ready once after each wake by the program.
    pub(crate) fn watch(&self, epoll: &Epoll, tag: u64) -> io::Result<()> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        Ok(epoll.add(&self.ring_fd, EpollEvent::new(flags, tag))?)
    }

    /// Read position in the ring.
    pub(crate) fn position(&self) -> u64 {
        self.ring.position()
    }

    /// Write position in the ring. Records of packets forwarded before are before it.
    pub(crate) fn written(&self) -> u64 {
        self.ring.written()
    }

    /// Flows with retransmitted cached packets since the last call.
    pub(crate) fn resent(&self) -> Vec<FlowKey> {
        self.resent.take()
    }

    /// Records that the ring has more records, so that the station does not sleep.
    pub(crate) fn has_more(&mut self) {
        self.more = true;
    }

    /// Maximum time for which the station may sleep, at most `longest`.
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

    /// Sets when the program wakes the station. Returns false if there is already work.
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

    /// Records that the station is awake.
    pub(crate) fn awake(&self) {
        self.control.sleeping.store(AWAKE, SeqCst);
    }

    /// The counts of the program and the station.
    pub fn counts(&self) -> PlaneCounts {
        let [copied, diverted, no_room, by_itself, wakes, resets] = self.sums()[4..] else {
            return self.own;
        };
        PlaneCounts { copied, diverted, no_room, by_itself, wakes, resets, ..self.own }
    }

    fn sums(&self) -> [u64; 10] {
        bpf::sums(&self.counts, self.processors).unwrap_or_default()
    }

    /// Frames that arrived at the interfaces, and frames that the kernel has forwarded.
    pub(crate) fn passed(&self) -> Passed {
        let n = self.sums();
        let held = [Side::Left, Side::Right].map(|side| self.held_from(side));
        let forwarded = [n[0].saturating_sub(held[0]), n[1].saturating_sub(held[1] + n[5])];
        Passed { packets: [n[0], n[1]], bytes: [n[2], n[3]], forwarded }
    }
}

#[cfg(test)]
#[path = "../../tests/plane_unit/guarded.rs"]
mod guarded;
#[cfg(test)]
#[path = "../../tests/plane_unit/resets.rs"]
mod resets;
#[cfg(test)]
mod tests;
