//! Results of `iperf3 --json`, by interval.
//!
//! A result counts payload only, but the link also carries headers. So the rates here are those of IP packets. Their
//! payload is the segment size of the result for TCP, and its block size for UDP. With `--bidir` a result has two
//! directions, and the caller must choose one.

use lasthop_proto::link::varied::Course;
use lasthop_proto::link::varied::measured::{Hints, Measured};
use lasthop_proto::units::{Rate, Span};
use serde::Deserialize;

use super::wrong;
use crate::Error;

#[derive(Deserialize)]
struct Iperf3 {
    #[serde(default)]
    start: Start,
    #[serde(default)]
    intervals: Vec<Interval>,
    error: Option<String>,
}

#[derive(Deserialize, Default)]
struct Start {
    #[serde(default)]
    connected: Vec<Connection>,
    tcp_mss: Option<u32>,
    tcp_mss_default: Option<u32>,
    #[serde(default)]
    test_start: TestStart,
}

#[derive(Deserialize)]
struct Connection {
    #[serde(default)]
    remote_host: String,
}

#[derive(Deserialize, Default)]
struct TestStart {
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    blksize: u64,
    #[serde(default)]
    reverse: u32,
    #[serde(default)]
    bidir: u32,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
    sum_bidir_reverse: Option<Sum>,
}

#[derive(Deserialize)]
struct Sum {
    start: f64,
    end: f64,
    bits_per_second: f64,
    #[serde(default)]
    omitted: bool,
}

impl Start {
    /// Bytes of IP packets per byte of payload, with the derivation.
    fn share(&self) -> (f64, String) {
        let v6 = self.connected.iter().any(|to| to.remote_host.contains(':'));
        let (ip, version) = if v6 { (40, "IPv6") } else { (20, "IPv4") };
        let of = |payload: f64, headers: u32| (payload + f64::from(headers)) / payload;
        if self.test_start.protocol.eq_ignore_ascii_case("udp") && self.test_start.blksize > 0 {
            let payload = self.test_start.blksize as f64;
            return (of(payload, ip + 8), format!("UDP, {payload} bytes in each {version} packet"));
        }
        let Some(mss) = self.tcp_mss.or(self.tcp_mss_default).filter(|mss| *mss > 0) else {
            return (1.0, "without a size of segments: headers are not counted".to_owned());
        };
        // If the segment with plain headers has a usual packet size, it has no timestamps; otherwise they add 12 bytes.
        let plain = [1500, 9000, 1492, 1280, 576].contains(&(mss + ip + 20));
        let headers = ip + 20 + if plain { 0 } else { 12 };
        (
            of(mss.into(), headers),
            format!("TCP, {mss} bytes in each {version} packet of {}", mss + headers),
        )
    }
}

/// The rates of a result and their interpretation, without the intervals that iperf3 omits.
///
/// # Errors
///
/// There are no intervals, or two directions and no choice.
pub fn read(text: &str, hints: &Hints) -> Result<Measured, Error> {
    let help = "give what `iperf3 --json` prints, with its intervals; docs/reference/json-traces.py converts other JSON";
    let result: Iperf3 =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string(), help))?;
    if let Some(error) = result.error.filter(|_| result.intervals.is_empty()) {
        return Err(wrong(format!("iperf3 reports: {error}"), "run it again until it succeeds"));
    }
    let Iperf3 { start, intervals, .. } = result;
    let both =
        start.test_start.bidir != 0 || intervals.iter().any(|i| i.sum_bidir_reverse.is_some());
    let reverse = start.test_start.reverse != 0;
    let down = match (both, hints.down) {
        (true, None) => {
            return Err(wrong(
                "the result of `--bidir` has two directions",
                "choose one: `--direction down` for what the client received, `--direction up` for what it sent",
            ));
        }
        (true, Some(down)) => down,
        (false, Some(down)) if down != reverse => {
            let (has, remedy) =
                if reverse { ("down", "without `-R`") } else { ("up", "with `-R`") };
            return Err(wrong(
                format!("the result has the direction {has} alone"),
                format!("leave out `--direction`, or run iperf3 {remedy}"),
            ));
        }
        (false, _) => reverse,
    };
    // With both directions the reverse sums are those that the client receives.
    let of = move |interval: Interval| {
        if both && down { interval.sum_bidir_reverse } else { Some(interval.sum) }
    };
    let all = intervals.len();
    let sums: Vec<Sum> = intervals.into_iter().filter_map(of).filter(|sum| !sum.omitted).collect();
    let (share, how) = start.share();
    let begin = sums.iter().map(|sum| sum.start).fold(f64::INFINITY, f64::min);
    let steps = sums.iter().map(|sum| {
        let bps = (sum.bits_per_second.max(0.0) * share) as u64;
        (Span::from_secs_f64(sum.start - begin), Rate::from_bps(bps))
    });
    let course = Course::steps(steps, None).map_err(|error| wrong(error.message, help))?;
    let end = sums.iter().map(|sum| sum.end).fold(0.0, f64::max);
    let count = sums.len();
    let omitted = all - count;
    let mut understood = vec![
        format!("iperf3 result: {}, from client to server is up", if down { "down" } else { "up" }),
        format!("rates: IP packets, {share:.4} of the payload ({how})"),
        format!("span: {count} intervals over {:.3} s", end - begin),
    ];
    if omitted > 0 {
        understood.push(format!("not used: {omitted} intervals that iperf3 omits"));
    }
    let end = Span::from_secs_f64(end - begin + 1e-9);
    Ok(Measured { rate: Some(course), back: None, delays: None, losses: None, end, understood })
}

#[cfg(test)]
mod tests {
    use super::super::statistics;
    use super::*;

    fn json(start: &str, intervals: &str) -> String {
        format!("{{\"start\":{{{start}}},\"intervals\":[{intervals}]}}")
    }

    const UP: &str = r#"{"sum":{"start":0,"end":1.0,"bits_per_second":1e7}},{"sum":{"start":1.0,"end":2.0,"bits_per_second":2e7}}"#;

    fn mean(text: &str, down: Option<bool>) -> f64 {
        let read = read(text, &Hints { down, ..Hints::default() }).unwrap();
        let trace = super::super::ConvertedTrace::from(read).trace(None).unwrap();
        statistics(&trace, 1000).mean_bps
    }

    #[test]
    fn headers_are_added_to_the_payload() {
        for (start, share) in [
            (r#""tcp_mss_default":1448"#, 1500.0 / 1448.0),
            (r#""tcp_mss":1460"#, 1500.0 / 1460.0),
            (r#""tcp_mss_default":536"#, 576.0 / 536.0),
            (r#""tcp_mss":1428,"connected":[{"remote_host":"fd00::1"}]"#, 1500.0 / 1428.0),
            (r#""test_start":{"protocol":"UDP","blksize":1000}"#, 1.028),
            ("", 1.0),
        ] {
            let got = mean(&json(start, UP), None);
            assert!((got / (1.5e7 * share) - 1.0).abs() < 2e-3, "{start}: {got} {share}");
        }
    }

    #[test]
    fn of_two_directions_one_is_chosen() {
        let both = r#"{"sum":{"start":0,"end":1.0,"bits_per_second":1e7},"sum_bidir_reverse":{"start":0,"end":1.0,"bits_per_second":3e7}}"#;
        let text = json(r#""test_start":{"protocol":"TCP","bidir":1}"#, both);
        assert!((mean(&text, Some(false)) / 1e7 - 1.0).abs() < 2e-3);
        assert!((mean(&text, Some(true)) / 3e7 - 1.0).abs() < 2e-3);
        let message = |text: &str, down| match read(text, &Hints { down, ..Hints::default() }) {
            Err(Error::Input { message, help }) => format!("{message} | {help}"),
            other => panic!("{other:?}"),
        };
        assert!(message(&text, None).contains("--direction down"));
        let reverse = json(r#""test_start":{"reverse":1}"#, UP);
        assert!((mean(&reverse, None) / 1.5e7 - 1.0).abs() < 2e-3);
        assert!(message(&reverse, Some(false)).contains("direction down alone"));
        assert!(message(r#"{"error":"unable to connect"}"#, None).contains("unable to connect"));
    }
}
