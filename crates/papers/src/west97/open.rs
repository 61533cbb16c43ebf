//! What the paper proposed or believed and left open (2.3.3, 5.3 end, 7.0). There is nothing to agree with, so a
//! claim holds when the question is answered; the answer stands in its reason.

use lasthop_report::model::{Column, Measured, Table};
use lasthop_report::number::summary as figure;
use lasthop_trace::stats::Summary;

use super::{ACKP, ACKP_FULL, BURSTS, LAN, MANY, SATELLITE, SINGLE, SNOOP, with};
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::{Finding, short};

fn table(title: &str, columns: &[&str]) -> Table {
    let columns = columns
        .iter()
        .enumerate()
        .map(|(i, name)| if i == 0 { Column::text(*name) } else { Column::number(*name) })
        .collect();
    Table { title: title.to_owned(), columns, rows: Vec::new() }
}

/// `a` against `b` seed by seed, in percent of `b`'s mean.
fn gain(a: &Runs, b: &Runs) -> Summary {
    let base = b.throughput().mean;
    let percent = |runs: &Runs| runs.each(|m| 100.0 * crate::bench::throughput(m) / base);
    Summary::of_differences(&percent(a), &percent(b)).unwrap_or_default()
}

fn said(gain: &Summary) -> String {
    format!("{:+.1} % [{:+.1}, {:+.1}]", gain.mean, gain.low(), gain.high())
}

/// Does ACKP gain throughput over a satellite link?
pub fn satellite(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut rows = table(
        "A satellite hop: 2 Mb/s, 520 ms of round trip, windows of 256 KB, six-packet bursts",
        &["agent", "KB/s", "timer expirations", "wired goodput %", "completed"],
    );
    let ideal = bench.runs(SATELLITE, &[])?;
    let reno = bench.runs(SATELLITE, &[BURSTS])?;
    let snoop = bench.runs(SATELLITE, &with(SNOOP, &[BURSTS]))?;
    let full = bench.runs(SATELLITE, &with(ACKP_FULL, &[BURSTS]))?;
    let each = bench.runs(SATELLITE, &with(ACKP, &[BURSTS]))?;
    let cases = [
        ("no errors", &ideal),
        ("Reno", &reno),
        ("snoop", &snoop),
        ("snoop+ACKP, full", &full),
        ("snoop+ACKP, every packet", &each),
    ];
    for (name, runs) in cases {
        let (throughput, timeouts) = (runs.throughput(), runs.timeouts());
        finding.measured.push(Measured::new(
            format!("{name}, throughput"),
            &throughput,
            "KB/s",
            None,
        ));
        finding.measured.push(Measured::new(
            format!("{name}, timer expirations"),
            &timeouts,
            "per run",
            None,
        ));
        rows.rows.push(vec![
            name.to_owned(),
            figure(&throughput),
            figure(&timeouts),
            figure(&runs.summary(|m| 100.0 * m.wired_goodput().unwrap_or(f64::NAN))),
            format!("{} of {}", runs.complete(), runs.all().len()),
        ]);
    }
    finding.tables.push(rows);
    let (by_full, by_each) = (gain(&full, &snoop), gain(&each, &snoop));
    finding.measured.push(Measured::new("gain of ACKP (full) over snoop", &by_full, "%", None));
    finding.measured.push(Measured::new(
        "gain of ACKP (every packet) over snoop",
        &by_each,
        "%",
        None,
    ));
    // Either answer will do, but it must be one: all transfers it compares are whole, and the interval is
    // narrow enough to tell a gain that would matter.
    for (name, runs) in [("snoop", &snoop), ("full ACKP", &full), ("every-packet ACKP", &each)] {
        let (complete, all) = (runs.complete(), runs.all().len());
        finding.require(
            complete == all,
            format!("{complete} of {all} transfers with {name} completed"),
        );
    }
    for (name, gain) in [("full", &by_full), ("every packet", &by_each)] {
        let told = gain.n >= 2 && gain.ci95 < 5.0;
        finding.require(
            told,
            format!("the gain of ACKP ({name}) is known to {:.1} points, wanted 5", gain.ci95),
        );
    }
    let word = if by_full.low() > 0.0 {
        "yes, the belief is right"
    } else if by_full.high() < 0.0 {
        "no, it loses"
    } else {
        "no gain that the runs could tell from zero"
    };
    finding.note(format!(
        "Answer to `should give significant gains`: {word}. Against snoop alone the full algorithm changes \
         throughput by {}, one partial ACK per packet by {}; time-outs per run: snoop {}, full {}, every packet {}",
        said(&by_full),
        said(&by_each),
        short(snoop.timeouts().mean),
        short(full.timeouts().mean),
        short(each.timeouts().mean),
    ));
    Ok(finding)
}

/// How do several connections fare?
pub fn multi(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut rows = table(
        "Several connections through one base station, congestion and wireless errors together",
        &[
            "connections, agent",
            "aggregate KB/s",
            "Jain index",
            "timer expirations",
            "lost in the queue",
            "completed",
        ],
    );
    let mut told = Vec::new();
    for count in [2, 8, 32] {
        let transfer = format!("transfer.count={count}");
        let cases: [(&str, &[&str]); 3] =
            [("Reno", &[]), ("snoop", SNOOP), ("snoop+ACKP", ACKP_FULL)];
        let mut line = Vec::new();
        for (name, agent) in cases {
            let runs = bench.runs(MANY, &with(agent, &[SINGLE, &transfer]))?;
            let (aggregate, jain) = (runs.throughput(), runs.summary(|m| m.jain_index));
            let label = |what: &str| format!("{count} x {name}, {what}");
            finding.measured.push(Measured::new(label("aggregate"), &aggregate, "KB/s", None));
            finding.measured.push(Measured::new(label("Jain index"), &jain, "", None));
            rows.rows.push(vec![
                format!("{count} x {name}"),
                figure(&aggregate),
                figure(&jain),
                figure(&runs.timeouts()),
                figure(&runs.summary(|m| {
                    let full = lasthop_proto::event::Cause::QueueFull;
                    m.sum(|f| f.dropped.get(full)) as f64
                })),
                format!("{} of {}", runs.complete(), runs.all().len()),
            ]);
            // Shares and aggregates of transfers that were cut off would say nothing.
            let (complete, all) = (runs.complete(), runs.all().len());
            finding.require(
                complete == all,
                format!("{complete} of {all} runs of {count} x {name} completed"),
            );
            line.push(format!("{name} {} KB/s, Jain {:.2}", figure(&aggregate), jain.mean));
        }
        told.push(format!("{count} connections: {}", line.join("; ")));
    }
    finding.tables.push(rows);
    finding.note(format!("Answer: {}", told.join(". ")));
    Ok(finding)
}

/// Does a base station that keeps sequence numbers only do as well as snoop?
pub fn seqcache(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    const SEQCACHE: &[&str] =
        &["agent=seq-cache", "host.fixed.eln=checksum", "host.mobile.eln=checksum"];
    let mut rows = table(
        "A cache of sequence numbers against snoop's cache of packets (LAN, single errors)",
        &[
            "agent",
            "KB/s",
            "wired goodput %",
            "timer expirations",
            "state of the connection, bytes",
        ],
    );
    let mut states = Vec::new();
    let mut throughputs = Vec::new();
    let cases: [(&str, &[&str]); 3] = [("Reno", &[]), ("snoop", SNOOP), ("seq-cache", SEQCACHE)];
    for (name, agent) in cases {
        let runs = bench.runs(LAN, &with(agent, &[SINGLE]))?;
        let throughput = runs.throughput();
        let wired = runs.summary(|m| 100.0 * m.wired_goodput().unwrap_or(f64::NAN));
        let state: Vec<f64> = runs.all().iter().map(|r| r.agent_state_bytes as f64).collect();
        let state = Summary::of(&state);
        finding.measured.push(Measured::new(
            format!("{name}, throughput"),
            &throughput,
            "KB/s",
            None,
        ));
        finding.measured.push(Measured::new(format!("{name}, wired goodput"), &wired, "%", None));
        finding.measured.push(Measured::new(format!("{name}, peak state"), &state, "B", None));
        rows.rows.push(vec![
            name.to_owned(),
            figure(&throughput),
            figure(&wired),
            figure(&runs.timeouts()),
            figure(&state),
        ]);
        states.push(state.mean);
        throughputs.push(throughput.mean);
    }
    finding.tables.push(rows);
    finding.require(
        states[2] > 0.0 && states[2] * 10.0 <= states[1],
        format!(
            "state is {} B against snoop's {} B, wanted at least 10 times less",
            short(states[2]),
            short(states[1])
        ),
    );
    finding.note(format!(
        "Answer: {} of snoop's throughput with {} of its state; every loss crosses the wired link again, which \
         its goodput shows",
        percent(throughputs[2] / throughputs[1]),
        percent(states[2] / states[1]),
    ));
    Ok(finding)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// How good is a loss notification by the receiver's checksum?
pub fn eln_checksum(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let reno = bench.runs(LAN, &[SINGLE])?;
    let modes = |mode: &str| [format!("host.fixed.eln={mode}"), format!("host.mobile.eln={mode}")];
    let mut run = |mode: &str| {
        let [fixed, mobile] = modes(mode);
        bench.runs(LAN, &[SINGLE, &fixed, &mobile])
    };
    let (checksum, ideal) = (run("checksum")?, run("ideal")?);
    let mut rows = table(
        "Explicit loss notification by the receiver's checksum (LAN, single errors)",
        &["sender", "KB/s", "timer expirations", "losses told of %"],
    );
    let seen = |runs: &Runs| {
        runs.summary(|m| {
            let told = m.sum(|f| f.loss_notifications) as f64;
            let damaged: u64 = m.stages.iter().map(|s| s.damaged_data).sum();
            100.0 * told / damaged.max(1) as f64
        })
    };
    for (name, runs) in
        [("Reno", &reno), ("Reno, ELN by checksum", &checksum), ("Reno, ideal ELN", &ideal)]
    {
        let (throughput, share) = (runs.throughput(), seen(runs));
        finding.measured.push(Measured::new(
            format!("{name}, throughput"),
            &throughput,
            "KB/s",
            None,
        ));
        finding.measured.push(Measured::new(format!("{name}, losses told of"), &share, "%", None));
        rows.rows.push(vec![
            name.to_owned(),
            figure(&throughput),
            figure(&runs.timeouts()),
            figure(&share),
        ]);
    }
    finding.tables.push(rows);
    let [low, mid, high] = [&reno, &checksum, &ideal].map(|runs| runs.throughput().mean);
    let over_reno = gain(&checksum, &reno);
    // Both ELNs see nearly every loss, so seed by seed they differ by less than chance: "not above" means not
    // above by more than the interval of the paired difference.
    let over_ideal = gain(&checksum, &ideal);
    finding.require(low < mid, format!("{mid:.1} KB/s is above Reno's {low:.1}"));
    finding.require(
        over_ideal.low() <= 0.0,
        format!("{mid:.1} KB/s is not above ideal ELN's {high:.1}: {}", said(&over_ideal)),
    );
    finding.note(format!(
        "Answer: {} against Reno; the checksum sees {} of the losses (the IP header is 20 of 1500 bytes)",
        said(&over_reno),
        percent(seen(&checksum).mean / 100.0),
    ));
    Ok(finding)
}
