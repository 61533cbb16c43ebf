//! The testbed of sections 2 and 3, and the comparison of protocols on it.

use lasthop_report::number;

use crate::figure::{WHISKERS, bar, bars, published_bar};
use crate::measure::{count, mbps, wired, wireless};
use crate::table::{row, table};
use crate::{Bench, Estimate, Finding, Interrupted, Runs};

/// Fixed host, Ethernet, base station, WaveLAN, mobile host.
pub(super) const LAN: &str = include_str!("lan.toml");
/// The same with 16 hops of Internet in front.
pub(super) const WAN: &str = include_str!("wan.toml");

/// A protocol: its name in the paper, and its settings.
pub(super) type Protocol = (&'static str, &'static [&'static str]);

/// The runs of a protocol, with the published throughput in Mb/s if the text has it.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) runs: Runs,
    published: Option<f64>,
}

impl Row {
    /// Throughput in Mb/s.
    pub(super) fn mbps(&self) -> Estimate {
        self.runs.summary(mbps).into()
    }
}

/// The compared protocols.
pub(super) struct Rows(pub(super) Vec<Row>);

impl Rows {
    /// Runs the protocols on `testbed` with the settings `more`; `published` has throughput by name.
    pub(super) fn run(
        bench: &mut Bench<'_>,
        testbed: &str,
        more: &[&str],
        protocols: &[Protocol],
        published: &[(&str, f64)],
    ) -> Result<Rows, Interrupted> {
        let row = |&(name, changes): &Protocol| {
            let runs = bench.runs(testbed, &[more, changes].concat())?;
            let published = published.iter().find(|(of, _)| *of == name).map(|(_, mbps)| *mbps);
            Ok(Row { name, runs, published })
        };
        protocols.iter().map(row).collect::<Result<_, _>>().map(Rows)
    }

    /// The row of a protocol.
    ///
    /// # Panics
    ///
    /// For an unknown name: names are those of the experiment's own table.
    pub(super) fn get(&self, name: &str) -> &Row {
        match self.0.iter().find(|row| row.name == name) {
            Some(row) => row,
            None => unreachable!("no row {name}"),
        }
    }

    /// Throughput of a protocol in Mb/s.
    pub(super) fn mbps(&self, name: &str) -> Estimate {
        self.get(name).mbps()
    }

    /// The ratio of the throughputs of `a` and `b`.
    pub(super) fn times(&self, a: &str, b: &str) -> Estimate {
        self.get(a).runs.ratio(&self.get(b).runs, mbps)
    }

    /// By how many percent `a` exceeds `b`.
    pub(super) fn above(&self, a: &str, b: &str) -> Estimate {
        self.get(a).runs.percent_above(&self.get(b).runs, mbps)
    }

    /// How far `a` is ahead of the best of `others`, in Mb/s.
    pub(super) fn ahead(&self, a: &str, others: &[&str]) -> Estimate {
        let mut series = vec![self.get(a).runs.each(mbps)];
        series.extend(others.iter().map(|name| self.get(name).runs.each(mbps)));
        let series: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
        let best = |others: &[f64]| others.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Estimate::of(&series, |m| m[0] - best(&m[1..]))
    }

    pub(super) fn show(&self, finding: &mut Finding, title: &str) {
        self.show_with(finding, title, &[]);
    }

    /// The same with published goodputs of the wireless hop in percent.
    pub(super) fn show_with(&self, finding: &mut Finding, title: &str, given: &[(&str, f64)]) {
        let mut rows = table(
            format!("{title} (published in brackets)"),
            "< | Mb/s | wired goodput % | wireless goodput % | timeouts | fast retransmissions | \
             completed",
        );
        for Row { name, runs, published } in &self.0 {
            let throughput = runs.summary(mbps);
            finding.compare(format!("{title}, {name}"), throughput, "Mb/s", *published);
            let published = published.map_or(String::new(), |p| format!(" ({p})"));
            let throughput = format!("{}{published}", number::summary(&throughput));
            let (wired, wireless) = (runs.summary(wired), runs.summary(wireless));
            let fast = runs.summary(count(|f| f.fast_retransmits));
            let expired = runs.timeouts();
            rows.rows.push(row(&[name, &throughput, &wired, &wireless, &expired, &fast, runs]));
        }
        finding.tables.push(rows);
        let groups = self.0.iter().map(|row| {
            let measured = bar(row.runs.summary(mbps));
            (row.name, vec![row.published.and_then(published_bar), measured])
        });
        let series = [("published", true), ("measured", false)];
        let title_of = |quantity| format!("{title}: {quantity}");
        let throughput =
            bars(&title_of("throughput"), "throughput, Mb/s", series, groups, WHISKERS);
        let groups = self.0.iter().map(|row| {
            let published = given.iter().find(|(name, _)| *name == row.name);
            let measured = [wired, wireless].map(|of| bar(row.runs.summary(of)));
            let [on_wire, on_air] = measured;
            (row.name, vec![on_wire, on_air, published.and_then(|(_, g)| published_bar(*g))])
        });
        let series = [("wired", false), ("wireless", false), ("wireless, published", true)];
        let goodput = bars(&title_of("goodput"), "goodput, %", series, groups, WHISKERS);
        finding.figures.extend([throughput, goodput]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;
    use crate::testbed::{SINGLE as ERRORS, UNCHANGED};

    /// The built-in scenarios are the testbed of the claims.
    #[test]
    fn the_built_in_scenarios_are_this_testbed() {
        for (name, text) in [("daedalus-lan", LAN), ("daedalus-wan", WAN)] {
            let example = lasthop_scenario::example(name).unwrap();
            let built_in = scenario(example.text, &["agent=none"]);
            let ours = scenario(text, &[ERRORS, "host.fixed.sack=true", "host.mobile.sack=true"]);
            assert_eq!(built_in.path, ours.path, "{name}");
            assert_eq!(built_in.transfers, ours.transfers, "{name}");
            for (theirs, ours) in built_in.hosts.iter().zip(&ours.hosts) {
                assert_eq!(theirs.tcp, ours.tcp, "{name}");
            }
        }
    }

    /// The only fitted constant, and the property for which the WAN's Internet was chosen.
    #[test]
    fn the_error_free_transfer_has_the_published_throughput() {
        let mut bench = Bench::new(2, &());
        let mut ideal = |text| bench.runs(text, UNCHANGED).unwrap().mean(mbps);
        let (lan, wan) = (ideal(LAN), ideal(WAN));
        assert!((1.48..1.52).contains(&lan), "{lan}");
        assert!((1.30..1.38).contains(&wan), "{wan}");
    }

    /// Each agent has its effect.
    #[test]
    fn hidden_dup_acks_and_nacks_raise_throughput() {
        let mut bench = Bench::new(3, &());
        let sack = ["host.fixed.sack=true", "host.mobile.sack=true"];
        let mut at = |settings: &[&str]| {
            let changes = [&[ERRORS][..], &sack, settings].concat();
            let runs = bench.runs(LAN, &changes).unwrap();
            (
                runs.mean(mbps),
                runs.mean(count(|f| f.dupacks)),
                runs.mean(count(|f| f.loss_notifications)),
            )
        };
        let hidden = at(&["agent=snoop"]);
        let passed = at(&["agent=snoop", "path.base.dup-acks=pass"]);
        assert!(passed.1 > 10.0 * (hidden.1 + 1.0) && passed.0 < hidden.0, "{hidden:?} {passed:?}");
        let from_mobile = r#"transfer={ from = "mobile", to = "fixed", bytes = 8388608 }"#;
        let nack = "host.mobile.nack=true";
        let with = at(&[from_mobile, nack, "agent=snoop-nack"]);
        let without = at(&[from_mobile, nack, "agent=snoop"]);
        assert!(with.2 > 50.0 && without.2 == 0.0, "{with:?} {without:?}");
        assert!(with.0 > 1.3 * without.0, "{with:?} {without:?}");
    }
}
