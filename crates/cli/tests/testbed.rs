//! Persistent testbeds, as root and without.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};

use crate::support::{NOBODY, User, World, each, inside, namespaces, sleeper, text_of};

#[test]
fn up_exec_and_down() {
    each("up", |world| {
        assert_eq!(world.run(&["testbed", "status", "testbed"]).status.code(), Some(1));
        let record = world.json(&["testbed", "up", "--preset", "chopin=linux-1997"]);
        let names: Vec<_> = record["hosts"]
            .as_array()
            .expect("hosts")
            .iter()
            .map(|host| host["name"].as_str().unwrap_or_default())
            .collect();
        assert_eq!(names, ["verdi", "ravel", "chopin"]);
        assert_eq!(world.json(&["testbed", "list"])["testbeds"][0]["status"], "up");
        assert!(world.good(&["testbed", "status", "testbed"]).contains("10.1.0.1"));

        assert!(world.good(&["testbed", "exec", "ravel", "ip", "address"]).contains("10.0.0.1/32"));
        let read = ["testbed", "exec", "chopin", "--", "cat", "/proc/sys/net/ipv4/tcp_sack"];
        assert_eq!(world.good(&read), "0\n");

        // No process listens there, and the other kernel refuses: so packets pass in both directions, by
        // name.
        let connect = ["testbed", "exec", "ravel", "--", "bash", "-c", "exec 3<>/dev/tcp/chopin/9"];
        let (_, err) = text_of(&world.run(&connect));
        assert!(err.contains("Connection refused"), "{err}");

        let code = |words: &[&str]| {
            world.run(&[&["testbed", "exec", "ravel", "--"], words].concat()).status
        };
        assert_eq!(code(&["sh", "-c", "exit 7"]).code(), Some(7));
        assert_eq!(code(&["no-such-program"]).code(), Some(127));
        assert_eq!(code(&["/etc/hosts"]).code(), Some(126));
        assert_eq!(code(&["sh", "-c", "kill -USR1 $$"]).signal(), Some(10));
        assert!(
            world
                .refused(&["testbed", "exec", "liszt", "true"])
                .contains("there are verdi, ravel, chopin")
        );
        let shell = world
            .command(&["testbed", "shell", "chopin"])
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut shell = shell.expect("started");
        let mut input = shell.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut input, b"echo $LASTHOP_HOST; exit 4\n").expect("written");
        drop(input);
        let output = shell.wait_with_output().expect("ended");
        assert_eq!((output.status.code(), text_of(&output).0.as_str()), (Some(4), "chopin\n"));

        let mut sleeper = sleeper(world, "testbed", "chopin");
        let answer = world.json(&["testbed", "down"]);
        assert_eq!(answer["testbeds"][0]["was_up"], true);
        assert_eq!(answer["testbeds"][0]["ended"][0][1], "sleep");
        assert!(sleeper.wait().expect("ended").signal().is_some());
        assert_eq!(world.left(), [""; 0]);
        assert_eq!(inside(world, &namespaces(&record)), [""; 0]);
        assert!(world.refused(&["testbed", "down"]).contains("no testbed is up"));
        assert_eq!(world.good(&["testbed", "clean"]), "nothing is left of earlier testbeds\n");
    });
}

#[test]
fn several_testbeds_run_at_once() {
    each("several", |world| {
        let up = |name: &str| {
            let mut command = world.command(&["testbed", "up", "--name", name]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
        };
        let started: Vec<_> = ["a", "b", "c", "c"].into_iter().map(up).collect();
        let outputs: Vec<_> =
            started.into_iter().map(|child| child.wait_with_output().expect("ended")).collect();
        let good: Vec<_> = outputs.iter().map(|output| output.status.success()).collect();
        assert!(good[0] && good[1] && (good[2] ^ good[3]), "{outputs:?}");
        let loser = text_of(&outputs[if good[2] { 3 } else { 2 }]).1;
        assert!(loser.contains("there is a testbed `c` already"), "{loser}");

        assert!(world.refused(&["testbed", "exec", "ravel", "true"]).contains("a, b, c"));
        // The same names and addresses, and one different host.
        let mut numbers: Vec<u64> = Vec::new();
        for entry in world.json(&["testbed", "list"])["testbeds"].as_array().expect("a list") {
            assert_eq!(entry["status"], "up");
            numbers.extend(namespaces(&entry["record"]));
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 9);
        world.good(&[
            "testbed", "exec", "--name", "a", "ravel", "--", "ip", "link", "set", "dev", "eth0",
            "down",
        ]);
        let link =
            ["testbed", "exec", "--name", "b", "ravel", "--", "ip", "link", "show", "dev", "eth0"];
        assert!(world.good(&link).contains("state UP"));

        world.good(&["testbed", "down", "b"]);
        assert_eq!(inside(world, &numbers).len(), 2);
        for name in ["a", "c"] {
            world.good(&["testbed", "down", name]);
        }
        assert_eq!(world.left(), [""; 0]);
        assert_eq!(inside(world, &numbers), [""; 0]);
    });
}

#[test]
fn a_killed_testbed_is_listed_as_dead_and_cleaned() {
    each("killed", |world| {
        let record = world.json(&["testbed", "up"]);
        world.good(&["testbed", "up", "--name", "other"]);
        let mut inner = sleeper(world, "testbed", "ravel");
        let mut other = sleeper(world, "other", "ravel");
        let pid = record["process"]["pid"].as_i64().expect("a number");
        assert!(
            Command::new("sh")
                .args(["-c", &format!("kill -9 {pid}")])
                .status()
                .expect("run")
                .success()
        );
        while world.run(&["testbed", "status", "testbed"]).status.success() {}

        let list = world.good(&["testbed", "list"]);
        assert!(list.contains("testbed  dead; `lasthop testbed clean`"), "{list}");
        let enter = ["testbed", "exec", "--name", "testbed", "ravel", "true"];
        assert!(world.refused(&enter).contains("lasthop testbed clean"));
        assert!(world.refused(&["testbed", "up"]).contains("lasthop testbed clean"));
        assert_eq!(inside(world, &namespaces(&record)).len(), 1);

        let output = world.good(&["testbed", "clean"]);
        assert!(output.contains(&format!("ended sleep (process {})", inner.id())), "{output}");
        assert!(inner.wait().expect("ended").signal().is_some());
        assert_eq!(inside(world, &namespaces(&record)), [""; 0]);
        // The live testbed has lost nothing.
        assert_eq!(world.left(), ["other"]);
        assert!(other.try_wait().expect("asked").is_none());
        world.good(&["testbed", "down", "other"]);
        other.wait().expect("ended");
        assert_eq!(world.left(), [""; 0]);
    });
}

#[test]
fn a_terminated_testbed_cleans_up_by_itself() {
    each("term", |world| {
        let record = world.json(&["testbed", "up"]);
        let program = world.program();
        // Inside, testbeds are listed as outside.
        let list =
            ["testbed", "exec", "ravel", "--", program.to_str().expect("text"), "testbed", "list"];
        assert!(world.good(&list).contains("chopin"));
        let pid = &record["process"]["pid"];
        let kill = Command::new("sh").args(["-c", &format!("kill {pid}")]).status();
        assert!(kill.expect("run").success());
        while !inside(world, &namespaces(&record)).is_empty() {}
        assert_eq!(world.left(), [""; 0]);
    });
}

#[test]
fn invalid_testbeds_are_refused_and_leave_nothing() {
    each("refused", |world| {
        for (arguments, words) in [
            (&["--name", "../x"][..], "`../x` cannot be the name of a testbed"),
            (&["--name", ""], "cannot be the name"),
            (&["--preset", "linux"], "there are linux-1997"),
            (&["--preset", "liszt=linux-bbr"], "there is no host `liszt`"),
            (&["no-such-scenario"], "neither a file nor a built-in scenario"),
        ] {
            let message = world.refused(&[&["testbed", "up"], arguments].concat());
            assert!(message.contains(words), "{message}");
        }
        // A valid name for a scenario, but not for an interface.
        let text = include_str!("../../../scenarios/quickstart.toml")
            .replace("laptop", "my-very-long-laptop");
        assert!(text.contains("my-very-long-laptop"));
        let file = world.base.join("long.toml");
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("its mode");
        let message = world.refused(&["testbed", "up", file.to_str().expect("text")]);
        assert!(message.contains("`my-very-long-laptop` cannot be a host"), "{message}");
        assert!(world.refused(&["testbed", "hold"]).contains("internal"));
        assert_eq!(world.left(), [""; 0]);
    });
}

#[test]
fn a_kernel_limit_on_namespaces_is_reported() {
    let world = World::new("forbidden", User::Unprivileged);
    let program = world.program();
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_net_namespaces \
         && exec {} testbed up",
        program.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--user", "sh", "-c", &script]).current_dir("/");
    command.env("XDG_RUNTIME_DIR", world.runtime()).env("NO_COLOR", "1");
    if world.drops() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().expect("started");
    let (out, err) = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert!(err.contains("sysctl user.max_user_namespaces is 0"), "{err}");
    assert!(err.contains("sudo sysctl user.max_user_namespaces=1000"), "{err}");
    assert_eq!(world.left(), [""; 0]);
}

#[test]
fn doctor_tries_a_testbed() {
    each("doctor", |world| {
        let checks = world.json(&["doctor", "-o", "/tmp"])["checks"].take();
        for name in ["namespaces", "veth", "packet sockets", "linux-1997", "linux-cubic"] {
            let mut checks = checks.as_array().expect("a list").iter();
            let check = checks.find(|check| check["name"] == name).expect("it is looked at");
            assert_eq!(check["ok"], true, "{check}");
        }
    });
}
