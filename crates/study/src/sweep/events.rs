//! The events of a transfer that cost most time, as links to its time-sequence plot.

use lasthop_observe::sequence::Series;
use lasthop_report::model::EventLink;
use lasthop_report::number::plural;

/// Maximum number of links for a transfer.
const MAX_LINKS: usize = 6;

/// Length of the part of a plot that shows a timeout, as a share of the run.
const TIMEOUT_VIEW: f64 = 0.05;

/// The longest stalls of a transfer with their timeouts, then timeouts outside of stalls; in the order of their times.
pub fn links(series: &Series, figure: &str) -> Vec<EventLink> {
    let link = |text: String, from_s: f64, to_s: f64| EventLink {
        text,
        figure: figure.to_owned(),
        from_s: from_s.max(0.0),
        to_s: to_s.min(series.end_s),
    };
    let mut stalls = series.stalls.clone();
    stalls.sort_by(|a, b| b.length_s().total_cmp(&a.length_s()));
    stalls.truncate(MAX_LINKS);
    let mut links: Vec<EventLink> = stalls
        .iter()
        .map(|stall| {
            let (length, at) = (stall.length_s(), stall.from_s);
            let inside = |at: &&f64| (stall.from_s..=stall.to_s).contains(*at);
            let timeouts = match series.timeouts.iter().filter(inside).count() as u64 {
                0 => String::new(),
                n => format!(" with {}", plural(n, "timeout")),
            };
            // The view adds the length of the stall before and after it, to show its cause and its end.
            link(
                format!("a stall of {length:.2} s at {at:.2} s{timeouts}"),
                at - length,
                stall.to_s + length,
            )
        })
        .collect();
    let outside = |at: &&f64| !series.stalls.iter().any(|s| (s.from_s..=s.to_s).contains(*at));
    let half = TIMEOUT_VIEW * series.end_s / 2.0;
    let timeouts = series.timeouts.iter().filter(outside).take(MAX_LINKS - links.len());
    links.extend(timeouts.map(|at| link(format!("a timeout at {at:.2} s"), at - half, at + half)));
    links.sort_by(|a, b| (a.from_s + a.to_s).total_cmp(&(b.from_s + b.to_s)));
    links
}

#[cfg(test)]
mod tests {
    use lasthop_observe::stalls::Stall;

    use super::*;

    #[test]
    fn long_stalls_come_with_their_timeouts_and_other_timeouts_follow() {
        let stall = |from_s, to_s| Stall { from_s, to_s };
        let mut stalls: Vec<Stall> =
            (0..8).map(|i| stall(10.0 * f64::from(i), 10.0 * f64::from(i) + 1.0)).collect();
        stalls[7].to_s = 77.0;
        let mut series =
            Series { stalls, timeouts: vec![5.0, 71.0, 73.0], end_s: 80.0, ..Series::default() };
        let longest = |series: &Series| links(series, "sequence-1-1").pop().unwrap();
        let last = longest(&series);
        assert_eq!(last.text, "a stall of 7.00 s at 70.00 s with 2 timeouts");
        assert_eq!((last.from_s, last.to_s), (63.0, 80.0), "within the run");
        assert_eq!(links(&series, "x").len(), MAX_LINKS);
        series.stalls.truncate(1);
        let texts: Vec<String> = links(&series, "x").into_iter().map(|link| link.text).collect();
        let all = [
            "a stall of 1.00 s at 0.00 s",
            "a timeout at 5.00 s",
            "a timeout at 71.00 s",
            "a timeout at 73.00 s",
        ];
        assert_eq!(texts, all);
    }
}
