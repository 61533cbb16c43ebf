//! An explanation as one page, with its plot.

use lasthop_report::html;
use lasthop_report::model::{Again, Assumption, Figure, Page};
use lasthop_report::plot::{Plot, RankValue, Ranks};

use super::{Explanation, Share, sections};

/// Maximum number of parameters in the plot.
const MOST_ROWS: usize = 16;

/// The page; `command` reproduces it.
pub fn page(explained: &Explanation, command: &str) -> String {
    let experiment = &explained.asked;
    let mut sections = sections(explained);
    if let Some(first) = sections.first_mut() {
        first.figures.push(Figure::new(
            &picture(explained),
            "What decides",
            "Shares of the variance of how many conditions are met. Lines are 95 % confidence intervals.",
        ));
    }
    let assumptions = experiment.parameters.iter().map(|parameter| Assumption {
        what: format!(
            "{}: {} is assumed; tried: {}",
            parameter.name, parameter.assumed, parameter.range
        ),
        why: parameter.why.clone(),
    });
    html::render(&Page {
        title: format!("What decides {}", experiment.claims.join(", ")),
        subtitle: format!("{} sets of what the paper leaves open", experiment.sets.len()),
        facts: vec![
            ("conditions".to_owned(), experiment.conditions.len().to_string()),
            ("parameters".to_owned(), experiment.parameters.len().to_string()),
            ("runs per case".to_owned(), experiment.seeds.to_string()),
        ],
        sections,
        assumptions: assumptions.collect(),
        again: Again {
            commands: vec![command.to_owned()],
            seeds: format!("1..{}", experiment.seeds),
            version: lasthop_sim::version::LINE.to_owned(),
        },
    })
}

/// The ranking as a plot.
pub fn picture(explained: &Explanation) -> Plot {
    let estimate = |share: Share| RankValue {
        value: 100.0 * share.share,
        interval: (100.0 * share.low, 100.0 * share.high),
    };
    let rows = explained.ranking.iter().take(MOST_ROWS).map(|decides| {
        let name = explained.asked.parameters[decides.parameter].name.clone();
        (name, vec![estimate(decides.effect.main), estimate(decides.effect.total)])
    });
    Ranks {
        title: format!("What decides {}", explained.asked.claims.join(", ")),
        x_label: "share of the variance of conditions met (%)".to_owned(),
        series: vec!["alone (main effect)".to_owned(), "with all others (total effect)".to_owned()],
        rows: rows.collect(),
    }
    .plot()
}
