//! Tables as files, and atomic writing of files.

mod atomic;
#[cfg(feature = "parquet")]
mod tables;

use std::io::{self, Write as _};
use std::path::Path;

pub use atomic::{AtomicFile, remove_abandoned};
#[cfg(feature = "parquet")]
pub use tables::{parquet, write};

/// Help where a file cannot be written.
#[cfg(feature = "parquet")]
pub(crate) const ROOM: &str = "is there room, and may you write there?";

/// Writes a file whole or not at all.
///
/// # Errors
///
/// Those of the system.
pub fn whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes)?;
    file.commit()
}
