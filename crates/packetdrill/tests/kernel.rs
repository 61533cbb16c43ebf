//! The scripts of this repository against the TCP of this machine: they are right only if the kernel passes them.
//!
//! Each run needs a process without threads, which a test under the usual harness never is: this program starts itself.

use std::path::{Path, PathBuf};
use std::process::Command;

#[cfg(all(target_os = "linux", feature = "kernel"))]
#[path = "../../checks/shared/can_run.rs"]
mod can_run;

/// Names the script that the process is to run.
const SCRIPT: &str = "LASTHOP_PACKETDRILL_SCRIPT";
/// Exit code where the machine does not allow such runs.
const REFUSED: i32 = 3;
/// Runs of which one must pass: other programs disturb times.
const TRIES: u32 = 4;

#[cfg(all(target_os = "linux", feature = "kernel"))]
fn main() {
    if let Some(path) = std::env::var_os(SCRIPT) {
        std::process::exit(one(Path::new(&path)));
    }
    let name = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let wanted = |path: &&PathBuf| {
        name.as_ref().is_none_or(|name| path.to_string_lossy().contains(name.as_str()))
    };
    let mut wrong = Vec::new();
    for path in paths.iter().filter(wanted) {
        let mut said = String::new();
        let passed = (0..TRIES).any(|_| {
            let program = std::env::current_exe().unwrap();
            let output = Command::new(program).env(SCRIPT, path).output().unwrap();
            said = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.code() == Some(REFUSED) {
                can_run::can_run(false, "a network namespace and /dev/net/tun");
                std::process::exit(0);
            }
            output.status.success()
        });
        if !passed {
            wrong.push(format!("{}: {said}", path.display()));
        }
    }
    println!("{} of {} scripts failed", wrong.len(), paths.iter().filter(wanted).count());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[cfg(not(all(target_os = "linux", feature = "kernel")))]
fn main() {}

/// Runs one script; prints what does not hold.
#[cfg(all(target_os = "linux", feature = "kernel"))]
fn one(path: &Path) -> i32 {
    use lasthop_packetdrill::run::kernel::Kernel;
    use lasthop_packetdrill::run::{Rules, Verdict, play};
    use lasthop_packetdrill::script::Script;
    let text = std::fs::read_to_string(path).unwrap();
    let script = Script::parse(&text).unwrap();
    let mut world = match Kernel::enter() {
        Ok(world) => world,
        Err(error) => {
            println!("{error}");
            return REFUSED;
        }
    };
    let outcome = play(&script, &mut world, &Rules::default());
    if std::env::var_os("TRACE").is_some() {
        for entry in &outcome.trace {
            println!("{:.6} {:?} {}", entry.at as f64 / 1e9, entry.kind, entry.text);
        }
    }
    match outcome.verdict {
        Verdict::Pass => 0,
        other => {
            println!("{other:?}");
            1
        }
    }
}
