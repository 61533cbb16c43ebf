//! A received file that gets its name only when it is complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A file that grows as `NAME.part`. [`Part::keep`] renames it to `NAME`; otherwise it is removed when
/// dropped.
#[derive(Debug)]
pub(super) struct Part {
    /// `None` after the rename.
    file: Option<File>,
    temporary: PathBuf,
    target: PathBuf,
}

impl Part {
    /// Creates a file for data of `peer` under an unused name, `ADDRESS-PORT-NUMBER`.
    pub(super) fn create(directory: &Path, peer: SocketAddr, number: u64) -> io::Result<Part> {
        let address = peer.ip().to_string().replace(':', "_");
        for attempt in 0..1000 {
            let again = if attempt == 0 { String::new() } else { format!("-{attempt}") };
            let name = format!("{address}-{}-{number}{again}", peer.port());
            let (target, temporary) =
                (directory.join(&name), directory.join(format!("{name}.part")));
            if target.exists() {
                continue;
            }
            match File::create_new(&temporary) {
                Ok(file) => return Ok(Part { file: Some(file), temporary, target }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for the file"))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes))
    }

    /// Renames the complete file to its final name.
    pub(super) fn keep(mut self) -> io::Result<PathBuf> {
        // After an error the file is removed when this is dropped.
        fs::rename(&self.temporary, &self.target)?;
        self.file = None;
        Ok(self.target.clone())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of a complete or of a growing file is not reused.
    #[test]
    fn names_that_are_taken_are_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let peer = SocketAddr::from(([10, 0, 0, 1], 7));
        let create = || Part::create(dir.path(), peer, 3).expect("created");
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut first = create();
        first.write(b"one").expect("written");
        let second = create();
        let names = [first, second].map(|part| name(&part.keep().expect("kept")));
        assert_eq!(names, [Some("10.0.0.1-7-3".to_owned()), Some("10.0.0.1-7-3-1".to_owned())]);
        let third = create().keep().expect("kept");
        assert_eq!(name(&third).as_deref(), Some("10.0.0.1-7-3-2"));
        assert_eq!(fs::read(dir.path().join("10.0.0.1-7-3")).expect("read"), b"one");
        drop(create());
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 3, "the others are removed");
    }
}
