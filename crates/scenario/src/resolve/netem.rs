//! Differences between a line of netem here and in `tc`.

use lasthop_proto::link::tc::EmulatorConfig;
use lasthop_proto::units::{Probability, Span};

use crate::document::Node;
use crate::error::{Code, Diagnostic, Noted};
use crate::model::{Stage, StageKind};

/// Adds one warning for each link of a path that differs from netem. `key` is the list of stages.
pub(super) fn note(items: &[Node], key: &str, stages: &[Stage], notes: &mut Vec<Noted>) {
    for (i, (stage, item)) in stages.iter().zip(items).enumerate() {
        let StageKind::Netem(netem) = &stage.kind else { continue };
        let link = item.as_table().and_then(|table| table.get("link")).unwrap_or(item);
        let line = link.as_table().and_then(|table| table.get("netem")).unwrap_or(link);
        let warning = Diagnostic::new(Code::Differs, format!("{key}.{}.link.netem", i + 1), &line.at)
            .message(format!(
                "the link `{}` does what netem of Linux 6.18 does, but {}",
                stage.name,
                differences(netem)
            ))
            .label("a line of `tc`")
            .help("without segmentation offload the kernel's packets are segments too: `ethtool -K eth0 tso off gso off`");
        notes.push(Noted { warning, in_every_cell: true });
        if let Some(bare) = line.as_str().and_then(bare_number) {
            let warning =
                Diagnostic::new(Code::BareNumber, format!("{key}.{}.link.netem", i + 1), &line.at)
                    .message(format!(
                        "`{} {}` is {} {}",
                        bare.option, bare.word, bare.word, bare.unit
                    ))
                    .label("no unit")
                    .help(format!("did you mean `{} {}{}`?", bare.option, bare.word, bare.usual));
            notes.push(Noted { warning, in_every_cell: true });
        }
    }
}

/// A number without a unit in a line of `tc`.
struct Bare<'a> {
    option: &'a str,
    word: &'a str,
    /// The unit that `tc` assumes.
    unit: &'static str,
    /// The unit that is usually meant.
    usual: &'static str,
}

/// The first time without a unit, or rate below 1000 bit/s without a unit. Zero needs no unit.
fn bare_number(line: &str) -> Option<Bare<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
    words.iter().enumerate().find_map(|(i, &option)| {
        let (at, unit, usual) = match option {
            // The third value is a percentage.
            "delay" | "latency" => {
                let at = [i + 1, i + 2].into_iter().find(|at| number(*at).is_some_and(|n| n > 0.0));
                (at?, "microseconds", "ms")
            }
            "rate" if number(i + 1).is_some_and(|n| n < 1000.0) => (i + 1, "bit/s", "mbit"),
            _ => return None,
        };
        Some(Bare { option, word: words[at], unit, usual })
    })
}

/// Differences between a link and the kernel's netem, as sentences.
fn differences(netem: &EmulatorConfig) -> String {
    let mut all =
        vec!["each segment is a packet, where netem counts a super-packet of a host as one"];
    let i = &netem.impairments;
    let draws = [i.duplicate, i.corrupt, i.reorder].iter().any(|p| *p != Probability::ZERO);
    if draws || i.loss.is_some() || i.jitter > Span::ZERO || netem.extras.states.is_some() {
        all.push("draws come from the scenario's seed");
    }
    if i.corrupt != Probability::ZERO {
        all.push("a wrong bit is anywhere in the IP packet, never in the Ethernet header");
    }
    all.join("; ")
}
