//! `lasthop station` and `lasthop ctl` between two namespaces: a station is run, changed, watched and killed.
//!
//! Every test runs in its own namespaces, which end with it; without them it fails. As root it needs a mount
//! and a network namespace, otherwise a user namespace as well.
mod endings;
mod quic_beside;
mod soft_state;
mod subscribers;
mod through;
mod world;

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt};
use std::process::Stdio;

use world::{World, inside};

const PATH: &str =
    "[[path]]\nagent = \"none\"\n[[path]]\nradio = { rate = \"20mbit\", delay = \"1ms\" }\n";

#[test]
fn an_agent_and_errors_change_while_a_transfer_runs() {
    inside("an_agent_and_errors_change_while_a_transfer_runs", || {
        // Half a minute of transmission, longer than the changes; the last change lets it end.
        let world = World::new(&PATH.replace("20mbit", "2mbit"));
        let station = world.station(&[]);
        let transfer = world.transfer(8_000_000);
        let model = "errors-data={ model = \"exponential\", mean = \"64KiB\" }";
        let output = world.ctl(&["set", "agent=snoop", model]);
        assert!(output.starts_with("agent: none -> snoop\n"), "{output}");
        assert!(world.wait(|status| status["stages"][2]["right"]["damaged"].as_u64() > Some(3)));
        assert!(world.wait(|status| {
            let made = &status["stages"][1]["right"]["originated"];
            made["local-dup-ack"].as_u64() > Some(0) || made["local-timeout"].as_u64() > Some(0)
        }));
        assert_eq!(world.ctl(&["get", "errors-data.mean"]), "64KiB\n");
        world.ctl(&["set", "errors-data=none", "radio.rate=50mbit"]);
        // Every byte arrives unchanged over the old connection.
        assert_eq!(transfer.join().expect("the transfer is whole"), 8_000_000);
        let status = world.status();
        let host = &status["stages"][3]["notes"];
        assert_eq!(host["delivered-bytes"], 8_000_000, "{status:#}");
        assert_eq!(status["stages"][1]["config"]["agent"], "snoop");
        for stage in status["stages"].as_array().unwrap() {
            let packets = &stage["packets"];
            let of = |key: &str| packets[key].as_u64().unwrap();
            if stage["kind"] != "host" {
                let into = of("arrived") + of("originated");
                assert_eq!(into, of("departed") + of("ended") + of("held"), "{stage:#}");
            }
        }
        assert_eq!(station.end("TERM"), Some(0));
        assert!(!world.socket().exists());
    });
}

/// The kernel's maximum segment size of the sender's connection.
fn kernel_mss() -> Option<u32> {
    let words = ["netns", "exec", "a", "ss", "-Htin", "dport = :5001"];
    let output =
        std::process::Command::new("ip").args(words).output().expect("ss (iproute2) is there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mss = text.split_whitespace().find_map(|word| word.strip_prefix("mss:"));
    mss.and_then(|mss| mss.parse().ok())
}

#[test]
fn connections_keep_to_the_good_packet_size() {
    inside("connections_keep_to_the_good_packet_size", || {
        let world = World::new(
            "[[path]]\nagent = \"good-packet-size\"\n\
             [[path]]\nradio = { rate = \"2mbit\", delay = \"1ms\" }\n",
        );
        let station = world.station(&[]);
        // The table of the paper, then another state of the channel, then a fixed size, each for new
        // connections. The kernel's timestamps use 12 bytes of each segment.
        for (i, (set, size)) in
            [("bad-period=1s", 512), ("bad-period=4s", 384), ("bad-period=500ms", 512)]
                .into_iter()
                .enumerate()
        {
            world.ctl(&["set", set]);
            let (seen, is_seen) = std::sync::mpsc::channel::<()>();
            let transfer = world.transfer_until(400_000, move || {
                let _ = is_seen.recv();
            });
            assert!(world.wait(|status| {
                status["stages"][1]["notes"]["segments-clamped"].as_u64()
                    >= Some(2 * (i as u64 + 1))
            }));
            assert!((0..2000).any(|_| kernel_mss() == Some(size - 40 - 12)), "{set}");
            drop(seen);
            assert_eq!(transfer.join().expect("the transfer is whole"), 400_000);
        }
        let status = world.status();
        assert_eq!(status["stages"][1]["config"]["agent"], "good-packet-size");
        assert_eq!(status["stages"][1]["flows"], 0);
        let (code, output) = world.fails(&["ctl", "set", "packet-size=512B"]);
        assert!(code == Some(2) && output.contains("`bad-period` exclude each other"), "{output}");
        assert_eq!(station.end("TERM"), Some(0));
    });
}

#[test]
fn replacing_a_link_loses_no_packet() {
    inside("replacing_a_link_loses_no_packet", || {
        let world = World::new(
            "[[path]]\nlink = { rate = \"1mbit\", delay = \"50ms\", queue = \"3000p\" }\n",
        );
        let station = world.station(&[]);
        let transfer = world.transfer(2_500_000);
        for rate in ["1.1mbit", "1.2mbit", "1.3mbit", "20mbit"] {
            assert!(world.wait(|status| status["stages"][1]["packets"]["held"].as_u64() > Some(0)));
            world.ctl(&["set", &format!("link.rate={rate}")]);
        }
        assert_eq!(transfer.join().expect("the transfer is whole"), 2_500_000);
        // The last ACKs may still be under way.
        let all_departed = |status: &serde_json::Value| {
            let packets = &status["stages"][1]["packets"];
            packets["arrived"] == packets["departed"] && packets["held"] == 0
        };
        assert!(world.wait(all_departed), "{:#}", world.status());
        assert_eq!(world.status()["stages"][1]["packets"]["ended"], 0);
        assert_eq!(station.end("INT"), Some(0));
    });
}

#[test]
fn a_radio_gets_a_link_layer_while_a_transfer_runs() {
    inside("a_radio_gets_a_link_layer_while_a_transfer_runs", || {
        let world = World::new(
            "[[path]]\nlink = { rate = \"20mbit\", delay = \"2ms\" }\n\
             [[path]]\nradio = { rate = \"20mbit\", delay = \"10us\" }\n",
        );
        let station = world.station(&[]);
        let transfer = world.transfer(4_000_000);
        let carried = |at_least: u64| {
            let carried = |status: &serde_json::Value| {
                status["stages"][2]["right"]["transmitted"].as_u64() > Some(at_least)
            };
            assert!(world.wait(carried), "{:#}", world.status());
        };
        // A dead channel on which a link layer retries. After the change its buffered packets arrive.
        for (i, sets) in [
            &["link-layer=tulip", "errors={ model = \"packet-loss\", p = 0.05 }"][..],
            &["errors.p=1"],
            &["errors.p=0.05", "mac=dcf"],
            &["link-layer=local-recovery", "mac=ideal", "link.header-compression=vj"],
            &["errors=none", "link-layer=none", "link.header-compression=none"],
        ]
        .into_iter()
        .enumerate()
        {
            world.ctl(&[&["set"], sets].concat());
            if i != 1 {
                carried(400 * i as u64);
            }
        }
        assert_eq!(transfer.join().expect("the transfer is whole"), 4_000_000);
        let status = world.at_rest();
        assert_eq!(status["stages"][3]["notes"]["delivered-bytes"], 4_000_000, "{status:#}");
        for stage in &status["stages"].as_array().unwrap()[1..3] {
            let of = |key: &str| stage["packets"][key].as_u64().unwrap();
            assert_eq!(of("arrived"), of("departed") + of("ended"), "{stage:#}");
        }
        let (code, output) = world.fails(&["ctl", "set", "path.2={ agent = \"none\" }"]);
        assert!(code == Some(2) && output.contains("would become"), "{output}");
        assert_eq!(station.end("TERM"), Some(0));
    });
}

#[test]
fn the_socket_belongs_to_one_station() {
    inside("the_socket_belongs_to_one_station", || {
        let world = World::new(PATH);
        let first = world.station(&[]);
        let meta = std::fs::symlink_metadata(world.socket()).unwrap();
        assert!(meta.file_type().is_socket());
        assert_eq!(meta.mode() & 0o777, 0o600);
        let (code, output) = world.fails(&["station", "FILE"]);
        assert_eq!(code, Some(2));
        assert!(
            output.contains("lx has a station already") && output.contains("other interfaces"),
            "{output}"
        );
        world.second_interfaces();
        let (code, output) =
            world.fails(&["station", "/run/second.toml", "--socket", "/run/lasthop/base.sock"]);
        assert_eq!(code, Some(2));
        assert!(
            output.contains("another station listens there") && output.contains("[control]"),
            "{output}"
        );
        // Even an open socket serves its owner only: the kernel reports the user of the peer. A user who is
        // root only in a namespace has no second user to test with.
        if std::fs::read_to_string("/proc/self/uid_map").unwrap().contains("4294967295") {
            std::fs::set_permissions("/run/lasthop", PermissionsExt::from_mode(0o755)).unwrap();
            std::fs::set_permissions(world.socket(), PermissionsExt::from_mode(0o666)).unwrap();
            let output = world.error_as_other_user(&[
                "ctl",
                "--socket",
                "/run/lasthop/base.sock",
                "get",
                "agent",
            ]);
            assert!(output.contains("this station is not yours"), "{output}");
        }
        // The first station was not affected.
        assert_eq!(world.ctl(&["get", "agent"]), "none\n");
        assert_eq!(first.end("KILL"), None);
        assert!(world.socket().exists(), "killed, it could not remove its socket");
        let (_, output) = world.fails(&["ctl", "get"]);
        assert!(output.contains("no station or testbed runs here"), "{output}");
        let second = world.station(&[]);
        assert_eq!(world.ctl(&["get", "agent"]), "none\n");
        assert_eq!(second.end("TERM"), Some(0));
        assert!(!world.socket().exists());
    });
}

/// The connection continues, split or not, with both planes if the machine has them.
#[test]
fn a_station_waits_for_an_interface_that_was_removed() {
    inside("a_station_waits_for_an_interface_that_was_removed", || {
        let world = World::new("[[path]]\nagent = \"none\"\n");
        for (plane, agent) in
            [("sockets", "none"), ("auto", "snoop"), ("sockets", "split"), ("auto", "split")]
        {
            world.write(&format!(
                "left = \"lx\"\nright = \"rx\"\nplane = \"{plane}\"\n[[path]]\nagent = \"{agent}\"\n"
            ));
            let station = world.station(&[]);
            let (end, ends) = std::sync::mpsc::channel();
            let transfer = world.transfer_until(100_000, move || ends.recv().unwrap());
            world.ip("link del lx");
            assert!(station.printed("lx does not exist any more"), "{plane}, {agent}");
            assert_eq!(world.ctl(&["get", "agent"]), format!("{agent}\n"));
            world.ip("link add name lx type veth peer name la netns a");
            world.ip("link set lx up");
            world.ip("-n a addr add 10.9.0.1/24 dev la");
            world.ip("-n a link set la up");
            assert!(station.printed("packets pass"), "{plane}, {agent}");
            end.send(()).unwrap();
            assert_eq!(transfer.join().expect("the transfer is whole"), 100_000);
            assert_eq!(station.end("TERM"), Some(0));
        }
    });
}

#[test]
fn a_station_that_cannot_run_reports_the_reason() {
    inside("a_station_that_cannot_run_reports_the_reason", || {
        let world = World::new(PATH);
        let output = world.lasthop(&["station", "FILE", "--check"]);
        let first = output.lines().next().unwrap_or_default();
        assert!(
            first.contains(
                "good: lx | agent | radio | rx; packet sockets forward, as set in the file"
            ) && first.contains("killed or hangs cuts the link"),
            "{output}"
        );
        assert!(
            output.contains("agent: agent = none") && output.contains("it would run here"),
            "{output}"
        );
        world.ip("link set rx down");
        world.ip("link set lx mtu 1400");
        let output = world.lasthop(&["station", "FILE", "--check"]);
        assert!(
            output.contains("mind  rx: is down") && output.contains("link set dev rx up"),
            "{output}"
        );
        assert!(output.contains("lx takes packets of 1400 bytes, rx of 1500"), "{output}");
        world.ip("link set rx up");
        world.ip("link set lx mtu 1500");
        world.write(&world.text().replace("lx", "nosuch"));
        // The file is valid, but the interface is missing here.
        let (code, output) = world.exit_code_and_stdout(&["station", "FILE", "--check"]);
        assert_eq!(code, Some(1));
        assert!(output.contains("good") && output.contains("no interface `nosuch`"), "{output}");
        assert!(output.contains("it would not run here"), "{output}");
        let (code, output) = world.fails(&["station", "FILE"]);
        assert_eq!(code, Some(2));
        assert!(output.contains("no interface `nosuch`") && output.contains("lx, "), "{output}");
        world.write(&world.text().replace("nosuch", "rx"));
        let (_, output) = world.fails(&["station", "FILE"]);
        assert!(output.contains("the same interface twice") && output.contains(":2:"), "{output}");
        world.write(&format!("left = \"lx\"\nright = \"rx\"\nplane = \"sockets\"\n{PATH}"));
        let output = world.without_rights(&["station", "FILE"]);
        assert!(
            output.contains("CAP_NET_RAW") && output.contains("setcap") && output.contains("sudo"),
            "{output}"
        );
        world.ip("addr add 192.0.2.1/24 dev lx");
        let station = world.station(&[]);
        assert!(station.printed("lx has addresses (192.0.2.1/"));
        assert_eq!(station.end("TERM"), Some(0));
    });
}

#[test]
fn the_kernel_forwards_for_an_unprivileged_station() {
    let may = lasthop_live::plane::probe().is_ok();
    if !crate::can_run::can_run(may, "root, and Linux 6.6 with eBPF") {
        return;
    }
    inside("the_kernel_forwards_for_an_unprivileged_station", || {
        let world = World::new("[[path]]\nagent = \"snoop\"\n");
        world.write(&world.text().replace("sockets", "auto"));
        let plane = |name: &str| {
            let output = world.ctl(&["--socket", "/run/user/base.sock", "get", "--json"]);
            let output: serde_json::Value = serde_json::from_str(&output).expect("JSON");
            output["plane"][name].as_u64()
        };
        let station = world.unprivileged_station("+net_raw,+net_admin,+bpf");
        assert!(station.printed("the kernel forwards; the station gets"));
        assert_eq!(world.transfer(2_000_000).join().expect("the transfer is whole"), 2_000_000);
        assert!(plane("copied") > Some(0), "{:?}", plane("copied"));
        assert_eq!(station.end("TERM"), Some(0));
        // With fewer capabilities packet sockets are used, and a message names the missing ones.
        for less in ["+net_raw", "+net_raw,+net_admin", "+net_raw,+bpf"] {
            let station = world.unprivileged_station(less);
            assert!(station.printed("since the kernel cannot by itself"), "{less}");
            assert_eq!(world.transfer(200_000).join().expect("the transfer is whole"), 200_000);
            assert_eq!(plane("copied"), None);
            assert_eq!(station.end("TERM"), Some(0));
        }
    });
}

#[test]
fn a_hangup_signal_reloads_the_file() {
    inside("a_hangup_signal_reloads_the_file", || {
        let world = World::new(PATH);
        let station = world.station(&[]);
        let text = world.text();
        world.write(&text.replace("\"none\"", "\"seq-cache\""));
        station.signal("HUP");
        let own = std::fs::read_to_string("/proc/self/comm").unwrap();
        assert!(station.printed(&format!(
            "none -> seq-cache; requested by root ({}, process {})",
            own.trim(),
            std::process::id()
        )));
        assert_eq!(world.ctl(&["get", "agent"]), "seq-cache\n");
        world.ctl(&["set", "agent=snoop", "dupacks=2"]);
        assert!(station.printed("agent: seq-cache -> snoop, dupacks: (default) -> 2"));
        world.ctl(&["set", "agent=seq-cache"]);
        assert!(station.printed("(lasthop, process "), "who it was");
        for (other, says) in [
            (text.replace("\"none\"", "\"snop\""), "did you mean `snoop`?"),
            (text.replace("lx", "ly"), "nothing is changed: `left` need a restart"),
            (format!("{text}[[path]]\nlink = {{}}\n"), "the path has 2 stages and would have 3"),
        ] {
            world.write(&other);
            station.signal("HUP");
            assert!(station.printed(says), "{says}");
            assert_eq!(world.ctl(&["get", "agent"]), "seq-cache\n");
        }
        assert_eq!(station.end("TERM"), Some(0));
    });
}

#[test]
fn a_station_is_watched_captured_and_scraped() {
    inside("a_station_is_watched_captured_and_scraped", || {
        let more = "[metrics]\nlisten = \"127.0.0.1:9464\"\n[capture]\ndir = \"/run/captures\"\n\
                    file-size = \"100KiB\"\nfiles = 2\n";
        let world = World::new(&format!("{PATH}{more}"));
        let station = world.station(&[]);
        assert_eq!(world.transfer(2_000_000).join().expect("the transfer is whole"), 2_000_000);
        let lines = world.ctl(&["watch", "--interval", "100ms", "--times", "3"]);
        assert_eq!(lines.lines().count(), 3, "{lines}");
        assert!(
            lines.lines().all(|line| line.contains("from left") && line.contains("flows")),
            "{lines}"
        );
        assert!(lines.lines().all(|line| line.len() < 190), "{lines}");
        let lines = world.ctl(&["watch", "--interval", "100ms", "--times", "2", "--json"]);
        for line in lines.lines() {
            let status: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(status["stages"][3]["notes"]["delivered-bytes"], 2_000_000);
        }
        let table = world.ctl(&["get"]);
        assert!(table.contains("radio: transmitted to the right"), "{table}");
        assert_eq!(world.ctl(&["get", "stages.agent.flows"]), "0\n");
        let page = world.scrape();
        let line = "lasthop_notes_total{stage=\"right\",note=\"delivered-bytes\"} 2000000";
        assert!(page.lines().any(|other| other == line), "{page}");

        assert_eq!(station.end("TERM"), Some(0));
        let mut files: Vec<_> = std::fs::read_dir("/run/captures").unwrap().flatten().collect();
        files.sort_by_key(|file| file.file_name());
        let names: Vec<String> =
            files.iter().map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        // Two generations of four files.
        assert_eq!(names.len(), 8, "{names:?}");
        for name in ["drops.", "left.", "radio.", "right."] {
            assert_eq!(
                names.iter().filter(|other| other.starts_with(name)).count(),
                2,
                "{names:?}"
            );
        }
        for file in &files {
            assert!(file.metadata().unwrap().len() < 200 << 10);
        }
        // They contain plausible connections.
        let radio = names.iter().rev().find(|name| name.starts_with("right.")).unwrap();
        let analysis = world.lasthop(&["analyze", &format!("/run/captures/{radio}")]);
        assert!(analysis.contains("10.9.0.2"), "{analysis}");
    });
}

#[test]
fn ctl_needs_a_socket_when_two_stations_run() {
    inside("ctl_needs_a_socket_when_two_stations_run", || {
        let world = World::new(PATH);
        let one = world.station(&[]);
        world.second_interfaces();
        let two = world.station_of("/run/second.toml", &["--socket", "/run/lasthop/two.sock"]);
        let (code, output) = world.fails(&["ctl", "get"]);
        assert_eq!(code, Some(2));
        assert!(output.contains("2 stations run here") && output.contains("--socket"), "{output}");
        let get = ["--socket", "/run/lasthop/two.sock", "get", "agent"];
        assert_eq!(world.ctl(&get), "none\n");
        assert_eq!((one.end("TERM"), two.end("TERM")), (Some(0), Some(0)));
    });
}

#[test]
fn a_service_manager_gets_ready_and_watchdog_messages() {
    inside("a_service_manager_gets_ready_and_watchdog_messages", || {
        let world = World::new(PATH);
        let manager = std::os::unix::net::UnixDatagram::bind("/run/notify").unwrap();
        manager.set_read_timeout(Some(std::time::Duration::from_secs(180))).unwrap();
        let mut command = world.command(&["station", "FILE"]);
        command.env("NOTIFY_SOCKET", "/run/notify").env("WATCHDOG_USEC", "100000");
        command.env("RUNTIME_DIRECTORY", "/run/lasthop/unit");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut station = command.spawn().expect("it starts");
        let mut received = Vec::new();
        while received.len() < 4 {
            let mut word = [0; 64];
            let len = manager.recv(&mut word).expect("a word in time");
            received.push(String::from_utf8_lossy(&word[..len]).into_owned());
        }
        assert_eq!(received[0], "READY=1");
        assert!(received[1..].iter().all(|word| word == "WATCHDOG=1"), "{received:?}");
        // One directory deeper, as in a systemd unit.
        assert_eq!(world.ctl(&["get", "agent"]), "none\n");
        station.kill().unwrap();
        station.wait().unwrap();
    });
}
