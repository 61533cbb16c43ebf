//! Cardwell and others 2017, Figure 10: goodput of BBR and CUBIC under random loss.

use lasthop_observe::metrics::RunMetrics;

use super::{TOLERANCE, quarter};
use crate::figure::{Axes, curves, line, published_line};
use crate::measure::mbps;
use crate::table::{row, table};
use crate::{Bench, Estimate, Finding, Interrupted};

const LINK: &str = include_str!("bbr_loss.toml");

/// Losses in percent, from the least of the figure to the most.
const LOSSES: [f64; 8] = [0.001, 0.1, 1.0, 2.0, 5.0, 10.0, 15.0, 50.0];
/// Payload of a packet, and its length.
const PAYLOAD: f64 = 1448.0;
const PACKET: f64 = 1500.0;

/// Goodput without overhead of headers, in Mb/s of packets.
fn goodput(m: &RunMetrics) -> f64 {
    mbps(m) * PACKET / PAYLOAD
}

pub(super) fn loss(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let seeds = quarter(bench);
    finding.runs = seeds;
    let senders = ["host.server.tcp=bbr", "host.server.tcp=cubic"];
    let sets: Vec<[String; 2]> = senders
        .iter()
        .flat_map(|tcp| {
            LOSSES.map(|loss| [(*tcp).to_owned(), format!("losses.cross.loss={loss}%")])
        })
        .collect();
    let all = bench.each(LINK, &sets, seeds)?;
    let (bbr, cubic) = all.split_at(LOSSES.len());
    let mut rows = table("Goodput in Mb/s", "losses, % | BBR | possible | CUBIC");
    let possible = |loss: f64| 100.0 - loss;
    for (i, loss) in LOSSES.iter().enumerate() {
        let [of_bbr, of_cubic] = [&bbr[i], &cubic[i]].map(|runs| runs.summary(goodput));
        finding.compare(format!("losses of {loss} %: BBR"), of_bbr, "Mb/s", possible(*loss));
        finding.measure(format!("losses of {loss} %: CUBIC"), of_cubic, "Mb/s");
        let share = Estimate::of(&[&bbr[i].each(goodput)], |m| m[0] / possible(*loss));
        let quantity = format!("losses of {loss} %: BBR by what is possible");
        match *loss {
            loss if loss <= 5.0 => finding.within(quantity, share, 0.95, 1.05),
            loss if loss <= 15.0 => finding.within(quantity, share, 0.9, 1.05),
            _ => finding.measure(quantity, share, ""),
        }
        if *loss > 1.0 {
            let quantity = format!("losses of {loss} %: CUBIC, % of the link,");
            finding.below(quantity, of_cubic, 1.0);
        }
        rows.rows.push(row(&[loss, &of_bbr, &possible(*loss), &of_cubic]));
    }
    finding.tables.push(rows);
    let fall = cubic[0].ratio(&cubic[1], goodput);
    finding.compare("CUBIC at 0.001 % by CUBIC at 0.1 %", fall, "", 10.0);
    finding.near("CUBIC at 0.001 % by CUBIC at 0.1 %", fall, 10.0, TOLERANCE);
    finding.note(
        "A reproduction of the figure with Linux 4.11 (L. Hsiao, J. Muindi, 2017, published data) has 85, 77 and 70 Mb/s \
         for BBR at 1, 5 and 15 %, and 98.8 and 5.9 Mb/s for CUBIC at 0.001 and 0.1 %",
    );
    let means = |runs: &[crate::Runs]| {
        LOSSES.iter().copied().zip(runs.iter().map(|r| r.summary(goodput))).collect::<Vec<_>>()
    };
    let law = LOSSES.map(|loss| (loss, possible(loss)));
    let series = vec![
        line("BBR", means(bbr)),
        line("CUBIC", means(cubic)),
        published_line("published: possible goodput".to_owned(), law),
    ];
    let axes = Axes { x: "packets lost (%)", y: "goodput (Mb/s)", log_x: true };
    let caption = "Flows of 60 s over 100 Mb/s and 100 ms.";
    finding.figures.push(curves("BBR 2017, Figure 10: goodput under loss", axes, series, caption));
    Ok(())
}
