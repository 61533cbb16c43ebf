//! Stored settings of `lasthop send`: destination, size, and trace.
//!
//! The file `$XDG_STATE_HOME/lasthop/send.toml` is small and private to its owner. A damaged file, or one of
//! another version, is reported and ignored.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use lasthop_proto::units::Bytes;
use serde::{Deserialize, Serialize};

use super::Destination;
use crate::output::AtomicFile;

/// Version of the file format.
const VERSION: u32 = 1;

/// Size limit of a settings file, bytes.
const LONGEST: u64 = 1 << 16;

/// The default size of a transfer, as in the measurements of west97.
pub const AMOUNT: Bytes = Bytes(2_000_000);

/// Stored settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Destination; `None` before the first time.
    pub destination: Option<Destination>,
    /// Size of the transfer.
    pub amount: Bytes,
    /// Whether the control block is traced.
    pub debugging: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { destination: None, amount: AMOUNT, debugging: false }
    }
}

/// The settings as they are in the file, with units.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    version: u32,
    destination: Option<String>,
    bytes: String,
    debug: bool,
}

/// Reads only the version, and ignores all other keys.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Path of the settings, if the environment defines one.
pub fn path() -> Option<PathBuf> {
    // A relative directory counts as not set (XDG Base Directory Specification).
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("lasthop").join("send.toml"))
}

impl Settings {
    /// Loads the settings from `path`; returns the defaults if the file does not exist.
    ///
    /// # Errors
    ///
    /// Reason why the file is unusable.
    pub fn load(path: &Path) -> Result<Settings, String> {
        let mut text = String::new();
        match File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Settings::default()),
            Err(error) => return Err(error.to_string()),
        }
        let damaged = |error: toml::de::Error| format!("it is damaged: {}", error.message());
        let Version { version } = toml::from_str(&text).map_err(damaged)?;
        if version != VERSION {
            return Err(format!("it is of version {version}, this program supports {VERSION}"));
        }
        let written: SettingsFile = toml::from_str(&text).map_err(damaged)?;
        let damaged = |error: String| format!("it is damaged: {error}");
        Ok(Settings {
            destination: written
                .destination
                .map(|word| word.parse())
                .transpose()
                .map_err(damaged)?,
            amount: written.bytes.parse().map_err(|error| damaged(format!("{error}")))?,
            debugging: written.debug,
        })
    }

    /// Saves the settings to `path`.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        if let Some(directory) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let written = SettingsFile {
            version: VERSION,
            destination: self.destination.as_ref().map(Destination::to_string),
            bytes: self.amount.to_string(),
            debug: self.debugging,
        };
        let text = toml::to_string(&written).map_err(io::Error::other)?;
        let mut file = AtomicFile::create_private(path)?;
        file.write_all(text.as_bytes())?;
        file.commit_unsynced()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn saved_settings_are_loaded_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/lasthop/send.toml");
        assert_eq!(Settings::load(&path), Ok(Settings::default()));
        let settings = Settings {
            destination: Some("[::1]:9".parse().unwrap()),
            amount: Bytes(65_536),
            debugging: true,
        };
        settings.save(&path).unwrap();
        assert_eq!(Settings::load(&path), Ok(settings));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let directory = fs::metadata(path.parent().unwrap()).unwrap();
        assert_eq!(directory.permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn invalid_settings_files_report_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("send.toml");
        for (text, why) in [
            (&b"version = 2\nnew = 1"[..], "version 2"),
            (b"version = 1\nbytes = \"2MB\"", "debug"),
            (b"version = 1\nbytes = \"lots\"\ndebug = false", "lots"),
            (b"version = 1\nbytes = \"1MB\"\ndebug = false\ndestination = \":\"", "host"),
            (b"\x00\xff\xfe", "UTF-8"),
            (b"versi", "damaged"),
            (b"", "version"),
        ] {
            fs::write(&path, text).unwrap();
            let error = Settings::load(&path).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        fs::write(&path, vec![b'['; 1 << 20]).unwrap();
        assert!(Settings::load(&path).is_err());
        assert!(Settings::load(dir.path()).is_err(), "a directory is no file");
    }
}
