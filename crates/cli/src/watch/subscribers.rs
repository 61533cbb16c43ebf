//! Subscribers of a station for users.

use lasthop_live::control::protocol::SubscriberList;
use lasthop_observe::subscribers::{Overview, RecentTrips, Subscriber};
use lasthop_proto::units::Span;
use lasthop_report::model::{Column, Table};
use lasthop_report::number::in_mbit;
use lasthop_report::table::render_lean;

use crate::style;

/// A figure that was not measured.
const NONE: &str = "-";

/// One line about all subscribers: their number by grade, and the limits of the table.
pub fn summary(overview: &Overview) -> String {
    // By letter, the best first: "A+" is before "A".
    let order = lasthop_observe::grade::Grade::ALL.map(|grade| grade.name());
    let graded = order.iter().filter_map(|name| Some((*name, *overview.grades.get(*name)?)));
    let counts: Vec<String> = graded
        .chain([("ungraded", overview.ungraded)])
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!("{name} {n}"))
        .collect();
    let counts = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    let evicted = match overview.evicted {
        0 => String::new(),
        n => format!(", {n} removed to make room"),
    };
    format!(
        "subscribers: {} of at most {}{evicted}; in the last 5 minutes: {counts}\n",
        overview.followed, overview.most
    )
}

/// The line and the table.
pub fn table(list: &SubscriberList) -> String {
    format!("{}\n{}", summary(&list.overview), rows(list))
}

/// The table of subscribers.
pub fn rows(list: &SubscriberList) -> String {
    let columns = Column::list(
        "<subscriber | <grade | down | up | loss down | loss up | before | radio | server | again | idle",
    );
    let rows = list.subscribers.iter().map(row);
    let table = render_lean(&Table::new(columns, rows), style::look());
    format!("{table}\n{LEGEND}\n")
}

/// Meaning of the cells with two figures.
const LEGEND: &str = "before: loss before the station; radio, server: median / least round trip in ms; again: packets \
                      retransmitted by servers + by the station";

fn row(subscriber: &Subscriber) -> Vec<String> {
    let share = |share: Option<f64>| {
        share.map_or(NONE.to_owned(), |share| format!("{:.2} %", share * 100.0))
    };
    let trips = |trips: Option<RecentTrips>| {
        let both = trips.map(|trips| (trips.median_s * 1e3, trips.min_s * 1e3));
        both.map_or(NONE.to_owned(), |(median, least)| format!("{median:.1} / {least:.1}"))
    };
    let total = &subscriber.total;
    vec![
        subscriber.subscriber.to_string(),
        subscriber.grade.map_or(NONE, |grade| grade.name()).to_owned(),
        in_mbit(subscriber.goodput_down),
        in_mbit(subscriber.goodput_up),
        share(subscriber.loss_down),
        share(subscriber.loss_up),
        share(subscriber.loss_before),
        trips(subscriber.radio),
        trips(subscriber.server),
        format!("{} + {}", total.server_packets, total.local_packets),
        Span::secs(subscriber.idle_s as u64).to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use lasthop_observe::grade::Grade;
    use lasthop_observe::subscribers::Transfers;

    use super::*;

    #[test]
    fn a_figure_that_was_not_measured_is_a_dash() {
        let total = Transfers { server_packets: 12, local_packets: 3, ..Transfers::default() };
        let subscriber = Subscriber {
            subscriber: "10.5.0.0/24".parse().unwrap(),
            age_s: 60.0,
            idle_s: 3.7,
            goodput_down: 250_000.0,
            goodput_up: 0.0,
            radio: Some(RecentTrips { min_s: 0.0201, median_s: 0.09, samples: 30 }),
            server: None,
            loss_down: Some(0.0123),
            loss_up: None,
            loss_before: Some(0.0),
            increase_s: Some(0.07),
            grade: Some(Grade::C),
            total,
            upload: None,
        };
        let cells = row(&subscriber);
        assert_eq!(cells[..2], ["10.5.0.0/24", "C"]);
        let wanted = ["1.23 %", "-", "0.00 %", "90.0 / 20.1", "-", "12 + 3", "3s"];
        assert_eq!(cells[4..], wanted);
        let mut overview =
            Overview { followed: 9, most: 20, evicted: 4, ungraded: 2, ..Overview::default() };
        for (grade, n) in [("A", 3), ("A+", 1), ("F", 0)] {
            overview.grades.insert(grade.to_owned(), n);
        }
        let line = "subscribers: 9 of at most 20, 4 removed to make room; in the last 5 minutes: A+ 1, A 3, ungraded 2\n";
        assert_eq!(summary(&overview), line);
    }
}
