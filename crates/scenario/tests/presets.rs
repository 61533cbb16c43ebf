//! Which TCP a host has that says little of it.

use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::config::{Congestion, Variant};
use lasthop_scenario::{Argument, Host, Stack, examples, parse};

/// The host `fixed` with these keys.
fn host(keys: &str) -> Host {
    let text = format!(
        "transfer = {{ from = \"fixed\", to = \"mobile\", bytes = \"1MB\" }}\n[host.fixed]\n{keys}\n[host.mobile]\n\
         [[path]]\nlink = {{ rate = \"10mbit\", delay = \"1ms\" }}\n"
    );
    let (mut plan, _) = parse(&text, "test", &[]).unwrap_or_else(|e| panic!("{e}: {}", e.help));
    plan.cells.swap_remove(0).scenario.hosts.swap_remove(0)
}

fn kernel(host: &Host) -> &str {
    match &host.stack {
        Stack::Kernel { preset, .. } => preset,
        Stack::Lasthop => "lasthop",
    }
}

#[test]
fn a_host_without_a_preset_is_a_current_linux() {
    let found = host("");
    assert_eq!(found.tcp, host("preset = \"linux\"\ntcp = \"cubic\"").tcp);
    assert_eq!(found.tcp.congestion, Congestion::Cubic);
    let TcpConfig { send_buffer, recv_buffer, quick_acks, .. } = found.tcp;
    assert!(send_buffer > 1 << 20 && recv_buffer > 1 << 20 && quick_acks, "buffers limit nothing");
    assert_eq!(kernel(&found), "linux-cubic", "both worlds have the same sender");
    assert_eq!(kernel(&host("tcp = \"bbr\"")), "linux-bbr");
    assert_eq!(kernel(&host("preset = \"rfc\"")), "linux-reno");
    assert_eq!(host("preset = \"rfc\"").tcp, TcpConfig::rfc());
}

#[test]
fn a_word_for_a_sender_means_the_same_on_every_preset() {
    for preset in ["rfc", "linux"] {
        let of = |word: &str| host(&format!("preset = \"{preset}\"\ntcp = \"{word}\"")).tcp;
        assert_eq!((of("reno").variant, of("reno").congestion), (Variant::Reno, Congestion::Reno));
        assert_eq!((of("rack").variant, of("rack").congestion), (Variant::Rack, Congestion::Reno));
        assert_eq!(of("cubic").variant, Variant::Rack, "{preset}");
    }
    assert_eq!(host("tcp = \"reno\"").tcp, host("preset = \"linux\"\ntcp = \"reno\"").tcp);
}

/// Their results do not change with the default.
#[test]
fn hosts_of_built_in_scenarios_name_their_presets() {
    for example in examples() {
        for host in example.text.split("\n[host.").skip(1) {
            let table = host.split("\n[").next().expect("a table");
            let has = table.lines().any(|line| line.starts_with("preset = "));
            assert!(has, "{}: [host.{table}", example.name);
        }
        let none: &[Argument] = &[];
        parse(example.text, example.name, none).unwrap_or_else(|error| panic!("{error}"));
    }
}
