//! Keys of a host whose TCP is the kernel's, in the testbed: each is applied, is what Linux does anyway, is refused, or is
//! reported as not applied.

use lasthop_scenario::model::Stack;
use lasthop_scenario::{Code, parse};

use super::{HEAD, PATH, braces, other, part};

/// Keys that the testbed itself obeys, since they define the hosts and their positions.
const OF_THE_TESTBED: [&str; 7] =
    ["side", "addr", "preset", "kernel", "stack", "access", "battery"];

/// What becomes of a host with these keys: the settings of its kernel, or the error with its code.
fn host(keys: &str) -> Result<Vec<(String, String)>, (Code, String)> {
    let text = format!("world = \"testbed\"\n{HEAD}[host.fixed]\n{keys}\n[host.mobile]\n{PATH}");
    let (plan, warnings) = parse(&text, "test", &[])
        .map_err(|error| (error.code, format!("{} | {}", error.message, error.help)))?;
    if let Some(warning) =
        warnings.iter().find(|warning| warning.message.contains("in the testbed: "))
    {
        return Err((warning.code, format!("{} | {}", warning.message, warning.help)));
    }
    let Stack::Kernel { settings, .. } = &plan.cells[0].scenario.hosts[0].stack else {
        return Ok(Vec::new());
    };
    Ok(settings.iter().map(|setting| (setting.key.to_owned(), setting.value.clone())).collect())
}

fn pairs(wanted: &[(&str, &str)]) -> Result<Vec<(String, String)>, (Code, String)> {
    Ok(wanted.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

/// A key that is added to the registry is reported unless the preset `linux` has the same value.
#[test]
fn each_key_of_a_host_is_applied_or_refused() {
    let (mut applied, mut refused) = (0, 0);
    for listed in part("host").iter().filter(|listed| !OF_THE_TESTBED.contains(&listed.key.name)) {
        let name = listed.key.name;
        let values = match listed.inner.first() {
            Some(inner) => vec![braces(&[inner.key.name], &other(&inner.key.form, &inner.default))]
                .into_iter()
                .map(|inner| format!("{{ {inner} }}"))
                .collect(),
            None => vec![other(&listed.key.form, &listed.default)],
        };
        for value in values {
            // Other keys that a key of the simulator requires have no effect here, except SACK for CUBIC. The settings
            // of a named kernel do not depend on the name of the sender.
            let others = match name {
                "sack" => "kernel = \"linux-cubic\"\ntcp = \"newreno\"",
                _ => "",
            };
            match host(&format!("preset = \"linux\"\n{others}\n{name} = {value}")) {
                Ok(settings) if settings.is_empty() => {
                    let same = |text: &str| {
                        let text = format!(
                            "{HEAD}[host.fixed]\npreset = \"linux\"\n{text}\n[host.mobile]\n{PATH}"
                        );
                        let (plan, _) = parse(&text, "test", &[]).unwrap();
                        plan.cells[0].scenario.hosts[0].tcp.clone()
                    };
                    let key = format!("{name} = {value}");
                    assert_eq!(same(&key), same(""), "`{key}` is ignored without a word");
                }
                Ok(_) => applied += 1,
                Err((code, message)) => {
                    assert!(message.contains(name), "{name}: {message}");
                    let reason = code != Code::BadValue || message.contains("in the testbed: ");
                    assert!(reason, "`{name} = {value}`: {message}");
                    refused += 1;
                }
            }
        }
    }
    assert!(applied >= 12 && refused >= 25, "{applied} {refused}");
}

#[test]
fn keys_become_settings_of_linux() {
    let cases: [(&str, &[(&str, &str)]); 14] = [
        ("recv-buffer = \"32KiB\"", &[("tcp_rmem", "4096\t54613\t54613"), ("window", "32768")]),
        ("send-buffer = \"64KiB\"", &[("tcp_wmem", "4096\t65536\t65536")]),
        ("mss = 1000", &[("advmss", "1000")]),
        ("timestamps = false", &[("tcp_timestamps", "0")]),
        ("window-scale = false", &[("tcp_window_scaling", "0")]),
        ("ecn = true", &[("tcp_ecn", "1")]),
        ("accurate-ecn = \"ace\"", &[("tcp_ecn", "3"), ("tcp_ecn_option", "0")]),
        ("tcp = \"hybla\"", &[("tcp_congestion_control", "hybla")]),
        ("tcp = \"newreno\"", &[("tcp_congestion_control", "reno"), ("tcp_sack", "0")]),
        ("rto-min = \"300ms\"", &[("rto_min", "300ms")]),
        ("rto-max = \"30s\"", &[("tcp_rto_max_ms", "30000")]),
        ("initial-window = 4", &[("initcwnd", "4")]),
        ("dupthresh = 6", &[("tcp_reordering", "6"), ("tcp_max_reordering", "6")]),
        ("delayed-ack = \"off\"", &[("quickack", "1")]),
    ];
    for (key, wanted) in cases {
        assert_eq!(host(key), pairs(wanted), "{key}");
    }
    // A named kernel has its own sender.
    assert_eq!(host("kernel = \"linux-bbr\"\ntcp = \"tahoe\""), pairs(&[]));
    // With our TCP all is as in the simulator, which takes keys of the kernel's as well.
    assert_eq!(host("stack = \"lasthop\"\ntcp = \"bbr3\"\npacing = true"), pairs(&[]));
}

#[test]
fn options_that_linux_lacks_are_refused_with_a_reason() {
    for (key, expected) in [
        ("tcp = \"bbr3\"", "version 1"),
        ("tcp = \"tahoe\"", "no sender `tahoe`"),
        ("mss = 3000", "at most 1460"),
        ("rto-min = \"1500us\"", "whole milliseconds"),
        ("rto-max = \"500s\"", "from 1 s to 120 s"),
        ("mss = 500\nrecv-buffer = 1000", "at least 2304"),
        ("fast-open = true", "do not use"),
    ] {
        let Err((code, message)) = host(key) else { panic!("`{key}` should be refused") };
        assert!(
            message.contains(expected) && message.contains("stack = \"lasthop\""),
            "{key}: {message}"
        );
        assert_eq!(code, Code::BadValue, "{key}");
        // The simulator has them all.
        let text = format!("{HEAD}[host.fixed]\n{key}\n[host.mobile]\n{PATH}");
        parse(&text, "test", &[]).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
}

/// Scenarios of the papers run with real kernels: what these have no setting for is a warning.
#[test]
fn options_without_a_linux_setting_are_reported() {
    for key in ["pacing = true", "rto-initial = \"3s\"", "ackp = \"rearm\"", "ebsn = true"] {
        let Err((code, message)) = host(key) else { panic!("`{key}` should be reported") };
        assert_eq!(code, Code::NoEffect, "{key}");
        assert!(message.contains("no setting"), "{key}: {message}");
    }
}
