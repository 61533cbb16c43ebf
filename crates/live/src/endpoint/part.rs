//! A received file that has its name only when it is complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A file that grows as `NAME.part` and becomes `NAME` when it is kept; otherwise it is removed.
#[derive(Debug)]
pub(super) struct Part {
    /// `None` once kept.
    file: Option<File>,
    temporary: PathBuf,
    target: PathBuf,
}

impl Part {
    /// A file for what `peer` sends, in a name that is still free: `ADDRESS-PORT-NUMBER`.
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

    /// Gives the complete file its name.
    pub(super) fn keep(mut self) -> io::Result<PathBuf> {
        // On failure the file stays where it is until it is dropped.
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
