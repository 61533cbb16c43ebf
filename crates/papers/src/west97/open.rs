//! Proposals, conjectures and proposed studies of the paper (2.3.3, 5.3 end, 7.0). A conjecture is judged as it is
//! written. A proposed study has no sentence to test: it is an experiment, listed apart from the claims.

use lasthop_observe::stats::Summary;
use lasthop_proto::event::Cause;
use lasthop_report::number;

use super::setup::{ACKP, ACKP_FULL, BURSTS, MANY, SATELLITE, SNOOP};
use crate::measure::{count, dropped, jain, throughput, wired};
use crate::table::{Cell, row, table};
use crate::testbed::{SINGLE, UNCHANGED, WEST97_LAN as LAN};
use crate::{Bench, Finding, Interrupted, Runs, short};

/// The difference of `a` and `b` in pairs of seeds, in percent of `b`'s mean.
fn gain(a: &Runs, b: &Runs) -> Summary {
    let base = b.throughput().mean;
    let percent = |runs: &Runs| runs.each(|m| 100.0 * throughput(m) / base);
    Summary::of_differences(&percent(a), &percent(b)).expect("pairs of seeds")
}

fn gain_text(gain: &Summary) -> String {
    format!("{:+.1} % [{:+.1}, {:+.1}]", gain.mean, gain.low(), gain.high())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Does ACKP gain throughput over a satellite link?
pub(super) fn satellite(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "A satellite hop: 2 Mb/s, 520 ms of round trip, windows of 256 KB, six-packet bursts",
        "<agent | KB/s | timeouts | wired goodput % | completed",
    );
    let ideal = bench.runs(SATELLITE, UNCHANGED)?;
    let mut with = |agent: &[&str]| bench.runs(SATELLITE, &[agent, &[BURSTS]].concat());
    let (reno, snoop, full, each) = (with(&[])?, with(SNOOP)?, with(ACKP_FULL)?, with(ACKP)?);
    for (name, runs) in [
        ("no errors", &ideal),
        ("Reno", &reno),
        ("snoop", &snoop),
        ("snoop+ACKP, full", &full),
        ("snoop+ACKP, every packet", &each),
    ] {
        let (throughput, timeouts) = (runs.throughput(), runs.timeouts());
        finding.measure(format!("{name}, throughput"), throughput, "KB/s");
        finding.measure(format!("{name}, timeouts"), timeouts, "per run");
        rows.rows.push(row(&[&name, &throughput, &timeouts, &runs.summary(wired), runs]));
    }
    finding.tables.push(rows);
    let (by_full, by_each) = (gain(&full, &snoop), gain(&each, &snoop));
    finding.measure("gain of ACKP (full) over snoop", by_full, "%");
    finding.measure("gain of ACKP (every packet) over snoop", by_each, "%");
    // Significant is more than the 5 % that count as equal in Tables 2 and 4.
    finding.above("gain of ACKP (full) over snoop in %", by_full, 5.0);
    let word = match () {
        () if by_full.low() > 0.0 => "yes, the belief is right",
        () if by_full.high() < 0.0 => "no, it loses",
        () => "no gain that the runs distinguish from zero",
    };
    finding.note(format!(
        "Answer to `should give significant gains`: {word}. Against snoop alone the full algorithm changes \
         throughput by {}, one partial ACK per packet by {}; timeouts per run: snoop {}, full {}, every packet {}",
        gain_text(&by_full),
        gain_text(&by_each),
        short(snoop.timeouts().mean),
        short(full.timeouts().mean),
        short(each.timeouts().mean),
    ));
    Ok(())
}

/// How do several connections share the link?
pub(super) fn multi(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Several connections through one base station, congestion and wireless errors together",
        "<connections, agent | aggregate KB/s | Jain index | timeouts | lost in the queue | completed",
    );
    let mut answers = Vec::new();
    for count in [2, 8, 32] {
        let transfer = format!("transfer.count={count}");
        let mut line = Vec::new();
        for (name, agent) in [("Reno", &[][..]), ("snoop", SNOOP), ("snoop+ACKP", ACKP_FULL)] {
            let runs = bench.runs(MANY, &[agent, &[SINGLE, transfer.as_str()]].concat())?;
            let (aggregate, jain) = (runs.throughput(), runs.summary(jain));
            let case = format!("{count} x {name}");
            finding.measure(format!("{case}, aggregate"), aggregate, "KB/s");
            finding.measure(format!("{case}, Jain index"), jain, "");
            let lost = runs.summary(dropped(Cause::QueueFull));
            rows.rows.push(row(&[&case, &aggregate, &jain, &runs.timeouts(), &lost, &runs]));
            // Shares and totals of incomplete transfers have no meaning.
            let (complete, all) = (runs.complete(), runs.all().len());
            finding
                .require(complete == all, format!("{complete} of {all} runs of {case} completed"));
            line.push(format!(
                "{name} {} KB/s, Jain {:.2}",
                number::summary(&aggregate),
                jain.mean
            ));
        }
        answers.push(format!("{count} connections: {}", line.join("; ")));
    }
    finding.tables.push(rows);
    finding.note(format!("Answer: {}", answers.join(". ")));
    Ok(())
}

/// Does a base station that stores only sequence numbers do as well as snoop?
pub(super) fn seqcache(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    const NUMBERS: &[&str] =
        &["agent=seq-cache", "host.fixed.eln=checksum", "host.mobile.eln=checksum"];
    let mut rows = table(
        "A cache of sequence numbers against snoop's cache of packets (LAN, single errors)",
        "<agent | KB/s | wired goodput % | timeouts | state of the connection, bytes",
    );
    let (mut means, mut all) = (Vec::new(), Vec::new());
    for (name, agent) in [("Reno", &[][..]), ("snoop", SNOOP), ("seq-cache", NUMBERS)] {
        let runs = bench.runs(LAN, &[agent, &[SINGLE]].concat())?;
        let (rate, wired) = (runs.throughput(), runs.summary(wired));
        let state: Vec<f64> = runs.all().iter().map(|r| r.agent_state_bytes as f64).collect();
        let state = Summary::of(&state);
        finding.measure(format!("{name}, throughput"), rate, "KB/s");
        finding.measure(format!("{name}, wired goodput"), wired, "%");
        finding.measure(format!("{name}, peak state"), state, "B");
        rows.rows.push(row(&[&name, &rate, &wired, &runs.timeouts(), &state]));
        means.push((rate.mean, state.mean));
        all.push(runs);
    }
    finding.tables.push(rows);
    // Losses are "resent without invoking congestion avoidance measures".
    let above = all[2].percent_above(&all[0], throughput);
    finding.above("throughput with the cache of sequence numbers above Reno's in %", above, 0.0);
    let spared = all[0].difference(&all[2], count(|f| f.fast_retransmits + f.timeouts));
    finding.above("reductions of Reno's window less those with the cache, per run,", spared, 0.0);
    let (packets, numbers) = (means[1], means[2]);
    finding.require(
        numbers.1 > 0.0 && numbers.1 * 10.0 <= packets.1,
        format!(
            "state is {} B against snoop's {} B, wanted at least 10 times less",
            short(numbers.1),
            short(packets.1)
        ),
    );
    finding.note(format!(
        "Answer: {} of snoop's throughput with {} of its state; every loss crosses the wired link again, which \
         its goodput shows",
        percent(numbers.0 / packets.0),
        percent(numbers.1 / packets.1),
    ));
    Ok(())
}

/// How good is a loss notification by the receiver's checksum?
pub(super) fn eln_checksum(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
) -> Result<(), Interrupted> {
    // Both ELNs detect nearly every loss, so that it takes many runs to distinguish them.
    let mut many = |changes: &[&str]| bench.with_many(|bench| bench.runs(LAN, changes));
    let reno = many(&[SINGLE])?;
    let mut eln = |mode: &str| {
        let [fixed, mobile] = ["fixed", "mobile"].map(|host| format!("host.{host}.eln={mode}"));
        many(&[SINGLE, &fixed, &mobile])
    };
    let (checksum, ideal) = (eln("checksum")?, eln("ideal")?);
    let mut rows = table(
        "Explicit loss notification by the receiver's checksum (LAN, single errors)",
        "<sender | KB/s | timeouts | losses notified %",
    );
    let seen = |runs: &Runs| {
        runs.summary(|m| {
            let notified = m.sum(|f| f.loss_notifications) as f64;
            let damaged: u64 = m.stages.iter().map(|s| s.damaged_data).sum();
            100.0 * notified / damaged.max(1) as f64
        })
    };
    for (name, runs) in
        [("Reno", &reno), ("Reno, ELN by checksum", &checksum), ("Reno, ideal ELN", &ideal)]
    {
        let (throughput, share) = (runs.throughput(), seen(runs));
        finding.measure(format!("{name}, throughput"), throughput, "KB/s");
        finding.measure(format!("{name}, losses notified"), share, "%");
        rows.rows.push(row(&[&name, &throughput, &runs.timeouts(), &share]));
    }
    finding.tables.push(rows);
    let over_reno = checksum.percent_above(&reno, throughput);
    finding.above("ELN by checksum above Reno in %", over_reno, 0.0);
    // Not above ideal ELN: by less than a margin of 1 %.
    let over_ideal = checksum.percent_above(&ideal, throughput);
    finding.below("ELN by checksum above ideal ELN in %", over_ideal, 1.0);
    finding.below("losses that the checksum sees, %,", seen(&checksum), 100.0);
    finding.note(format!(
        "Answer: {} against Reno; the checksum sees {} of the losses (the IP header is 20 of 1500 bytes)",
        gain_text(&gain(&checksum, &reno)),
        percent(seen(&checksum).mean / 100.0),
    ));
    Ok(())
}

/// What does SACK add to ELN, and ELN to SACK?
pub(super) fn sack_eln(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    const ELN: [&str; 2] = ["host.fixed.eln=checksum", "host.mobile.eln=checksum"];
    const SACK: [&str; 3] =
        ["host.fixed.tcp=sack", "host.fixed.sack=true", "host.mobile.sack=true"];
    let mut rows = table(
        "SACK and ELN by the receiver's checksum (LAN)",
        "<errors, sender | KB/s | timeouts | completed",
    );
    let mut answers = Vec::new();
    for (errors, text) in [("single errors", SINGLE), ("bursts of six", BURSTS)] {
        let mut of = Vec::new();
        for (name, changes) in [
            ("Reno", &[][..]),
            ("SACK", &SACK),
            ("Reno with ELN", &ELN),
            ("SACK with ELN", &[&SACK[..], &ELN].concat()),
        ] {
            let runs = bench.with_many(|bench| bench.runs(LAN, &[changes, &[text]].concat()))?;
            let case = format!("{errors}, {name}");
            finding.measure(format!("{case}, throughput"), runs.throughput(), "KB/s");
            rows.rows.push(row(&[&case, &runs.throughput(), &runs.timeouts(), &runs]));
            of.push(runs);
        }
        let by_eln = of[3].percent_above(&of[1], throughput);
        let by_sack = of[3].percent_above(&of[2], throughput);
        for (comparison, gain) in
            [("ELN over SACK alone", by_eln), ("SACK over ELN alone", by_sack)]
        {
            finding.measure(format!("{errors}, gain of {comparison}"), gain, "%");
            // Either answer is acceptable, but it must be known whether it is one.
            let sure = gain.low() > 0.0 || gain.high() < 0.0 || gain.ci.unwrap_or(0.0) < 10.0;
            finding.require(
                sure,
                format!(
                    "{errors}: the gain of {comparison} is known to 10 %, or has a sign for certain"
                ),
            );
        }
        answers.push(format!(
            "{errors}: ELN adds {} % to SACK, SACK {} % to ELN",
            by_eln.cell(),
            by_sack.cell()
        ));
    }
    finding.tables.push(rows);
    finding.note(format!("Answer: {}", answers.join("; ")));
    Ok(())
}
