//! Hash maps of BPF programs, with bytes as keys and values. Those of a dead process can be read too.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use super::{Attr, MAP_CREATE, MAP_LOOKUP, MAP_UPDATE};

const MAP_DELETE: u32 = 3;
const MAP_NEXT_KEY: u32 = 4;
const PROGRAM_BY_ID: u32 = 13;
const MAP_BY_ID: u32 = 14;
const INFO: u32 = 15;

/// Kind of a hash map, and the flag that makes it allocate memory only for existing entries.
const HASH: u32 = 1;
const ON_DEMAND: u32 = 1;

/// Limit of examined maps of a program.
const MAPS: usize = 16;

/// A hash map whose keys have `K` bytes and whose values have `V`.
#[derive(Debug)]
pub struct Table<const K: usize, const V: usize>(OwnedFd);

fn of(fd: BorrowedFd<'_>) -> (usize, u32) {
    (0, fd.as_raw_fd() as u32)
}

/// The first bytes of the kernel's description of a program or a map; `bytes` is the request.
///
/// # Safety
/// Every address in `bytes` must point to memory of the given length, alive for the call.
unsafe fn info<const N: usize>(fd: BorrowedFd<'_>, mut bytes: [u8; N]) -> io::Result<[u8; N]> {
    let words = [of(fd), (4, N as u32)];
    // SAFETY: the kernel reads and writes at most `N` bytes of a live array of that length; the caller guarantees the rest.
    unsafe { Attr::new(&words, &[(8, bytes.as_mut_ptr() as u64)]).call(INFO) }?;
    Ok(bytes)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

impl<const K: usize, const V: usize> Table<K, V> {
    /// Creates a map of this name with at most `entries` entries.
    ///
    /// # Errors
    /// Without CAP_BPF.
    pub fn new(name: &str, entries: u32) -> io::Result<Table<K, V>> {
        let words = [(0, HASH), (4, K as u32), (8, V as u32), (12, entries), (16, ON_DEMAND)];
        let mut attr = Attr::new(&words, &[]);
        // map_name, 16 bytes with the zero at its end
        for (to, from) in attr.0[28..43].iter_mut().zip(name.bytes()) {
            *to = from;
        }
        // SAFETY: no address is in it.
        unsafe { attr.open(MAP_CREATE) }.map(Table)
    }

    /// The map of a descriptor, which must have this name.
    ///
    /// # Errors
    /// If it is another map, or no map.
    pub fn of(fd: OwnedFd, name: &str) -> io::Result<Table<K, V>> {
        // SAFETY: no address is in it.
        let info = unsafe { info(fd.as_fd(), [0; 40]) }?;
        let same = [word(&info, 0), word(&info, 8), word(&info, 12)] == [HASH, K as u32, V as u32];
        let named = info[24..].iter().take_while(|byte| **byte != 0).eq(name.as_bytes());
        if same && named { Ok(Table(fd)) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// The map of this name that a loaded program uses, by the program's number.
    ///
    /// # Errors
    /// Without CAP_SYS_ADMIN, or if there is no such map.
    pub fn of_program(id: u32, name: &str) -> io::Result<Table<K, V>> {
        // SAFETY: no address is in either.
        let by_id = |command, id: u32| unsafe { Attr::new(&[(0, id)], &[]).open(command) };
        let program = by_id(PROGRAM_BY_ID, id)?;
        let mut ids = [0_u32; MAPS];
        let mut request = [0; 64];
        request[52..56].copy_from_slice(&(MAPS as u32).to_ne_bytes());
        request[56..64].copy_from_slice(&(ids.as_mut_ptr() as u64).to_ne_bytes());
        // SAFETY: the address is that of a live array of `MAPS` numbers.
        let count = word(&unsafe { info(program.as_fd(), request) }?, 52) as usize;
        let found =
            ids.iter().take(count).find_map(|id| Self::of(by_id(MAP_BY_ID, *id).ok()?, name).ok());
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The value at `key`.
    pub fn get(&self, key: &[u8; K]) -> Option<[u8; V]> {
        let mut value = [0; V];
        let wide = [(8, key.as_ptr() as u64), (16, value.as_mut_ptr() as u64)];
        // SAFETY: the kernel reads `K` bytes and writes `V`, which the map has; both are alive.
        unsafe { Attr::new(&[of(self.0.as_fd())], &wide).call(MAP_LOOKUP) }.ok().map(|_| value)
    }

    /// Stores `value` at `key`.
    ///
    /// # Errors
    /// If the map is full, or the system has no memory left.
    pub fn insert(&self, key: &[u8; K], value: &[u8; V]) -> io::Result<()> {
        let wide = [(8, key.as_ptr() as u64), (16, value.as_ptr() as u64)];
        // SAFETY: the kernel reads `K` and `V` bytes, which the map has; both are alive.
        unsafe { Attr::new(&[of(self.0.as_fd())], &wide).call(MAP_UPDATE) }.map(drop)
    }

    /// Removes the entry of `key`. Returns whether there was one.
    pub fn remove(&self, key: &[u8; K]) -> bool {
        let wide = [(8, key.as_ptr() as u64)];
        // SAFETY: the kernel reads `K` bytes, which the map has.
        unsafe { Attr::new(&[of(self.0.as_fd())], &wide).call(MAP_DELETE) }.is_ok()
    }

    /// At most `most` entries. The map must not change during the call.
    pub fn entries(&self, most: usize) -> Vec<([u8; K], [u8; V])> {
        let mut last: Option<[u8; K]> = None;
        let next = || {
            let mut key = [0; K];
            let from = last.as_ref().map_or(0, |last| last.as_ptr() as u64);
            let wide = [(8, from), (16, key.as_mut_ptr() as u64)];
            // SAFETY: the kernel reads `K` bytes, or none without an address, and writes `K`; both are alive.
            unsafe { Attr::new(&[of(self.0.as_fd())], &wide).call(MAP_NEXT_KEY) }.ok()?;
            last = Some(key);
            Some(key)
        };
        let keys = std::iter::from_fn(next).take(most);
        keys.filter_map(|key| Some((key, self.get(&key)?))).collect()
    }
}

impl<const K: usize, const V: usize> AsFd for Table<K, V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A table with any descriptor, for tests: all its operations fail.
#[cfg(test)]
impl<const K: usize, const V: usize> From<OwnedFd> for Table<K, V> {
    fn from(fd: OwnedFd) -> Table<K, V> {
        Table(fd)
    }
}
