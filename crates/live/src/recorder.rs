//! Captures of a running station: one per interface and link, and one of all drops, rotated and bounded in
//! size.
//!
//! A generation is a set of files `NAME.NUMBER.pcapng`. At its size limit the next generation begins, and the
//! oldest one is removed. Times are wall-clock times. The captures of interfaces contain TCP only, as it
//! arrives.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lasthop_observe::Sink;
use lasthop_observe::pcapng::{CapturePoint, CaptureSink};
use lasthop_proto::event::Op;
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::Packet;
use lasthop_scenario::Captures;
use serde::{Deserialize, Serialize};

use crate::lock;

const SUFFIX: &str = ".pcapng";
/// File name of the drops.
const DROPS: &str = "drops";

/// Status of the captures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecorderStatus {
    /// The directory.
    pub dir: String,
    /// Number of the current generation.
    pub generation: u64,
    /// Bytes written to it.
    pub bytes: u64,
    /// Reason why writing has stopped.
    pub failed: Option<String>,
}

#[derive(Debug, Default)]
struct Shared {
    generation: AtomicU64,
    bytes: AtomicU64,
    failed: Mutex<Option<String>>,
}

impl Shared {
    /// Stores the first reason why writing has stopped.
    fn fail(&self, why: String) {
        let mut failed = lock(&self.failed);
        failed.get_or_insert(why);
    }
}

/// A view of a recorder for other threads.
#[derive(Clone, Debug)]
pub struct Recorded {
    dir: String,
    shared: Arc<Shared>,
}

impl Recorded {
    /// Status of the captures.
    pub fn status(&self) -> RecorderStatus {
        let failed = lock(&self.shared.failed);
        RecorderStatus {
            dir: self.dir.clone(),
            generation: self.shared.generation.load(Ordering::Relaxed),
            bytes: self.shared.bytes.load(Ordering::Relaxed),
            failed: failed.clone(),
        }
    }
}

/// Counts written bytes.
#[derive(Debug)]
struct CountingFile {
    file: BufWriter<File>,
    shared: Arc<Shared>,
}

impl Write for CountingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.file.write(bytes);
        match &result {
            Ok(written) => {
                self.shared.bytes.fetch_add(*written as u64, Ordering::Relaxed);
            }
            // The capture reports its error only at its end, which may be far away.
            Err(error) => self.shared.fail(error.to_string()),
        }
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The sink that captures.
#[derive(Debug)]
pub struct Recorder {
    config: Captures,
    dir: PathBuf,
    points: Vec<CapturePoint>,
    /// The stages at the ends, which represent the interfaces.
    ends: [StageId; 2],
    /// Wall-clock time at zero of the station's clock, nanoseconds since 1970.
    epoch: u64,
    sink: Option<CaptureSink<CountingFile>>,
    shared: Arc<Shared>,
}

impl Recorder {
    /// Starts captures at `points`. `ends` are the interfaces; `epoch` is the wall-clock time at zero.
    ///
    /// # Errors
    /// If the directory cannot be created or written to.
    pub fn new(
        config: &Captures,
        points: Vec<CapturePoint>,
        ends: [StageId; 2],
        epoch: u64,
    ) -> io::Result<Recorder> {
        let dir = PathBuf::from(&config.dir);
        fs::create_dir_all(&dir)?;
        let shared = Arc::new(Shared::default());
        let last = generations(&dir).last().copied().unwrap_or(0);
        shared.generation.store(last, Ordering::Relaxed);
        let config = config.clone();
        let mut recorder = Recorder { config, dir, points, ends, epoch, sink: None, shared };
        recorder.begin()?;
        Ok(recorder)
    }

    /// A view for other threads.
    pub fn recorded(&self) -> Recorded {
        Recorded { dir: self.config.dir.clone(), shared: self.shared.clone() }
    }

    /// Starts a generation, and removes outdated ones.
    fn begin(&mut self) -> io::Result<()> {
        let number = self.shared.generation.load(Ordering::Relaxed) + 1;
        self.shared.generation.store(number, Ordering::Relaxed);
        self.shared.bytes.store(0, Ordering::Relaxed);
        let (dir, shared) = (&self.dir, &self.shared);
        self.sink = Some(CaptureSink::new(&self.points, self.config.payload, |point| {
            let name = point.map_or(DROPS, |point| point.name.as_str());
            let file = File::create(dir.join(format!("{name}.{number:06}{SUFFIX}")))?;
            Ok(CountingFile { file: BufWriter::new(file), shared: shared.clone() })
        })?);
        let retained = u64::from(self.config.files);
        for old in generations(dir).into_iter().filter(|old| old + retained <= number) {
            for path in files(dir).filter(|path| generation(path) == Some(old)) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Ends the generation; its files are complete.
    fn end(&mut self) -> io::Result<()> {
        let Some(sink) = self.sink.take() else { return Ok(()) };
        let captures = sink.finish()?;
        for mut file in captures.links.into_iter().map(|(_, file)| file).chain([captures.drops]) {
            file.flush()?;
        }
        Ok(())
    }

    /// Stops writing after an error.
    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.sink = None;
            self.shared.fail(error.to_string());
        }
    }
}

impl Sink for Recorder {
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        let at = Time(at.0.saturating_add(self.epoch));
        // A packet that a host originates has arrived on its interface, and one that it receives leaves
        // there.
        let (reported, carried) = match op {
            Op::Originated(_) if self.ends.contains(&stage) => (true, true),
            Op::Received if self.ends.contains(&stage) => (false, true),
            _ => (true, false),
        };
        if let Some(sink) = &mut self.sink {
            if reported {
                sink.packet(at, stage, op, side, packet);
            }
            if carried {
                sink.packet(at, stage, Op::Transmitted, side, packet);
            }
        }
        if self.shared.bytes.load(Ordering::Relaxed) >= self.config.file_size.0 {
            let result = self.end().and_then(|()| self.begin());
            self.note(result);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let result = self.end();
        self.note(result);
    }
}

fn files(dir: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Parses the number in `NAME.000123.pcapng`.
fn generation(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
    let (_, number) = name.rsplit_once('.')?;
    if number.len() < 6 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    number.parse().ok()
}

fn generations(dir: &Path) -> Vec<u64> {
    let mut found: Vec<u64> = files(dir).filter_map(|path| generation(&path)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbered_captures_have_a_generation() {
        let of = |name: &str| generation(Path::new(name));
        assert_eq!(of("/x/radio.000012.pcapng"), Some(12));
        assert_eq!(of("a.b.1000000.pcapng"), Some(1_000_000));
        for other in ["radio.pcapng", "radio.12.pcapng", "radio.000012.pcap", "x.00001a.pcapng"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    /// Each of two points writes one file per generation.
    #[test]
    fn generations_are_listed_in_order_without_duplicates() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(generations(dir.path()).is_empty());
        for name in
            ["a.000012.pcapng", "b.000012.pcapng", "a.000003.pcapng", "a.000100.pcapng", "x"]
        {
            fs::write(dir.path().join(name), "").expect("written");
        }
        assert_eq!(generations(dir.path()), [3, 12, 100]);
    }
}
