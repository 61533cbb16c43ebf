//! Writing results: whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::failure::Failure;

/// Prints to stdout; a closed pipe is reported as such and ends the program quietly.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output)
}

/// Says what became of the runs of a command that somebody interrupted; `dir` is where they are kept, if they are.
pub fn interrupted(dir: Option<&Path>) -> Outcome {
    match dir {
        Some(dir) => eprintln!(
            "interrupted; what is finished is kept in {}: the same command goes on from there",
            dir.display()
        ),
        None => eprintln!(
            "interrupted; with `-o DIR` it would be kept, and the same command would go on"
        ),
    }
    Outcome::Interrupted
}

/// A word as a shell takes it.
pub fn quoted(word: impl AsRef<std::ffi::OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,+%:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Prints a value as JSON.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    print(&json(value)?)
}

/// Makes sure that a directory for results is there and can be written to.
pub fn prepare(dir: &Path) -> Result<(), Failure> {
    let help = "choose a directory that you may write to, with `-o DIR`";
    fs::create_dir_all(dir).map_err(|error| Failure::file(dir, error, help))?;
    // A file that is never committed leaves nothing behind.
    AtomicFile::create(&dir.join("probe"))
        .map(drop)
        .map_err(|error| Failure::file(dir, error, help))
}

/// Writes a whole file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = AtomicFile::create(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.commit()
    });
    written.map_err(|error| Failure::file(path, error, "is there room, and may you write there?"))
}

/// A value as JSON for a file or for stdout.
pub fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Output(io::Error::other(error)))?;
    text.push('\n');
    Ok(text)
}

/// A file that appears under its name only when it is complete: it is written beside it under a temporary
/// name and renamed. Dropped before that, it leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` once committed.
    file: Option<BufWriter<File>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Begins a file that will be called `target`.
    pub fn create(target: &Path) -> io::Result<AtomicFile> {
        AtomicFile::with(target, File::options().write(true).create(true).truncate(true))
    }

    /// Like [`AtomicFile::create`], for a file that nobody else may read.
    #[cfg(target_os = "linux")]
    pub fn create_private(target: &Path) -> io::Result<AtomicFile> {
        use std::os::unix::fs::OpenOptionsExt as _;
        AtomicFile::with(
            target,
            File::options().write(true).create(true).truncate(true).mode(0o600),
        )
    }

    fn with(target: &Path, options: &OpenOptions) -> io::Result<AtomicFile> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        // Two programs that write the same result must not write the same temporary file.
        let temporary = target.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let file = Some(BufWriter::new(options.open(&temporary)?));
        Ok(AtomicFile { file, temporary, target: target.to_owned() })
    }

    /// Gives the complete file its name.
    pub fn commit(self) -> io::Result<()> {
        self.finish(true)
    }

    /// Like [`AtomicFile::commit`], without waiting for the disk: after a power cut the file may be empty.
    pub fn commit_unsynced(self) -> io::Result<()> {
        self.finish(false)
    }

    fn finish(mut self, sync: bool) -> io::Result<()> {
        if let Some(mut file) = self.file.take() {
            let renamed = file
                .flush()
                .and_then(|()| if sync { file.get_ref().sync_all() } else { Ok(()) })
                .and_then(|()| fs::rename(&self.temporary, &self.target));
            if renamed.is_err() {
                let _ = fs::remove_file(&self.temporary);
            }
            return renamed;
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Ok(0),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Rows of a name and a line about it.
pub fn two_columns<'a>(rows: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let width = rows.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, what) in rows {
        // Padded before it is painted: colours have no width.
        let name = crate::style::heading(&format!("{name:<width$}"));
        text += &format!("{name}  {what}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let dir = std::env::temp_dir().join(format!("lasthop-output-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let target = dir.join("result.json");

        let mut dropped = AtomicFile::create(&target).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);

        let mut whole = AtomicFile::create(&target).unwrap();
        whole.write_all(b"whole").unwrap();
        assert!(!target.exists());
        whole.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }
}
