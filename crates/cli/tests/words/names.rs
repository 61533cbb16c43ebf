//! Commands, options and keys by the names of other programs.

use super::Workdir;

#[test]
fn commands_of_other_programs_lead_to_ours() {
    let workdir = Workdir::new();
    for (typed, meant) in [
        ("tc qdisc add dev eth0 root netem delay 100ms", "`lasthop shell`"),
        ("mm-delay 20", "`lasthop shell`"),
        ("mininet", "`lasthop testbed`"),
        ("mn", "`lasthop testbed`"),
        ("tcpdump", "`lasthop analyze`"),
        ("tshark", "`lasthop analyze`"),
        ("rrul", "`lasthop load`"),
        ("ping", "`lasthop load`"),
        ("client", "`lasthop send`"),
        ("server", "`lasthop discard`"),
        ("listen", "`lasthop discard`"),
        ("ns3", "`lasthop run`"),
        ("proxy", "`lasthop station`"),
        ("scenarios", "`lasthop list scenarios`"),
        ("schemes", "`lasthop list schemes`"),
        ("list-systems", "`lasthop list systems`"),
        ("trace-convert", "`lasthop trace convert`"),
        ("test good.toml", "`lasthop run FILE --dry-run` or `lasthop doctor`"),
        ("status", "`lasthop ctl get` or `lasthop testbed list`"),
        ("stop", "`lasthop testbed down`"),
        ("init", "`lasthop list scenarios --show NAME > my.toml`"),
        ("?", "`lasthop --help`"),
    ] {
        workdir.refused(typed, &["there is no command", &format!("did you mean {meant}?")]);
    }
    workdir.refused("man run", &["`run` is a command", "`lasthop help run`"]);
    assert!(!workdir.path().join("run").exists());
}

#[cfg(live)]
#[test]
fn subcommands_have_synonyms() {
    let workdir = Workdir::new();
    workdir.refused("testbed start", &["did you mean `lasthop testbed up`?"]);
    workdir.refused("testbed ssh laptop", &["did you mean `lasthop testbed exec`?"]);
    workdir.refused("ctl status", &["did you mean `lasthop ctl get`?"]);
    workdir.refused("trace generate", &["did you mean `lasthop trace make`?"]);
    workdir.refused("ctl frobnicate", &["one of get, set, watch, subscribers"]);
    let output = workdir.run("ctl frobnicate");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("help,"));
}

#[test]
fn letters_and_single_hyphens_lead_to_long_options() {
    let workdir = Workdir::new();
    workdir.refused("-version", &["no option `-version`", "`--version`, with two hyphens"]);
    workdir.refused("run good.toml -seeds 3", &["`--seeds`, with two hyphens"]);
    workdir.refused("run good.toml -s 5", &["no option `-s`", "did you mean `--seeds`?"]);
    workdir.refused("run -f good.toml", &["`lasthop run [FILE|NAME]`, without an option"]);
    workdir.refused("analyze -r x.pcap", &["`lasthop analyze", "without an option"]);
    workdir.refused("--ver", &["`--verbose` or `--version`"]);
    workdir.refused("run good.toml --see 3", &["did you mean `--seeds`?"]);
    workdir
        .refused("run good.toml --jobs auto", &["`--jobs auto` is not a whole number", "--jobs:"]);
}

#[cfg(live)]
#[test]
fn options_of_iperf_and_others() {
    let workdir = Workdir::new();
    workdir.refused("-c host", &["`lasthop send HOST`"]);
    workdir.refused("-s", &["`lasthop discard`"]);
    workdir.refused("send -c host", &["`lasthop send [HOST[:PORT]]`, without an option"]);
    workdir.refused("send host -p 5201", &["`lasthop send [HOST[:PORT]]`"]);
    workdir.refused("send host -t 10", &["did you mean `--time`?"]);
    workdir.refused("send host -J", &["did you mean `--json`?"]);
    workdir.refused("send host --cc bbr", &["did you mean `--congestion`?"]);
    workdir.refused("send host --time 1s", &["needs --udp", "add `--udp`"]);
    workdir.refused("send http://host/x", &["address of the web", "`host`"]);
    workdir.refused("discard 5201", &["did you mean `--listen 5201`?"]);
    workdir.refused("shell --up 3mbit -- true", &["did you mean `--rate-back`?"]);
    workdir.refused("shell --download 3mbit -- true", &["did you mean `--rate`?"]);
    for option in ["--cc bbr", "--mtu 1400", "--runs 3"] {
        let typed = format!("shell {option} -- true");
        workdir.refused(&typed, &["`lasthop shell --help`"]);
        let text = workdir.run(&typed).stderr;
        assert!(!String::from_utf8_lossy(&text).contains("did you mean"), "{typed}");
    }
    workdir.refused("ctl set", &["needs <KEY=VALUE>", "for example `lasthop ctl set "]);
    workdir.refused("station", &["for example `sudo ", "station /etc/lasthop/base.toml"]);
    workdir.refused("shell --queue 100 -- true", &["`--queue`: `100` could be", "`--queue 50p`"]);
    workdir.refused("shell --rate 1mbit --agent snop -- true", &["`--agent`", "`snoop`"]);
    workdir.refused("lab --listen 0.0.0.0", &["did you mean `--port`?"]);
}

#[test]
fn sysctls_and_classes_lead_to_keys_and_keywords() {
    let workdir = Workdir::new();
    for (setting, meant) in [
        ("net.ipv4.tcp_congestion_control=bbr", "`tcp`"),
        ("net.ipv4.tcp_sack=0", "`sack`"),
        ("tcp_ecn=1", "`ecn`"),
        ("tcp_rmem=1", "`recv-buffer`"),
        ("net.core.wmem_max=1", "`send-buffer`"),
        ("delack=40ms", "`delayed-ack`"),
        ("cwnd=10", "`initial-window`"),
        ("tcp=ns3::TcpCubic", "`cubic`"),
        ("tcp=Agent/TCP/Sack1", "`sack`"),
        ("preset=linux-6.1", "`linux`"),
        ("preset=freebsd", "`freebsd-2.1`"),
        ("link.discipline=cake", "`fq-codel`"),
        ("a.tcp=reno", "`host.a.tcp`"),
    ] {
        let wanted = format!("did you mean {meant}?");
        workdir.refused(&format!("run good.toml --set {setting}"), &[&wanted]);
    }
    workdir.refused("run good.toml --set path[0].link.rate=1", &["stages count from 1"]);
    workdir.refused("run good.toml --vary tcp=[reno,cubic]", &["`--vary tcp=reno,cubic`"]);
    workdir.refused("compare good.toml bbr cubic", &["did you mean `--schemes bbr`"]);
    workdir.refused("advise good.toml", &["`lasthop compare good.toml`"]);
    workdir.refused("plot cwnd out", &["did you mean `window`?"]);
    workdir.refused("plot sequence", &["for example `lasthop plot"]);
    workdir.refused("completions sh", &["did you mean `bash`?"]);
    workdir.refused("list congestion", &["did you mean `systems`?"]);
}
