//! Settings of Linux for the keys of a testbed host whose TCP is the kernel's.
//!
//! For each key there are four cases. A setting of Linux applies it; its value is the fixed behaviour of
//! Linux; it is rejected with the reason; or it is reported as not applied. A key unknown to this file is
//! compared with the preset `linux`; a warning names it if it changes the preset. So scenarios of the papers
//! run with real kernels, and no key is ignored silently.

use lasthop_proto::tcp::{TcpConfig, words};
use lasthop_proto::units::Span;

use crate::document::{Entry, Node, Table, Value};
use crate::error::{Code, Diagnostic, Error};
use crate::model::{KernelKnob, KernelSetting};
use crate::parts::host::{self, HostValues};
use crate::read::Reader;
use crate::reading::take;
use crate::schema;

/// Keys of a host that the testbed itself applies, such as its kind and position.
const OF_THE_TESTBED: [&str; 7] =
    ["side", "addr", "preset", "kernel", "stack", "access", "battery"];

/// Payload of a segment on an Ethernet of 1500 bytes, in IPv4 without options.
const ETHERNET: u32 = 1460;

/// The settings, or the reason why there are none.
type Fate = Result<Vec<KernelSetting>, String>;

/// The settings of a host's kernel for its keys.
#[derive(Default)]
pub(super) struct Settings {
    pub applied: Vec<KernelSetting>,
    /// The first key with a value that the kernel cannot have.
    pub refused: Option<Error>,
    /// Keys for which Linux has no setting.
    pub warnings: Vec<Diagnostic>,
}

/// Translates the keys of a host into settings of its kernel.
pub(super) fn settings(reader: &Reader<'_>, values: &HostValues) -> Settings {
    let mut all = Settings::default();
    for key in schema::keys("host") {
        let Some(node) = reader.node(key) else { continue };
        if OF_THE_TESTBED.contains(key) {
            continue;
        }
        match applied(key, node, reader, &values.tcp) {
            Some(Ok(settings)) => all.applied.extend(settings),
            Some(Err(reason)) if all.refused.is_none() => {
                all.refused = Some(diagnostic(Code::BadValue, key, reader, &reason).into());
            }
            Some(Err(_)) => {}
            None if is_of_linux(key, reader) => {}
            None => {
                let reason = "Linux has no setting for it";
                all.warnings.push(diagnostic(Code::NoEffect, key, reader, reason));
            }
        }
    }
    all
}

fn diagnostic(code: Code, key: &str, reader: &Reader<'_>, reason: &str) -> Diagnostic {
    let path = reader.key(key);
    let host = path.rsplit_once('.').map_or("host", |(host, _)| host);
    Diagnostic::new(code, &path, &reader.location(key))
        .message(format!("`{path}` has no effect on the kernel in the testbed: {reason}"))
        .label("not with the kernel's TCP")
        .help(format!(
            "leave it out, write `stack = \"lasthop\"` in `[{host}]` for a host with our TCP, or run it in the simulator"
        ))
}

fn sysctl(key: &'static str, value: impl ToString) -> KernelSetting {
    KernelSetting { knob: KernelKnob::Sysctl, key, value: value.to_string() }
}

fn route(key: &'static str, value: impl ToString) -> KernelSetting {
    KernelSetting { knob: KernelKnob::Route, key, value: value.to_string() }
}

/// The kernel's setting for `key`; `None` if it has none.
fn applied(key: &str, node: &Node, reader: &Reader<'_>, tcp: &TcpConfig) -> Option<Fate> {
    let switch = |name, on: bool| Ok(vec![sysctl(name, u8::from(on))]);
    Some(match key {
        // A named kernel has its own congestion control.
        "tcp" if reader.node("kernel").is_some() => Ok(Vec::new()),
        "tcp" => congestion(node.as_str().unwrap_or_default()),
        "sack" => switch("tcp_sack", tcp.sack),
        "dsack" => switch("tcp_dsack", tcp.dsack),
        "timestamps" => switch("tcp_timestamps", tcp.timestamps),
        "window-scale" => switch("tcp_window_scaling", tcp.window_scale),
        // Accurate ECN falls back to classic ECN.
        "ecn" if reader.node("accurate-ecn").is_some() => Ok(Vec::new()),
        "ecn" => switch("tcp_ecn", tcp.ecn),
        "accurate-ecn" => match node.as_str() {
            Some("ace") => Ok(vec![sysctl("tcp_ecn", 3), sysctl("tcp_ecn_option", 0)]),
            Some("option") => Ok(vec![sysctl("tcp_ecn", 3), sysctl("tcp_ecn_option", 2)]),
            _ => switch("tcp_ecn", tcp.ecn),
        },
        "mss" if tcp.mss > ETHERNET => Err(format!(
            "its cable is an Ethernet, on which a segment has at most {ETHERNET} bytes"
        )),
        "mss" if tcp.mss < 48 => Err("Linux has segments of at least 48 bytes".to_owned()),
        "mss" => Ok(vec![route("advmss", tcp.mss)]),
        // The kernel begins with the second number and grows to the third.
        "send-buffer" if tcp.send_buffer < 4608 => {
            Err("Linux has send buffers of at least 4608 bytes".to_owned())
        }
        "send-buffer" => {
            let bytes = tcp.send_buffer;
            Ok(vec![sysctl("tcp_wmem", format!("{}\t{bytes}\t{bytes}", bytes.min(4096)))])
        }
        "recv-buffer" if tcp.recv_buffer < 2304 => {
            Err("Linux has receive buffers of at least 2304 bytes".to_owned())
        }
        // With full segments 0.6 of a buffer become window (measured with Linux 6.18), with small ones less.
        // The attribute of the route limits the first window.
        "recv-buffer" => {
            let bytes = u64::from(tcp.recv_buffer) * 5 / 3;
            let most = bytes.min(i32::MAX as u64);
            Ok(vec![
                sysctl("tcp_rmem", format!("{}\t{most}\t{most}", most.min(4096))),
                route("window", tcp.recv_buffer),
            ])
        }
        "initial-window" => Ok(vec![route("initcwnd", tcp.initial_window)]),
        "dupthresh" => {
            let n = tcp.dupthresh;
            Ok(vec![sysctl("tcp_reordering", n), sysctl("tcp_max_reordering", n.max(3))])
        }
        "syn-linear" => Ok(vec![sysctl("tcp_syn_linear_timeouts", tcp.syn_linear)]),
        "max-retries" => Ok(vec![sysctl("tcp_retries2", tcp.max_retries)]),
        "rto-min" => match whole_millis(tcp.rto_min) {
            Some(ms) => Ok(vec![route("rto_min", format!("{ms}ms"))]),
            None => Err("Linux has whole milliseconds".to_owned()),
        },
        "rto-max" => match whole_millis(tcp.rto_max).filter(|ms| (1000..=120_000).contains(ms)) {
            Some(ms) => Ok(vec![sysctl("tcp_rto_max_ms", ms)]),
            None => Err("Linux has whole milliseconds from 1 s to 120 s".to_owned()),
        },
        "delayed-ack" if node.as_str() == Some("off") => Ok(vec![route("quickack", 1)]),
        "fast-open" if tcp.fast_open => {
            Err("the applications of the testbed do not use it".to_owned())
        }
        _ => return None,
    })
}

fn whole_millis(span: Span) -> Option<u64> {
    (span.0 >= 1_000_000 && span.0.is_multiple_of(1_000_000)).then_some(span.0 / 1_000_000)
}

/// The kernel's congestion control for a sender's keyword.
fn congestion(word: &str) -> Fate {
    let linux = words::find(word).and_then(|word| word.linux);
    let linux = linux.ok_or_else(|| format!("Linux has no sender `{word}`"))?;
    if let Some(reason) = linux.missing {
        return Err(reason.to_owned());
    }
    let control = KernelSetting {
        knob: KernelKnob::Congestion,
        key: "tcp_congestion_control",
        value: linux.control.to_owned(),
    };
    let sack = linux.sack.map(|on| sysctl("tcp_sack", u8::from(on)));
    Ok([control].into_iter().chain(sack).collect())
}

/// Whether a host of the preset `linux` is the same with `key` and without it.
fn is_of_linux(key: &str, reader: &Reader<'_>) -> bool {
    let entry =
        |key: &str, node: Node| Entry { key: key.to_owned(), key_at: node.at.clone(), node };
    let preset = Node { at: reader.at().clone(), value: Value::String("linux".to_owned()) };
    let config = |with: Option<&Node>| {
        let mut entries = vec![entry("preset", preset.clone())];
        entries.extend(reader.node("tcp").map(|node| entry("tcp", node.clone())));
        entries.extend(with.map(|node| entry(key, node.clone())));
        let value = Value::Table(Table { entries, inline: true });
        let host = Node { at: reader.at().clone(), value };
        let reader = Reader::open(&host, "host", schema::keys("host")).ok()?;
        take(&reader, host::keys).ok().map(|(values, _)| values.tcp)
    };
    let with = reader.node(key).and_then(|node| config(Some(node)));
    with.is_some() && with == config(None)
}
