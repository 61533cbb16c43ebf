//! How a tunnel fares, for people and for Prometheus.

use std::sync::{Mutex, PoisonError};

use lasthop_proto::tunnel::Tunnel;
use serde::Serialize;

use super::seal::Ciphers;
use crate::control::Served;
use crate::control::protocol::{Answer, Request, Trouble};
use crate::metrics::{Figures, Labels, Page};
use crate::status::{Counts, TunnelStatus};

fn counted(counts: &impl Serialize) -> Counts {
    serde_json::to_value(counts)
        .ok()
        .and_then(|value| serde_json::from_value(value).ok())
        .unwrap_or_default()
}

impl TunnelStatus {
    /// Takes in how `tunnel` fares.
    pub(super) fn update(&mut self, tunnel: &Tunnel<Ciphers>, uptime_ns: u64) {
        let session = tunnel.session();
        let agreed = session.agreed();
        self.state = format!("{:?}", session.state()).to_lowercase();
        self.peer = session.peer().map(|peer| peer.to_string());
        self.window = agreed.map(|agreed| agreed.window);
        self.rtt_us = agreed.map(|agreed| agreed.rtt.0 / 1000);
        self.mtu = tunnel.mtu();
        self.waiting = tunnel.waiting();
        self.uptime_ns = uptime_ns;
        self.packets = counted(&tunnel.counts());
        self.session = counted(&session.counts());
        self.repeated = counted(tunnel.repeated());
        self.notes = counted(tunnel.notes());
    }

    /// The page for Prometheus.
    pub fn page(&self) -> String {
        self.figures().text()
    }

    pub(crate) fn figures(&self) -> Page {
        let mut page = Page::default();
        let info: Labels<'_> =
            vec![("version", &self.version), ("tun", &self.tun), ("state", &self.state)];
        page.family("link_info", "gauge", "What runs here.", vec![(info, 1.0)]);
        let up = if self.state == "up" { 1.0 } else { 0.0 };
        page.family("link_up", "gauge", "Whether the peer is there.", vec![(vec![], up)]);
        let mut family = |name: &str, help: &str, label: &'static str, counts: &Counts| {
            let samples = counts.iter().map(|(key, n)| (vec![(label, key.as_str())], *n as f64));
            page.family(name, "counter", help, samples.collect());
        };
        family("link_packets_total", "Packets, bytes and frames.", "what", &self.packets);
        family("link_session_total", "Sessions and dropped datagrams.", "what", &self.session);
        family("link_repeated_packets_total", "Packets sent again.", "cause", &self.repeated);
        family("link_notes_total", "What the link layer noted.", "note", &self.notes);
        family("link_refused_total", "What the system did not take.", "reason", &self.refused);
        page
    }
}

/// A running tunnel as others see it: a picture that its loop renews.
#[derive(Debug, Default)]
pub(super) struct Shown(Mutex<TunnelStatus>);

impl Shown {
    pub fn put(&self, status: &TunnelStatus) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(status);
    }

    fn get(&self) -> TunnelStatus {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Served for Shown {
    fn answer(&self, request: &Request) -> Answer {
        match request {
            Request::Status {} => Answer::Link(Box::new(self.get())),
            _ => Answer::Error(Trouble::new(
                "not-here",
                "a tunnel has no path with keys",
                "`lasthop ctl get` shows everything; what the file says is changed by a restart",
            )),
        }
    }
}

impl Figures for Shown {
    fn page(&self) -> Result<String, String> {
        Ok(self.get().page())
    }
}
