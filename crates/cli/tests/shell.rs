//! Programs behind a link, as root and without.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use crate::can_run::can_run;
use crate::support::{NOBODY, User, World, each, text_of};
use serde_json::Value;

/// Time limit of a program.
const PATIENCE: Duration = Duration::from_secs(180);

/// `lasthop shell` with these words. Its processes have the world's directory in their environment.
fn shell(world: &World, words: &[&str]) -> Command {
    let mut command = command_with_default_signals(world);
    command.arg(world.program()).args(["shell", "--local"]).args(words);
    command
}

/// A command without ignored signals, which the tests may have inherited.
fn command_with_default_signals(world: &World) -> Command {
    let mut command = world.runs("env");
    command.arg("--default-signal");
    command
}

/// Waits for the exit status.
fn ended(child: &mut Child) -> ExitStatus {
    let mut status = None;
    until("it ends", || {
        status = child.try_wait().expect("it was started");
        status.is_some()
    });
    status.expect("it has ended")
}

/// Whether the programs of a test are installed.
fn has(programs: &[&str]) -> bool {
    let is_there = |program: &&str| {
        let dirs = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
        dirs.iter().any(|dir| std::path::Path::new(dir).join(program).exists())
    };
    can_run(programs.iter().all(is_there), &programs.join(", "))
}

fn run(world: &World, words: &[&str]) -> Output {
    let output = shell(world, words).output().expect("the program starts");
    assert_none_left(world);
    output
}

/// Runs a program that must succeed, and returns what it prints.
fn good(world: &World, words: &[&str]) -> String {
    let output = run(world, words);
    let (out, err) = text_of(&output);
    assert!(output.status.success(), "{words:?}: {out}{err}");
    out
}

/// Processes of this world, by their names in /proc.
fn processes(world: &World) -> Vec<String> {
    let own = world.runtime().display().to_string();
    let entries = fs::read_dir("/proc").expect("read").filter_map(Result::ok);
    let of_ours = entries.map(|entry| entry.path()).filter(|process| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&own)
    });
    of_ours.map(|process| process.display().to_string()).collect()
}

/// Waits until `done`.
fn until(condition: &str, done: impl FnMut() -> bool) {
    wait_for(done, || condition.to_owned());
}

/// Waits until `done`; `fault` describes the state when that takes too long.
#[expect(clippy::disallowed_methods, reason = "real processes are waited for")]
fn wait_for(mut done: impl FnMut() -> bool, fault: impl Fn() -> String) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{}", fault());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn assert_none_left(world: &World) {
    until("nothing runs any more", || processes(world).is_empty());
    let left = fs::read_dir(world.runtime()).expect("read").count();
    assert_eq!(left, 0, "no file is left");
}

#[test]
fn the_shell_exits_with_the_status_of_its_program() {
    each("shell-ends", |world| {
        let status = |words: &[&str]| run(world, &[&["-q", "--"], words].concat()).status;
        assert_eq!(status(&["true"]).code(), Some(0));
        assert_eq!(status(&["sh", "-c", "exit 7"]).code(), Some(7));
        assert_eq!(status(&["no-such-program"]).code(), Some(127));
        assert_eq!(status(&["/etc/hosts"]).code(), Some(126));
        let failed = run(world, &["-q", "--json", "--", "no-such-program"]);
        assert_eq!(failed.status.code(), Some(127));
        let first = String::from_utf8_lossy(&failed.stderr);
        let first = first.lines().next().expect("an error");
        let error: Value = serde_json::from_str(first).expect(first);
        assert!(error["error"]["help"].as_str().is_some_and(|help| help.contains("installed")));
        assert_eq!(status(&["sh", "-c", "kill -USR1 $$"]).signal(), Some(10));
        // Its background processes end with it.
        assert_eq!(status(&["sh", "-c", "sleep 1000 & exit 3"]).code(), Some(3));
    });
}

#[test]
fn the_program_has_the_users_id_and_streams() {
    each("shell-user", |world| {
        let uid = if world.drops() { NOBODY } else { fs::metadata("/proc/self").unwrap().uid() };
        let script = "id -u; echo $LASTHOP_SHELL; echo $LASTHOP_FAR; cat; echo there >&2";
        let mut child = shell(world, &["-q", "--delay", "1ms", "--", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        child.stdin.take().expect("a pipe").write_all(b"hello").expect("written");
        let (out, err) = text_of(&child.wait_with_output().expect("ended"));
        assert_eq!(out, format!("{uid}\n1ms\n100.64.0.1\nhello"));
        assert_eq!(err, "there\n");
        assert_eq!(good(world, &["-q", "--root", "--", "id", "-u"]), "0\n");
        // A separate process namespace, and a network with one way out.
        assert_eq!(
            good(world, &["-q", "--", "sh", "-c", "ls /sys/class/net >/dev/null; ip -o -4 route"])
                .lines()
                .count(),
            1
        );
    });
}

fn summary(world: &World, words: &[&str]) -> Value {
    let output = run(world, &[&["--json"], words].concat());
    let (out, err) = text_of(&output);
    assert!(output.status.success(), "{words:?}: {out}{err}");
    serde_json::from_str(err.lines().last().expect("a line")).expect("JSON")
}

/// Shortest round-trip time that `ping` measured, ms.
fn fastest(output: &str) -> f64 {
    let after = output.split("mdev = ").nth(1).and_then(|rest| rest.split('/').next());
    after.and_then(|ms| ms.parse().ok()).unwrap_or_else(|| panic!("{output}"))
}

/// Checks for a round-trip time of `least` ms. A busy machine needs repetitions.
fn has_round_trips_of(world: &World, words: &[&str], least: f64) {
    let mut found = (0..20).map(|_| fastest(&good(world, words)));
    let is_near = |trip: f64| {
        assert!(trip >= least, "{trip} ms");
        trip < least + 20.0
    };
    assert!(found.any(is_near), "none of {least} ms");
}

#[test]
fn the_link_has_the_requested_delay_and_rate() {
    if !has(&["ping", "python3"]) {
        return;
    }
    each("shell-link", |world| {
        let ping = ["--", "ping", "-q", "-c", "4", "-i", "0.2", "-4", "far"];
        has_round_trips_of(world, &[&["--delay", "30ms"], &ping[..]].concat(), 60.0);

        // 64 KB at 1 Mb/s take half a second; a program at the far host sends them.
        let serve = "exec python3 -c 'import socket as s; l = s.create_server((\"\", 4000)); c = l.accept()[0]; \
                     c.sendall(bytes(64000)); c.close()'";
        let client = "import socket as s; c = s.create_connection((\"far\", 4000))
while c.recv(65536): pass";
        let words =
            ["--rate", "1mbit", "--queue", "20p", "--serve", serve, "--", "python3", "-c", client];
        let summary = summary(world, &words);
        let [rate, bytes] =
            ["rate", "bytes"].map(|key| summary["down"][key].as_f64().expect("a number"));
        // On a busy machine the link may be idle, at most for the whole run time.
        assert!(rate < 1.001e6 && bytes >= 64_000.0, "{summary}");
        assert!(rate * summary["seconds"].as_f64().expect("a number") >= 8.0 * bytes, "{summary}");
        assert!(summary["down"]["queue_delay"]["max_ms"].as_f64() > Some(20.0), "{summary}");
        assert!(summary["up"]["packets"].as_u64() > Some(3), "{summary}");
        assert_eq!(summary["end"]["exit"], 0);
    });
}

#[test]
fn losses_are_summarised_and_captured() {
    if !has(&["ping"]) {
        return;
    }
    each("shell-lost", |world| {
        let (file, json) = (world.runtime().join("x.pcapng"), world.runtime().join("x.json"));
        // Half of two hundred: between 60 and 140 except once in a hundred million runs.
        let output = shell(world, &["--loss", "50%", "-o"])
            .arg(&file)
            .arg("--summary")
            .arg(&json)
            .args(["--", "ping", "-q", "-c", "200", "-i", "0.01", "-W", "1", "far"])
            .output()
            .expect("the program starts");
        let (_, err) = text_of(&output);
        assert!(err.contains("frame-lost"), "{err}");
        let summary: Value =
            serde_json::from_slice(&fs::read(&json).expect("a summary")).expect("JSON");
        let bytes = fs::read(&file).expect("a capture");
        let word = b"dropped: frame-lost";
        let lost = bytes.windows(word.len()).filter(|window| window == word).count();
        let counted = |way: &str| summary[way]["lost"]["frame-lost"].as_u64().expect("lost");
        assert!((60..=140).contains(&counted("up")), "{summary}");
        assert_eq!(lost as u64, counted("up") + counted("down"));
        fs::remove_file(&file).and_then(|()| fs::remove_file(&json)).expect("removed");
        assert_none_left(world);
    });
}

#[test]
fn a_full_disk_loses_the_capture_and_not_the_summary() {
    if !has(&["ping"]) {
        return;
    }
    each("shell-full", |world| {
        let words = ["-o", "/dev/full", "--", "ping", "-q", "-c", "3", "-i", "0.01", "far"];
        let output = run(world, &words);
        let (_, err) = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("to it") && err.contains("from it"), "{err}");
        assert!(err.contains("/dev/full: the capture is incomplete"), "{err}");
    });
}

/// As in a bare chroot.
#[test]
fn a_missing_proc_is_named() {
    if !has(&["unshare", "mount"]) {
        return;
    }
    each("shell-proc", |world| {
        let without_proc = |words: &str| {
            let script =
                format!("mount -t tmpfs none /proc && exec {} {words}", world.program().display());
            let mut command = world.runs("unshare");
            let output = command.args(["-rm", "sh", "-c", &script]).output().expect("it starts");
            let (out, err) = text_of(&output);
            format!("{out}{err}")
        };
        for words in ["shell --local -- true", "doctor"] {
            let said = without_proc(words);
            assert!(said.contains("/proc is not mounted here"), "{words}: {said}");
            assert!(said.contains("mount -t proc proc /proc"), "{words}: {said}");
        }
    });
}

#[test]
fn a_bare_chroot_is_named() {
    if !has(&["unshare", "mount", "chroot"]) {
        return;
    }
    each("shell-chroot", |world| {
        let root = world.runtime().join("root");
        let script = format!(
            "mkdir {root} && for dir in usr bin lib lib64 proc dev run tmp; do \
             [ ! -e /$dir ] || {{ mkdir {root}/$dir && mount --rbind /$dir {root}/$dir || exit; }}; done; \
             exec chroot {root} {} shell --local -- true",
            world.program().display(),
            root = root.display(),
        );
        let output = world.runs("unshare").args(["-rm", "sh", "-c", &script]).output();
        let (_, said) = text_of(&output.expect("it starts"));
        assert!(said.contains("is no mount, as in a bare chroot"), "{said}");
        assert!(said.contains("mount --bind DIR DIR"), "{said}");
    });
}

#[test]
fn captures_may_have_any_name() {
    each("shell-name", |world| {
        use std::os::unix::ffi::OsStrExt as _;
        let file = world.runtime().join(std::ffi::OsStr::from_bytes(b"x\xff.pcapng"));
        let mut command = shell(world, &["-o"]);
        let output = command.arg(&file).args(["--", "true"]).output().expect("the program starts");
        assert!(output.status.success(), "{}", text_of(&output).1);
        assert!(fs::read(&file).expect("a capture").starts_with(b"\n\r\r\n"));
        fs::remove_file(&file).expect("removed");
    });
}

#[test]
fn agents_and_scenario_paths_run_and_errors_are_named() {
    if !has(&["ping"]) {
        return;
    }
    each("shell-agents", |world| {
        let words = ["--scenario", "lte-trace", "--", "ping", "-q", "-c", "3", "-i", "0.2", "far"];
        let summary = summary(world, &words);
        assert_eq!(summary["down"]["packets"], 3, "{summary}");
        assert!(
            good(world, &["-q", "--rate", "2mbit", "--agent", "snoop", "--", "echo", "x"]) == "x\n"
        );
        let refused = |words: &[&str]| {
            let output = run(world, &[words, &["--", "true"]].concat());
            assert_eq!(output.status.code(), Some(2), "{words:?}");
            text_of(&output).1
        };
        assert!(refused(&["--scenario", "handoff-wavelan"]).contains("cells are for runs"));
        assert!(refused(&["--scenario", "no-such"]).contains("no-such"));
        assert!(refused(&["--rate", "2mb"]).contains("for example"));
        assert!(refused(&["--loss", "120%"]).contains("`120%` is out of range"));
        assert!(refused(&["--delay", "20 milliseconds"]).contains("--delay 20ms"));
        assert!(refused(&["--trace", "one"]).contains("`one` is one trace"));
        assert!(refused(&["--trace", "no.up,no.down"]).contains("no.up"));
        assert!(refused(&["--agent", "snoop"]).contains("--rate"));
        assert!(refused(&["--rate", "1mbit", "--set", "link.rat=2mbit"]).contains("rat"));
    });
}

#[test]
fn shells_can_be_nested() {
    if !has(&["ping"]) {
        return;
    }
    each("shell-nested", |world| {
        let program = world.program();
        let program = program.to_str().expect("text");
        let inner = ["--", program, "shell", "--local", "-q", "--delay", "20ms", "--"];
        let script = "echo $LASTHOP_SHELL_LEVEL $LASTHOP_FAR; exit 9";
        let words = [&["-q", "--delay", "10ms"], &inner[..]].concat();
        let output = run(world, &[&words[..], &["sh", "-c", script]].concat());
        let (out, err) = text_of(&output);
        assert_eq!(output.status.code(), Some(9), "{out}{err}");
        assert!(out.starts_with("2 100.64.1.1\n"), "{out}{err}");
        let ping = ["ping", "-q", "-c", "3", "-i", "0.2", "-4", "far"];
        has_round_trips_of(world, &[&words[..], &ping].concat(), 40.0);
    });
}

/// Starts a program that reports its start.
fn sleeper(world: &World, words: &[&str]) -> Ending {
    let ready = world.base.join("runtime/ready");
    let script = format!("touch {}; sleep 1000 & exec sleep 1000", ready.display());
    let child = shell(world, words).args(["--", "sh", "-c", &script]).spawn().expect("started");
    let mut child = Ending(child);
    let mut status = None;
    until("the program runs", || {
        status = child.0.try_wait().expect("it was started");
        ready.exists() || status.is_some()
    });
    assert_eq!(status, None, "it ended before the program ran");
    fs::remove_file(&ready).expect("removed");
    child
}

fn kill(signal: &str, pid: &str) {
    let status = Command::new("kill").args([signal, pid]).status().expect("run");
    assert!(status.success());
}

#[test]
fn signals_are_forwarded_to_the_program() {
    each("shell-signals", |world| {
        for (name, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)] {
            let mut child = sleeper(world, &["-q"]);
            kill(name, &child.0.id().to_string());
            assert_eq!(ended(&mut child.0).signal(), Some(number));
            assert_none_left(world);
        }
    });
}

#[test]
fn a_killed_shell_leaves_no_process_or_file() {
    each("shell-killed", |world| {
        let mut child = sleeper(world, &["-q", "--serve", "sleep 1000"]);
        assert!(processes(world).len() >= 4);
        child.0.kill().expect("killed");
        ended(&mut child.0);
        assert_none_left(world);

        // The keeper, a child of the front.
        let mut child = sleeper(world, &["-q"]);
        let tasks = format!("/proc/{0}/task/{0}/children", child.0.id());
        let keeper = fs::read_to_string(tasks).expect("its children");
        kill("-KILL", keeper.trim());
        assert_eq!(ended(&mut child.0).code(), Some(2));
        assert_none_left(world);
    });
}

/// A child process that ends with its test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // After success it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `bash` at a new terminal with the inputs of `steps`, each after its expected output.
fn at_a_terminal(world: &World, steps: &[(&str, &str)]) {
    let show = world.base.join("runtime/typescript");
    let own = command_with_default_signals(world);
    let mut command = command_with_default_signals(world);
    command.args(["script", "-qfec", "PS1='outer> ' exec bash --norc -i"]).arg(&show).env_clear();
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("SHELL", "/bin/bash").env("HOME", "/nowhere").env("TERM", "dumb");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Ending(command.spawn().expect("script runs"));
    let mut keys = child.0.stdin.take().expect("a pipe");
    let shown = || String::from_utf8_lossy(&fs::read(&show).unwrap_or_default()).into_owned();
    let mut seen = 0;
    for (text, then) in steps {
        wait_for(
            || shown()[seen..].contains(text),
            || format!("no `{text}` at the end of {}", shown()),
        );
        seen += shown()[seen..].find(text).expect("it is there") + text.len();
        keys.write_all(then.as_bytes()).expect("written");
    }
    drop(keys);
    ended(&mut child.0);
    fs::remove_file(&show).expect("removed");
}

#[test]
fn the_program_controls_the_terminal() {
    if !has(&["script", "bash"]) {
        return;
    }
    each("shell-terminal", |world| {
        let program = world.program().display().to_string();
        let here = |words: &str| format!("{program} shell -q --local --rate 9mbit {words}\n");
        // The terminal echoes input, so the expected output must differ from it. Not `sh`: dash calls vfork, and waits
        // for ever for a child that Ctrl-Z stops before its exec, so that its shell never reports `Stopped`.
        let runs =
            r#"bash -c 'trap "echo ON\"\"WARD" CONT; echo RU""NS; while :; do sleep 0.05; done'"#;
        // Ctrl-Z stops it like a direct program, and Ctrl-C ends it.
        let steps = [
            ("outer> ", &*here(&format!("-- {runs}"))),
            ("RUNS", "\x1a"),
            ("Stopped", "fg\n"),
            ("ONWARD", "\x03"),
            ("outer> ", "echo code=$?.\n"),
            ("code=130.", "exit\n"),
        ];
        at_a_terminal(world, &steps);
        assert_none_left(world);
        // The front, whose child keeps the link, continues with the program, before the keeper reports either.
        let slow = "front=$(jobs -p); read keeper < <(cat /proc/$front/task/*/children); \
                    read program < <(cat /proc/$keeper/task/*/children); kill -STOP $keeper; \
                    kill -CONT $program $front; sleep 0.5; kill -CONT $keeper; sleep 0.5; jobs\n";
        let steps = [
            ("outer> ", &*here(&format!("-- {runs}"))),
            ("RUNS", "\x1a"),
            ("Stopped", slow),
            ("Running", "kill %1; wait %1; echo code=$?.\n"),
            ("code=143.", "exit\n"),
        ];
        at_a_terminal(world, &steps);
        assert_none_left(world);
        // An interactive shell: prompt, jobs, window size, and the return of the terminal.
        let steps = [
            ("outer> ", &*here("")),
            ("(9mbit) ", "stty rows 31 cols 97; stty size\n"),
            ("31 97", &*format!("{runs}\n")),
            ("RUNS", "\x1a"),
            ("Stopped", "fg\n"),
            ("ONWARD", "\x03"),
            ("(9mbit) ", "echo inner=$?.\n"),
            ("inner=130.", "exit 5\n"),
            ("outer> ", "echo code=$?.\n"),
            ("code=5.", "exit\n"),
        ];
        at_a_terminal(world, &steps);
        assert_none_left(world);
    });
}

/// Source address of this machine for remote hosts, if it has a route.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // Only looks up a route.
    socket.connect("198.51.100.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[test]
fn outside_hosts_are_reached_through_the_link() {
    each("shell-outside", |world| {
        let checks = world.json(&["doctor", "-o", "/tmp"])["checks"].take();
        let of_outside = |check: &&Value| check["name"] == "outside";
        let check = checks.as_array().and_then(|all| all.iter().find(of_outside)).expect("a check");
        let words = ["--", "bash", "-c", "echo $LASTHOP_GATEWAY"];
        let (Some(address), true) = (own_address(), check["ok"] == true) else {
            // A plain message without an address.
            let output = world.command(&["shell"]).args(words).output().expect("started");
            let (out, err) = text_of(&output);
            assert!(out == "\n" && err.contains("is the only reachable host"), "{out}{err}");
            return assert_none_left(world);
        };
        let listener = std::net::TcpListener::bind((address, 0)).expect("a listener");
        let port = listener.local_addr().expect("its address").port();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a connection");
            peer.write_all(&[b'x'; 100_000]).expect("sent");
        });
        let script = format!("exec 3<>/dev/tcp/{address}/{port}; wc -c <&3");
        let output = world
            .command(&["shell", "--json", "--delay", "20ms", "--loss", "5%", "--", "bash", "-c"])
            .arg(&script)
            .output()
            .expect("started");
        let (out, err) = text_of(&output);
        assert_eq!(out.trim(), "100000", "{err}");
        server.join().expect("it has ended");
        let summary: Value =
            serde_json::from_str(err.lines().last().expect("a line")).expect("JSON");
        let (sent, lost) = (&summary["down"], &summary["down"]["lost"]);
        // Losses are repaired individually, without a full queue.
        assert!(
            sent["bytes"].as_u64() < Some(130_000) && lost["queue-full"].is_null(),
            "{summary}"
        );
        assert_none_left(world);
    });
}

#[test]
fn help_needs_no_root() {
    let world = World::new("shell-help", User::Unprivileged);
    let help = world.good(&["shell", "--help"]);
    assert!(help.contains("as mm-link"), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100));
}
