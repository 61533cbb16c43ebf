//! The background process that holds a testbed, and its start.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{dup2_stdin, dup2_stdout, setsid};
use serde::{Deserialize, Serialize};

use super::super::error::{Error, Tried as _};
use super::super::net::{Net, NetSpec};
use super::process::Process;
use super::state::{self, Home, HostRecord, LOG, RECORD, Record, TOKEN, is_name};

/// Time limit for the start of a testbed. It is long, since a busy kernel delays new network namespaces.
const PATIENCE: Duration = Duration::from_secs(300);

/// Request for a testbed, which `up` passes to the background process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Its name.
    pub name: String,
    /// Its network.
    pub net: NetSpec,
    /// Description of its origin, for users.
    pub origin: String,
    /// Parameters of the function that serves packets; opaque here.
    pub payload: String,
}

/// Input of the background process.
#[derive(Serialize, Deserialize)]
struct Order {
    request: Request,
    dir: PathBuf,
    token: String,
}

/// Output of the background process.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reply {
    Ready,
    Failed { message: String, help: String },
}

/// Parameters of the function that serves packets.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Name of the testbed.
    pub name: &'a str,
    /// The payload of the request.
    pub payload: &'a str,
    /// The testbed's directory, as this process sees it.
    pub dir: &'a Path,
}

/// Reports that the testbed works.
#[derive(Debug)]
pub struct Ready(());

impl Ready {
    /// Lets `up` return.
    ///
    /// # Errors
    ///
    /// If `up` has exited: the testbed is unused, and the server should end.
    pub fn say(self) -> Result<(), Error> {
        answer(&Reply::Ready).tried(|| "report that the testbed is up")?;
        // From now on output goes to the log, and the terminal is released.
        dup2_stdout(io::stderr()).tried(|| "detach from the terminal")?;
        Ok(())
    }
}

/// Reports a request to end, from `down` or by a signal.
#[derive(Debug)]
pub struct Stop(SignalFd);

impl Stop {
    /// Blocks the termination signals and waits for them here. Call it before the first thread starts, since
    /// each thread inherits the mask.
    ///
    /// # Errors
    ///
    /// If the kernel has no signal descriptors.
    pub fn on_signals() -> Result<Stop, Error> {
        let mut signals = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            signals.add(signal);
        }
        signals.thread_block().tried(|| "block signals")?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Stop(SignalFd::with_flags(&signals, flags).tried(|| "wait for signals")?))
    }

    /// Whether the end was requested.
    pub fn requested(&self) -> bool {
        self.wait_at_most(PollTimeout::ZERO)
    }

    /// Waits for the request to end.
    pub fn wait(&self) {
        while !self.wait_at_most(PollTimeout::NONE) {}
    }

    fn wait_at_most(&self, most: PollTimeout) -> bool {
        // Never read, so that the descriptor remains readable after the first signal.
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, most).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Stop {
    /// Readable after a request to end, for an event loop.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Starts a testbed in the background. `command` runs [`hold`]. Returns when the testbed works.
///
/// # Errors
///
/// If the name is taken or invalid, and errors of the background process.
pub fn up(home: &Home, mut command: Command, request: Request) -> Result<Record, Error> {
    let name = request.name.clone();
    if !is_name(&name) {
        return Err(Error::new(
            format!("`{name}` cannot be the name of a testbed"),
            "1 to 32 of a-z, A-Z, 0-9, `-`, `_` and `.`, for example `--name lab`",
        ));
    }
    // Held until the testbed works or has failed, so that a second start does not remove a half-made testbed.
    let _lock = home.lock()?;
    let dir = home.of(&name);
    match DirBuilder::new().mode(0o700).create(&dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let up = home.entry(&name, true).status == state::Status::Up;
            return Err(Error::new(
                format!(
                    "there is a testbed `{name}` already{}",
                    if up { "" } else { ", and it is dead" }
                ),
                if up {
                    format!(
                        "end it with `lasthop testbed down {name}`, or choose another name: `--name second`"
                    )
                } else {
                    "remove what it left with `lasthop testbed clean`".to_owned()
                },
            ));
        }
        Err(error) => return Err(error).tried(|| format!("create {}", dir.display())),
    }
    let started = start(&dir, &mut command, request);
    if started.is_err() {
        let _ = fs::remove_dir_all(&dir);
    }
    started?;
    home.entry(&name, true).record.ok_or_else(|| {
        Error::new("the testbed started without a record", "this is a fault of the program")
    })
}

fn start(dir: &Path, command: &mut Command, request: Request) -> Result<(), Error> {
    let own = Process::own().ok_or_else(|| Error::new("/proc is not there", "mount it"))?;
    let log = File::options().create_new(true).append(true).mode(0o600).open(dir.join(LOG));
    let log = log.tried(|| format!("write {}", dir.join(LOG).display()))?;
    let order = Order { request, dir: dir.to_owned(), token: format!("{}-{}", own.pid, own.start) };
    let order = serde_json::to_vec(&order).tried(|| "describe the testbed")?;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .current_dir("/")
        .spawn()
        .tried(|| "start a background process")?;
    if let Some(mut stdin) = child.stdin.take() {
        // If the process has ended already, its answer has more detail than this error.
        let _ = stdin.write_all(&order);
    }
    match await_answer(&mut child) {
        Answer::Reply(Reply::Ready) => Ok(()),
        Answer::Reply(Reply::Failed { message, help }) => {
            let _ = child.wait();
            Err(Error::new(message, help))
        }
        answer => {
            // A child that was not reaped keeps its number.
            let _ = child.kill();
            let ended = child.wait().map_or("has vanished".to_owned(), |status| status.to_string());
            let ended = match answer {
                Answer::Nothing => format!("no answer within {} s", PATIENCE.as_secs()),
                _ => ended,
            };
            let log = fs::read_to_string(dir.join(LOG)).unwrap_or_default();
            let last: Vec<_> = log.lines().rev().take(5).collect();
            let last: Vec<_> = last.into_iter().rev().collect();
            Err(Error::new(
                format!("the testbed's background process did not come up ({ended})"),
                format!("the end of its log:\n{}", last.join("\n")),
            ))
        }
    }
}

/// First line of a child.
enum Answer {
    Reply(Reply),
    /// It exceeded the time limit.
    Nothing,
    /// It ended, or its line is invalid.
    End,
}

/// Reads one line of the child.
fn await_answer(child: &mut Child) -> Answer {
    let Some(mut pipe) = child.stdout.take() else { return Answer::End };
    let mut line = Vec::new();
    let mut chunk = [0; 4096];
    while !line.contains(&b'\n') && line.len() < 1 << 20 {
        let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX)) {
            Ok(0) => return Answer::Nothing,
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => continue,
            Err(_) => return Answer::End,
        }
        match pipe.read(&mut chunk) {
            Ok(0) | Err(_) => return Answer::End,
            Ok(count) => line.extend_from_slice(&chunk[..count]),
        }
    }
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice(line).map_or(Answer::End, Answer::Reply)
}

fn answer(answer: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

/// Main function of the background process: makes the network, lets `serve` carry packets until the request
/// to end, and removes everything. Standard input contains the order; the answer goes to standard output.
///
/// `serve` calls [`Ready::say`] when packets are carried, and returns when [`Stop`] requests it.
///
/// # Errors
///
/// The failure, which was also sent to `up` if it still waits.
pub fn hold(
    serve: impl FnOnce(&Net, Ready, Stop, &Held<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    // Protects from the terminal's Ctrl-C and hang-up. Fails only for a process that leads its session
    // already.
    let _ = setsid();
    let held = held(serve);
    if let Err(Error { message, help }) = &held {
        // The log contains the error too.
        let _ = answer(&Reply::Failed { message: message.clone(), help: help.clone() });
    }
    held
}

fn held(
    serve: impl FnOnce(&Net, Ready, Stop, &Held<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text).tried(|| "read the order")?;
    let Order { request, dir, token } = serde_json::from_slice(&text).tried(
        || "parse the order; this command is internal, and `lasthop testbed up` starts a testbed",
    )?;
    let null = File::open("/dev/null").tried(|| "open /dev/null")?;
    dup2_stdin(null).tried(|| "detach from the standard input")?;
    let stop = Stop::on_signals()?;
    // The path may lie below /run, which is about to be replaced.
    let held = File::open(&dir).tried(|| format!("open {}", dir.display()))?;
    let here = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));

    let net = Net::enter(&request.net)?;
    // `clean` finds programs by it that have removed it from their environment.
    fs::write(TOKEN, &token).tried(|| format!("write {TOKEN}"))?;
    state::write(&here, &record(&net, &request, token)?)?;
    let served = serve(
        &net,
        Ready(()),
        stop,
        &Held { name: &request.name, payload: &request.payload, dir: &here },
    );
    // No process can join any more. The namespaces end with this process.
    for file in [RECORD, LOG] {
        let _ = fs::remove_file(here.join(file));
    }
    let _ = fs::remove_dir(&dir);
    served
}

fn record(net: &Net, request: &Request, token: String) -> Result<Record, Error> {
    let own = Process::own().ok_or_else(|| Error::new("/proc is not there", "mount it"))?;
    let number = |kind: &str| {
        own.namespace(kind)
            .ok_or_else(|| Error::new(format!("/proc/self/ns/{kind} is not there"), ""))
    };
    let mut hosts = vec![HostRecord {
        name: net.station().to_owned(),
        side: None,
        v4: None,
        v6: None,
        preset: None,
        namespace: Some(number("net")?),
    }];
    for host in net.hosts() {
        let spec = host.spec();
        let namespace = match spec.kernel {
            true => Some(net.in_host(host.name(), || fs::metadata("/proc/thread-self/ns/net"))?),
            false => None,
        };
        let namespace = namespace.transpose().tried(|| "read the number of a namespace")?;
        hosts.push(HostRecord {
            name: spec.name.clone(),
            side: Some(spec.side),
            v4: spec.v4,
            v6: spec.v6,
            preset: spec.preset.map(|preset| preset.name().to_owned()),
            namespace: namespace.map(|meta| meta.ino()),
        });
    }
    Ok(Record {
        name: request.name.clone(),
        token,
        boot: state::boot(),
        process: own,
        origin: request.origin.clone(),
        offloads: net.offloads(),
        user: number("user")?,
        mount: number("mnt")?,
        hosts,
    })
}
