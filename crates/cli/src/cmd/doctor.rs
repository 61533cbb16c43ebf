//! `lasthop doctor`: the abilities of this machine, with remedies for missing ones.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{format, output, style};

/// Show what this machine can run, with remedies for the rest
#[derive(clap::Args, Debug)]
pub struct DoctorArgs {
    /// Directory that results will be written to
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    output: PathBuf,
}

/// A checked requirement.
#[derive(Serialize, Debug)]
struct Check {
    name: Cow<'static, str>,
    ok: bool,
    /// Whether simulations need it.
    required: bool,
    /// The finding.
    found: String,
    purpose: Cow<'static, str>,
    /// The remedy, if it is missing.
    remedy: Cow<'static, str>,
}

/// Runs the command.
pub fn run(args: &DoctorArgs, json: bool) -> Result<Outcome, Failure> {
    let mut checks = vec![
        version(),
        results(&args.output),
        processors(),
        terminal(),
        helper("tshark", "shows captures in depth", "install tshark or Wireshark"),
        helper("tcpdump", "shows captures", "install tcpdump"),
        kernel(),
        tun(),
        outside(),
    ];
    checks.extend(planes());
    checks.extend(testbed());
    if json {
        output::print_json(format::DOCTOR, &serde_json::json!({ "checks": checks }))?;
    } else {
        output::print(&table(&checks))?;
    }
    let missing = checks.iter().any(|check| check.required && !check.ok);
    Ok(if missing { Outcome::No } else { Outcome::Done })
}

fn table(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Check { name, ok, required, found, purpose, remedy } in checks {
        let mark = match (ok, required) {
            (true, _) => style::good("ok     "),
            (false, true) => style::bad("MISSING"),
            (false, false) => style::bad("missing"),
        };
        let _ = writeln!(text, "{mark}  {name:<width$}  {found}");
        if !ok {
            let _ = writeln!(text, "         {:<width$}  for: {purpose}", "");
            let _ = writeln!(text, "         {:<width$}  remedy: {remedy}", "");
        }
    }
    text
}

fn version() -> Check {
    Check {
        name: "lasthop".into(),
        ok: true,
        required: true,
        found: format!(
            "{} for {} on {}",
            crate::version::LINE,
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
        purpose: "".into(),
        remedy: "".into(),
    }
}

fn results(dir: &Path) -> Check {
    // The check must not create a directory, so it tries the nearest existing parent.
    let exists = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("."));
    let ok = output::prepare(exists).is_ok();
    Check {
        name: "results".into(),
        ok,
        required: true,
        found: format!("{} {} be written to", dir.display(), if ok { "can" } else { "cannot" }),
        purpose: "storing results of runs".into(),
        remedy: "choose another directory with `-o DIR`, or change its owner".into(),
    }
}

fn processors() -> Check {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    Check {
        name: "processors".into(),
        ok: true,
        required: false,
        found: format!("{count}, as many runs at a time"),
        purpose: "".into(),
        remedy: "".into(),
    }
}

fn terminal() -> Check {
    let ok = std::io::stdout().is_terminal();
    let colours = if style::stdout_is_colourful() { "with colours" } else { "without colours" };
    Check {
        name: "terminal".into(),
        ok,
        required: false,
        found: if ok { colours.to_owned() } else { "the output is not a terminal".to_owned() },
        purpose: "pictures, progress bars and colours".into(),
        remedy: "none is needed: files and pipes get the same text without colours".into(),
    }
}

/// Found where files of the kernel are missing, as in a bare chroot, and its remedy.
const NO_PROC: &str = "/proc is not mounted here";
const MOUNT_PROC: &str = "mount it: `mount -t proc proc /proc`";

fn kernel() -> Check {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let number = |text: Option<&str>| {
        let digits: String =
            text.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().unwrap_or(0)
    };
    let is_hidden = cfg!(target_os = "linux") && release.is_empty();
    let mut parts = release.split('.');
    let ok = (number(parts.next()), number(parts.next())) >= (5, 4);
    Check {
        name: "kernel".into(),
        ok,
        required: false,
        found: match release {
            "" if is_hidden => NO_PROC.to_owned(),
            "" => "no Linux".to_owned(),
            release => format!("Linux {release}"),
        },
        purpose: "testbed and station, which run on real packets".into(),
        remedy: if is_hidden {
            MOUNT_PROC
        } else {
            "use Linux 5.4 or later; simulations run anywhere"
        }
        .into(),
    }
}

/// Checks of the data planes that a station of this user can have.
#[cfg(live)]
fn planes() -> [Check; 2] {
    let kernel = lasthop_live::plane::probe();
    let remedy = kernel.as_ref().err().map_or("", lasthop_live::plane::Refusal::remedy);
    let socket = nix::net::if_::if_nametoindex("lo")
        .map_err(std::io::Error::from)
        .and_then(lasthop_live::sys::packet_socket::PacketSocket::open);
    [
        Check {
            name: "kernel plane".into(),
            ok: kernel.is_ok(),
            required: false,
            found: match &kernel {
                Ok(()) => "the kernel forwards for a station".to_owned(),
                Err(refusal) => refusal.to_string(),
            },
            purpose: "a station as fast as the kernel, and packets that still flow if it dies; without it, packet \
                      sockets forward"
                .into(),
            remedy: remedy.into(),
        },
        Check {
            name: "station: packet sockets".into(),
            ok: socket.is_ok(),
            required: false,
            found: match &socket {
                Ok(_) => "they can be opened".to_owned(),
                Err(error) => error.to_string(),
            },
            purpose: "a station on real interfaces; without them there is none".into(),
            remedy: "run it with CAP_NET_RAW: the systemd unit has that, and root".into(),
        },
    ]
}

#[cfg(not(live))]
fn planes() -> [Check; 0] {
    []
}

/// Tries a testbed in a separate process, since a process cannot leave its namespaces.
#[cfg(live)]
fn testbed() -> Vec<Check> {
    let output = super::testbed::own(&["testbed", "probe"]).output();
    let probes: Option<Vec<lasthop_live::testbed::probe::Probe>> =
        output.as_ref().ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
    let Some(probes) = probes else {
        let found = match output {
            Ok(output) => format!(
                "the trial ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            ),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => NO_PROC.to_owned(),
            Err(error) => format!("the trial could not be started: {error}"),
        };
        let remedy = if found == NO_PROC { MOUNT_PROC } else { "none is known" };
        return vec![Check {
            name: "testbed".into(),
            ok: false,
            required: false,
            found,
            purpose: "real hosts on one machine".into(),
            remedy: remedy.into(),
        }];
    };
    probes
        .into_iter()
        .map(|probe| Check {
            name: probe.name.into(),
            ok: probe.ok,
            required: false,
            found: probe.found,
            purpose: probe.purpose.into(),
            remedy: probe.remedy.into(),
        })
        .collect()
}

#[cfg(not(live))]
fn testbed() -> Vec<Check> {
    vec![Check {
        name: "testbed".into(),
        ok: false,
        required: false,
        found: "no Linux".to_owned(),
        purpose: "real hosts on one machine".into(),
        remedy: "use Linux, for example in a virtual machine; simulations run anywhere".into(),
    }]
}

fn tun() -> Check {
    let path = "/dev/net/tun";
    let opened = std::fs::File::options().read(true).write(true).open(path);
    let (ok, found, remedy) = match opened.map_err(|error| error.kind()) {
        Ok(_) => (true, path.to_owned(), ""),
        Err(std::io::ErrorKind::PermissionDenied) => (
            false,
            format!("{path} is not for this user"),
            "run `lasthop link` as root: `sudo lasthop link FILE`",
        ),
        Err(_) => (
            false,
            format!("no {path}"),
            "load the module: `sudo modprobe tun`; in a container pass the device on: `--device /dev/net/tun`",
        ),
    };
    Check {
        name: "tun".into(),
        ok,
        required: false,
        found,
        purpose: "tunnels between two machines, `lasthop link`".into(),
        remedy: remedy.into(),
    }
}

#[cfg(live)]
fn way_out() -> Result<String, String> {
    lasthop_live::shell::Helper::find().map(|helper| helper.program().to_owned())
}

#[cfg(not(live))]
fn way_out() -> Result<String, String> {
    Err("no Linux".to_owned())
}

fn outside() -> Check {
    let found = way_out();
    Check {
        name: "outside".into(),
        ok: found.is_ok(),
        required: false,
        found: found.unwrap_or_else(|why| why),
        purpose: "the outside behind the link of `lasthop shell`".into(),
        remedy: "`apt install passt`, or the package slirp4netns; and /dev/net/tun for this user"
            .into(),
    }
}

fn helper(name: &'static str, purpose: &'static str, remedy: &'static str) -> Check {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // `sbin` is often not in the path of ordinary users, though its programs work for them.
    let found = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|file| file.is_file());
    Check {
        name: name.into(),
        ok: found.is_some(),
        required: false,
        found: found.map_or("not found".to_owned(), |file| file.display().to_string()),
        purpose: purpose.into(),
        remedy: remedy.into(),
    }
}
