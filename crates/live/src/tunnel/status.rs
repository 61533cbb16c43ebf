//! Status of a tunnel, for users and for Prometheus.

use std::sync::Mutex;

use lasthop_proto::tunnel::Tunnel;
use serde::Serialize;

use super::seal::Ciphers;
use crate::control::Served;
use crate::control::protocol::{Request, Response, Trouble};
use crate::lock;
use crate::metrics::{Figures, Labels, Page};
use crate::status::{Counts, TunnelStatus};

fn counted(counts: &impl Serialize) -> Counts {
    serde_json::to_value(counts)
        .ok()
        .and_then(|value| serde_json::from_value(value).ok())
        .unwrap_or_default()
}

impl TunnelStatus {
    /// Updates the status from `tunnel`.
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
        page.family("link_info", "gauge", "Version, interface and state.", vec![(info, 1.0)]);
        let up = if self.state == "up" { 1.0 } else { 0.0 };
        page.family("link_up", "gauge", "Whether the peer is connected.", vec![(vec![], up)]);
        let mut family = |name: &str, help: &str, label: &'static str, counts: &Counts| {
            let samples = counts.iter().map(|(key, n)| (vec![(label, key.as_str())], *n as f64));
            page.family(name, "counter", help, samples.collect());
        };
        family("link_packets_total", "Packets, bytes and frames.", "what", &self.packets);
        family("link_session_total", "Sessions and dropped datagrams.", "what", &self.session);
        family("link_repeated_packets_total", "Packets retransmitted.", "cause", &self.repeated);
        family("link_notes_total", "Events that the link layer reported.", "note", &self.notes);
        family("link_refused_total", "Packets refused by the system.", "reason", &self.refused);
        page
    }
}

/// The latest status of a running tunnel, renewed by its loop.
#[derive(Debug, Default)]
pub(super) struct SharedStatus(Mutex<TunnelStatus>);

impl SharedStatus {
    pub fn put(&self, status: &TunnelStatus) {
        lock(&self.0).clone_from(status);
    }

    fn get(&self) -> TunnelStatus {
        lock(&self.0).clone()
    }
}

impl Served for SharedStatus {
    fn answer(&self, request: &Request) -> Response {
        match request {
            Request::Status {} => Response::Link(Box::new(self.get())),
            Request::Subscribers { .. } => Response::Error(Trouble::new(
                "no-subscribers",
                "a tunnel has no view of subscribers",
                "a station has one: `[subscribers]` in its file",
            )),
            _ => Response::Error(Trouble::new(
                "not-here",
                "a tunnel has no path with keys",
                "`lasthop ctl get` shows everything; a restart applies changes of the file",
            )),
        }
    }
}

impl Figures for SharedStatus {
    fn page(&self) -> Result<String, String> {
        Ok(self.get().page())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_of_a_tunnel_is_on_its_page_with_its_label() {
        let counts = |name: &str, n: u64| Counts::from([(name.to_owned(), n)]);
        let mut status = TunnelStatus {
            version: "1.2".to_owned(),
            tun: "lh0".to_owned(),
            state: "up".to_owned(),
            packets: counts("sent", 11),
            session: counts("handshakes", 12),
            repeated: counts("timeout", 13),
            notes: counts("gap", 14),
            refused: counts("full", 15),
            ..TunnelStatus::default()
        };
        let page = status.page();
        let value = |line: &str| {
            let mut lines = page.lines().filter_map(|found| found.strip_prefix("lasthop_"));
            let found = lines.find_map(|found| found.strip_prefix(line));
            found.map(str::to_owned).unwrap_or_else(|| panic!("no `{line}` in\n{page}"))
        };
        assert_eq!(value("link_info{version=\"1.2\",tun=\"lh0\",state=\"up\"}"), " 1");
        assert_eq!(value("link_up"), " 1");
        assert_eq!(value("link_packets_total{what=\"sent\"}"), " 11");
        assert_eq!(value("link_session_total{what=\"handshakes\"}"), " 12");
        assert_eq!(value("link_repeated_packets_total{cause=\"timeout\"}"), " 13");
        assert_eq!(value("link_notes_total{note=\"gap\"}"), " 14");
        assert_eq!(value("link_refused_total{reason=\"full\"}"), " 15");
        status.state = "calling".to_owned();
        assert!(status.page().contains("lasthop_link_up 0\n"), "{}", status.page());
    }

    /// Readers see the latest stored status; unavailable values produce an error.
    #[test]
    fn readers_get_the_latest_stored_status() {
        let shared = SharedStatus::default();
        shared.put(&TunnelStatus { waiting: 3, ..TunnelStatus::default() });
        shared.put(&TunnelStatus { waiting: 4, ..TunnelStatus::default() });
        assert!(
            matches!(shared.answer(&Request::Status {}), Response::Link(found) if found.waiting == 4)
        );
        assert_eq!(shared.page(), Ok(shared.get().page()));
    }
}
