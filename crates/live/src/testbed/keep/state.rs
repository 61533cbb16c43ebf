//! Records of testbeds: one directory each, in a directory that only its owner can enter.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use super::super::error::{Error, Tried as _};
use super::super::host::Side;
use super::process::Process;

/// Name of the record in a testbed's directory.
pub(super) const RECORD: &str = "testbed.json";
/// Name of the background process's log.
pub(super) const LOG: &str = "log";
/// File with the testbed's token, in its own mount namespace.
pub(super) const TOKEN: &str = "/run/lasthop-token";
/// Size limit of a record, bytes.
const LONGEST: u64 = 1 << 20;

/// A testbed that is or was up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Token in the environment of the programs inside.
    pub token: String,
    /// Boot identifier of the machine.
    pub boot: String,
    /// The process that holds it.
    pub process: Process,
    /// Description of its origin, for users.
    pub origin: String,
    /// Whether cables carry packets larger than the MTU.
    pub offloads: bool,
    /// Number of its user namespace; the machine's if root made it.
    pub user: u64,
    /// Number of its mount namespace.
    pub mount: u64,
    /// Base station and hosts.
    pub hosts: Vec<HostRecord>,
}

/// A host of a testbed, or its base station.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its name.
    pub name: String,
    /// Side of the base station; `None` for the base station itself.
    pub side: Option<Side>,
    /// IPv4 address.
    pub v4: Option<Ipv4Addr>,
    /// IPv6 address.
    pub v6: Option<Ipv6Addr>,
    /// Name of its preset.
    pub preset: Option<String>,
    /// Number of its network namespace; `None` for a host without kernel.
    pub namespace: Option<u64>,
}

impl Record {
    /// Whether its process runs.
    pub fn is_up(&self) -> bool {
        self.boot == boot() && self.process.runs()
    }

    /// The host or base station of this name.
    ///
    /// # Errors
    ///
    /// If it does not exist; the error lists the existing ones.
    pub fn host(&self, name: &str) -> Result<&HostRecord, Error> {
        self.hosts.iter().find(|host| host.name == name).ok_or_else(|| {
            let names: Vec<_> = self.hosts.iter().map(|host| host.name.as_str()).collect();
            Error::new(
                format!("there is no host `{name}` in testbed `{}`", self.name),
                format!("there are {}", names.join(", ")),
            )
        })
    }
}

/// State of a testbed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Ready for use.
    Up,
    /// Being made.
    Starting,
    /// Its process has ended; `clean` removes the remains.
    Dead,
}

/// A testbed's directory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: Status,
    /// Its record, if written already.
    pub record: Option<Record>,
}

/// The directory of a user's testbeds.
#[derive(Debug)]
pub struct Home {
    dir: PathBuf,
}

impl Home {
    /// The user's directory: `$XDG_RUNTIME_DIR/lasthop` if the user owns it, else `/tmp/lasthop-UID`. Creates
    /// a missing one.
    ///
    /// # Errors
    ///
    /// If another user owns it, others may enter it, or it is a link.
    pub fn open() -> Result<Home, Error> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        // With `sudo` it may belong to another user; after a logout it does not exist.
        let runtime = runtime.filter(|dir| dir.is_absolute() && check(dir).is_ok());
        Home::at(match runtime {
            Some(dir) => dir.join("lasthop"),
            None => PathBuf::from(format!("/tmp/lasthop-{}", outer_user())),
        })
    }

    /// The given directory. Creates a missing one.
    ///
    /// # Errors
    ///
    /// As [`Home::open`].
    pub fn at(dir: PathBuf) -> Result<Home, Error> {
        match DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(Error::new(
                    format!("cannot create {}: {error}", dir.display()),
                    "set XDG_RUNTIME_DIR to a directory of yours with mode 0700",
                ));
            }
        }
        check(&dir).map_err(|why| {
            Error::new(
                format!("{} cannot be used: {why}", dir.display()),
                "remove it, or set XDG_RUNTIME_DIR to a directory of yours with mode 0700",
            )
        })?;
        Ok(Home { dir })
    }

    /// Path of the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Path of a testbed's directory.
    pub(super) fn of(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Waits for the exclusive lock of the directory.
    pub(super) fn lock(&self) -> Result<Flock<File>, Error> {
        Flock::lock(self.lock_file()?, FlockArg::LockExclusive)
            .map_err(|(_, error)| error)
            .tried(|| format!("lock {}", self.dir.display()))
    }

    fn lock_file(&self) -> Result<File, Error> {
        let path = self.dir.join(".lock");
        File::options()
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .tried(|| format!("open {}", path.display()))
    }

    /// All testbeds, by name.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        // The maker of a testbed holds the lock. A shared lock would suffice; the exclusive one also delays
        // new testbeds.
        let quiet = Flock::lock(self.lock_file()?, FlockArg::LockExclusiveNonblock).ok();
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.dir).tried(|| format!("read {}", self.dir.display()))? {
            let name = entry.ok().and_then(|entry| entry.file_name().into_string().ok());
            if let Some(name) = name.filter(|name| is_name(name)) {
                entries.push(self.entry(&name, quiet.is_some()));
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// The entry of one testbed. With `quiet`, no testbed is being made.
    pub(super) fn entry(&self, name: &str, quiet: bool) -> Entry {
        let record = self.read(name);
        let status = match &record {
            Some(record) if record.is_up() => Status::Up,
            None if !quiet => Status::Starting,
            _ => Status::Dead,
        };
        Entry { name: name.to_owned(), status, record }
    }

    fn read(&self, name: &str) -> Option<Record> {
        let file = self.of(name).join(RECORD);
        let size = fs::symlink_metadata(&file).ok().filter(fs::Metadata::is_file)?.len();
        let text = (size <= LONGEST).then(|| fs::read(&file).ok())??;
        // A record of another version may be unreadable; then its process must end before the removal.
        serde_json::from_slice::<Record>(&text).ok().filter(|record| record.name == name)
    }

    /// The testbed of this name, or the only one that is up.
    ///
    /// # Errors
    ///
    /// If it is not up, or there are several and `name` is `None`.
    pub fn find(&self, name: Option<&str>) -> Result<Record, Error> {
        let entries = self.entries()?;
        let up = |entry: &&Entry| entry.status == Status::Up;
        let names: Vec<_> = entries.iter().filter(up).map(|entry| entry.name.as_str()).collect();
        let help = match names.as_slice() {
            [] => "start one: `lasthop testbed up`".to_owned(),
            names => format!("these are up: {}", names.join(", ")),
        };
        let mut found = entries.iter().filter(up);
        let found = match name {
            Some(name) => found.find(|entry| entry.name == name).ok_or_else(|| {
                let dead =
                    entries.iter().any(|entry| entry.name == name && entry.status == Status::Dead);
                if dead {
                    Error::new(
                        format!("the process of testbed `{name}` has ended"),
                        "remove what it left with `lasthop testbed clean`, then start it again",
                    )
                } else {
                    Error::new(format!("no testbed `{name}` is up"), help)
                }
            })?,
            None => match (found.next(), found.next()) {
                (Some(only), None) => only,
                (None, _) => return Err(Error::new("no testbed is up", help)),
                _ => {
                    return Err(Error::new(
                        "more than one testbed is up",
                        format!("choose one with `--name NAME`: {}", names.join(", ")),
                    ));
                }
            },
        };
        found.record.clone().ok_or_else(|| Error::new("the testbed has no record", ""))
    }
}

/// The user outside the user namespace. Inside a testbed a user must find the same directory, and must not
/// create root's.
fn outer_user() -> u32 {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    outside(&map, geteuid().as_raw())
}

/// Translates a user to the outer number, with a map of lines: first number inside, outside, count.
fn outside(map: &str, user: u32) -> u32 {
    let mut lines = map.lines().filter_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(|word| word.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??, numbers.next()??))
    });
    let found = lines.find_map(|(inside, outside, count)| {
        let offset = user.checked_sub(inside).filter(|offset| *offset < count)?;
        outside.checked_add(offset)
    });
    found.unwrap_or(user)
}

/// Writes a record atomically.
pub(super) fn write(dir: &Path, record: &Record) -> Result<(), Error> {
    let temporary = dir.join(".testbed.json.tmp");
    let text = serde_json::to_vec_pretty(record).tried(|| "write the record")?;
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(&text))
        .and_then(|()| fs::rename(&temporary, dir.join(RECORD)))
        .tried(|| "write the testbed's record")
}

/// Whether `name` is a valid name of a testbed, which names a directory.
pub fn is_name(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Boot identifier of the machine.
pub(super) fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Whether a directory is safe: own, closed to others, and no link.
fn check(dir: &Path) -> Result<(), String> {
    let meta = fs::symlink_metadata(dir).map_err(|error| error.to_string())?;
    if !meta.is_dir() {
        return Err("it is no directory".to_owned());
    }
    if meta.uid() != geteuid().as_raw() {
        return Err(format!("it belongs to user {}, not to you", meta.uid()));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(format!("others may enter it (mode {:o}, expected 700)", meta.mode() & 0o777));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn names_are_those_of_directories() {
        for good in ["testbed", "2", "a-b_c.d"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", ".lock", "a/b", "-x", "a b", &"x".repeat(33)] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_user_is_known_by_the_number_outside() {
        let whole = "         0          0 4294967295\n";
        assert_eq!((outside(whole, 0), outside(whole, 1000)), (0, 1000));
        assert_eq!(outside("0 1000 1\n", 0), 1000);
        assert_eq!(outside("0 1000 1\n1 100000 65536\n", 5), 100_004);
        assert_eq!(
            (outside("0 1000 1\n", 7), outside("", 7), outside("x y z\n1 2\n", 7)),
            (7, 7, 7)
        );
    }

    #[test]
    fn a_directory_that_others_could_have_made_is_refused() {
        let base = std::env::temp_dir().join(format!("lasthop-home-{}", std::process::id()));
        fs::create_dir(&base).unwrap();
        let home = Home::at(base.join("good")).unwrap();
        assert_eq!(fs::metadata(home.dir()).unwrap().mode() & 0o777, 0o700);
        assert!(home.entries().unwrap().is_empty());

        symlink(base.join("good"), base.join("link")).unwrap();
        assert!(Home::at(base.join("link")).unwrap_err().message.contains("no directory"));
        fs::create_dir(base.join("open")).unwrap();
        fs::set_permissions(base.join("open"), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Home::at(base.join("open")).unwrap_err().message.contains("mode 755"));
        if geteuid().is_root() {
            fs::create_dir(base.join("foreign")).unwrap();
            std::os::unix::fs::chown(base.join("foreign"), Some(65_534), None).unwrap();
            assert!(
                Home::at(base.join("foreign")).unwrap_err().message.contains("belongs to user")
            );
        }
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_record_is_judged_by_its_process() {
        let base = std::env::temp_dir().join(format!("lasthop-record-{}", std::process::id()));
        let home = Home::at(base.clone()).unwrap();
        let own = Process::own().unwrap();
        let mut record = Record {
            name: "one".to_owned(),
            token: "t".to_owned(),
            boot: boot(),
            process: own,
            origin: String::new(),
            offloads: false,
            user: 1,
            mount: 2,
            hosts: Vec::new(),
        };
        let put = |record: &Record| {
            let _ = fs::create_dir(home.of(&record.name));
            write(&home.of(&record.name), record).unwrap();
        };
        put(&record);
        assert_eq!(home.find(None).unwrap(), record);
        // The process number was reused.
        record.name = "two".to_owned();
        record.process.start += 1;
        put(&record);
        // The machine was rebooted.
        (record.name, record.process, record.boot) = ("three".to_owned(), own, "x".to_owned());
        put(&record);
        // An invalid record counts as missing.
        fs::create_dir(home.of("four")).unwrap();
        fs::write(home.of("four").join(RECORD), "{").unwrap();
        let status: Vec<_> =
            home.entries().unwrap().into_iter().map(|entry| (entry.name, entry.status)).collect();
        let expected = [
            ("four", Status::Dead),
            ("one", Status::Up),
            ("three", Status::Dead),
            ("two", Status::Dead),
        ];
        assert_eq!(status, expected.map(|(name, status)| (name.to_owned(), status)));
        assert!(home.find(Some("two")).unwrap_err().help.contains("clean"));
        assert!(home.find(Some("five")).unwrap_err().help.contains("these are up: one"));
        // While the lock is held, a testbed without a record counts as starting.
        let lock = home.lock().unwrap();
        assert_eq!(home.entries().unwrap()[0].status, Status::Starting);
        drop(lock);
        fs::remove_dir_all(&base).unwrap();
    }
}
