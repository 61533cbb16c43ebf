//! Recorded orders of a kernel, in a readable file.

use serde::{Deserialize, Serialize};

use super::order::{Order, parse_runs, runs};
use super::pattern::Pattern;
use super::{PATH, ours};
use crate::Error;

/// The orders of a kernel under some patterns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The congestion control: `linux-reno`.
    pub kernel: String,
    /// The kernel's release.
    pub release: String,
    /// The scenario, one line per entry.
    pub scenario: Vec<String>,
    pub patterns: Vec<KernelOrders>,
}

/// The orders of a kernel under one pattern.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KernelOrders {
    #[serde(flatten)]
    pub pattern: Pattern,
    /// The order of segments in each run: `0-65 29 66-130`. Equal orders are listed once.
    pub orders: Vec<String>,
    /// Seconds until half of the transfer was delivered, in each run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub half_s: Vec<f64>,
}

impl Recording {
    /// An empty recording.
    pub fn new(kernel: &str, release: &str) -> Recording {
        let (kernel, release) = (kernel.to_owned(), release.to_owned());
        let scenario = PATH.lines().map(str::to_owned).collect();
        Recording { kernel, release, scenario, patterns: Vec::new() }
    }

    /// Adds the runs of one pattern.
    pub fn add(&mut self, pattern: &Pattern, runs_of_it: &[Order]) {
        let mut orders = Vec::new();
        for order in runs_of_it {
            let text = runs(order.sent.iter().map(|sent| sent.segment));
            if !orders.contains(&text) {
                orders.push(text);
            }
        }
        let half_s = runs_of_it.iter().filter_map(|order| order.half_s).collect();
        self.patterns.push(KernelOrders { pattern: pattern.clone(), orders, half_s });
    }

    /// Parses JSON.
    ///
    /// # Errors
    ///
    /// The text is no JSON, is of another path, or has an invalid order.
    pub fn parse(text: &str) -> Result<Recording, Error> {
        let wrong = |message: String| {
            Error::input(message, "`lasthop replay --record FILE` writes what can be read")
        };
        let read: Recording = serde_json::from_str(text)
            .map_err(|error| wrong(format!("this is no recording of `lasthop replay`: {error}")))?;
        if ours(&read.kernel).is_none() {
            return Err(wrong(format!("`{}` is not among the kernels of a replay", read.kernel)));
        }
        if !read.scenario.iter().map(String::as_str).eq(PATH.lines()) {
            return Err(wrong("it was recorded over another path".to_owned()));
        }
        match read.patterns.iter().flat_map(|p| &p.orders).find(|o| parse_runs(o).is_none()) {
            Some(order) => Err(wrong(format!("`{order}` is no order of segments"))),
            None => Ok(read),
        }
    }
}

impl KernelOrders {
    /// The runs: their orders, and the times of half a transfer, which are not repeated for equal orders.
    pub fn orders(&self) -> Vec<Order> {
        let runs = self.orders.len().max(self.half_s.len());
        let order = |i| {
            let text = self.orders.get(i).or(self.orders.last()).map_or("", String::as_str);
            let sent = Order::of_segments(&parse_runs(text).unwrap_or_default());
            Order { half_s: self.half_s.get(i).copied(), ..sent }
        };
        (0..runs).map(order).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_read_as_it_was_written() {
        let mut recording = Recording::new("linux-reno", "6.18");
        let pattern = Pattern { drop_data: "4".to_owned(), drop_acks: "2".to_owned() };
        let order = Order { half_s: Some(0.25), ..Order::of_segments(&[0, 1, 2, 3, 4, 3]) };
        recording.add(&pattern, &[order.clone(), order.clone()]);
        let text = serde_json::to_string(&recording).unwrap();
        let read = Recording::parse(&text).unwrap();
        assert_eq!(read, recording);
        assert_eq!(read.patterns[0].orders, ["0-4 3"]);
        assert_eq!(read.patterns[0].orders(), [order.clone(), order]);
        for (from, to) in [("0-4 3", "0-x"), ("linux-reno", "bsd"), ("20mbit", "30mbit")] {
            assert!(Recording::parse(&text.replace(from, to)).is_err(), "{to}");
        }
    }
}
