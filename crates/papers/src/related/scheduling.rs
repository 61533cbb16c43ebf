//! Bhagwat et al. 1996: channel-state-dependent packet scheduling.

use lasthop_observe::metrics::RunMetrics;
use lasthop_observe::stats::{Summary, jain_index};
use lasthop_report::number;

use super::setup::{built_in, rate};
use crate::table::table;
use crate::{Bench, Finding, Interrupted, Runs};

const HOSTS: [usize; 3] = [2, 4, 8];
const POLICIES: [&str; 3] = ["fifo", "round-robin", "longest-queue-first"];
/// How the state of a channel is known; and attempts of medium access for an RTS, and for a frame after it: those of
/// 802.11, and once a number so large that nothing is dropped.
const WAYS: [(&str, [u8; 2]); 4] =
    [("none", [7, 4]), ("none", [255, 255]), ("failures", [7, 4]), ("oracle", [7, 4])];

/// The built-in scenario with `phones` phones.
fn text(phones: usize) -> String {
    let all = built_in("csdp");
    let (head, path) = all.split_once("[[path]]").unwrap_or((all, ""));
    let head = head.split("[[transfer]]").next().unwrap_or(head);
    let each = |of: fn(usize) -> String| (1..=phones).map(of).collect::<String>();
    let transfers = each(|n| {
        format!("[[transfer]]\nfrom = \"server\"\nto = \"phone{n}\"\nbytes = \"unlimited\"\n")
    });
    let hosts = each(|n| format!("[host.phone{n}]\npreset = \"freebsd-2.1\"\n"));
    let server = "[host.server]\nside = \"left\"\npreset = \"freebsd-2.1\"\n";
    format!("{head}{transfers}{server}{hosts}[[path]]{path}")
}

fn fairness(m: &RunMetrics) -> f64 {
    jain_index(&m.flows.iter().map(|flow| flow.delivered as f64).collect::<Vec<_>>())
}

/// The runs with `phones` hosts: for each policy, in each of the ways.
fn cases(bench: &mut Bench<'_>, phones: usize) -> Result<Vec<Runs>, Interrupted> {
    let each = POLICIES.iter().flat_map(|policy| WAYS.map(|way| (policy, way)));
    let sets: Vec<[String; 4]> = each
        .map(|(policy, (channel, [short, long]))| {
            [
                format!("radio.csdp.policy={policy}"),
                format!("radio.csdp.channel={channel}"),
                format!("dcf.short-retries={short}"),
                format!("dcf.long-retries={long}"),
            ]
        })
        .collect();
    bench.each(&text(phones), &sets, bench.seeds)
}

pub(super) fn scheduling(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "All mobile hosts together in Mbit/s, and Jain's index of fairness, by how the state of channels is known",
        "<hosts | <policy | <none, 7 attempts | <none, 255 attempts | <failures | <oracle",
    );
    let mut ends: Vec<[Summary; 2]> = Vec::new();
    for hosts in HOSTS {
        let all = cases(bench, hosts)?;
        for (policy, ways) in POLICIES.iter().zip(all.chunks(WAYS.len())) {
            let cell = |runs: &Runs| {
                format!("{}, {:.2}", number::summary(&runs.summary(rate)), runs.mean(fairness))
            };
            let cells = [hosts.to_string(), (*policy).to_owned()].into_iter();
            rows.rows.push(cells.chain(ways.iter().map(cell)).collect());
        }
        let [fifo, patient, .., turns, _, guessed, known] = &all[..8] else { continue };
        let of = |runs: &Runs| runs.summary(rate);
        let (blocked, guess, oracle) = (of(fifo), of(guessed), of(known));
        finding.measure(format!("{hosts} hosts, FIFO"), blocked, "Mbit/s");
        finding.measure(format!("{hosts} hosts, FIFO with 255 attempts"), of(patient), "Mbit/s");
        finding.measure(format!("{hosts} hosts, round robin, state unknown"), of(turns), "Mbit/s");
        finding.measure(format!("{hosts} hosts, round robin by failures"), guess, "Mbit/s");
        finding.measure(format!("{hosts} hosts, round robin, state known"), oracle, "Mbit/s");
        let most = blocked.high().max(of(patient).high());
        finding.above(
            format!("{hosts} hosts: round robin by failures, lower end (Mbit/s)"),
            guess.low(),
            most,
        );
        let quantity =
            format!("{hosts} hosts: round robin with the state known, lower end (Mbit/s)");
        finding.above(quantity, oracle.low(), guess.high());
        let fair = guessed.mean(fairness);
        finding.above(
            format!("{hosts} hosts: fairness of round robin by failures"),
            fair,
            fifo.mean(fairness),
        );
        ends.push([of(patient), guess]);
    }
    finding.tables.push(rows);
    let [[few, free_few], .., [many, free_many]] = ends[..] else { return Ok(()) };
    // Head-of-line blocking alone: the more hosts, the more often one of them is in a fade.
    finding.below("8 hosts: FIFO with 255 attempts, upper end (Mbit/s)", many.high(), few.low());
    finding.within(
        "8 hosts against 2: round robin by failures",
        free_many.mean / free_few.mean,
        0.9,
        1.1,
    );
    let note = "Round robin without the state of channels gains nothing over FIFO: the first packet blocks all others";
    finding.note(note);
    Ok(())
}
