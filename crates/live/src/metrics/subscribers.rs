//! Metrics of subscribers.

use lasthop_observe::grade::Grade;
use lasthop_observe::subscribers::{RecentTrips, Subscriber};

use super::{Labels, Page};
use crate::subscribers::SubscriberList;

impl Page {
    /// Adds the families of subscribers; without a view they have no samples.
    pub(super) fn subscribers(&mut self, list: Option<&SubscriberList>) {
        self.tables(list);
        let rows = list.map(|list| &list.subscribers[..]).unwrap_or_default();
        let names: Vec<String> = rows.iter().map(|row| row.subscriber.to_string()).collect();
        let each = Each { rows, names: &names };
        self.bytes(&each);
        self.shares(&each);
        let trips = each.samples(|row| {
            let of = |side, trips: Option<RecentTrips>| {
                trips.into_iter().flat_map(move |trips| {
                    let labels = |statistic| vec![("side", side), ("what", statistic)];
                    [(labels("min"), trips.min_s), (labels("median"), trips.median_s)]
                })
            };
            of("radio", row.radio).chain(of("server", row.server)).collect()
        });
        let help = "Recent round trips between the station and the subscriber, or the servers.";
        self.family("subscriber_round_trip_seconds", "gauge", help, trips);
        let grades = each.samples(|row| {
            let number = |grade| Grade::ALL.iter().position(|known| *known == grade);
            let number = row.grade.and_then(number);
            number.map(|number| (vec![], number as f64)).into_iter().collect()
        });
        let help = "Grade of the round trip's increase: 0 for A+, 1 for A, and 5 for F.";
        self.family("subscriber_grade", "gauge", help, grades);
    }

    fn tables(&mut self, list: Option<&SubscriberList>) {
        let one = |get: fn(&SubscriberList) -> u64| {
            list.map(|list| (vec![], get(list) as f64)).into_iter().collect()
        };
        let followed = one(|list| list.overview.followed);
        self.family("subscribers", "gauge", "Subscribers with figures.", followed);
        let most = one(|list| list.overview.most);
        self.family("subscribers_limit", "gauge", "Limit of subscribers with figures.", most);
        let help = "Subscribers removed to make room for others.";
        let evicted = one(|list| list.overview.evicted);
        self.family("subscribers_evicted_total", "counter", help, evicted);
        let help = "Connections of subscribers.";
        self.family("subscriber_flows", "gauge", help, one(|list| list.overview.flows));
        let help = "Connections of subscribers removed to make room for others.";
        let evicted = one(|list| list.overview.flows_evicted);
        self.family("subscriber_flows_evicted_total", "counter", help, evicted);
        let help = "Segments that no host would accept, and that were not measured.";
        let refused = one(|list| list.overview.refused);
        self.family("subscriber_refused_segments_total", "counter", help, refused);
        let grades = list.into_iter().flat_map(|list| {
            let graded = list.overview.grades.iter().map(|(grade, n)| (grade.as_str(), *n));
            graded.chain([("none", list.overview.ungraded)])
        });
        let grades = grades.map(|(grade, n)| (vec![("grade", grade)], n as f64)).collect();
        let help = "Subscribers of the last five minutes by grade.";
        self.family("subscribers_by_grade", "gauge", help, grades);
    }

    fn bytes(&mut self, each: &Each<'_>) {
        let delivered = each.samples(|row| {
            let of = |direction, bytes: u64| (vec![("direction", direction)], bytes as f64);
            vec![of("right", row.total.delivered_down), of("left", row.total.delivered_up)]
        });
        let help = "Payload that its receiver has acknowledged.";
        self.family("subscriber_delivered_bytes_total", "counter", help, delivered);
        let sent = each.samples(|row| vec![(vec![], row.total.sent as f64)]);
        let help = "Payload that went to the subscriber, with retransmissions.";
        self.family("subscriber_sent_bytes_total", "counter", help, sent);
        let again = each.samples(|row| {
            let of = |by, bytes: u64| (vec![("by", by)], bytes as f64);
            let total = &row.total;
            let known = [of("server", total.server_bytes), of("station", total.local_bytes)];
            let client = row.upload.map(|upload| of("subscriber", upload.client_bytes));
            known.into_iter().chain(client).collect()
        });
        let help = "Payload that was retransmitted after the station had seen it.";
        self.family("subscriber_retransmitted_bytes_total", "counter", help, again);
    }

    fn shares(&mut self, each: &Each<'_>) {
        let losses = each.samples(|row| {
            let of = |place, share: Option<f64>| share.map(|share| (vec![("place", place)], share));
            let all = [
                of("radio-right", row.loss_down),
                of("radio-left", row.loss_up),
                of("before", row.loss_before),
            ];
            all.into_iter().flatten().collect()
        });
        let help = "Recent loss of payload, from 0 to 1: towards and from the subscriber, and before the station.";
        self.family("subscriber_loss_ratio", "gauge", help, losses);
    }
}

/// Subscribers with their labels.
struct Each<'a> {
    rows: &'a [Subscriber],
    names: &'a [String],
}

impl<'a> Each<'a> {
    /// The samples of each subscriber, with its label before their own.
    fn samples(
        &self,
        of: impl Fn(&Subscriber) -> Vec<(Labels<'static>, f64)>,
    ) -> Vec<(Labels<'a>, f64)> {
        let both = self.rows.iter().zip(self.names);
        let samples = both.flat_map(|(row, name)| {
            of(row).into_iter().map(move |(own, value)| {
                let mut labels: Labels<'a> = vec![("subscriber", name.as_str())];
                labels.extend(own);
                (labels, value)
            })
        });
        samples.collect()
    }
}

#[cfg(test)]
mod tests {
    use lasthop_observe::subscribers::{Overview, Transfers};

    use super::*;

    fn list() -> SubscriberList {
        let row = Subscriber {
            subscriber: "10.0.0.7".parse().unwrap(),
            age_s: 60.0,
            idle_s: 0.0,
            goodput_down: 1000.0,
            goodput_up: 0.0,
            radio: Some(RecentTrips { min_s: 0.02, median_s: 0.03, samples: 30 }),
            server: None,
            loss_down: Some(0.25),
            loss_up: None,
            loss_before: None,
            increase_s: Some(0.01),
            grade: Some(Grade::A),
            total: Transfers { delivered_down: 9000, local_bytes: 70, ..Transfers::default() },
            upload: None,
        };
        let mut overview = Overview { followed: 1, most: 9, ..Overview::default() };
        overview.grades.insert("A".to_owned(), 1);
        SubscriberList { overview, subscribers: vec![row] }
    }

    #[test]
    fn a_figure_that_was_not_measured_has_no_sample() {
        let mut page = Page::default();
        page.subscribers(Some(&list()));
        let text = page.text();
        let own: Vec<&str> = text.lines().filter(|line| line.contains("10.0.0.7")).collect();
        let expected = [
            "lasthop_subscriber_delivered_bytes_total{subscriber=\"10.0.0.7\",direction=\"right\"} 9000",
            "lasthop_subscriber_delivered_bytes_total{subscriber=\"10.0.0.7\",direction=\"left\"} 0",
            "lasthop_subscriber_sent_bytes_total{subscriber=\"10.0.0.7\"} 0",
            "lasthop_subscriber_retransmitted_bytes_total{subscriber=\"10.0.0.7\",by=\"server\"} 0",
            "lasthop_subscriber_retransmitted_bytes_total{subscriber=\"10.0.0.7\",by=\"station\"} 70",
            "lasthop_subscriber_loss_ratio{subscriber=\"10.0.0.7\",place=\"radio-right\"} 0.25",
            "lasthop_subscriber_round_trip_seconds{subscriber=\"10.0.0.7\",side=\"radio\",what=\"min\"} 0.02",
            "lasthop_subscriber_round_trip_seconds{subscriber=\"10.0.0.7\",side=\"radio\",what=\"median\"} 0.03",
            "lasthop_subscriber_grade{subscriber=\"10.0.0.7\"} 1",
        ];
        assert_eq!(own, expected);
        assert!(text.contains("lasthop_subscribers_by_grade{grade=\"A\"} 1\n"), "{text}");
        let mut none = Page::default();
        none.subscribers(None);
        assert_eq!(none.text(), "");
    }
}
