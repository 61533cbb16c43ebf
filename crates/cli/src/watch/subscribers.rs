//! Subscribers of a station for users.

use lasthop_live::control::protocol::SubscriberList;
use lasthop_proto::units::Span;
use lasthop_report::model::{Column, Table};
use lasthop_report::number::Units;
use lasthop_report::table::render_lean;
use lasthop_trace::subscribers::{Overview, RecentTrips, Subscriber};

use crate::style;

/// A figure that was not measured.
const NONE: &str = "-";

/// One line about all subscribers: their number by grade, and the limits of the table.
pub fn summary(overview: &Overview) -> String {
    // By letter, the best first: "A+" is before "A".
    let order = lasthop_trace::grade::Grade::ALL.map(|grade| grade.name());
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
pub fn table(list: &SubscriberList, units: Units) -> String {
    format!("{}\n{}", summary(&list.overview), rows(list, units))
}

/// The table of subscribers.
pub fn rows(list: &SubscriberList, units: Units) -> String {
    let columns = [
        Column::text("subscriber"),
        Column::text("grade"),
        Column::number("down"),
        Column::number("up"),
        Column::number("loss down"),
        Column::number("up"),
        Column::number("before"),
        Column::number("radio ms"),
        Column::number("least"),
        Column::number("server ms"),
        Column::number("least"),
        Column::number("again by server"),
        Column::number("station"),
        Column::number("idle"),
    ];
    let rows = list.subscribers.iter().map(|subscriber| row(subscriber, units));
    format!("{}\n", render_lean(&Table::new(columns, rows), style::look()))
}

fn row(subscriber: &Subscriber, units: Units) -> Vec<String> {
    let ms = |seconds: Option<f64>| seconds.map_or(NONE.to_owned(), |s| format!("{:.1}", s * 1e3));
    let share = |share: Option<f64>| {
        share.map_or(NONE.to_owned(), |share| format!("{:.2} %", share * 100.0))
    };
    let median = |trips: Option<RecentTrips>| ms(trips.map(|trips| trips.median_s));
    let least = |trips: Option<RecentTrips>| ms(trips.map(|trips| trips.min_s));
    vec![
        subscriber.subscriber.to_string(),
        subscriber.grade.map_or(NONE, |grade| grade.name()).to_owned(),
        units.rate(subscriber.goodput_down),
        units.rate(subscriber.goodput_up),
        share(subscriber.loss_down),
        share(subscriber.loss_up),
        share(subscriber.loss_before),
        median(subscriber.radio),
        least(subscriber.radio),
        median(subscriber.server),
        least(subscriber.server),
        subscriber.total.server_packets.to_string(),
        subscriber.total.local_packets.to_string(),
        Span::secs(subscriber.idle_s as u64).to_string(),
    ]
}
