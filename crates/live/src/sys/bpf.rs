//! bpf(2): programs, maps, links, and memory that is shared with programs.
#![expect(unsafe_code, reason = "bpf(2) and memory shared with the kernel have no safe interface")]

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// Commands of bpf(2).
const MAP_CREATE: u32 = 0;
const MAP_LOOKUP: u32 = 1;
const MAP_UPDATE: u32 = 2;
const PROG_LOAD: u32 = 5;
/// Attempts to load a program.
const LOADS: u32 = 5;
const LINK_CREATE: u32 = 28;

/// Type and attach point of traffic-control programs.
const SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;

/// Kinds of maps: an array.
pub const ARRAY: u32 = 2;
/// An array with a value for each processor.
pub const PERCPU_ARRAY: u32 = 6;
/// A hash map that discards its least recently used entry when it is full.
pub const LRU_HASH: u32 = 9;
/// A ring buffer of records.
pub const RINGBUF: u32 = 27;
/// Flag: the map can be mapped into memory.
pub const MMAPABLE: u32 = 1 << 10;

const PAGE: usize = 4096;

/// The argument of bpf(2), up to the last field in use.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Attr([u8; 144]);

impl Attr {
    fn new(words: &[(usize, u32)], wide: &[(usize, u64)]) -> Attr {
        let mut bytes = [0; 144];
        for (at, word) in words {
            bytes[*at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        for (at, word) in wide {
            bytes[*at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
        Attr(bytes)
    }

    /// # Safety
    /// Every address in it must point to memory of the length that goes with it, alive for the call.
    unsafe fn call(&mut self, command: u32) -> io::Result<i32> {
        // SAFETY: the attribute is alive and of the given size; the caller guarantees the memory behind its
        // addresses.
        let result = unsafe {
            libc::syscall(libc::SYS_bpf, command as libc::c_long, self.0.as_mut_ptr(), self.0.len())
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
    }

    /// A call that returns a descriptor.
    ///
    /// # Safety
    /// As for [`Attr::call`].
    unsafe fn open(mut self, command: u32) -> io::Result<OwnedFd> {
        // SAFETY: the caller's guarantee; the returned descriptor is new and has no other owner.
        unsafe { self.call(command).map(|fd| OwnedFd::from_raw_fd(fd)) }
    }
}

/// Specification of a map.
#[derive(Clone, Copy, Debug)]
pub struct MapKind {
    /// [`ARRAY`] and others.
    pub kind: u32,
    /// Bytes of a key.
    pub key: u32,
    /// Bytes of a value.
    pub value: u32,
    /// Number of entries; size in bytes for a ring.
    pub entries: u32,
    /// [`MMAPABLE`] or 0.
    pub flags: u32,
}

/// Makes a map.
///
/// # Errors
/// Without CAP_BPF, or when the kernel has no such map.
pub fn map(kind: MapKind) -> io::Result<OwnedFd> {
    let MapKind { kind, key, value, entries, flags } = kind;
    let words = [(0, kind), (4, key), (8, value), (12, entries), (16, flags)];
    // SAFETY: no address is in it.
    unsafe { Attr::new(&words, &[]).open(MAP_CREATE) }
}

/// Stores `value` at `key` of an array.
///
/// # Errors
/// Errors of the system.
pub fn set(map: &impl AsFd, key: u32, value: u32) -> io::Result<()> {
    let words = [(0, map.as_fd().as_raw_fd() as u32)];
    let wide = [(8, (&raw const key) as u64), (16, (&raw const value) as u64)];
    // SAFETY: both addresses are of live values of the sizes that the arrays of the station have: 4 bytes each.
    unsafe { Attr::new(&words, &wide).call(MAP_UPDATE) }.map(drop)
}

/// Sums over all processors of each word in the only value of a per-processor array. `processors` is the
/// number of possible processors.
///
/// # Errors
/// Errors of the system.
pub fn sums<const N: usize>(map: &impl AsFd, processors: usize) -> io::Result<[u64; N]> {
    let key = 0_u32;
    let mut values = vec![0_u64; N * processors];
    let words = [(0, map.as_fd().as_raw_fd() as u32)];
    let wide = [(8, (&raw const key) as u64), (16, values.as_mut_ptr() as u64)];
    // SAFETY: the kernel writes `N` words, the size of a value, for each possible processor; there is room for them.
    unsafe { Attr::new(&words, &wide).call(MAP_LOOKUP) }?;
    let mut sums = [0; N];
    for value in values.chunks_exact(N) {
        sums.iter_mut().zip(value).for_each(|(sum, word)| *sum += word);
    }
    Ok(sums)
}

/// Loads a traffic-control program.
///
/// # Errors
/// Errors of the system. If the verifier rejects the program, the end of its log.
pub fn load(instructions: &[u8], license: &std::ffi::CStr, name: &str) -> io::Result<OwnedFd> {
    let load = |log: &mut [u8]| {
        let words = [
            (0, SCHED_CLS),
            (4, (instructions.len() / 8) as u32),
            (24, u32::from(!log.is_empty())),
            (28, log.len() as u32),
        ];
        let log = if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 };
        let wide = [(8, instructions.as_ptr() as u64), (16, license.as_ptr() as u64), (32, log)];
        let mut attr = Attr::new(&words, &wide);
        // prog_name, 16 bytes with the zero at its end
        for (to, from) in attr.0[48..63].iter_mut().zip(name.bytes()) {
            *to = from;
        }
        // SAFETY: instructions, licence and log are alive and of the lengths given.
        unsafe { attr.open(PROG_LOAD) }
    };
    // The verifier stops at a signal, and the caller tries again (`bpf(2)`: EAGAIN).
    let interrupted = |e: &io::Error| e.kind() == io::ErrorKind::WouldBlock;
    let mut tries = (0..LOADS).map(|_| load(&mut []));
    let first = tries.find(|it| !it.as_ref().is_err_and(interrupted));
    first.unwrap_or_else(|| load(&mut [])).map_err(|error| {
        let mut log = vec![0; 1 << 20];
        match load(&mut log) {
            Err(_) if log[0] != 0 => {
                let text = String::from_utf8_lossy(&log);
                let lines: Vec<&str> = text.trim_end_matches('\0').trim_end().lines().collect();
                let end = lines[lines.len().saturating_sub(4)..].join(" / ");
                io::Error::new(error.kind(), format!("{error}: {end}"))
            }
            _ => error,
        }
    })
}

/// Attaches `program` to packets that arrive at the interface, before traffic-control filters, until the
/// descriptor is closed.
///
/// # Errors
/// Without CAP_NET_ADMIN, or before Linux 6.6.
pub fn attach(program: &impl AsFd, ifindex: u32) -> io::Result<OwnedFd> {
    let words = [(0, program.as_fd().as_raw_fd() as u32), (4, ifindex), (8, TCX_INGRESS)];
    // SAFETY: no address is in it.
    unsafe { Attr::new(&words, &[]).open(LINK_CREATE) }
}

/// Memory shared with the kernel.
#[derive(Debug)]
struct Mapping {
    at: NonNull<libc::c_void>,
    len: usize,
}

// SAFETY: the memory belongs to the process, not to a thread. It is accessed through atomics, or read while
// no writer exists.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(fd: &impl AsFd, len: usize, write: bool, offset: i64) -> io::Result<Mapping> {
        let length = NonZeroUsize::new(len).ok_or(io::ErrorKind::InvalidInput)?;
        let write = if write { ProtFlags::PROT_WRITE } else { ProtFlags::empty() };
        // SAFETY: a new mapping at an address of the kernel's choice; no existing memory is touched.
        let at = unsafe {
            mmap(None, length, ProtFlags::PROT_READ | write, MapFlags::MAP_SHARED, fd, offset)?
        };
        Ok(Mapping { at, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no borrow of it remains. It cannot fail.
        let _ = unsafe { munmap(self.at, self.len) };
    }
}

/// State of the program: `struct control` of `bpf/shared.h`, which documents its fields. All fields are
/// atomic integers, so all bytes are valid and the kernel may write at any time.
#[repr(C)]
#[derive(Debug)]
#[expect(missing_docs, reason = "each is described in bpf/shared.h")]
pub struct Control {
    pub mode: AtomicU32,
    pub heads: AtomicU32,
    pub peer: [AtomicU32; 2],
    pub sleeping: AtomicU32,
    pub stale: AtomicU32,
    pub limit: AtomicU64,
    pub wake_at: AtomicU64,
    pub read: AtomicU64,
    pub done: AtomicU64,
    pub beat: AtomicU64,
    pub announced: AtomicU64,
    pub revoked: AtomicU64,
    pub held: [AtomicU64; 2],
    pub seen_beat: AtomicU64,
    pub seen_at: AtomicU64,
    pub alive: AtomicU64,
    pub patience: [AtomicU64; 2],
    pub passed: [AtomicU64; 2],
    pub mark: [AtomicU64; 2],
    pub lost: AtomicU64,
}

/// The program's state, mapped into memory.
#[derive(Debug)]
pub struct SharedControl(Mapping);

impl SharedControl {
    /// Maps the only value of the array `map`.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn new(map: &impl AsFd) -> io::Result<SharedControl> {
        Mapping::new(map, PAGE, true, 0).map(SharedControl)
    }
}

impl std::ops::Deref for SharedControl {
    type Target = Control;
    fn deref(&self) -> &Control {
        // SAFETY: the mapping has a page, in which the value fits; it is all atomics, and the mapping lives as long
        // as the borrow.
        unsafe { self.0.at.cast().as_ref() }
    }
}

/// Reader of a ring buffer. Positions are bytes since the start of the ring.
///
/// The kernel does not write to records that are committed and not released. So the bytes between the
/// released position and the read position are constant and may be borrowed.
#[derive(Debug)]
pub struct Ring {
    consumer: Mapping,
    /// The producer's page, then the data, mapped twice in a row.
    data: Mapping,
    size: u64,
    released: u64,
    read: u64,
}

/// Header flags: the record is incomplete, or its writer has discarded it.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// Length of the kernel's record header, bytes.
pub const HEADER: u64 = 8;

impl Ring {
    /// Maps the ring `map` of `size` bytes.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn new(map: &impl AsFd, size: u32) -> io::Result<Ring> {
        let data = Mapping::new(map, PAGE + 2 * size as usize, false, PAGE as i64)?;
        let consumer = Mapping::new(map, PAGE, true, 0)?;
        Ok(Ring { consumer, data, size: size.into(), released: 0, read: 0 })
    }

    /// Read position.
    pub fn position(&self) -> u64 {
        self.read
    }

    /// Released position.
    pub fn released(&self) -> u64 {
        self.released
    }

    /// Position of the writer.
    pub fn written(&self) -> u64 {
        // SAFETY: the mapping begins with the producer's position, which the kernel writes atomically.
        unsafe { self.data.at.cast::<AtomicU64>().as_ref() }.load(Ordering::Acquire)
    }

    /// Moves to the next record and returns its position. The writer may have discarded that record.
    pub fn advance(&mut self) -> Option<u64> {
        let at = self.read;
        if at >= self.written() {
            return None;
        }
        let header = self.header(at);
        if header & BUSY != 0 {
            return None;
        }
        self.read = at + (HEADER + u64::from(header & (DISCARDED - 1))).next_multiple_of(8);
        Some(at)
    }

    /// Position of the record after that at `at`, if `at` is read and not released.
    pub fn after(&self, at: u64) -> Option<u64> {
        if at < self.released || at >= self.read || !at.is_multiple_of(8) {
            return None;
        }
        let len = u64::from(self.header(at) & (DISCARDED - 1));
        Some(at + (HEADER + len).next_multiple_of(8))
    }

    /// Bytes of the record at `at`; `None` if it is released or discarded.
    pub fn record(&self, at: u64) -> Option<&[u8]> {
        if at < self.released || at >= self.read || !at.is_multiple_of(8) {
            return None;
        }
        let header = self.header(at);
        let len = u64::from(header & (DISCARDED - 1));
        if header & DISCARDED != 0 || at + HEADER + len > self.read {
            return None;
        }
        let from = PAGE + (at % self.size + HEADER) as usize;
        // SAFETY: the record ends before the read position, so it is shorter than the ring. The ring is
        // mapped twice in a row, so the record lies within the mapping. It is committed and not released (a
        // release needs `&mut self`), so it has no writer while it is borrowed.
        Some(unsafe {
            std::slice::from_raw_parts(self.data.at.cast::<u8>().add(from).as_ptr(), len as usize)
        })
    }

    fn header(&self, at: u64) -> u32 {
        let from = PAGE + (at % self.size) as usize;
        // SAFETY: records are aligned to 8 bytes (guaranteed by the callers), and `from` lies within the
        // mapping; the kernel writes the word atomically.
        unsafe { self.data.at.cast::<u8>().add(from).cast::<AtomicU32>().as_ref() }
            .load(Ordering::Acquire)
    }

    /// Releases all records before that at `to`, which has been read.
    pub fn release(&mut self, to: u64) {
        self.released = to.clamp(self.released, self.read);
        // SAFETY: the consumer's page begins with its position, which the kernel reads atomically.
        unsafe { self.consumer.at.cast::<AtomicU64>().as_ref() }
            .store(self.released, Ordering::Release);
    }
}

mod table;
pub use table::Table;

#[cfg(test)]
pub(crate) mod tests;
