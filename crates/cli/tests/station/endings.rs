//! Connections of two kernels that end at the station: after any change of the agent they are reset or
//! continue.

use std::io::{ErrorKind, IoSliceMut, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recv, recvmsg, send};
use serde_json::Value;

use super::world::{Running, World, enter, inside, start};
use crate::can_run::can_run;

/// A connection between the kernels of `a` and `b`, idle unless the test sends data.
struct Quiet {
    /// Final result of each end.
    ends: [JoinHandle<Result<String, ErrorKind>>; 2],
    /// Data for `a` to send; when dropped, `a` closes.
    say: Sender<&'static str>,
}

/// Reads until the end or an error.
fn read_all(mut stream: TcpStream) -> Result<String, ErrorKind> {
    stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).map(|_| text).map_err(|error| error.kind())
}

impl Quiet {
    fn open(port: u16) -> Quiet {
        let (ready, listening) = channel();
        let b = thread::spawn(move || {
            enter("b");
            let listener = TcpListener::bind(("10.9.0.2", port)).unwrap();
            ready.send(()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"welcome").unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            read_all(stream)
        });
        listening.recv().unwrap();
        let (say, texts): (_, Receiver<&str>) = channel();
        let (welcomed, open) = channel();
        let a = thread::spawn(move || {
            enter("a");
            let mut stream = TcpStream::connect(("10.9.0.2", port)).unwrap();
            let mut text = [0; 7];
            stream.read_exact(&mut text).unwrap();
            welcomed.send(()).unwrap();
            let mut writer = stream.try_clone().unwrap();
            let writing = thread::spawn(move || {
                while let Ok(text) = texts.recv() {
                    if writer.write_all(text.as_bytes()).is_err() {
                        return;
                    }
                }
                let _ = writer.shutdown(std::net::Shutdown::Write);
            });
            writing.join().unwrap();
            match stream.take_error().unwrap() {
                Some(error) => Err(error.kind()),
                None => Ok(String::from_utf8_lossy(&text).into_owned()),
            }
        });
        open.recv().unwrap();
        Quiet { ends: [a, b], say }
    }

    /// Sends `text`, closes, and returns the results of both ends.
    fn close(self, text: &'static str) -> [Result<String, ErrorKind>; 2] {
        let _ = self.say.send(text);
        drop(self.say);
        self.ends.map(|end| end.join().unwrap())
    }

    /// Results of both ends of an idle connection: `b` waits for more and notices the end immediately.
    fn cut(self) -> [Result<String, ErrorKind>; 2] {
        let [a, b] = self.ends;
        let b = b.join().unwrap();
        drop(self.say);
        [a.join().unwrap(), b]
    }
}

/// Results of both ends after a reset; `b` had sent all its data.
const RESET: [Result<String, ErrorKind>; 2] =
    [Err(ErrorKind::BrokenPipe), Err(ErrorKind::ConnectionReset)];

/// Out-of-band data (MSG_OOB) is not part of the stream, and no data is lost.
#[test]
fn urgent_data_stays_out_of_band() {
    inside("endings::urgent_data_stays_out_of_band", || {
        let world = world();
        let _station = world.station(&[]);
        let (ready, listening) = channel();
        let b = thread::spawn(move || {
            enter("b");
            let listener = TcpListener::bind("10.9.0.2:5001").unwrap();
            ready.send(()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
            let mut text = vec![0; 6];
            stream.read_exact(&mut text[..3]).unwrap();
            let mut urgent = [0];
            let fd = stream.as_raw_fd();
            while recv(fd, &mut urgent, MsgFlags::MSG_OOB) != Ok(1) {
                thread::yield_now();
            }
            stream.read_exact(&mut text[3..]).unwrap();
            (String::from_utf8(text).unwrap(), urgent[0])
        });
        listening.recv().unwrap();
        enter("a");
        let mut stream = TcpStream::connect("10.9.0.2:5001").unwrap();
        stream.write_all(b"abc").unwrap();
        assert_eq!(send(stream.as_raw_fd(), b"!", MsgFlags::MSG_OOB), Ok(1));
        stream.write_all(b"def").unwrap();
        assert_eq!(b.join().unwrap(), ("abcdef".to_owned(), b'!'));
    });
}

fn world() -> World {
    World::new("[[path]]\nagent = \"split\"\n")
}

#[test]
fn a_set_that_ends_connections_needs_drain_or_reset() {
    inside("endings::a_set_that_ends_connections_needs_drain_or_reset", || {
        let world = world();
        let _station = world.station(&[]);
        let quiet = Quiet::open(5001);
        let (code, message) = world.fails(&["ctl", "set", "agent=none"]);
        assert_eq!(code, Some(2), "{message}");
        assert!(message.contains("1 connection ends at this station"), "{message}");
        assert!(message.contains("--drain") && message.contains("--reset"), "{message}");
        assert_eq!(world.ctl(&["get", "agent"]), "split\n");
        assert_eq!(world.fails(&["ctl", "set", "agent=none", "--drain", "--reset"]).0, Some(2));
        assert_eq!(quiet.close("hello"), [Ok("welcome".to_owned()), Ok("hello".to_owned())]);
        // No connection ends here any more.
        assert!(world.wait(|status| status["stages"][1]["flows"] == 0));
        assert_eq!(world.ctl(&["set", "agent=none"]), "agent: split -> none\n");
    });
}

#[test]
fn connections_are_reset_on_request() {
    inside("endings::connections_are_reset_on_request", || {
        let world = world();
        let _station = world.station(&[]);
        let several = [5001, 5002, 5003].map(Quiet::open);
        let output = world.ctl(&["set", "agent=none", "--reset"]);
        assert!(output.contains("connections reset: 3"), "{output}");
        for quiet in several {
            assert_eq!(quiet.cut(), RESET);
        }
        assert_eq!(world.status()["stages"][1]["flows"], 0);
    });
}

#[test]
fn connections_drain_on_request() {
    inside("endings::connections_drain_on_request", || {
        let world = world();
        let station = world.station(&[]);
        let quiet = Quiet::open(5011);
        let output = world.ctl(&["set", "agent=snoop", "--drain"]);
        assert!(output.contains("until they end: 1"), "{output}");
        // The new agent handles the new connections ...
        assert_eq!(world.transfer(300_000).join().unwrap(), 300_000);
        let note = |name: &str| world.status()["stages"][1]["right"]["originated"][name].clone();
        let split = note("split-data");
        assert_eq!(world.transfer(300_000).join().unwrap(), 300_000);
        assert_eq!(note("split-data"), split);
        // ... and another change needs a new decision, since the old connection still ends here.
        let (_, output) = world.fails(&["ctl", "set", "agent=none"]);
        assert!(output.contains("1 connection ends"), "{output}");
        world.write(&world.text().replace("split", "none"));
        station.signal("HUP");
        assert!(station.printed("the file was read again: changed agent"));
        assert_eq!(quiet.close("hello"), [Ok("welcome".to_owned()), Ok("hello".to_owned())]);
        assert!(world.wait(|status| status["stages"][1]["flows"] == 0));
        assert_eq!(world.transfer(300_000).join().unwrap(), 300_000);
    });
}

#[test]
fn a_stopping_station_resets_its_split_connections() {
    inside("endings::a_stopping_station_resets_its_split_connections", || {
        let world = world();
        let station = world.station(&[]);
        let several = [5001, 5002].map(Quiet::open);
        station.signal("TERM");
        assert!(station.printed("connections that ended here were reset: 2"));
        assert_eq!(station.end("TERM"), Some(0));
        for quiet in several {
            assert_eq!(quiet.cut(), RESET);
        }
    });
}

/// A count follows: four ends, less those whose ACKs were under way when the station died. These the kernel resets at once.
const RESET_BY_NEXT: &str = "ends of its connections that were reset: ";

/// A split where the kernel is the data plane, if it can be.
fn world_of_kernel() -> Option<World> {
    if !can_run(lasthop_live::plane::probe().is_ok(), "root, and Linux 6.6 with eBPF") {
        return None;
    }
    let world = world();
    world.write(&world.text().replace("sockets", "kernel"));
    Some(world)
}

/// Opens connections that end at the station whose status is `status`. On a busy machine the kernel may find that the station
/// does not keep up, and pass one: then another one is opened.
fn open_split(status: impl Fn() -> Value) -> [Quiet; 2] {
    let flows = || status()["stages"][1]["flows"].as_u64().expect("a number");
    [5001, 5002].map(|port| {
        let before = flows();
        loop {
            let quiet = Quiet::open(port);
            if flows() > before {
                return quiet;
            }
            quiet.close("").into_iter().for_each(|end| drop(end.expect("it passed")));
        }
    })
}

/// A killed station sends no resets. The next one finds its connections in the kernel, and resets both ends, silent ones too.
#[test]
fn a_station_resets_connections_of_a_killed_predecessor() {
    inside("endings::a_station_resets_connections_of_a_killed_predecessor", || {
        let Some(world) = world_of_kernel() else { return };
        let station = world.station(&[]);
        let several = open_split(|| world.status());
        assert_eq!(station.end("KILL"), None);
        // Whatever forwards then.
        world.write(&world.text().replace("kernel", "sockets"));
        let next = world.station(&[]);
        assert!(next.printed(RESET_BY_NEXT));
        several.into_iter().for_each(assert_reset);
        assert_eq!(world.transfer(300_000).join().unwrap(), 300_000);
    });
}

/// What both ends hear of a reset that may come before `a` has heard all of `b`.
fn assert_reset(quiet: Quiet) {
    let [a, b] = quiet.cut();
    assert!(matches!(a, Err(ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)), "{a:?}");
    assert_eq!(b, Err(ErrorKind::ConnectionReset));
}

/// A station with the rights that its unit gives, under a service manager that stores descriptors.
struct Manager {
    socket: UnixDatagram,
    stored: Option<i32>,
}

const NOTIFY: &str = "/run/notify";

impl Manager {
    fn start(&mut self, world: &World) -> Running {
        let rights = "-all,+net_raw,+net_admin,+bpf";
        let inner = world.command(&["station", "FILE", "--socket", "/run/user/base.sock"]);
        let mut command = Command::new("bash");
        let descriptors = match self.stored {
            Some(fd) => {
                format!("export LISTEN_FDS=1 LISTEN_FDNAMES=endings LISTEN_PID=$$; exec 3<&{fd}; ")
            }
            None => String::new(),
        };
        command.args(["-c", &(descriptors + "exec setpriv \"$@\""), "bash"]);
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(format!("--inh-caps={rights}")).arg(format!("--ambient-caps={rights}"));
        command.args(["--", "/run/program"]).args(inner.get_args());
        command.env("NO_COLOR", "1").env("XDG_RUNTIME_DIR", "/run/user").stdin(Stdio::null());
        command.env("NOTIFY_SOCKET", NOTIFY);
        start(command)
    }

    /// Hears until something is stored, or until the station says `words`.
    fn wait_for(&mut self, words: &str) {
        loop {
            let mut text = [0; 256];
            let mut room = nix::cmsg_space!([i32; 4]);
            let mut slices = [IoSliceMut::new(&mut text)];
            let message = recvmsg::<()>(
                self.socket.as_raw_fd(),
                &mut slices,
                Some(&mut room),
                // What starts from here inherits it.
                MsgFlags::empty(),
            )
            .unwrap();
            let len = message.bytes;
            let mut passed = None;
            for control in message.cmsgs().unwrap() {
                if let ControlMessageOwned::ScmRights(descriptors) = control {
                    passed = descriptors.first().copied();
                }
            }
            let text = String::from_utf8_lossy(&text[..len]).into_owned();
            if let Some(fd) = passed {
                assert_eq!(text, "FDSTORE=1\nFDNAME=endings\nFDPOLL=0");
                self.stored = Some(fd);
            }
            if text == "FDSTOREREMOVE=1\nFDNAME=endings" {
                self.stored = None;
            }
            if text == words {
                return;
            }
        }
    }
}

/// A station without the rights to find the map of a killed one gets it from the service manager (FDSTORE of sd_notify(3)).
#[test]
fn a_service_manager_stores_connections_for_the_next_station() {
    inside("endings::a_service_manager_stores_connections_for_the_next_station", || {
        let Some(world) = world_of_kernel() else { return };
        std::fs::create_dir_all("/run/user").unwrap();
        std::os::unix::fs::chown("/run/user", Some(65_534), Some(65_534)).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_lasthop"), "/run/program").unwrap();
        let socket = UnixDatagram::bind(NOTIFY).unwrap();
        std::os::unix::fs::chown(NOTIFY, Some(65_534), Some(65_534)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(180))).unwrap();
        let mut manager = Manager { socket, stored: None };
        let station = manager.start(&world);
        manager.wait_for("READY=1");
        assert!(manager.stored.is_some(), "its connections are stored");
        let several = open_split(|| {
            let status = world.ctl(&["--socket", "/run/user/base.sock", "get", "--json"]);
            serde_json::from_str(&status).expect("JSON")
        });
        assert_eq!(station.end("KILL"), None);
        let next = manager.start(&world);
        assert!(next.printed(RESET_BY_NEXT));
        several.into_iter().for_each(assert_reset);
        manager.wait_for("READY=1");
        // A clean stop leaves nothing for the next one.
        assert_eq!(next.end("TERM"), Some(0));
        manager.wait_for("STOPPING=1");
        manager.wait_for("FDSTOREREMOVE=1\nFDNAME=endings");
        assert_eq!(manager.stored, None);
    });
}
