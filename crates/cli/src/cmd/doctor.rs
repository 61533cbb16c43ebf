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

/// A check that simulations do not need.
fn check(
    name: impl Into<Cow<'static, str>>,
    ok: bool,
    found: impl Into<String>,
    purpose: impl Into<Cow<'static, str>>,
    remedy: impl Into<Cow<'static, str>>,
) -> Check {
    let (name, found) = (name.into(), found.into());
    Check { name, ok, required: false, found, purpose: purpose.into(), remedy: remedy.into() }
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
    let (os, processor) = (std::env::consts::OS, std::env::consts::ARCH);
    let found = format!("{} for {os} on {processor}", crate::version::LINE);
    Check { required: true, ..check("lasthop", true, found, "", "") }
}

fn results(dir: &Path) -> Check {
    // The check must not create a directory, so it tries the nearest existing parent.
    let exists = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("."));
    let ok = output::prepare(exists).is_ok();
    let found = format!("{} {} be written to", dir.display(), if ok { "can" } else { "cannot" });
    let remedy = "choose another directory with `-o DIR`, or change its owner";
    Check { required: true, ..check("results", ok, found, "storing results of runs", remedy) }
}

fn processors() -> Check {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    check("processors", true, format!("{count}, as many runs at a time"), "", "")
}

fn terminal() -> Check {
    let ok = std::io::stdout().is_terminal();
    let found = match style::stdout_is_colourful() {
        _ if !ok => "the output is not a terminal",
        true => "with colours",
        false => "without colours",
    };
    let remedy = "none is needed: files and pipes get the same text without colours";
    check("terminal", ok, found, "pictures, progress bars and colours", remedy)
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
    let found = match release {
        "" if is_hidden => NO_PROC.to_owned(),
        "" => "no Linux".to_owned(),
        release => format!("Linux {release}"),
    };
    let remedy = match is_hidden {
        true => MOUNT_PROC,
        false => "use Linux 5.4 or later; simulations run anywhere",
    };
    check("kernel", ok, found, "testbed and station, which run on real packets", remedy)
}

/// Checks of the data planes that a station of this user can have.
#[cfg(live)]
fn planes() -> [Check; 2] {
    let kernel = lasthop_live::plane::probe();
    let remedy = kernel.as_ref().err().map_or("", lasthop_live::plane::Refusal::remedy);
    let socket = nix::net::if_::if_nametoindex("lo")
        .map_err(std::io::Error::from)
        .and_then(lasthop_live::sys::packet_socket::PacketSocket::open);
    let found = kernel
        .as_ref()
        .map_or_else(ToString::to_string, |()| "the kernel forwards for a station".into());
    let purpose = "a station as fast as the kernel, and packets that still flow if it dies; without it, packet \
                   sockets forward";
    let plane = check("kernel plane", kernel.is_ok(), found, purpose, remedy);
    let found = socket.as_ref().map_or_else(ToString::to_string, |_| "they can be opened".into());
    let purpose = "a station on real interfaces; without them there is none";
    let remedy = "run it with CAP_NET_RAW: the systemd unit has that, and root";
    [plane, check("station: packet sockets", socket.is_ok(), found, purpose, remedy)]
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
        return vec![check("testbed", false, found, "real hosts on one machine", remedy)];
    };
    let probes = probes.into_iter();
    probes.map(|p| check(p.name, p.ok, p.found, p.purpose, p.remedy)).collect()
}

#[cfg(not(live))]
fn testbed() -> Vec<Check> {
    let remedy = "use Linux, for example in a virtual machine; simulations run anywhere";
    vec![check("testbed", false, "no Linux", "real hosts on one machine", remedy)]
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
    check("tun", ok, found, "tunnels between two machines, `lasthop link`", remedy)
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
    let remedy = "`apt install passt`, or the package slirp4netns; and /dev/net/tun for this user";
    let (ok, found) = (found.is_ok(), found.unwrap_or_else(|why| why));
    check("outside", ok, found, "the outside behind the link of `lasthop shell`", remedy)
}

fn helper(name: &'static str, purpose: &'static str, remedy: &'static str) -> Check {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // `sbin` is often not in the path of ordinary users, though its programs work for them.
    let found = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|file| file.is_file());
    let path = found.as_ref().map_or("not found".to_owned(), |file| file.display().to_string());
    check(name, found.is_some(), path, purpose, remedy)
}
