//! Reads a ring with the kernel's layout in memory of the test.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::*;
use crate::can_run::can_run;

/// Runs a traffic-control program on a frame, and returns its result. Nothing is sent.
pub(crate) fn test_run(program: &impl AsFd, frame: &[u8]) -> io::Result<u32> {
    const PROG_TEST_RUN: u32 = 10;
    let words = [(0, program.as_fd().as_raw_fd() as u32), (8, frame.len() as u32)];
    let mut attr = Attr::new(&words, &[(16, frame.as_ptr() as u64)]);
    // SAFETY: the frame is alive and of the length given; nothing is written back but the attribute.
    unsafe { attr.call(PROG_TEST_RUN) }?;
    Ok(u32::from_ne_bytes([attr.0[4], attr.0[5], attr.0[6], attr.0[7]]))
}

/// The same, with the frame after the program's changes.
pub(crate) fn test_run_into(program: &impl AsFd, frame: &[u8]) -> io::Result<(u32, Vec<u8>)> {
    const PROG_TEST_RUN: u32 = 10;
    let mut made = vec![0_u8; frame.len() + 256];
    let words =
        [(0, program.as_fd().as_raw_fd() as u32), (8, frame.len() as u32), (12, made.len() as u32)];
    let wide = [(16, frame.as_ptr() as u64), (24, made.as_mut_ptr() as u64)];
    let mut attr = Attr::new(&words, &wide);
    // SAFETY: the frame and the space for the changed frame are alive and of the given lengths.
    unsafe { attr.call(PROG_TEST_RUN) }?;
    let word = |at: usize| {
        u32::from_ne_bytes([attr.0[at], attr.0[at + 1], attr.0[at + 2], attr.0[at + 3]])
    };
    made.truncate(word(12) as usize);
    Ok((word(4), made))
}

/// The value of a map at `key`; `None` if it is missing. Both must have the sizes of the map.
pub(crate) fn lookup<const N: usize>(map: &impl AsFd, key: &[u8]) -> Option<[u8; N]> {
    let mut value = [0; N];
    let words = [(0, map.as_fd().as_raw_fd() as u32)];
    let wide = [(8, key.as_ptr() as u64), (16, value.as_mut_ptr() as u64)];
    // SAFETY: both addresses are of live memory, of the sizes that the caller promises.
    unsafe { Attr::new(&words, &wide).call(MAP_LOOKUP) }.ok().map(|_| value)
}

/// Mappable memory of `len` bytes.
pub(crate) fn memory(name: &std::ffi::CStr, len: u64) -> File {
    let memory = File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC).unwrap());
    memory.set_len(len).unwrap();
    memory
}

/// Writer of a ring: the reader's page, the writer's page, and the data twice in a row.
pub(crate) struct Writer {
    memory: File,
    size: u64,
    written: u64,
}

impl Writer {
    pub fn new(name: &std::ffi::CStr, size: u32) -> Writer {
        let size = u64::from(size);
        Writer { memory: memory(name, 2 * PAGE as u64 + 2 * size), size, written: 0 }
    }

    pub fn reader(&self) -> Ring {
        Ring::new(&self.memory, self.size as u32).unwrap()
    }

    fn store(&self, at: u64, bytes: &[u8]) {
        let from = at % self.size;
        let (first, rest) = bytes.split_at(bytes.len().min((self.size - from) as usize));
        for copy in [0, self.size] {
            let data = 2 * PAGE as u64 + copy;
            self.memory.write_all_at(first, data + from).unwrap();
            self.memory.write_all_at(rest, data).unwrap();
        }
    }

    /// The header of the record at `at`.
    pub fn mark(&self, at: u64, header: u32) {
        self.store(at, &header.to_ne_bytes());
    }

    /// Appends a record of `len` bytes that begins with `bytes`, and returns its position. `flags` are stored
    /// with its length.
    pub fn put(&mut self, bytes: &[u8], len: u32, flags: u32) -> u64 {
        let at = self.written;
        self.mark(at, len | flags);
        self.store(at + HEADER, bytes);
        self.written = (at + HEADER + u64::from(len)).next_multiple_of(8);
        self.memory.write_all_at(&self.written.to_ne_bytes(), PAGE as u64).unwrap();
        at
    }

    /// Position up to which the reader has released records.
    pub fn given_back(&self) -> u64 {
        let mut word = [0; 8];
        self.memory.read_exact_at(&mut word, 0).unwrap();
        u64::from_ne_bytes(word)
    }
}

#[test]
fn records_remain_readable_until_released() {
    let mut writer = Writer::new(c"ring-one-by-one", 4096);
    let mut ring = writer.reader();
    assert_eq!((ring.advance(), ring.written()), (None, 0), "nothing is there");
    let first = writer.put(b"first", 5, 0);
    let second = writer.put(b"the second one", 14, 0);
    assert_eq!((first, second), (0, 16));
    assert_eq!(ring.record(first), None, "not read yet");
    assert_eq!(ring.after(first), None);
    assert_eq!(ring.advance(), Some(first));
    assert_eq!((ring.position(), ring.released(), ring.written()), (16, 0, 40));
    assert_eq!(ring.record(first), Some(&b"first"[..]));
    assert_eq!((ring.record(second), ring.after(second)), (None, None), "not read yet");
    assert_eq!(ring.advance(), Some(second));
    assert_eq!(ring.record(second), Some(&b"the second one"[..]));
    assert_eq!((ring.after(first), ring.after(second)), (Some(16), Some(40)));
    assert_eq!((ring.record(4), ring.after(4)), (None, None), "no record begins there");
    assert_eq!(ring.advance(), None, "the end");

    assert_eq!(writer.given_back(), 0);
    ring.release(second);
    assert_eq!((writer.given_back(), ring.released()), (16, 16));
    assert_eq!((ring.record(first), ring.after(first)), (None, None), "it was released");
    assert_eq!(ring.record(second), Some(&b"the second one"[..]), "the next one was not");
    ring.release(0);
    assert_eq!(writer.given_back(), 16, "a released record stays released");
    ring.release(1000);
    assert_eq!(writer.given_back(), 40, "no more than was read");
}

#[test]
fn busy_records_block_reading_and_discarded_ones_are_skipped() {
    let mut writer = Writer::new(c"ring-busy", 4096);
    let mut ring = writer.reader();
    let busy = writer.put(b"abc", 3, BUSY);
    let given_up = writer.put(b"defg", 4, DISCARDED);
    let last = writer.put(b"hi", 2, 0);
    assert_eq!((ring.advance(), ring.position()), (None, 0), "its writer has not ended");
    writer.mark(busy, 3);
    assert_eq!([ring.advance(), ring.advance(), ring.advance()], [busy, given_up, last].map(Some));
    assert_eq!(ring.record(busy), Some(&b"abc"[..]));
    assert_eq!((ring.record(given_up), ring.after(given_up)), (None, Some(last)));
    assert_eq!(ring.record(last), Some(&b"hi"[..]));
    // A header with a length beyond the read position.
    writer.mark(last, 9);
    assert_eq!(ring.record(last), None);
}

#[test]
fn records_wrap_around_the_end_of_the_ring() {
    let mut writer = Writer::new(c"ring-round", 4096);
    let mut ring = writer.reader();
    let mut places = Vec::new();
    for i in 0..50_u8 {
        let bytes = vec![i; 700 + usize::from(i)];
        let at = writer.put(&bytes, bytes.len() as u32, 0);
        assert_eq!(ring.advance(), Some(at), "record {i}");
        assert_eq!(ring.record(at), Some(&bytes[..]), "record {i}");
        if let Some(last) = places.last() {
            assert_eq!(ring.after(*last), Some(at), "record {i}");
        }
        ring.release(at);
        places.push(at);
    }
    assert!(places.last() > Some(&(8 * 4096)), "more than once round");
}

/// Whether this process has mapped the memory of this name.
fn is_mapped(name: &str) -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains(name)
}

#[test]
fn dropping_a_ring_or_control_page_unmaps_its_memory() {
    let writer = Writer::new(c"ring-that-goes", 4096);
    let ring = writer.reader();
    assert!(is_mapped("ring-that-goes"));
    drop(ring);
    assert!(!is_mapped("ring-that-goes"), "a mapping is left");
    let page = memory(c"control-that-goes", PAGE as u64);
    let control = SharedControl::new(&page).unwrap();
    control.mode.store(7, Ordering::Relaxed);
    let mut word = [0; 4];
    page.read_exact_at(&mut word, 0).unwrap();
    assert_eq!(u32::from_ne_bytes(word), 7, "the first word of the page is the mode");
    drop(control);
    assert!(!is_mapped("control-that-goes"), "a mapping is left");
}

#[test]
fn a_bpf_attribute_has_its_words_at_their_offsets() {
    let attr = Attr::new(&[(0, 0x1112_1314), (140, 5)], &[(8, 0x2122_2324_3132_3334)]);
    let mut expected = [0; 144];
    expected[..4].copy_from_slice(&0x1112_1314_u32.to_ne_bytes());
    expected[8..16].copy_from_slice(&0x2122_2324_3132_3334_u64.to_ne_bytes());
    expected[140..].copy_from_slice(&5_u32.to_ne_bytes());
    assert_eq!(attr.0, expected);
}

#[test]
fn a_table_entry_is_found_until_it_is_removed() {
    let table = Table::<4, 8>::new("lasthop_test", 3);
    if !can_run(table.is_ok(), "CAP_BPF") {
        return;
    }
    let table = table.unwrap();
    let one = |n: u8| ([n; 4], [n + 100; 8]);
    assert_eq!((table.get(&[1; 4]), table.entries(9)), (None, vec![]));
    for n in 1..=3 {
        table.insert(&one(n).0, &one(n).1).unwrap();
    }
    assert!(table.insert(&[4; 4], &[0; 8]).is_err(), "it is full");
    assert_eq!(table.get(&[2; 4]), Some([102; 8]));
    let mut all = table.entries(9);
    all.sort_unstable();
    assert_eq!(all, [one(1), one(2), one(3)]);
    assert_eq!(table.entries(2).len(), 2, "at most the limit");
    assert!(table.remove(&[2; 4]) && !table.remove(&[2; 4]));
    assert_eq!((table.get(&[2; 4]), table.entries(9).len()), (None, 2));
    // A descriptor suffices to open it, if name and sizes agree.
    let again = || table.as_fd().try_clone_to_owned().unwrap();
    let same = Table::<4, 8>::of(again(), "lasthop_test").unwrap();
    assert_eq!(same.get(&[1; 4]), Some([101; 8]));
    assert!(Table::<4, 8>::of(again(), "lasthop").is_err(), "another name");
    assert!(Table::<8, 4>::of(again(), "lasthop_test").is_err(), "other sizes");
    let file = File::open("/dev/null").unwrap().into();
    assert!(Table::<4, 8>::of(file, "lasthop_test").is_err(), "no map");
}
