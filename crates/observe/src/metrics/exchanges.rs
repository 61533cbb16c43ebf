//! Requests and responses: waiting times of clients, and their cost in packets.

use lasthop_proto::units::{Span, Time};
use serde::{Deserialize, Serialize};

use super::Metrics;
use super::clients::{Pages, Videos};
use super::flow::Flow;
use super::flow_pair::FlowPair;
use super::short::quantile;
use crate::layout::ExchangeInfo;

/// The exchanges of a table's clients. The time of an exchange is from the request to the last byte of the
/// response, including the handshake of a new connection.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Exchanges {
    /// Address of the clients.
    pub from: String,
    /// Address of the server.
    pub to: String,
    /// Whether they are cross traffic.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub cross: bool,
    /// Opened connections.
    pub connections: u64,
    /// Aborted connections.
    pub aborted: u64,
    /// Requests.
    pub asked: u64,
    /// Requests with a complete response.
    pub answered: u64,
    /// Delivered bytes of responses, incomplete ones included.
    pub delivered: u64,
    /// Mean time of complete exchanges, seconds.
    pub time_mean_s: f64,
    /// Median time, seconds.
    pub time_p50_s: f64,
    /// 95th percentile of the time, seconds.
    pub time_p95_s: f64,
    /// 99th percentile of the time, seconds.
    pub time_p99_s: f64,
    /// Longest time, seconds.
    pub time_max_s: f64,
    /// Packets of all kinds that both ends sent over their first link.
    pub packets: u64,
    /// Retransmission timeouts of both ends.
    pub timeouts: u64,
    /// Fast retransmissions that began a recovery, of both ends.
    pub fast_retransmits: u64,
    /// Retransmitted data packets of both ends.
    pub retransmissions: u64,
    /// Pages that consist of these exchanges, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// Videos that consist of these exchanges, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub videos: Option<Videos>,
}

impl Exchanges {
    /// Whether all requests have complete responses, and all videos have ended.
    pub fn complete(&self) -> bool {
        self.answered == self.asked
            && self.pages.as_ref().is_none_or(|pages| pages.loaded == pages.asked)
            && self.videos.as_ref().is_none_or(|videos| videos.ended == videos.clients)
    }

    /// Sums up connections, each given as the flow of its requests.
    pub(super) fn of<'a>(
        info: &ExchangeInfo,
        connections: impl Iterator<Item = FlowPair<'a>>,
        end: Time,
    ) -> Exchanges {
        let mut all = Exchanges {
            from: info.from.to_string(),
            to: info.to.to_string(),
            cross: info.cross,
            ..Exchanges::default()
        };
        let mut times: Vec<Span> = Vec::new();
        for pair in connections {
            let (there, back) = (pair.metrics(end), pair.reversed().metrics(end));
            let FlowPair { flow: requests, acks: responses, .. } = pair;
            all.connections += 1;
            all.aborted += u64::from(there.aborted || back.aborted);
            all.delivered += back.delivered;
            let rare = [requests, responses].map(Flow::has_rare);
            all.packets += rare.iter().flatten().map(|rare| rare.entered).sum::<u64>();
            all.timeouts += there.timeouts + back.timeouts;
            all.fast_retransmits += there.fast_retransmits + back.fast_retransmits;
            all.retransmissions += there.host_retransmissions() + back.host_retransmissions();
            if let Some(exchanges) = requests.has_rare().and_then(|rare| rare.exchanges.as_ref()) {
                all.asked += (exchanges.open.len() + exchanges.times.len()) as u64;
                times.extend(&exchanges.times);
            }
        }
        times.sort();
        let times: Vec<f64> = times.into_iter().map(Span::as_secs_f64).collect();
        all.answered = times.len() as u64;
        all.time_mean_s = times.iter().sum::<f64>() / times.len().max(1) as f64;
        [all.time_p50_s, all.time_p95_s, all.time_p99_s, all.time_max_s] =
            [0.50, 0.95, 0.99, 1.0].map(|q| quantile(&times, q));
        all
    }
}

impl Metrics {
    /// Metrics of all tables.
    pub(super) fn exchanges(&self, end: Time) -> Vec<Exchanges> {
        let tables = self.layout.exchanges.iter();
        tables
            .map(|info| {
                let those = self.flows.iter().filter(|pair| pair.has_requests_of(info));
                Exchanges {
                    pages: self.clients.pages(info),
                    videos: self.clients.videos(info, end),
                    ..Exchanges::of(info, those, end)
                }
            })
            .collect()
    }
}
