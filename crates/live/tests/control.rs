//! The control socket and the metrics of a running station, over real sockets: answers, refusals, hostile
//! clients.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lasthop_live::clock::Clock;
use lasthop_live::control::client::{Client, listening};
use lasthop_live::control::protocol::{MAX_REQUEST, Request, Response, Status};
use lasthop_live::control::{About, Guard, MAX_CLIENTS, Running, serve};
use lasthop_live::counters::{Counters, Tap};
use lasthop_live::metrics;
use lasthop_live::station::{Handle, Station};
use lasthop_path::{Path as Stages, Stage, Witness};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::Side;
use lasthop_proto::units::{Span, Time};
use lasthop_scenario::parse_station;
use nix::unistd::Uid;

use crate::common::can_run::can_run;
use crate::common::rerun::only;

const FILE: &str = r#"
left = "eth0"
right = "wlan0"
[[path]]
agent = "none"
[[path]]
radio = { rate = "2mbit", delay = "1ms" }
"#;

/// A station without interfaces, in a separate thread.
struct World {
    dir: PathBuf,
    running: Arc<Running>,
    handle: Handle,
    guard: Option<Guard>,
    thread: Option<JoinHandle<()>>,
}

impl World {
    fn new(name: &str) -> World {
        let dir = std::env::temp_dir().join(format!("lasthop-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let (file, _) = parse_station(FILE).unwrap();
        let mut stages = vec![Stage::Witness(Box::new(Witness::of_all(Side::Right)))];
        stages.extend(file.path.stages().iter().map(|stage| Stage::of_path(stage, 1)));
        stages.push(Stage::Witness(Box::new(Witness::of_all(Side::Left))));
        let counters = Counters::new(stages.len());
        let path = Stages::new(stages, 1..3, vec![0, 3], Interest::METRICS);
        let mut station = Station::new(path, Vec::new(), Clock::start()).unwrap();
        let handle = station.handle();
        let mut tap = Tap(counters.clone());
        let thread = thread::spawn(move || {
            station.run(&mut tap, &mut |_, _, _| true).unwrap();
        });
        let about = About { world: "station", name: "base".to_owned(), seed: 1 };
        let running = Running::new(about, handle.clone(), file.path, counters, None);
        let guard = serve(running.clone(), &dir.join("station.sock")).unwrap();
        World { dir, running, handle, guard: Some(guard), thread: Some(thread) }
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("station.sock")
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket()).unwrap()
    }

    /// The answer to a client that sends these bytes and closes.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        // The station may disconnect before all bytes are sent.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.guard.take();
        self.handle.ask(Station::stop);
        self.thread.take().unwrap().join().unwrap();
        assert!(!self.socket().exists(), "the socket is left behind");
        fs::remove_dir_all(&self.dir).unwrap();
    }
}

fn get(client: &mut Client, key: &str) -> Response {
    client.ask(&Request::Get { key: key.to_owned() }).unwrap()
}

fn set(client: &mut Client, values: &[&str]) -> Response {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    client.ask(&Request::Set { values, endings: None }).unwrap()
}

fn status(client: &mut Client) -> Status {
    match client.ask(&Request::Status {}).unwrap() {
        Response::Status(status) => *status,
        other => panic!("{other:?}"),
    }
}

fn value(text: &str) -> Response {
    Response::Value(Some(text.to_owned()))
}

#[test]
fn a_changed_setting_is_visible_to_all_clients() {
    let world = World::new("set");
    let (mut one, mut two) = (world.client(), world.client());
    assert_eq!(get(&mut one, "agent"), value("none"));
    assert_eq!(get(&mut one, "errors.mean"), Response::Value(None));
    let model = r#"errors={ model = "exponential", mean = "64KiB" }"#;
    let Response::Changed(changed) = set(&mut one, &["agent=snoop", "dupacks=2", model]) else {
        panic!("not changed")
    };
    let settings: Vec<_> =
        changed.settings.iter().map(|s| (s.key.as_str(), s.old.as_deref())).collect();
    assert_eq!(settings, [("agent", Some("none")), ("dupacks", None), ("errors", None)]);
    assert_eq!((changed.settings[0].new.as_str(), changed.lost), ("snoop", 0));
    // The other client sees the change at once, as a value and in the status.
    assert_eq!(get(&mut two, "errors.mean"), value("64KiB"));
    let state = status(&mut two);
    let names: Vec<&str> = state.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["left", "agent", "radio", "right"]);
    assert_eq!(state.stages[1].config["agent"], "snoop");
    assert_eq!(state.stages[1].config["snoop"]["dupacks"], 2);
    assert_eq!(state.stages[2].config["errors_right"]["model"]["mean"], 65536);
    let running = world.handle.ask(|station| format!("{:?}", station.path().stages()[1])).unwrap();
    assert!(running.starts_with("Agent(Snoop("), "{running}");
    let Response::Changed(_) = set(&mut two, &["errors=none", "radio.rate=1mbit"]) else {
        panic!("not changed")
    };
    assert_eq!(get(&mut one, "radio.rate"), value("1mbit"));
    assert!(status(&mut one).stages[2].config["errors_right"].is_null());
}

#[test]
fn an_invalid_request_changes_no_setting() {
    let world = World::new("whole");
    let mut client = world.client();
    for (values, code, part) in [
        (&["agent=snoop", "radio.rate=fast"][..], "bad-value", "radio.rate"),
        (&["agent=snoop", "agent=snop"], "bad-value", "snop"),
        (&["agent=snoop", "errors.mean=64KiB"], "missing-key", "model"),
        (&["agent"], "bad-axis", "KEY=VALUE"),
        (&["left=eth1"], "bad-axis", "not part of the path"),
        (&["seed=2"], "bad-axis", "not part of the path"),
        (&["limits.cache=1GB"], "bad-axis", "not part of the path"),
        (&["agent=snoop", "cache=1GB"], "out-of-range", "cache up to"),
        (&["agent=snoop", "flows=100000"], "out-of-range", "flows"),
        (&["path.2={link={}}"], "bad-path", "would become"),
        (&["path.1.name=base"], "bad-path", "would become"),
        (&["path.3.agent=snoop"], "bad-axis", "no stage 3"),
        (&["moths=5"], "unknown-key", "moths"),
    ] {
        let Response::Error(trouble) = set(&mut client, values) else { panic!("{values:?}") };
        assert_eq!(trouble.code, code, "{values:?}: {trouble}");
        assert!(trouble.message.contains(part), "{values:?}: {trouble}");
        assert!(!trouble.help.is_empty(), "{values:?}");
        assert_eq!(get(&mut client, "agent"), value("none"), "{values:?}");
    }
    let state = status(&mut client);
    assert_eq!(state.stages[1].config["agent"], "none");
}

#[test]
fn a_hop_gets_another_channel_link_layer_and_medium_access() {
    let world = World::new("hop");
    let mut client = world.client();
    let walking = "errors={ model = \"two-state\", speed = \"2km/h\", carrier = \"900MHz\", \
                   margin = \"10dB\", ber-bad = 0.01 }";
    for (values, keys) in [
        (&[walking][..], &[("errors.speed", "2km/h"), ("errors.carrier", "900MHz")][..]),
        (&["errors.speed=4km/h"], &[("errors.speed", "4km/h"), ("errors.margin", "10dB")]),
        (&["errors.only=[\"data\"]"], &[("errors.speed", "4km/h")]),
        (&["link-layer=tulip", "tulip.window=16"], &[("link-layer", "tulip")]),
        (&["mac=dcf", "dcf.rts-threshold=500B"], &[("mac", "dcf"), ("tulip.window", "16")]),
        (&["mac=fama-ncs", "fragment=400B"], &[("fragment", "400B")]),
        (&["link-layer=ll-sack", "mac=ideal"], &[("link-layer", "ll-sack")]),
        (&["link-layer=none", "fragment=none", "errors=none"], &[("errors", "none")]),
        (&["link-layer=local-recovery", "coding=1.5"], &[("coding", "1.5")]),
    ] {
        let answer = set(&mut client, values);
        assert!(matches!(answer, Response::Changed(_)), "{values:?}: {answer:?}");
        for (key, is) in keys {
            assert_eq!(get(&mut client, key), value(is), "{values:?}");
        }
    }
    let hop = &status(&mut client).stages[2].config["hop"];
    assert_eq!(
        (&hop["link"]["protocol"], &hop["mac"]["access"]),
        (&"local-recovery".into(), &"ideal".into())
    );

    for (values, code, part) in [
        (&["link-layer=tulp"][..], "bad-value", "did you mean `tulip`?"),
        (&["mac=token"], "bad-value", "fama-ncs"),
        (&["link-layer=tulip", "tulip.window=0"], "out-of-range", "1"),
        (&["errors={ model = \"rayleigh\", speed = \"fast\" }"], "bad-value", "speed"),
        (&["errors={ model = \"packet-loss\", p = 0.1, only = [\"dta\"] }"], "bad-value", "dta"),
        (&["path.2={link={}}"], "bad-path", "would become"),
    ] {
        let Response::Error(trouble) = set(&mut client, values) else { panic!("{values:?}") };
        let text = format!("{trouble} {}", trouble.help);
        assert_eq!(trouble.code, code, "{values:?}: {text}");
        assert!(text.contains(part), "{values:?}: {text}");
        assert_eq!(get(&mut client, "link-layer"), value("local-recovery"), "{values:?}");
    }
}

#[test]
fn the_socket_is_for_its_owner() {
    let world = World::new("mode");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.dir), 0o700);
    assert_eq!(mode(&world.socket()), 0o600);
    assert_eq!(listening(std::slice::from_ref(&world.dir)), [world.socket()]);
    assert_eq!(
        listening(&[world.dir.parent().unwrap().join("lasthop-nowhere")]),
        [] as [PathBuf; 0]
    );

    let again = serve(world.running.clone(), &world.socket()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AddrInUse);
    let file = world.dir.join("a-file");
    fs::write(&file, "kept").unwrap();
    assert_eq!(serve(world.running.clone(), &file).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert_eq!(fs::read(&file).unwrap(), b"kept");

    let open = world.dir.join("open");
    fs::create_dir(&open).unwrap();
    for (mode, who) in [(0o777, "everybody"), (0o770, "the group"), (0o702, "all but the group")] {
        fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        let served = serve(world.running.clone(), &open.join("station.sock"));
        let refused = served.expect_err(&format!("{who} may put another socket there"));
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{who}: {refused}");
    }
    // Read access for others is harmless.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    serve(world.running.clone(), &open.join("station.sock")).expect("a directory of its own");
}

/// The mode of directory and socket excludes other users. Even if both are open by mistake, the kernel
/// identifies the peer.
#[test]
fn only_root_and_the_owner_are_served() {
    const SOCKET_VARIABLE: &str = "LASTHOP_TEST_ASKS";
    if let Some(socket) = std::env::var_os(SOCKET_VARIABLE) {
        let mut client = Client::connect(Path::new(&socket)).expect("the modes are open");
        let Response::Error(trouble) = get(&mut client, "agent") else { panic!("served") };
        assert_eq!(trouble.code, "not-allowed", "{trouble}");
        return;
    }
    if !can_run(Uid::effective().is_root(), "root, to change the user") {
        return;
    }
    let world = World::new("foreign");
    fs::set_permissions(&world.dir, fs::Permissions::from_mode(0o711)).unwrap();
    fs::set_permissions(world.socket(), fs::Permissions::from_mode(0o666)).unwrap();
    // Runs this program again as the user `nobody`, by a name that needs no access to its file.
    let name = "only_root_and_the_owner_are_served";
    let output = Command::new("/proc/self/exe")
        .args(only(name))
        .args(["--nocapture", "--test-threads=1"])
        .env(SOCKET_VARIABLE, world.socket())
        .gid(65_534)
        .uid(65_534)
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "no client was served:\n{printed}"
    );
    assert_eq!(get(&mut world.client(), "agent"), value("none"), "root is");
}

/// A station that ends slowly must not remove the socket of its successor.
#[test]
fn the_socket_of_a_successor_stays() {
    let world = World::new("successor");
    let socket = world.dir.join("other.sock");
    let old = serve(world.running.clone(), &socket).unwrap();
    fs::remove_file(&socket).unwrap();
    let new = serve(world.running.clone(), &socket).unwrap();
    drop(old);
    assert!(socket.exists(), "the old one removed the socket of its successor");
    assert_eq!(get(&mut Client::connect(&socket).unwrap(), "agent"), value("none"));
    drop(new);
    assert!(!socket.exists());
}

#[test]
fn a_socket_that_was_left_behind_is_taken_over() {
    let world = World::new("stale");
    let stale = world.dir.join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    assert!(stale.exists());
    assert!(!listening(std::slice::from_ref(&world.dir)).contains(&stale));
    let guard = serve(world.running.clone(), &stale).unwrap();
    assert_eq!(get(&mut Client::connect(&stale).unwrap(), "agent"), value("none"));
    drop(guard);
    assert!(!stale.exists());
}

#[test]
fn malformed_requests_get_an_error_response() {
    let world = World::new("hostile");
    for bytes in [
        &b"\n\n\n"[..],
        b"hello\n",
        b"\xff\xfe\x00\n",
        b"{\"do\":\"get\"\n",
        b"{\"do\":\"set\",\"values\":[\"agent=\\u0000\"]}\n",
        b"{\"do\":\"get\",\"key\":\"a.b.c.d.e.f.g.h.i.j\"}\n",
        b"{\"do\":\"get\",\"key\":\"....\"}\n",
        b"{\"do\":\"set\",\"values\":[\"path.99999999999999999999.agent=snoop\"]}\n",
        b"{\"do\":\"set\",\"values\":[\"errors={{{{{{{{\"]}\n",
    ] {
        let answer = world.raw(bytes);
        let text = String::from_utf8_lossy(bytes);
        if bytes.trim_ascii().is_empty() {
            assert_eq!(answer, "", "{text}");
        } else {
            assert!(
                answer.starts_with("{\"error\":") && answer.ends_with("}\n"),
                "{text}: {answer}"
            );
        }
    }
    let deep = format!("{{\"do\":\"set\",\"values\":[\"errors={}\"]}}\n", "[".repeat(4000));
    assert!(world.raw(deep.as_bytes()).starts_with("{\"error\":"));
    let long = vec![b'x'; 4 * MAX_REQUEST];
    assert!(world.raw(&long).contains("too long"));
    // Two requests in one packet, with an incomplete third.
    let both = world
        .raw(b"{\"do\":\"get\",\"key\":\"agent\"}\n{\"do\":\"get\",\"key\":\"agent\"}\n{\"do\"");
    assert_eq!(both, "{\"value\":\"none\"}\n{\"value\":\"none\"}\n");
    assert_eq!(get(&mut world.client(), "agent"), value("none"));
}

#[test]
fn the_number_of_clients_is_limited() {
    let world = World::new("many");
    let mut clients: Vec<Client> = (0..MAX_CLIENTS).map(|_| world.client()).collect();
    for client in &mut clients {
        assert_eq!(get(client, "agent"), value("none"));
    }
    // Root has one place more.
    if Uid::effective().is_root() {
        clients.push(world.client());
        assert_eq!(get(clients.last_mut().unwrap(), "agent"), value("none"));
    }
    let mut late = world.client();
    let Response::Error(trouble) = get(&mut late, "agent") else { panic!("served") };
    assert_eq!(trouble.code, "busy");
    drop(clients);
    // A slot becomes free as soon as the station notices the disconnect.
    assert!(is_served(&world, MAKES_ROOM * 10));
}

/// Idle time after which a client makes room for another.
const MAKES_ROOM: Span = Span::secs(3);

/// Whether a client that retries is served within `patience`.
fn is_served(world: &World, patience: Span) -> bool {
    let clock = Clock::start();
    let mut served = false;
    while !served && clock.now() < Time::ZERO + patience {
        let answer = world.client().ask(&Request::Get { key: "agent".to_owned() });
        served = answer.is_ok_and(|answer| answer == value("none"));
    }
    served
}

#[test]
fn idle_clients_are_evicted_for_a_new_client() {
    let world = World::new("idle");
    let idle: Vec<UnixStream> =
        (0..40).map(|_| UnixStream::connect(world.socket()).unwrap()).collect();
    // Idle clients have some seconds to send a request, but far less than their two minutes.
    assert!(is_served(&world, MAKES_ROOM * 20));
    drop(idle);
}

#[test]
fn a_stopped_station_responds_with_error_gone() {
    let world = World::new("gone");
    let mut client = world.client();
    world.handle.ask(Station::stop);
    // The station may answer requests that arrive before its next turn.
    let trouble = (0..1000).find_map(|_| match client.ask(&Request::Status {}).unwrap() {
        Response::Error(trouble) => Some(trouble),
        _ => None,
    });
    assert_eq!(trouble.expect("it stops").code, "gone");
}

fn http(address: std::net::SocketAddr, request: &[u8]) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

/// A strict parser of the text format: every sample follows the head of its family, each family occurs once,
/// names and labels are well-formed, every value is a number. Returns the samples.
fn read_page(page: &str) -> Vec<(String, f64)> {
    let name_fits = |name: &str| {
        name.starts_with("lasthop_")
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    assert!(page.ends_with('\n') && !page.contains("\n\n"));
    let (mut families, mut samples) = (Vec::new(), Vec::new());
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let (name, help) = line.strip_prefix("# HELP ").unwrap().split_once(' ').unwrap();
        assert!(name_fits(name) && help.ends_with('.'), "{line}");
        assert!(!families.contains(&name), "{name} twice");
        families.push(name);
        let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        assert!(matches!(kind, "counter" | "gauge"));
        let mut count = 0;
        while let Some(sample) = lines.next_if(|line| !line.starts_with('#')) {
            let (series, value) = sample.rsplit_once(' ').unwrap();
            let (own, labels) = series
                .split_once('{')
                .map_or((series, ""), |(own, rest)| (own, rest.strip_suffix('}').unwrap()));
            assert_eq!(own, name);
            for label in labels.split(',').filter(|label| !label.is_empty()) {
                let (key, value) = label.split_once('=').unwrap();
                assert!(key.bytes().all(|b| b.is_ascii_lowercase()), "{sample}");
                assert!(
                    value.len() >= 2 && value.starts_with('"') && value.ends_with('"'),
                    "{sample}"
                );
            }
            let value: f64 = value.parse().unwrap();
            assert!(!samples.iter().any(|(other, _)| other == series), "{series} twice");
            samples.push((series.to_owned(), value));
            count += 1;
        }
        assert!(count > 0, "{name} has no samples");
    }
    samples
}

#[test]
fn the_figures_are_a_page_that_prometheus_reads() {
    let world = World::new("metrics");
    let endpoint = metrics::serve(world.running.clone(), "127.0.0.1:0".parse().unwrap()).unwrap();
    let at = endpoint.address();
    let get = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
    let (head, body) = http(at, get);
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    let samples = read_page(&body);
    let of = |series: &str| samples.iter().find(|(name, _)| name == series).map(|(_, n)| *n);
    assert_eq!(of("lasthop_agent_info{stage=\"agent\",agent=\"none\"}"), Some(1.0));
    assert_eq!(of("lasthop_stage_held_packets{stage=\"radio\"}"), Some(0.0));
    assert!(of("lasthop_uptime_seconds").is_some_and(|n| n >= 0.0));

    for (request, status) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"GET /metrics\r\n\r\n", "400"),
        (b"\xff\xff\r\n\r\n", "400"),
    ] {
        let (head, _) = http(at, request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
    // A client with an endless request is disconnected.
    let mut slow = TcpStream::connect(at).unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    assert!(http(at, get).0.starts_with("HTTP/1.1 200"));
    let mut text = String::new();
    slow.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
    // Silent or slow clients of any number do not delay others. Each may last two seconds, so all in sequence
    // would take more than six minutes.
    let begun = Clock::start();
    let idle: Vec<TcpStream> = (0..200)
        .map(|n| {
            let mut stream = TcpStream::connect(at).unwrap();
            let _ = stream.write_all(&get[..n % 20]);
            if n % 20 == 0 {
                assert!(http(at, get).0.starts_with("HTTP/1.1 200"));
            }
            stream
        })
        .collect();
    assert!(begun.now() < Time::ZERO + Span::secs(60), "it waited for others");
    drop(idle);
    drop(endpoint);
    assert!(TcpStream::connect(at).is_err());
    let outside = metrics::serve(world.running.clone(), "0.0.0.0:0".parse().unwrap());
    assert_eq!(outside.unwrap_err().kind(), ErrorKind::InvalidInput);
}
