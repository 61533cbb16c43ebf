//! The scripts of this repository against the TCP of this machine: they are right only if the kernel passes
//! them.
//!
//! Each run needs a process without threads, unlike a test under the usual harness: this program starts
//! itself.

#[cfg(all(target_os = "linux", feature = "kernel"))]
#[path = "../../checks/shared/can_run.rs"]
mod can_run;

#[cfg(not(all(target_os = "linux", feature = "kernel")))]
fn main() {}

#[cfg(all(target_os = "linux", feature = "kernel"))]
fn main() {
    linux::main();
}

#[cfg(all(target_os = "linux", feature = "kernel"))]
mod linux {
    use std::path::{Path, PathBuf};
    use std::process::{Command, exit};
    use std::sync::Mutex;

    use lasthop_packetdrill::run::kernel::Kernel;
    use lasthop_packetdrill::run::{Rules, Verdict, play};
    use lasthop_packetdrill::script::Script;

    use super::can_run::can_run;

    /// Names the script for the process.
    const SCRIPT: &str = "LASTHOP_PACKETDRILL_SCRIPT";
    /// Values of `tcp_info` that are times. With rough times their assertions are not checked.
    const TIMES: [&str; 4] = ["tcpi_rtt", "tcpi_rto", "tcpi_busy_time", "tcpi_rwnd_limited"];
    /// Whether times may be far off.
    const ROUGH: &str = "LASTHOP_PACKETDRILL_ROUGH";
    /// Exit code if the machine does not allow such runs.
    const REFUSED: i32 = 3;
    /// Number of runs of which one must pass with the script's own times: other programs disturb them.
    const TRIES: u32 = 3;
    /// Number of further runs, of which one must pass with rough times.
    const ROUGH_TRIES: u32 = 12;
    /// Scripts that run in parallel: they mostly wait.
    const WORKERS: usize = 3;

    /// Result of a script.
    enum Ending {
        InTime,
        /// The order is right, and times were missed on a busy machine.
        InOrder(String),
        Wrong(String),
    }

    pub(super) fn main() {
        if let Some(path) = std::env::var_os(SCRIPT) {
            exit(one(Path::new(&path), std::env::var_os(ROUGH).is_some()));
        }
        let name = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let wanted = |path: &PathBuf| {
            name.as_ref().is_none_or(|name| path.to_string_lossy().contains(name.as_str()))
        };
        let mut paths: Vec<PathBuf> = paths.filter(wanted).collect();
        paths.sort();
        let count = paths.len();
        let Some(first) = paths.first() else { return };
        if run(first, false).0 == Some(REFUSED) {
            can_run(false, "a network namespace and /dev/net/tun");
            return;
        }
        let queue = Mutex::new(paths);
        let endings = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    loop {
                        let Some(path) = queue.lock().unwrap().pop() else { return };
                        let ending = ending(&path);
                        endings.lock().unwrap().push((path, ending));
                    }
                });
            }
        });
        let endings = endings.into_inner().unwrap();
        let mut wrong = Vec::new();
        let mut late = 0;
        for (path, ending) in &endings {
            match ending {
                Ending::InTime => {}
                Ending::InOrder(failures) => {
                    late += 1;
                    println!("in order, not in time: {}: {failures}", path.display());
                }
                Ending::Wrong(failures) => wrong.push(format!("{}: {failures}", path.display())),
            }
        }
        let passed = count - wrong.len() - late;
        println!("{passed} of {count} scripts pass, {late} in order only, {} fail", wrong.len());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Order counts before times: a script that misses only its times is disturbed, not wrong.
    fn ending(path: &Path) -> Ending {
        let mut failures = String::new();
        for _ in 0..TRIES {
            let (code, text) = run(path, false);
            if code == Some(0) {
                return Ending::InTime;
            }
            failures = text;
        }
        match (0..ROUGH_TRIES).any(|_| run(path, true).0 == Some(0)) {
            true => Ending::InOrder(failures),
            false => Ending::Wrong(failures),
        }
    }

    /// Runs one script in a separate process; returns its exit code and the failures.
    fn run(path: &Path, rough: bool) -> (Option<i32>, String) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(SCRIPT, path).env_remove(ROUGH);
        if rough {
            command.env(ROUGH, "1");
        }
        let output = command.output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text.trim().to_owned())
    }

    /// The script without assertions about times, and without its own tolerance.
    fn without_times(text: &str) -> String {
        let line = |line: &str| match line.split_once("%{") {
            _ if line.starts_with("--tolerance") => "\n".to_owned(),
            Some((at, code)) if TIMES.iter().any(|name| code.contains(name)) => {
                format!("{at}%{{ assert 1 == 1 }}%\n")
            }
            _ => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    }

    /// Runs one script in this process and prints the failures.
    fn one(path: &Path, rough: bool) -> i32 {
        let mut text = std::fs::read_to_string(path).unwrap();
        if rough {
            text = without_times(&text);
        }
        let script = Script::parse(&text).unwrap();
        let mut world = match Kernel::enter() {
            Ok(world) => world,
            Err(error) => {
                println!("{error}");
                return REFUSED;
            }
        };
        let mut rules = Rules::default();
        if rough {
            (rules.tolerance, rules.percent) = (60_000_000, 30.0);
        }
        let outcome = play(&script, &mut world, &rules);
        if std::env::var_os("TRACE").is_some() {
            for entry in &outcome.trace {
                println!("{:.6} {:?} {}", entry.at as f64 / 1e9, entry.kind, entry.text);
            }
            println!("not applied: {:?}", outcome.notes);
        }
        match outcome.verdict {
            Verdict::Pass => 0,
            other => {
                println!("{other:?}");
                1
            }
        }
    }
}
