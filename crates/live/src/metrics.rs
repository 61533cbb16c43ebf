//! Metrics of the station for Prometheus, in its text format, over a loopback socket.
//!
//! It serves one page to one client every few seconds, so an HTTP library would be out of proportion.

use std::fmt::Write as _;

use crate::counters::DirectionCounts;
use crate::status::{PortStatus, StageStatus, Status};
use crate::subscribers::SubscriberList;

mod server;
mod subscribers;

pub use server::{Endpoint, MAX_CONNECTIONS, MAX_REQUEST, serve};

/// A program with metrics.
pub trait Figures: Send + Sync {
    /// The page for Prometheus.
    ///
    /// # Errors
    /// If the program has ended.
    fn page(&self) -> Result<String, String>;
}

/// A page under construction. Each family is written once, its samples after its head.
#[derive(Default)]
pub(crate) struct Page {
    text: String,
    /// All families, including those without samples.
    #[cfg(test)]
    families: Vec<(String, String)>,
}

impl Page {
    /// Adds a family of samples, each with labels and a value.
    pub(crate) fn family(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: Vec<(Labels<'_>, f64)>,
    ) {
        #[cfg(test)]
        self.families.push((format!("lasthop_{name}"), kind.to_owned()));
        if samples.is_empty() {
            return;
        }
        let _ = writeln!(self.text, "# HELP lasthop_{name} {help}\n# TYPE lasthop_{name} {kind}");
        for (labels, value) in samples {
            let labels: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
            let braces =
                if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.text, "lasthop_{name}{braces} {value}");
        }
    }

    /// The page.
    pub(crate) fn text(self) -> String {
        self.text
    }

    fn ports(&mut self, status: &Status, name: &str, help: &str, get: impl Fn(&PortStatus) -> u64) {
        let samples = status.ports.iter().map(|port| {
            (
                vec![("interface", port.name.as_str()), ("side", port.side.as_str())],
                get(port) as f64,
            )
        });
        self.family(&format!("interface_{name}_total"), "counter", help, samples.collect());
    }

    fn stages(
        &mut self,
        status: &Status,
        (name, kind): (&str, &str),
        help: &str,
        get: impl Fn(&StageStatus) -> Option<u64>,
    ) {
        let samples = status.stages.iter().filter_map(|stage| {
            get(stage).map(|value| (vec![("stage", stage.name.as_str())], value as f64))
        });
        self.family(name, kind, help, samples.collect());
    }

    fn directions(
        &mut self,
        status: &Status,
        name: &str,
        help: &str,
        get: impl Fn(&DirectionCounts) -> u64,
    ) {
        let samples = directions(status).map(|(stage, direction, counts)| {
            (vec![("stage", stage), ("direction", direction)], get(counts) as f64)
        });
        self.family(name, "counter", help, samples.collect());
    }
}

pub(crate) type Labels<'a> = Vec<(&'static str, &'a str)>;

fn directions(status: &Status) -> impl Iterator<Item = (&str, &'static str, &DirectionCounts)> {
    status.stages.iter().flat_map(|stage| {
        let name = stage.name.as_str();
        [(name, "right", &stage.happened.right), (name, "left", &stage.happened.left)]
    })
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The page. `list` has the subscribers with series of their own.
pub fn render(status: &Status, list: Option<&SubscriberList>) -> String {
    station(status, list).text()
}

fn station(status: &Status, list: Option<&SubscriberList>) -> Page {
    let mut page = Page::default();
    let build = vec![("version", status.version.as_str()), ("world", status.world.as_str())];
    page.family("build_info", "gauge", "Version and world of this process.", vec![(build, 1.0)]);
    let uptime = status.uptime_ns as f64 / 1e9;
    page.family(
        "uptime_seconds",
        "gauge",
        "How long the station has been running.",
        vec![(vec![], uptime)],
    );

    interfaces(&mut page, status);
    stages(&mut page, status);
    happened(&mut page, status);
    if let Some(plane) = &status.plane {
        let rows = plane.counts.named().map(|(name, n)| (vec![("what", name)], n as f64));
        let help = "Counts of the program in the kernel, if it forwards.";
        page.family("plane_total", "counter", help, rows.to_vec());
    }
    if let Some(capture) = &status.capture {
        let failed = f64::from(u8::from(capture.failed.is_some()));
        page.family(
            "capture_failed",
            "gauge",
            "Whether captures have ended because of a fault.",
            vec![(vec![], failed)],
        );
    }
    page.subscribers(list);
    page
}

fn interfaces(page: &mut Page, s: &Status) {
    page.ports(s, "received_frames", "Frames received.", |p| p.counts.received);
    page.ports(s, "received_bytes", "Bytes of frames received.", |p| p.counts.received_bytes);
    page.ports(s, "sent_frames", "Frames sent.", |p| p.counts.sent);
    page.ports(s, "passed_frames", "Frames that no stage processed.", |p| p.counts.passed);
    page.ports(s, "overrun_frames", "Frames lost because the receive buffer was full.", |p| {
        p.counts.overrun
    });
    page.ports(s, "refused_frames", "Frames that the interface did not accept.", |p| {
        p.counts.refused
    });
}

fn stages(page: &mut Page, s: &Status) {
    let agents = s.stages.iter().filter_map(|stage| {
        let agent = stage.config.get("agent")?.as_str()?;
        Some((vec![("stage", stage.name.as_str()), ("agent", agent)], 1.0))
    });
    page.family("agent_info", "gauge", "The agent of a stage.", agents.collect());
    let number = |n: Option<usize>| n.map(|n| n as u64);
    page.stages(s, ("flows", "gauge"), "Flows or connections followed now.", |x| number(x.flows));
    page.stages(s, ("state_bytes", "gauge"), "State of an agent, cached packets included.", |x| {
        number(x.state_bytes)
    });
    page.stages(
        s,
        ("peak_state_bytes", "gauge"),
        "Largest state of an agent since its start.",
        |x| number(x.peak_state_bytes),
    );
    page.stages(
        s,
        ("stage_arrived_packets_total", "counter"),
        "Packets received by a stage.",
        |x| Some(x.packets.arrived),
    );
    page.stages(
        s,
        ("stage_departed_packets_total", "counter"),
        "Packets forwarded by a stage.",
        |x| Some(x.packets.departed),
    );
    page.stages(
        s,
        ("stage_ended_packets_total", "counter"),
        "Packets that a stage dropped or consumed.",
        |x| Some(x.packets.ended),
    );
    page.stages(s, ("stage_held_packets", "gauge"), "Packets inside a stage.", |x| {
        Some(x.packets.held)
    });
}

fn happened(page: &mut Page, s: &Status) {
    page.directions(s, "transmitted_packets_total", "Packets carried by a link or radio.", |d| {
        d.transmitted
    });
    page.directions(s, "transmitted_bytes_total", "IP bytes carried by a link or radio.", |d| {
        d.transmitted_bytes
    });
    page.directions(s, "damaged_packets_total", "Packets damaged by the channel.", |d| d.damaged);
    let mut by_cause =
        |name: &str,
         help: &str,
         of: fn(&DirectionCounts) -> &lasthop_observe::counts::CauseCounts| {
            let samples = directions(s).flat_map(|(stage, direction, counts)| {
                of(counts).iter().map(move |(cause, n)| {
                    (
                        vec![("stage", stage), ("direction", direction), ("cause", cause.name())],
                        n as f64,
                    )
                })
            });
            page.family(name, "counter", help, samples.collect());
        };
    by_cause("originated_packets_total", "Packets added to the path, by cause.", |d| &d.originated);
    by_cause("dropped_packets_total", "Packets dropped or consumed, by cause.", |d| &d.dropped);
    by_cause("repeated_packets_total", "Packets that a link layer retransmitted, by cause.", |d| {
        &d.repeated
    });
    let notes = s.stages.iter().flat_map(|stage| {
        let notes = stage.happened.notes.iter();
        notes.map(|(note, n)| {
            (vec![("stage", stage.name.as_str()), ("note", note.as_str())], *n as f64)
        })
    });
    page.family("notes_total", "counter", "Events at hosts and agents.", notes.collect());
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::{Value, json};

    use super::*;
    use crate::status::TunnelStatus;

    /// Metrics of a station and a tunnel with their types.
    fn exported() -> BTreeMap<String, String> {
        let status = json!({
            "version": "", "world": "", "name": "", "seed": 1, "uptime_ns": 0, "ports": [], "stages": [],
            "capture": null,
        });
        let status: Status = serde_json::from_value(status).unwrap();
        let tunnel = TunnelStatus::default();
        station(&status, None).families.into_iter().chain(tunnel.figures().families).collect()
    }

    /// Collects all expressions in rules and dashboards.
    fn expressions(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                into.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| expressions(value, into));
            }
            Value::Array(items) => items.iter().for_each(|value| expressions(value, into)),
            _ => {}
        }
    }

    #[test]
    fn the_dashboard_queries_only_exported_metrics() {
        let dashboard = include_str!("../../../deploy/grafana.json");
        let dashboard: Value = serde_json::from_str(dashboard).unwrap();
        let exported = exported();
        let (mut queries, mut queried) = (Vec::new(), BTreeSet::new());
        expressions(&dashboard, &mut queries);
        for query in &queries {
            let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let names: Vec<&str> = words.filter(|word| word.starts_with("lasthop_")).collect();
            assert_eq!(names.len(), 1, "{query}");
            let Some(kind) = exported.get(names[0]) else { panic!("{query} has no metric") };
            let rate = query.contains("rate(") || query.contains("increase(");
            assert_eq!(rate, kind == "counter", "{query}: it is a {kind}");
            queried.insert(names[0]);
        }
        assert!(queried.len() >= 18, "{queried:?}");
        let variables = dashboard["templating"].to_string();
        for name in ["lasthop_build_info", "lasthop_link_info"] {
            assert!(variables.contains(name) && exported.contains_key(name), "{name}");
        }
    }
}
