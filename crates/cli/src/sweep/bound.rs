//! Size limit of the written files of a run, and the time at which they end.

use std::cell::Cell;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use std::str::FromStr;

use lasthop_observe::{Passage, Sink};
use lasthop_proto::event::{Event, Interest, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Bytes, Time};
use lasthop_proto::wire::Packet;

/// Note in the folder of a run with truncated files: their size in bytes.
const NOTE: &str = "ends-early.txt";

/// Limit of the total size of all runs' files; `None` for no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Most(Option<Bytes>);

impl Most {
    /// The default: sufficient for analysis, and quick to write and copy.
    pub const USUAL: Most = Most(Some(Bytes(100_000_000)));

    /// Share of each of `runs` runs, bytes.
    pub fn each(self, runs: u64) -> Option<u64> {
        self.0.map(|most| most.0 / runs.max(1))
    }
}

impl FromStr for Most {
    type Err = String;
    fn from_str(word: &str) -> Result<Most, String> {
        if word == "unlimited" {
            return Ok(Most(None));
        }
        let size: Bytes = word.parse().map_err(|error| format!("{error}, or `unlimited`"))?;
        Ok(Most(Some(size)))
    }
}

impl core::fmt::Display for Most {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(most) if most.0.is_multiple_of(1_000_000) => write!(f, "{}MB", most.0 / 1_000_000),
            Some(most) => write!(f, "{}B", most.0),
            None => f.write_str("unlimited"),
        }
    }
}

/// A file that adds written bytes to a shared counter.
#[derive(Debug)]
pub struct CountedFile<W> {
    pub file: W,
    /// Bytes written to all files.
    pub bytes: Rc<Cell<u64>>,
}

impl<W: Write> Write for CountedFile<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes.set(self.bytes.get() + written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A sink that ignores events once its files reach their limit.
#[derive(Debug)]
pub struct Bounded<S> {
    pub sink: S,
    /// The size of its files.
    pub bytes: Rc<Cell<u64>>,
    /// The limit of their size.
    pub most: Option<u64>,
    /// Time of the first ignored event.
    pub ends: Option<Time>,
}

impl<S: Sink> Bounded<S> {
    fn accepts(&mut self, at: Time) -> bool {
        if self.ends.is_none() && self.most.is_some_and(|most| self.bytes.get() >= most) {
            self.ends = Some(at);
        }
        self.ends.is_none()
    }

    /// Writes the note about the end of the files, if they end before the run.
    pub fn note(&self, dir: &Path) -> io::Result<()> {
        let (Some(most), Some(ends)) = (self.most, self.ends) else { return Ok(()) };
        let text = format!(
            "{most} bytes: what happens from {:.3} s on is not in these files. `--details-size` has more.\n",
            ends.as_secs_f64()
        );
        fs::write(dir.join(NOTE), text)
    }
}

impl<S: Sink> Sink for Bounded<S> {
    fn interest(&self) -> Interest {
        self.sink.interest()
    }

    fn event(&mut self, event: &Event) {
        if self.accepts(event.at) {
            self.sink.event(event);
        }
    }

    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        if self.accepts(at) {
            self.sink.packet(at, stage, op, side, packet);
        }
    }

    fn passage(&mut self, at: Time, side: Side, packet: &Packet, passage: Passage) {
        if self.accepts(at) {
            self.sink.passage(at, side, packet, passage);
        }
    }
}

/// Size at which the files of a folder end early, if they do.
fn ends_after(folder: &Path) -> Option<u64> {
    let note = fs::read_to_string(folder.join(NOTE)).ok()?;
    note.split_whitespace().next()?.parse().ok()
}

/// Whether the files of a folder are as complete as `most` allows.
pub fn is_enough(folder: &Path, most: Option<u64>) -> bool {
    ends_after(folder).is_none_or(|bytes| most.is_some_and(|most| most <= bytes))
}

/// Number of folders in `dir` that end early.
pub fn early(dir: &Path) -> usize {
    let folders = fs::read_dir(dir).into_iter().flatten().flatten();
    folders.filter(|folder| ends_after(&folder.path()).is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shared() {
        let most: Most = "90MB".parse().unwrap();
        assert_eq!((most.each(3), most.each(0)), (Some(30_000_000), Some(90_000_000)));
        assert_eq!("unlimited".parse::<Most>().unwrap().each(3), None);
        assert!("much".parse::<Most>().unwrap_err().contains("`unlimited`"));
        assert_eq!(Most::USUAL.to_string().parse(), Ok(Most::USUAL));
    }

    #[test]
    fn files_stop_at_the_limit_and_suffice_for_smaller() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = Rc::new(Cell::new(0));
        let mut counted = CountedFile { file: Vec::new(), bytes: bytes.clone() };
        let sink = lasthop_observe::Nothing;
        let mut bounded = Bounded { sink, bytes, most: Some(10), ends: None };
        assert!(bounded.accepts(Time(1)));
        counted.write_all(&[0; 10]).unwrap();
        assert!(!bounded.accepts(Time(2_000_000_000)) && !bounded.accepts(Time(3)));
        assert!(is_enough(dir.path(), None), "no note, nothing missing");
        bounded.note(dir.path()).unwrap();
        let enough = [Some(5), Some(10), Some(11), None].map(|most| is_enough(dir.path(), most));
        assert_eq!(enough, [true, true, false, false]);
        let note = fs::read_to_string(dir.path().join(NOTE)).unwrap();
        assert!(note.starts_with("10 bytes: what happens from 2.000 s on"), "{note}");
    }
}
