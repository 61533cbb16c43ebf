//! bpf(2): programs, maps, links, and the memory that programs and the station share.
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
const LINK_CREATE: u32 = 28;

/// Programs of the traffic control, and where they are attached.
const SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;

/// Kinds of maps.
pub const ARRAY: u32 = 2;
/// An array with a value for each processor.
pub const PERCPU_ARRAY: u32 = 6;
/// A hash map that forgets the least recently used.
pub const LRU_HASH: u32 = 9;
/// A ring of records.
pub const RINGBUF: u32 = 27;
/// The map can be mapped into memory.
pub const MMAPABLE: u32 = 1 << 10;

const PAGE: usize = 4096;

/// The argument of bpf(2), as wide as we need it.
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
        // SAFETY: the attribute is alive and of the size given; what it points to is the caller's promise.
        let result = unsafe {
            libc::syscall(libc::SYS_bpf, command as libc::c_long, self.0.as_mut_ptr(), self.0.len())
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
    }

    /// A call that gives a descriptor.
    ///
    /// # Safety
    /// That of [`Attr::call`].
    unsafe fn open(mut self, command: u32) -> io::Result<OwnedFd> {
        // SAFETY: the caller's promise; the descriptor that comes back is new and nobody else's.
        unsafe { self.call(command).map(|fd| OwnedFd::from_raw_fd(fd)) }
    }
}

/// What a map is to be.
#[derive(Clone, Copy, Debug)]
pub struct MapKind {
    /// [`ARRAY`] and others.
    pub kind: u32,
    /// Bytes of a key.
    pub key: u32,
    /// Bytes of a value.
    pub value: u32,
    /// Entries; of a ring, its bytes.
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

/// Puts `value` at `key` of an array.
///
/// # Errors
/// Those of the system.
pub fn set(map: &impl AsFd, key: u32, value: u32) -> io::Result<()> {
    let words = [(0, map.as_fd().as_raw_fd() as u32)];
    let wide = [(8, (&raw const key) as u64), (16, (&raw const value) as u64)];
    // SAFETY: both addresses are of live values of the sizes that the arrays of the station have: 4 bytes each.
    unsafe { Attr::new(&words, &wide).call(MAP_UPDATE) }.map(drop)
}

/// The sums over all processors of the words of the only value of a per-processor array. `processors` is how many the
/// system may have.
///
/// # Errors
/// Those of the system.
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

/// Loads a program of the traffic control.
///
/// # Errors
/// What the system says; where the verifier refused it, the end of what that said.
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
    load(&mut []).map_err(|error| {
        let mut log = vec![0; 1 << 20];
        match load(&mut log) {
            Err(_) if log[0] != 0 => {
                let said = String::from_utf8_lossy(&log);
                let lines: Vec<&str> = said.trim_end_matches('\0').trim_end().lines().collect();
                let end = lines[lines.len().saturating_sub(4)..].join(" / ");
                io::Error::new(error.kind(), format!("{error}: {end}"))
            }
            _ => error,
        }
    })
}

/// Has `program` see what arrives at the interface, before the filters of the traffic control, for as long as the
/// descriptor is open.
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

// SAFETY: the memory belongs to the process, not to a thread; it is read and written through atomics, or read where
// nobody writes.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(fd: &impl AsFd, len: usize, write: bool, offset: i64) -> io::Result<Mapping> {
        let length = NonZeroUsize::new(len).ok_or(io::ErrorKind::InvalidInput)?;
        let write = if write { ProtFlags::PROT_WRITE } else { ProtFlags::empty() };
        // SAFETY: a new mapping at a place of the kernel's choice; nothing that exists is touched.
        let at = unsafe {
            mmap(None, length, ProtFlags::PROT_READ | write, MapFlags::MAP_SHARED, fd, offset)?
        };
        Ok(Mapping { at, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and whoever borrowed from it is gone. It cannot fail.
        let _ = unsafe { munmap(self.at, self.len) };
    }
}

/// The state of the program: `struct control` of `bpf/shared.h`, which says what its fields mean. Nothing but atomic
/// integers, so that all bytes are valid and the kernel may write at any time.
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

/// The state of the program, mapped into memory.
#[derive(Debug)]
pub struct SharedControl(Mapping);

impl SharedControl {
    /// Maps the only value of the array `map`.
    ///
    /// # Errors
    /// Those of the system.
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

/// The reader's side of a ring of records. Positions count the bytes of the ring since its beginning.
///
/// The kernel writes only where no record lies that was committed and not released, so what lies between the released
/// position and the one that was read to does not change: it can be lent.
#[derive(Debug)]
pub struct Ring {
    consumer: Mapping,
    /// The producer's page, then the data twice in a row.
    data: Mapping,
    size: u64,
    released: u64,
    read: u64,
}

/// A record is not complete yet, or was given up by its writer.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// Length of the kernel's header of a record.
pub const HEADER: u64 = 8;

impl Ring {
    /// Maps the ring `map` of `size` bytes.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(map: &impl AsFd, size: u32) -> io::Result<Ring> {
        let data = Mapping::new(map, PAGE + 2 * size as usize, false, PAGE as i64)?;
        let consumer = Mapping::new(map, PAGE, true, 0)?;
        Ok(Ring { consumer, data, size: size.into(), released: 0, read: 0 })
    }

    /// How far it has been read.
    pub fn position(&self) -> u64 {
        self.read
    }

    /// How far it has been given back.
    pub fn released(&self) -> u64 {
        self.released
    }

    /// How far it has been written.
    pub fn written(&self) -> u64 {
        // SAFETY: the mapping begins with the producer's position, which the kernel writes atomically.
        unsafe { self.data.at.cast::<AtomicU64>().as_ref() }.load(Ordering::Acquire)
    }

    /// Goes on to the next record, and says where it is; the answer's record may have been given up by its writer.
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

    /// Where the record after that at `at` begins, if `at` has been read and not given back.
    pub fn after(&self, at: u64) -> Option<u64> {
        if at < self.released || at >= self.read || !at.is_multiple_of(8) {
            return None;
        }
        let len = u64::from(self.header(at) & (DISCARDED - 1));
        Some(at + (HEADER + len).next_multiple_of(8))
    }

    /// The bytes of the record at `at`; `None` if it has been given back, or given up by its writer.
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
        // SAFETY: the record ends before what was read, so it is shorter than the ring, which is mapped twice in a
        // row: it lies within the mapping. It was committed and is not given back (giving back takes `&mut self`), so
        // nobody writes to it while it is lent.
        Some(unsafe {
            std::slice::from_raw_parts(self.data.at.cast::<u8>().add(from).as_ptr(), len as usize)
        })
    }

    fn header(&self, at: u64) -> u32 {
        let from = PAGE + (at % self.size) as usize;
        // SAFETY: records are aligned to 8 bytes (callers keep to it), and `from` lies within the mapping; the kernel
        // writes the word atomically.
        unsafe { self.data.at.cast::<u8>().add(from).cast::<AtomicU32>().as_ref() }
            .load(Ordering::Acquire)
    }

    /// Gives back what lies before the record at `to`, which has been read.
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
