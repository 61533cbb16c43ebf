//! Waiting times of users of pages and videos.

use std::collections::BTreeMap;

use lasthop_proto::event::{ClientEvent, ClientNews};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::FlowKey;
use serde::{Deserialize, Serialize};

use super::short::quantile;
use crate::layout::ExchangeInfo;

/// The pages of a table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Pages {
    /// Requested pages.
    pub asked: u64,
    /// Pages with all objects loaded.
    pub loaded: u64,
    /// Mean load time of loaded pages, seconds.
    pub load_mean_s: f64,
    /// Median load time, seconds.
    pub load_p50_s: f64,
    /// 95th percentile of the load time, seconds.
    pub load_p95_s: f64,
    /// Longest load time, seconds.
    pub load_max_s: f64,
    /// Median time from the request to the first byte, seconds.
    pub first_byte_p50_s: f64,
    /// 95th percentile of the time to the first byte, seconds.
    pub first_byte_p95_s: f64,
}

/// The videos of a table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Videos {
    /// Clients that requested a segment.
    pub clients: u64,
    /// Clients that played to the end.
    pub ended: u64,
    /// Mean time from the first request to the start of playback, for clients that started, seconds.
    pub startup_s: f64,
    /// Number of interruptions of playback.
    pub rebuffers: u64,
    /// Total duration of interruptions over all clients, seconds.
    pub rebuffer_time_s: f64,
    /// Received segments.
    pub segments: u64,
    /// Mean rate of the segments, bits per second.
    pub bitrate: f64,
    /// Number of segments with another rate than their predecessor.
    pub switches: u64,
}

/// Data of one client.
#[derive(Clone, Debug, Default)]
struct ClientRecord {
    /// Request time of the page in progress, and results of loaded pages.
    page: Option<Time>,
    pages: u64,
    loads: Vec<Span>,
    first_bytes: Vec<Span>,
    /// Time of the first segment's request, and the delay until playback.
    video: Option<Time>,
    startup: Option<Span>,
    stalled_at: Option<Time>,
    stall_time: Span,
    rebuffers: u64,
    rates: Vec<u64>,
    ended: bool,
}

/// Data of all clients.
#[derive(Debug, Default)]
pub(super) struct Clients(BTreeMap<FlowKey, ClientRecord>);

impl Clients {
    /// Handles an event of a client.
    pub fn event(&mut self, at: Time, event: &ClientEvent) {
        let record = self.0.entry(event.client).or_default();
        let since = |begin: Option<Time>| begin.map(|begin| at.since(begin));
        match event.news {
            ClientNews::PageAsked => {
                record.page = Some(at);
                record.pages += 1;
            }
            ClientNews::PageBegins => record.first_bytes.extend(since(record.page)),
            ClientNews::PageLoaded => record.loads.extend(since(record.page.take())),
            ClientNews::VideoAsked => record.video = Some(at),
            ClientNews::VideoSegment(rate) => record.rates.push(rate.bps()),
            ClientNews::VideoPlays => match since(record.stalled_at.take()) {
                Some(stall_time) => record.stall_time = record.stall_time + stall_time,
                None => record.startup = since(record.video),
            },
            ClientNews::VideoStalls => {
                record.stalled_at = Some(at);
                record.rebuffers += 1;
            }
            ClientNews::VideoEnds => record.ended = true,
        }
    }

    fn of(&self, info: &ExchangeInfo) -> impl Iterator<Item = &ClientRecord> + Clone {
        let key = (info.from, info.to, info.port);
        let fits = move |flow: &FlowKey| (flow.src, flow.dst, flow.dst_port) == key;
        self.0.iter().filter(move |(flow, _)| fits(flow)).map(|(_, record)| record)
    }

    /// The pages of a table, if there are any.
    pub fn pages(&self, info: &ExchangeInfo) -> Option<Pages> {
        let those = self.of(info);
        let requested = those.clone().map(|record| record.pages).sum();
        let sorted = |of: fn(&ClientRecord) -> &Vec<Span>| {
            let mut all: Vec<f64> =
                those.clone().flat_map(of).copied().map(Span::as_secs_f64).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (loads, first) = (sorted(|record| &record.loads), sorted(|record| &record.first_bytes));
        let [load_p50_s, load_p95_s, load_max_s] = [0.50, 0.95, 1.0].map(|q| quantile(&loads, q));
        (requested > 0).then(|| Pages {
            asked: requested,
            loaded: loads.len() as u64,
            load_mean_s: loads.iter().sum::<f64>() / loads.len().max(1) as f64,
            load_p50_s,
            load_p95_s,
            load_max_s,
            first_byte_p50_s: quantile(&first, 0.50),
            first_byte_p95_s: quantile(&first, 0.95),
        })
    }

    /// The videos of a table, if there are any, for a run that ended at `end`.
    pub fn videos(&self, info: &ExchangeInfo, end: Time) -> Option<Videos> {
        let those = self.of(info).filter(|record| record.video.is_some());
        let sum = |of: fn(&ClientRecord) -> u64| those.clone().map(of).sum::<u64>();
        let startups = those.clone().filter_map(|record| record.startup).map(Span::as_secs_f64);
        let stall_time = those.clone().map(|record| {
            // An interruption in progress lasts until the end.
            record.stall_time + record.stalled_at.map_or(Span::ZERO, |since| end.since(since))
        });
        let rates = those.clone().flat_map(|record| &record.rates).map(|bps| *bps as f64);
        let segments = sum(|record| record.rates.len() as u64);
        let clients = sum(|_| 1);
        let changes =
            |record: &ClientRecord| record.rates.windows(2).filter(|w| w[0] != w[1]).count() as u64;
        (clients > 0).then(|| Videos {
            clients,
            ended: sum(|record| record.ended.into()),
            startup_s: startups.clone().sum::<f64>() / startups.count().max(1) as f64,
            rebuffers: sum(|record| record.rebuffers),
            rebuffer_time_s: stall_time.map(Span::as_secs_f64).sum(),
            segments,
            bitrate: rates.sum::<f64>() / segments.max(1) as f64,
            switches: those.clone().map(changes).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Exchanges, RunMetrics, Scalar};

    /// A table without pages has none, and one without videos has none.
    #[test]
    fn a_table_has_the_pages_and_videos_of_its_clients() {
        let [from, to] = [1, 2].map(|n| lasthop_proto::wire::Addr::v4(10, 0, 0, n));
        let info = ExchangeInfo { from, to, port: 80, cross: false };
        let client = FlowKey { src: from, dst: to, src_port: 1024, dst_port: 80 };
        let ms = |ms: u64| Time(ms * 1_000_000);
        let mut clients = Clients::default();
        assert_eq!((clients.pages(&info), clients.videos(&info, ms(0))), (None, None));
        let mut record = |at, news| clients.event(ms(at), &ClientEvent { client, news });
        record(100, ClientNews::PageAsked);
        record(150, ClientNews::PageBegins);
        record(400, ClientNews::PageLoaded);
        record(500, ClientNews::PageAsked);
        let pages = clients.pages(&info).expect("pages");
        assert_eq!((pages.asked, pages.loaded), (2, 1));
        assert_eq!((pages.load_mean_s, pages.load_max_s, pages.first_byte_p50_s), (0.3, 0.3, 0.05));
        assert_eq!(clients.videos(&info, ms(500)), None);
        let elsewhere = ExchangeInfo { port: 81, ..info };
        assert_eq!(clients.pages(&elsewhere), None, "another server's");
    }

    /// Two own tables and one of cross traffic: pages and segments are summed, times are the longest, and the
    /// rate is weighted by segments.
    #[test]
    fn user_metrics_combine_all_own_client_tables() {
        let table = |k: u64| {
            let (x, n) = (k as f64, k);
            let pages = Pages {
                asked: 10 * n,
                loaded: 9 * n,
                load_mean_s: 50.0 * x,
                load_p50_s: 1.0 * x,
                load_p95_s: 2.0 * x,
                load_max_s: 60.0 * x,
                first_byte_p50_s: 0.25 * x,
                first_byte_p95_s: 70.0 * x,
            };
            let videos = Videos {
                clients: 80 * n,
                ended: 90 * n,
                startup_s: 3.0 * x,
                rebuffers: 4 * n,
                rebuffer_time_s: 5.0 * x,
                segments: 100 * n,
                bitrate: 1000.0 * x,
                switches: 6 * n,
            };
            Exchanges { pages: Some(pages), videos: Some(videos), ..Exchanges::default() }
        };
        let others = Exchanges { cross: true, ..table(7) };
        let scalars = |exchanges: Vec<Exchanges>| {
            let all = RunMetrics { exchanges, ..RunMetrics::default() }.scalars();
            let of_clients = |s: &Scalar| s.name.starts_with("page") || s.name.starts_with("video");
            all.into_iter().filter(of_clients).collect::<Vec<_>>()
        };
        let all = scalars(vec![table(1), table(3), others]).into_iter();
        let all: Vec<_> = all.map(|s| (s.name, s.unit, s.value)).collect();
        assert_eq!(
            all,
            [
                ("pages", "1", 36.0),
                ("page_load_p50", "s", 3.0),
                ("page_load_p95", "s", 6.0),
                ("page_first_byte_p50", "s", 0.75),
                ("video_startup", "s", 9.0),
                ("video_rebuffers", "1", 16.0),
                ("video_rebuffer_time", "s", 20.0),
                // A hundred segments of 1000 bit/s and three hundred of 3000 bit/s.
                ("video_bitrate", "bit/s", 2500.0),
                ("video_switches", "1", 24.0),
            ]
        );
        let none = scalars(vec![Exchanges { cross: true, ..table(7) }, Exchanges::default()]);
        assert_eq!(none.len(), 0, "others' traffic has no users of ours");
        // A video without segments has no rate.
        let nothing = Exchanges { videos: Some(Videos::default()), ..Exchanges::default() };
        let none = scalars(vec![nothing]);
        assert!(none.iter().all(|scalar| scalar.value == 0.0), "{none:?}");
    }
}
