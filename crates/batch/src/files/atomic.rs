//! Atomic files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that appears under its name only when it is complete: it is written next to it under a temporary name and
/// renamed. If it is dropped before that, no file remains. What exists and is no file, such as `/dev/null` or a pipe, is written
/// to and not replaced.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` once committed.
    file: Option<BufWriter<File>>,
    /// `None` if the target is written to directly.
    temporary: Option<PathBuf>,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts a file with the final name `target`.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn create(target: &Path) -> io::Result<AtomicFile> {
        if fs::metadata(target).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            let file = Some(BufWriter::new(File::options().write(true).open(target)?));
            return Ok(AtomicFile { file, temporary: None, target: target.to_owned() });
        }
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        // Two programs that write the same result must not write the same temporary file.
        let temporary = target.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let file = Some(BufWriter::new(File::create(&temporary)?));
        Ok(AtomicFile { file, temporary: Some(temporary), target: target.to_owned() })
    }

    /// Renames the complete file to its final name.
    ///
    /// # Errors
    ///
    /// Those of the system; then there is no file.
    pub fn commit(mut self) -> io::Result<()> {
        if let Some(mut file) = self.file.take() {
            let Some(temporary) = &self.temporary else { return file.flush() };
            let renamed = file
                .flush()
                .and_then(|()| file.get_ref().sync_all())
                .and_then(|()| fs::rename(temporary, &self.target));
            if renamed.is_err() {
                let _ = fs::remove_file(temporary);
            }
            return renamed;
        }
        Ok(())
    }
}

/// Removes temporary files of killed programs from `dir`: their names end in the id of a process that no longer exists.
/// Without a list of processes nothing is removed.
pub fn remove_abandoned(dir: &Path) {
    let (Ok(entries), true) = (fs::read_dir(dir), Path::new("/proc/self").exists()) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let owner = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
        let owner = owner.and_then(|name| name.rsplit('.').next()?.parse::<u32>().ok());
        if owner.is_some_and(|id| !Path::new("/proc").join(id.to_string()).exists()) {
            // Another process may remove it first.
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
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
        if let (Some(_), Some(temporary)) = (self.file.take(), &self.temporary) {
            let _ = fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_temporary_files_are_removed() {
        let dir = std::env::temp_dir().join(format!("lasthop-abandoned-{}", std::process::id()));
        fs::create_dir_all(dir.join(".trace.4294967295.tmp")).unwrap();
        let own = format!(".result.{}.tmp", std::process::id());
        for name in [".result.json.4294967295.tmp", &own, "result.4294967295.tmp", ".a.b.tmp"] {
            fs::write(dir.join(name), b"half").unwrap();
        }
        remove_abandoned(&dir);
        let left =
            fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut left: Vec<String> = left.collect();
        left.sort();
        let mut remaining = [".a.b.tmp".to_owned(), own, "result.4294967295.tmp".to_owned()];
        remaining.sort();
        assert_eq!(left, remaining);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_file_appears_only_when_completely_written() {
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

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_to_and_stays() {
        use std::os::unix::fs::FileTypeExt as _;
        let device = Path::new("/dev/null");
        let mut file = AtomicFile::create(device).unwrap();
        file.write_all(b"nothing").unwrap();
        file.commit().unwrap();
        drop(AtomicFile::create(device).unwrap());
        assert!(fs::metadata(device).unwrap().file_type().is_char_device());
    }
}
