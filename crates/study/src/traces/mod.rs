//! Traces of delivery opportunities: statistics, synthetic traces, and conversion of measurements.

mod convert;
mod iperf3;
mod make;

use lasthop_proto::link::varied::{OPPORTUNITY, Trace};
use lasthop_report::plot::{Curve, Curves, Pen, Plot};
use serde::Serialize;

pub use convert::{Content, ConvertedTrace, from_capture, read, to_csv};
pub use lasthop_proto::link::varied::measured::{Hints, Measured, Role};
pub use make::{Model, from_rates, make, starlink_table};

use crate::Error;

fn wrong(message: impl Into<String>, help: impl Into<String>) -> Error {
    Error::Input { message: message.into(), help: help.into() }
}

/// Bits of an opportunity.
const BITS: f64 = OPPORTUNITY as f64 * 8.0;

/// Statistics of a trace that repeats forever.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Statistics {
    /// Number of lines.
    pub opportunities: usize,
    /// Period in seconds.
    pub period_s: f64,
    /// Mean rate in bits per second, headers of a TUN device included.
    pub mean_bps: f64,
    /// Minimum over the windows.
    pub min_bps: f64,
    /// Maximum over the windows.
    pub max_bps: f64,
    /// Length of a window in seconds.
    pub window_s: f64,
    /// The longest time without an opportunity, in seconds.
    pub longest_outage_s: f64,
    /// Rate of each window in bits per second; the last window may be shorter.
    pub windows_bps: Vec<f64>,
}

/// Statistics of `trace` with windows of `window_ms`.
pub fn statistics(trace: &Trace, window_ms: u32) -> Statistics {
    let period = trace.period();
    let window = window_ms.clamp(1, period);
    let mut counts = vec![0_u64; period.div_ceil(window) as usize];
    // An opportunity at the end of a period belongs to the start of the next one.
    trace.counts().for_each(|(time, count)| {
        counts[((time % period) / window) as usize] += u64::from(count);
    });
    let windows_bps: Vec<f64> = counts
        .iter()
        .enumerate()
        .map(|(i, count)| {
            let long = window.min(period - i as u32 * window);
            *count as f64 * BITS * 1000.0 / f64::from(long)
        })
        .collect();
    let whole = &windows_bps[..(period / window) as usize];
    let (mut longest, mut last) = (0, 0);
    trace
        .counts()
        .for_each(|(time, _)| longest = longest.max(time - core::mem::replace(&mut last, time)));
    let opportunities = trace.opportunities();
    Statistics {
        opportunities: opportunities as usize,
        period_s: f64::from(period) / 1000.0,
        mean_bps: opportunities as f64 * BITS * 1000.0 / f64::from(period),
        min_bps: whole.iter().copied().fold(f64::INFINITY, f64::min),
        max_bps: whole.iter().copied().fold(0.0, f64::max),
        window_s: f64::from(window) / 1000.0,
        longest_outage_s: f64::from(longest) / 1000.0,
        windows_bps,
    }
}

/// The rate over one period.
pub fn plot(title: &str, statistics: &Statistics) -> Plot {
    let Statistics { windows_bps, window_s, period_s, .. } = statistics;
    let mut points: Vec<(f64, f64, f64)> = windows_bps
        .iter()
        .enumerate()
        .map(|(i, bps)| (i as f64 * window_s, bps / 1e6, 0.0))
        .collect();
    points.extend(points.last().map(|(_, mbit, _)| (*period_s, *mbit, 0.0)));
    let name = format!("rate of each {window_s} s");
    Curves {
        title: title.to_owned(),
        x_label: "time (s)".to_owned(),
        y_label: "rate (Mbit/s)".to_owned(),
        log_x: false,
        curves: vec![Curve { name, pen: Pen::Steps, points }],
    }
    .plot()
}

#[cfg(test)]
mod tests {
    use lasthop_proto::units::{Rate, Span};

    use super::*;

    fn read(bytes: &[u8], duration: Option<Span>) -> Result<Trace, Error> {
        super::read(bytes, &Hints::default())?.trace(duration)
    }

    #[test]
    fn statistics_are_those_of_the_trace_without_end() {
        let found = statistics(&Trace::new([300, 300, 400, 2000]).unwrap(), 1000);
        assert_eq!(found.period_s, 2.0);
        assert_eq!(found.mean_bps, 4.0 * 12_032.0 / 2.0);
        // The line at 2000 begins the next period.
        assert_eq!(found.windows_bps, [4.0 * 12_032.0, 0.0]);
        assert_eq!((found.min_bps, found.max_bps), (0.0, 4.0 * 12_032.0));
        assert_eq!(found.longest_outage_s, 1.6);
    }

    /// lasthop trace make starlink --rate 50mbit --duration 60s --record starlink.csv
    #[test]
    fn the_scenario_of_starlink_has_the_table_of_its_command() {
        let rate: Rate = "50mbit".parse().unwrap();
        let made = starlink_table(rate, 10.5, Span::secs(60), 1).unwrap();
        assert_eq!(Some(made.as_str()), lasthop_scenario::examples::file("starlink.csv"));
        let found = Measured::read(&made, &Hints::default()).unwrap();
        let delays = found.delays.unwrap();
        assert_eq!(delays.period(), Some(Span::secs(60)));
    }

    #[test]
    fn a_constant_trace_has_its_rate_in_each_window() {
        let rate: Rate = "12mbit".parse().unwrap();
        let trace = make(&Model::Constant { rate }, Span::secs(20), 1).unwrap();
        let found = statistics(&trace, 1000);
        assert!((found.mean_bps / 12e6 - 1.0).abs() < 2e-4, "{}", found.mean_bps);
        assert!(found.min_bps > 11.98e6 && found.max_bps < 12.02e6, "{found:?}");
        assert_eq!((found.period_s, found.longest_outage_s), (20.0, 0.002));
    }

    #[test]
    fn a_random_trace_is_that_of_its_seed() {
        let span = Span::secs(120);
        let rate = |word: &str| word.parse::<Rate>().unwrap();
        let models = [
            Model::Markov {
                rates: vec![rate("1mbit"), rate("5mbit"), rate("20mbit")],
                dwell: Span::millis(500),
            },
            Model::Lte { peak: rate("12mbit") },
            Model::Starlink { rate: rate("50mbit") },
        ];
        for model in models {
            let [one, again, other] = [1, 1, 2].map(|seed| make(&model, span, seed).unwrap());
            assert_eq!(one, again);
            assert_ne!(one, other, "{model:?}");
            assert_eq!(one.period(), 120_000);
            let found = statistics(&one, 1000);
            match model {
                Model::Markov { .. } => assert!(found.min_bps >= 0.9e6 && found.max_bps <= 20.1e6),
                Model::Lte { .. } => {
                    assert!(found.max_bps < 14e6 && found.longest_outage_s > 0.05, "{found:?}");
                    assert!((1e6..12e6).contains(&found.mean_bps), "{found:?}");
                }
                // LeoCC's record of 120 s has one gap of 59 to 135 ms in each 15 s, and windows of 1 s with 0.6
                // to 1.5 times its mean rate.
                _ => {
                    let times: Vec<u32> = one.times().collect();
                    let gaps = times.windows(2).filter(|pair| pair[1] - pair[0] >= 40);
                    let gaps: Vec<(u32, u32)> = gaps.map(|p| (p[0], p[1] - p[0])).collect();
                    assert_eq!(gaps.len(), 8, "{gaps:?}");
                    assert!(gaps.iter().all(|(_, ms)| (58..=137).contains(ms)), "{gaps:?}");
                    assert!(gaps.windows(2).all(|p| (p[1].0 - p[0].0).abs_diff(15_000) < 100));
                    assert!((found.mean_bps / 50e6 - 1.0).abs() < 0.2, "{found:?}");
                    assert!(found.min_bps > 20e6 && found.max_bps < 80e6, "{found:?}");
                    let delays = make::starlink_delays(span, 1);
                    assert_eq!(delays.len(), 12_000);
                    let mean = delays.iter().sum::<u32>() as f64 / 12_000.0;
                    assert!((9.7..11.7).contains(&mean), "{mean}");
                    // The packets of a gap arrive together after it.
                    let late = |(at, ms): &(u32, u32)| delays[(*at / 10) as usize + 1] >= ms / 3;
                    assert!(gaps.iter().all(late), "{gaps:?}");
                }
            }
        }
    }

    #[test]
    fn rates_and_traces_go_to_and_fro() {
        let csv = "time (s),rate (mbit)\n0,8\n2,0\n3,2\n5,again\n";
        let trace = read(csv.as_bytes(), None).unwrap();
        let found = statistics(&trace, 1000);
        for (found, want) in found.windows_bps.iter().zip([8e6, 8e6, 0.0, 2e6, 2e6]) {
            assert!((found - want).abs() < 13e3, "{found} {want}");
        }
        let back = read(to_csv(&trace, 1000).as_bytes(), None).unwrap();
        assert!(back.opportunities().abs_diff(trace.opportunities()) <= 1);
        assert!(read(b"1\n5\n", None).unwrap().times().eq([1, 5]));
    }

    #[test]
    fn a_byte_order_mark_is_no_heading() {
        let csv = "0s,1mbit\n1s,2mbit\n2s,again\n";
        let marked = format!("\u{feff}{csv}");
        let [plain, marked] = [csv, &marked].map(|csv| read(csv.as_bytes(), None).unwrap());
        assert_eq!(plain, marked);
        assert!(read("\u{feff}1\n5\n".as_bytes(), None).unwrap().times().eq([1, 5]));
    }

    #[test]
    fn a_unit_in_the_heading_of_rates_alone_is_read() {
        for heading in ["Time;Throughput (kbit/s)", "time,kbps", "time;bps"] {
            let scale = if heading.ends_with(";bps") { 1000 } else { 1 };
            let separator = if heading.contains(';') { ';' } else { ',' };
            let row = |n| format!("{n}{separator}{}\n", 1200 * scale);
            let rows: String = (0..10).map(row).collect();
            let trace = read(format!("{heading}\n{rows}").as_bytes(), None).unwrap();
            assert!((statistics(&trace, 1000).mean_bps - 1.2e6).abs() < 12e3, "{heading}");
        }
    }

    #[test]
    fn an_ambiguous_unit_of_a_rate_is_reported() {
        let Err(Error::Input { message, .. }) = read(b"0s,1 Mbps\n1s,2 Mbps\n", None) else {
            panic!("`Mbps` is ambiguous")
        };
        assert!(message.contains("line 1") && message.contains("`1mbit`"), "{message}");
    }

    #[test]
    fn rates_with_a_single_time_need_an_end() {
        let Err(Error::Input { message, help }) = read(b"0s,1mbit\n", None) else {
            panic!("no trace without a duration")
        };
        assert!(
            message.contains("fewer than two rows") && help.contains("`10s,again`"),
            "{message}: {help}"
        );
        assert!(read(b"0s,1mbit\n10s,again\n", None).is_ok());
    }

    #[test]
    fn an_iperf3_result_becomes_its_rates() {
        let json = r#"{"intervals":[
            {"sum":{"start":0,"end":1.0,"bits_per_second":4e6,"omitted":true}},
            {"sum":{"start":0,"end":1.0,"bits_per_second":2e6}},
            {"sum":{"start":1.0,"end":2.0,"bits_per_second":6e6}}]}"#;
        let found = statistics(&read(json.as_bytes(), None).unwrap(), 1000);
        assert_eq!(found.period_s, 2.0);
        assert!((found.windows_bps[0] - 2e6).abs() < 13e3, "{found:?}");
        assert!((found.windows_bps[1] - 6e6).abs() < 13e3, "{found:?}");
        for wrong in [
            "{",
            "{}",
            r#"{"intervals":[]}"#,
            r#"{"intervals":[{"sum":{"start":0}}]}"#,
            "",
            "1\n-1\n",
        ] {
            assert!(read(wrong.as_bytes(), None).is_err(), "{wrong}");
        }
        assert!(read(&[0xff, 0xfe, 1, 2], None).is_err());
    }
}
