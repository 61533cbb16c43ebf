//! Words of other programs for commands, options and values, for suggestions.

use lasthop_scenario::synonyms::Synonyms;

/// Synonyms of commands.
pub const COMMANDS: &Synonyms = &[
    ("run", &["simulate", "sim", "start", "execute", "simulation"]),
    ("compare", &["rank", "diff", "versus", "benchmark"]),
    ("advise", &["recommend", "suggest", "advice"]),
    ("analyze", &["analyse", "pcap", "inspect", "diagnose", "tcptrace", "wireshark", "capture"]),
    ("shell", &["emulate", "netem", "mm-link", "exec", "shape", "wrap"]),
    ("list", &["ls", "show", "scenarios", "presets", "systems"]),
    ("doctor", &["check", "selftest", "self-test", "probe"]),
    ("report", &["html", "page"]),
    ("plot", &["figure", "chart", "graph", "draw", "picture"]),
    ("lab", &["web", "gui", "ui", "browser", "serve"]),
    ("station", &["router", "daemon", "base-station", "pep"]),
    ("link", &["tunnel", "vpn"]),
    ("ctl", &["control", "status", "set", "get", "watch"]),
    ("energy", &["power"]),
    ("battery", &["lifetime"]),
    ("reproduce", &["claims", "papers"]),
    ("completions", &["completion"]),
    ("man", &["manual", "manpage"]),
    ("send", &["upload", "iperf", "iperf3"]),
    ("load", &["bufferbloat", "flent", "networkquality", "speedtest"]),
    ("discard", &["sink", "receive", "receiver"]),
    ("testbed", &["namespaces", "netns", "hosts"]),
    ("trace", &["traces", "mahimahi"]),
    ("sweep", &["cluster", "batch"]),
];

/// Words for a command with an option or a subcommand.
pub const OTHERS: &[(&[&str], &str)] = &[
    (&["plan", "validate", "lint", "dry-run"], "run FILE --dry-run"),
    (&["demo", "demonstration"], "run"),
    (&["convert"], "trace convert"),
    (&["example", "examples", "templates"], "list scenarios"),
];

/// Synonyms of options.
pub const OPTIONS: &Synonyms = &[
    ("rate", &["bandwidth", "bw", "throughput", "speed", "capacity", "bitrate"]),
    ("delay", &["latency", "lag", "rtt", "ping", "propagation", "round-trip"]),
    ("loss", &["packet-loss", "loss-rate", "drop", "drops", "plr", "error-rate"]),
    ("queue", &["buffer", "queue-size", "limit", "uplink-queue", "downlink-queue", "backlog"]),
    ("discipline", &["qdisc", "aqm", "scheduler"]),
    ("world", &["testbed", "kernel", "real", "simulator", "engine"]),
    ("jobs", &["threads", "workers", "parallel", "cores", "cpus", "processes"]),
    ("seeds", &["runs", "repetitions", "iterations", "repeat", "samples", "replications"]),
    ("seed", &["random-seed", "rng-seed", "seeds"]),
    (
        "output",
        &[
            "out",
            "outdir",
            "output-dir",
            "dir",
            "directory",
            "save",
            "write",
            "csv",
            "html",
            "parquet",
            "pcap",
            "plot",
            "report",
        ],
    ),
    ("set", &["param", "override", "define", "option", "key"]),
    ("vary", &["sweep", "matrix", "grid"]),
    ("json", &["format", "machine-readable"]),
    ("quiet", &["silent", "no-progress"]),
    ("verbose", &["debug", "log", "log-level"]),
    ("color", &["colour", "colors", "colours", "no-color", "no-colour"]),
    ("dry-run", &["plan", "simulate", "noop", "check"]),
    ("sender", &["tcp", "cc", "congestion-control", "congestion"]),
    ("interface", &["iface", "device", "dev", "nic"]),
    ("for", &["duration", "time"]),
    ("time", &["duration", "seconds", "length"]),
    ("seconds", &["duration", "time", "length"]),
    ("duration", &["time", "seconds", "length"]),
    ("bytes", &["size", "amount", "volume", "number"]),
    ("listen", &["port", "bind", "address"]),
    ("reports", &["interval", "every", "period", "frequency"]),
    ("shard", &["part", "slice"]),
    ("keygen", &["genkey", "key", "generate-key"]),
    ("serve", &["server"]),
    ("rate-back", &["upload-rate", "rate-up", "uplink-rate"]),
    ("scenario", &["file", "config", "conf"]),
];

/// Synonyms of values.
pub const VALUES: &Synonyms = &[
    ("testbed", &["kernel", "real", "live", "linux", "namespaces"]),
    ("sim", &["simulator", "simulation", "simulated"]),
    ("always", &["yes", "on", "true"]),
    ("never", &["no", "off", "false", "none"]),
    ("mbit", &["mbps", "mbits", "bits"]),
    ("KB", &["kib", "bytes"]),
    ("scenarios", &["examples"]),
    ("systems", &["agents", "algorithms", "protocols", "senders", "tcp"]),
    ("leo", &["satellite", "starlink"]),
    ("lte", &["4g", "5g", "cellular", "mobile"]),
    ("constant", &["cbr", "fixed"]),
    ("linux-reno", &["linux", "reno", "rack"]),
    ("linux-cubic", &["cubic"]),
    ("linux-bbr", &["bbr"]),
];

/// Options in the place of a file that is an argument.
pub const FILES: [&str; 6] = ["config", "conf", "file", "input", "path", "scenario"];

/// Endings of the names of captures.
pub const CAPTURES: [&str; 7] =
    [".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".pcap.zst", ".pcapng.zst"];
