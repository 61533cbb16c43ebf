//! The network of a testbed, with a kernel bridge as the base station's data plane.
#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use lasthop_live::sys::ethtool::{Offload, offload};
use lasthop_live::testbed::{Error, HostSpec, Net, NetSpec, Preset, Side};
use serde_json::Value;

fn main() -> ExitCode {
    macro_rules! tests {
        ($($name:ident),* $(,)?) => { support::main(&[$((stringify!($name), $name as fn())),*]) };
    }
    tests![
        hosts_have_the_requested_network_configuration,
        offloads_are_enabled_on_request,
        hosts_are_reached_by_name_and_address,
        the_base_station_sends_and_forwards_nothing,
        every_preset_reads_back,
        the_preset_of_1997_on_the_wire,
        the_linux_cubic_preset_on_the_wire,
        counters_count_one_host,
        sockets_remain_in_the_namespace_of_their_host,
        hosts_can_be_added_later,
        the_number_of_hosts_is_limited,
        hosts_without_kernel_are_known_to_the_others,
        ip_netns_works_inside,
        existing_run_entries_and_resolver_remain_visible,
        a_probe_finds_all_that_a_testbed_needs,
        invalid_hosts_are_refused,
        a_process_with_threads_is_refused,
        nothing_outlives_the_process,
        wait_to_be_killed,
    ]
}

fn v4(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn ravel() -> HostSpec {
    HostSpec::new("ravel", Side::Left, v4("10.0.0.1")).v6("fd00::1".parse().expect("an address"))
}

fn chopin() -> HostSpec {
    HostSpec::new("chopin", Side::Right, v4("10.1.0.1"))
        .v6("fd00:1::1".parse().expect("an address"))
}

fn spec(hosts: &[HostSpec]) -> NetSpec {
    NetSpec { station: "verdi".to_owned(), offloads: false, hosts: hosts.to_vec() }
}

fn enter(hosts: &[HostSpec]) -> Net {
    Net::enter(&spec(hosts)).expect("a testbed; `lasthop doctor` says why not")
}

/// Output of a program, which must succeed.
fn output_of(program: &str, arguments: &[&str]) -> String {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(arguments).env("PATH", path).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

fn ip_json(arguments: &[&str]) -> Value {
    let text = output_of("ip", &[&["-json", "-details"], arguments].concat());
    serde_json::from_str(&text).expect("JSON")
}

/// Bridges all ends in the kernel: every frame from one end goes to the others.
fn bridge(net: &Net) {
    // Without the spanning tree protocol a bridge forwards as soon as it is up.
    output_of(
        "ip",
        &[
            "link",
            "add",
            "name",
            "bridge",
            "type",
            "bridge",
            "stp_state",
            "0",
            "forward_delay",
            "0",
        ],
    );
    for host in net.hosts().iter().filter_map(|host| host.station_interface()) {
        output_of("ip", &["link", "set", "dev", host, "master", "bridge"]);
    }
    output_of("ip", &["link", "set", "dev", "bridge", "up"]);
}

fn in_host<T: Send>(net: &Net, host: &str, f: impl FnOnce() -> T + Send) -> T {
    net.in_host(host, f).expect("the host can be entered")
}

/// Sends from one host to another. Returns the number of received bytes.
fn transfer(net: &Net, to: &str, address: &str, bytes: usize) -> usize {
    let listener = in_host(net, to, || TcpListener::bind("[::]:5001")).expect("bound");
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accepted");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("read");
        received.len()
    });
    let from = net.hosts().iter().find(|host| host.name() != to).expect("another host").name();
    in_host(net, from, || {
        let mut stream = TcpStream::connect((address, 5001)).expect("connected");
        stream.write_all(&vec![7; bytes]).expect("written");
    });
    reader.join().expect("read")
}

#[expect(clippy::disallowed_methods, reason = "gives a silent interface time to send")]
fn wait() {
    std::thread::sleep(Duration::from_millis(200));
}

fn hosts_have_the_requested_network_configuration() {
    let mut mobile = chopin();
    mobile.mtu = 1400;
    let net = enter(&[ravel(), mobile]);
    for (host, address, v6, mtu, other, other6, mac) in [
        ("ravel", "10.0.0.1", "fd00::1", 1500, "10.1.0.1", "fd00:1::1", "02:6c:68:00:00:01"),
        ("chopin", "10.1.0.1", "fd00:1::1", 1400, "10.0.0.1", "fd00::1", "02:6c:68:00:00:00"),
    ] {
        let (link, neighbours, routes) = in_host(&net, host, || {
            (ip_json(&["address"]), ip_json(&["neigh"]), ip_json(&["route"]))
        });
        assert_eq!(link[0]["ifname"], "lo");
        assert!(link[0]["flags"].as_array().expect("flags").contains(&"UP".into()));
        assert_eq!(link[1]["ifname"], "eth0");
        assert_eq!(link[1]["operstate"], "UP");
        assert_eq!(link[1]["mtu"], mtu);
        let own = net.host(host).expect("known");
        assert_eq!(link[1]["address"], own.mac().to_string());
        let addresses: Vec<_> = link[1]["addr_info"]
            .as_array()
            .expect("addresses")
            .iter()
            .map(|info| {
                (
                    info["local"].as_str().unwrap_or_default(),
                    info["prefixlen"].as_u64().unwrap_or(0),
                )
            })
            .collect();
        // No link-local address, and no tentative one.
        assert_eq!(addresses, [(address, 32), (v6, 128)], "{host}");
        assert!(!link[1]["addr_info"].to_string().contains("tentative"));
        assert_eq!(routes[0]["dst"], "default");
        assert_eq!(routes[0]["dev"], "eth0");
        let known: BTreeSet<_> = neighbours
            .as_array()
            .expect("neighbours")
            .iter()
            .filter(|entry| entry["state"][0] == "PERMANENT")
            .map(|entry| (entry["dst"].to_string(), entry["lladdr"].to_string()))
            .collect();
        let quoted = |text: &str| format!("\"{text}\"");
        assert_eq!(
            known,
            BTreeSet::from([(quoted(other), quoted(mac)), (quoted(other6), quoted(mac))])
        );
        for kind in Offload::ALL {
            let ends = (in_host(&net, host, || offload("eth0", kind)), offload(host, kind));
            assert_eq!((ends.0.ok(), ends.1.ok()), (Some(false), Some(false)), "{host} {kind:?}");
        }
    }
    // The base station's ends: up, with the hosts' names, without addresses.
    let ends = ip_json(&["address"]);
    let ends = ends.as_array().expect("links");
    assert_eq!(ends.len(), 3, "{ends:?}");
    for (index, name) in ["ravel", "chopin"].into_iter().enumerate() {
        assert_eq!(ends[index + 1]["ifname"], name);
        assert_eq!(ends[index + 1]["address"], net.hosts()[index].station_mac().to_string());
        assert_eq!(ends[index + 1]["operstate"], "UP");
        assert_eq!(ends[index + 1]["addr_info"].as_array().map(Vec::len), Some(0));
    }
}

fn offloads_are_enabled_on_request() {
    let net =
        Net::enter(&NetSpec { offloads: true, ..spec(&[ravel(), chopin()]) }).expect("a testbed");
    for kind in Offload::ALL {
        assert!(in_host(&net, "chopin", || offload("eth0", kind)).expect("known"), "{kind:?}");
        assert!(offload("chopin", kind).expect("known"), "{kind:?}");
    }
    bridge(&net);
    assert_eq!(transfer(&net, "chopin", "chopin", 1_000_000), 1_000_000);
    assert!(offload("no-such", Offload::Gro).is_err());
    assert!(offload("a-name-that-is-too-long", Offload::Gro).is_err());
}

fn hosts_are_reached_by_name_and_address() {
    let net = enter(&[ravel(), chopin()]);
    bridge(&net);
    for address in ["chopin", "10.1.0.1", "fd00:1::1"] {
        assert_eq!(transfer(&net, "chopin", address, 300_000), 300_000, "{address}");
    }
    assert_eq!(transfer(&net, "ravel", "ravel", 1), 1);
}

fn the_base_station_sends_and_forwards_nothing() {
    let net = enter(&[ravel(), chopin()]);
    wait();
    for host in ["ravel", "chopin"] {
        let link = ip_json(&["-s", "link", "show", "dev", host]);
        assert_eq!(link[0]["stats64"]["tx"]["packets"], 0, "{host}");
    }
    // The base station forwards nothing.
    let before = net.counters("chopin").expect("counted");
    in_host(&net, "ravel", || {
        let to = std::net::SocketAddr::from((Ipv4Addr::new(10, 1, 0, 1), 5001));
        TcpStream::connect_timeout(&to, Duration::from_millis(300))
            .expect_err("no station carries packets");
    });
    assert_eq!(net.counters("chopin").expect("counted").since(&before).in_segments, 0);
}

fn every_preset_reads_back() {
    let mut net = enter(&[]);
    for (position, preset) in Preset::ALL.into_iter().enumerate() {
        let address = IpAddr::from([10, 0, 0, position as u8 + 1]);
        net.add_host(&HostSpec::new(preset.name(), Side::Left, address).preset(preset))
            .expect("added");
        let found = net.read_preset(preset.name()).expect("read");
        assert!(found.len() > 15, "{found:?}");
        for setting in found {
            assert!(setting.holds(), "{}: {setting:?}", preset.name());
        }
    }
    let mut other = chopin();
    other.preset = None;
    net.add_host(&other).expect("added");
    assert_eq!(net.read_preset("chopin").expect("read"), []);
    // A changed value is noticed.
    in_host(&net, "linux-reno", || std::fs::write("/proc/sys/net/ipv4/tcp_sack", "0"))
        .expect("written");
    let found = net.read_preset("linux-reno").expect("read");
    assert_eq!(found.iter().filter(|found| !found.holds()).count(), 1);
}

/// Output of `ss` for the connections of a host.
fn connections(net: &Net, host: &str) -> String {
    in_host(net, host, || output_of("ss", &["--no-header", "-tinme", "state", "established"]))
}

fn the_preset_of_1997_on_the_wire() {
    on_the_wire(Preset::Linux1997);
}

fn the_linux_cubic_preset_on_the_wire() {
    on_the_wire(Preset::LinuxCubic);
}

fn on_the_wire(preset: Preset) {
    let net = enter(&[ravel().preset(preset), chopin().preset(preset)]);
    bridge(&net);
    let _listener = in_host(&net, "chopin", || TcpListener::bind("0.0.0.0:5001")).expect("bound");
    let _stream =
        in_host(&net, "ravel", || TcpStream::connect("10.1.0.1:5001")).expect("connected");
    let before = connections(&net, "ravel");
    let old = preset == Preset::Linux1997;
    for word in [" ts", " sack", " wscale"] {
        assert_eq!(before.contains(word), !old, "{word} in {before}");
    }
    let number = |key: &str| -> u64 {
        let rest = before.split(key).nth(1).unwrap_or_else(|| panic!("{key} in {before}"));
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_else(|_| panic!("{key} in {before}"))
    };
    // The minimum RTO plus this machine's handshake: one RTT and four times half of it.
    let rto = |least: u64| {
        let most = least + 100 + 3 * (number(" rtt:") + 1);
        assert!((least..most).contains(&number(" rto:")), "{before}");
    };
    if old {
        assert!(before.contains(" reno "), "{before}");
        assert_eq!(number(" cwnd:"), 1, "{before}");
        rto(1000);
        // A socket buffer of 16 KiB, in whole segments of 1460 bytes.
        assert_eq!(number(" snd_wnd:"), 11 * 1460, "{before}");
    } else {
        assert!(before.contains(" cubic "), "{before}");
        assert_eq!(number(" cwnd:"), 10, "{before}");
        rto(200);
        assert!(number(" snd_wnd:") > 60_000, "{before}");
    }
}

fn counters_count_one_host() {
    let net = enter(&[ravel(), chopin()]);
    bridge(&net);
    let before =
        (net.counters("ravel").expect("counted"), net.counters("chopin").expect("counted"));
    transfer(&net, "chopin", "10.1.0.1", 100_000);
    let ravel = net.counters("ravel").expect("counted").since(&before.0);
    let chopin = net.counters("chopin").expect("counted").since(&before.1);
    assert_eq!((ravel.active_opens, ravel.passive_opens), (1, 0));
    assert_eq!((chopin.active_opens, chopin.passive_opens), (0, 1));
    // Without offloads a segment has at most 1448 bytes.
    assert!(chopin.in_segments >= 100_000 / 1448, "{chopin:?}");
    // Only a sender has timeouts, on a busy machine.
    assert_eq!((chopin.timeouts, chopin.in_checksum_errors), (0, 0));
}

fn sockets_remain_in_the_namespace_of_their_host() {
    let net = enter(&[ravel(), chopin()]);
    bridge(&net);
    let server = net.spawn_in("chopin", || {
        let listener = TcpListener::bind("10.1.0.1:7000").expect("bound");
        let (mut stream, peer) = listener.accept().expect("accepted");
        stream.write_all(b"from chopin").expect("written");
        peer.ip()
    });
    let server = server.expect("started");
    let received = in_host(&net, "ravel", || {
        let mut stream = loop {
            match TcpStream::connect("10.1.0.1:7000") {
                Ok(stream) => break stream,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(error) => panic!("{error}"),
            }
        };
        let mut received = String::new();
        stream.read_to_string(&mut received).expect("read");
        received
    });
    assert_eq!(received, "from chopin");
    assert_eq!(server.join().expect("ended"), v4("10.0.0.1"));
    // The caller's namespace is unchanged.
    assert_eq!(ip_json(&["link"]).as_array().map(Vec::len), Some(4));
    let panicked = std::panic::catch_unwind(|| net.in_host("ravel", || panic!("on purpose")));
    assert!(panicked.is_err());
}

fn hosts_can_be_added_later() {
    let mut net = enter(&[ravel()]);
    net.add_host(&chopin()).expect("added");
    net.add_host(&HostSpec::new("a", Side::Right, v4("10.1.0.2"))).expect("added");
    bridge(&net);
    assert_eq!(transfer(&net, "chopin", "chopin", 5000), 5000);
    assert_eq!(transfer(&net, "a", "10.1.0.2", 5000), 5000);
    // Each host knows all hosts of the other side, whatever the order of addition.
    let known = |host: &str| -> BTreeSet<String> {
        let table = in_host(&net, host, || ip_json(&["neigh", "show", "nud", "permanent"]));
        let entries = table.as_array().expect("a list").iter();
        entries.map(|entry| entry["dst"].as_str().expect("an address").to_owned()).collect()
    };
    let all = |addresses: &[&str]| addresses.iter().map(|&a| a.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(known("ravel"), all(&["10.1.0.1", "fd00:1::1", "10.1.0.2"]));
    for host in ["chopin", "a"] {
        assert_eq!(known(host), all(&["10.0.0.1", "fd00::1"]), "{host}");
    }
    let macs: BTreeSet<_> = net.hosts().iter().map(|host| host.mac().to_string()).collect();
    assert_eq!(macs.len(), 3, "each has an address of its own");
}

fn the_number_of_hosts_is_limited() {
    let mut net = enter(&[]);
    let host = |n: u16| {
        let side = if n.is_multiple_of(2) { Side::Left } else { Side::Right };
        HostSpec::new(&format!("h{n}"), side, Ipv4Addr::new(10, 0, 1, n as u8).into())
            .without_kernel()
    };
    let hosts: Vec<_> = (0..250).map(host).collect();
    let more = HostSpec::new("more", Side::Left, v4("10.1.0.1")).without_kernel();
    let error =
        net.add_hosts(&[&hosts[..], std::slice::from_ref(&more)].concat()).expect_err("too many");
    assert!(error.message.contains("251 hosts are too many"), "{error}");
    assert!(error.help.contains("at most 250"), "{error}");
    assert_eq!(net.hosts().len(), 0, "all or none");
    net.add_hosts(&hosts[..249]).expect("there is room");
    net.add_hosts(&hosts[249..]).expect("there is room for the last");
    let error = net.add_host(&more).expect_err("too many");
    assert!(error.message.contains("251 hosts are too many"), "{error}");
}

fn hosts_without_kernel_are_known_to_the_others() {
    let net = enter(&[ravel().without_kernel(), chopin()]);
    assert_eq!(net.hosts()[0].station_interface(), None);
    let error = net.in_host("ravel", || ()).expect_err("it has no namespace");
    assert!(error.message.contains("no kernel"), "{error}");
    let known = in_host(&net, "chopin", || ip_json(&["neigh", "show", "10.0.0.1"]));
    assert_eq!(known[0]["lladdr"], net.hosts()[0].mac().to_string());
    assert_eq!(ip_json(&["link"]).as_array().map(Vec::len), Some(2));
}

fn ip_netns_works_inside() {
    let _net = enter(&[ravel(), chopin()]);
    let listed: BTreeSet<String> = output_of("ip", &["netns", "list"])
        .lines()
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect();
    assert_eq!(listed, ["chopin", "ravel", "verdi"].map(str::to_owned).into());
    assert!(output_of("ip", &["netns", "exec", "chopin", "ip", "address"]).contains("10.1.0.1/32"));
    assert!(output_of("ip", &["netns", "exec", "verdi", "ip", "link"]).contains("chopin"));
}

fn existing_run_entries_and_resolver_remain_visible() {
    let names = || -> BTreeSet<_> {
        std::fs::read_dir("/run")
            .expect("read")
            .map(|entry| entry.expect("read").file_name())
            .collect()
    };
    let before = names();
    let resolver = std::fs::read("/etc/resolv.conf").ok();
    let _net = enter(&[ravel(), chopin()]);
    let after = names();
    assert!(before.is_subset(&after), "{before:?} {after:?}");
    assert_eq!(std::fs::read("/etc/resolv.conf").ok(), resolver);
    let hosts = std::fs::read_to_string("/etc/hosts").expect("read");
    assert!(hosts.starts_with("10.0.0.1\travel\nfd00::1\travel\n10.1.0.1\tchopin\n"), "{hosts}");
}

fn a_probe_finds_all_that_a_testbed_needs() {
    let root = nix::unistd::geteuid().is_root();
    let probes = lasthop_live::testbed::probe::probe();
    let how = if root { "for root" } else { "without root, in a user namespace" };
    let presets = Preset::ALL.map(Preset::name);
    let names = ["ip program", "namespaces", "packet sockets", "veth"];
    let found: Vec<&str> = probes.iter().map(|probe| probe.name.as_str()).collect();
    assert_eq!(found, [&names[..], &presets].concat());
    for probe in &probes {
        assert!(probe.ok && probe.remedy.is_empty() && !probe.purpose.is_empty(), "{probe:?}");
    }
    let found = |name: &str| &probes.iter().find(|probe| probe.name == name).unwrap().found;
    assert!(std::path::Path::new(found("ip program")).is_file());
    assert_eq!(found("namespaces"), &format!("network namespaces, {how}"));
    assert_eq!(found("packet sockets"), "can be had in a namespace");
    assert_eq!(found("veth"), "can be made");
    for preset in presets {
        let count = found(preset).strip_suffix(" settings hold").unwrap_or_default();
        assert!(count.parse::<u32>().is_ok_and(|count| count > 5), "{preset}: {}", found(preset));
    }
}

fn invalid_hosts_are_refused() {
    let mut net = enter(&[ravel()]);
    let refuse = |net: &mut Net, spec: HostSpec, words: &str| {
        let error: Error = net.add_host(&spec).expect_err("it is impossible");
        assert!(error.message.contains(words), "{error}");
        assert!(!error.help.is_empty(), "{error}");
    };
    refuse(&mut net, HostSpec { name: "../x".to_owned(), ..chopin() }, "`../x` cannot be a host");
    refuse(
        &mut net,
        HostSpec { name: "a-name-of-many-letters".to_owned(), ..chopin() },
        "cannot be",
    );
    refuse(&mut net, HostSpec { name: "verdi".to_owned(), ..chopin() }, "two hosts `verdi`");
    refuse(&mut net, ravel(), "two hosts `ravel`");
    refuse(&mut net, HostSpec { v4: Some(Ipv4Addr::new(10, 0, 0, 1)), ..chopin() }, "same address");
    refuse(&mut net, HostSpec { mtu: 600, ..chopin() }, "MTU of 600");
    refuse(&mut net, HostSpec { v4: None, v6: None, ..chopin() }, "no address");
    let error = net.in_host("chopin", || ()).expect_err("there is no such host");
    assert_eq!(error.help, "there are ravel");
    assert_eq!(net.hosts().len(), 1);
    net.add_host(&chopin()).expect("a good one is still possible");
}

fn a_process_with_threads_is_refused() {
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || wait.recv().is_ok());
    let error = Net::enter(&spec(&[ravel()])).expect_err("there is a second thread");
    assert!(error.message.contains("this process has 2 threads"), "{error}");
    drop(stop);
    thread.join().expect("ended");
}

/// No independent test: a testbed for [`nothing_outlives_the_process`].
fn wait_to_be_killed() {
    if std::env::var_os("LASTHOP_TEST_WAIT").is_none() {
        return;
    }
    let net = enter(&[ravel(), chopin()]);
    let inode = |path: &str| std::fs::read_link(path).expect("read").display().to_string();
    println!("{}", inode("/proc/thread-self/ns/net"));
    for host in ["ravel", "chopin"] {
        println!("{}", in_host(&net, host, || inode("/proc/thread-self/ns/net")));
    }
    println!("ready");
    std::io::stdout().flush().expect("written");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn nothing_outlives_the_process() {
    use std::io::BufRead as _;
    let before =
        (ip_json(&["link"]), std::fs::read_to_string("/proc/self/mountinfo").expect("read"));
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .env("LASTHOP_TEST_CHILD", "wait_to_be_killed")
        .env("LASTHOP_TEST_WAIT", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let lines = std::io::BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let namespaces: Vec<String> =
        lines.map(|line| line.expect("text")).take_while(|line| line != "ready").collect();
    assert_eq!(namespaces.iter().collect::<BTreeSet<_>>().len(), 3, "{namespaces:?}");
    child.kill().expect("killed");
    child.wait().expect("ended");
    let after =
        (ip_json(&["link"]), std::fs::read_to_string("/proc/self/mountinfo").expect("read"));
    assert_eq!(before, after);
    for process in std::fs::read_dir("/proc").expect("read").filter_map(Result::ok) {
        if let Ok(link) = std::fs::read_link(process.path().join("ns/net")) {
            let link = link.display().to_string();
            // Numbers of namespaces are reused, also for other programs.
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            let is_ours = String::from_utf8_lossy(&environment).contains("LASTHOP_TEST_WAIT");
            let is_left = is_ours && namespaces.contains(&link);
            assert!(!is_left, "{} is left in {link}", process.path().display());
        }
    }
}
