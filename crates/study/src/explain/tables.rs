//! An explanation as tables and sentences, for terminals and pages.

use lasthop_report::model::{Column, Section, Table};
use lasthop_report::number::{plural, short};

use super::{Explanation, SetResult, Share};

/// Minimum number of blocks for a result.
const LEAST_BLOCKS: usize = 10;
/// Minimum number of parameters whose values are listed.
const MIN_LISTED: usize = 3;
/// Maximum number of pairs listed.
const MOST_PAIRS: usize = 10;

/// The sections of the result, from the top.
pub fn sections(explained: &Explanation) -> Vec<Section> {
    let mut all = vec![ranking(explained), values(explained), conditions(explained)];
    all.extend(pairs(explained));
    all.push(best(explained));
    all.extend(split(explained));
    all
}

fn section(title: &str, text: Vec<String>, table: Table) -> Section {
    Section { title: title.to_owned(), text, tables: vec![table], ..Section::default() }
}

/// `45 (40 to 50)`: percent with its interval.
fn percent(share: Share) -> String {
    let [share, low, high] = [share.share, share.low, share.high].map(|x| (100.0 * x).round());
    format!("{share} ({low} to {high})")
}

fn ranking(explained: &Explanation) -> Section {
    let rows = explained.ranking.iter().enumerate().map(|(i, decides)| {
        let parameter = &explained.asked.parameters[decides.parameter];
        let effect = decides.effect;
        vec![
            (i + 1).to_string(),
            parameter.name.clone(),
            parameter.assumed.clone(),
            percent(effect.main),
            percent(effect.total),
        ]
    });
    let columns = Column::list(" | <parameter | <assumed | main, % | total, %");
    let text = "Shares of the variance of how many conditions are met, with 95 % intervals. Main: what the parameter \
                explains alone. Total: what it explains with all others, chance of finite runs included.";
    let mut text = vec![text.to_owned()];
    if explained.asked.blocks.iter().filter(|size| **size > 1).count() < LEAST_BLOCKS {
        text.push(
            "Too few sets for total effects, and main effects of so few are mostly luck."
                .to_owned(),
        );
    }
    section("What decides", text, Table::new(columns, rows))
}

fn values(explained: &Explanation) -> Section {
    let clear =
        explained.ranking.iter().take_while(|decides| decides.effect.main.low > 0.0).count();
    let mut rows = Vec::new();
    for decides in explained.ranking.iter().take(clear.max(MIN_LISTED)) {
        let parameter = &explained.asked.parameters[decides.parameter];
        for (i, part) in parameter.parts.iter().enumerate() {
            let (mean, most) = decides.by_part[i];
            rows.push(vec![
                if i == 0 { parameter.name.clone() } else { String::new() },
                part.clone(),
                short(mean),
                most.to_string(),
                format!("{:.0}", 100.0 * decides.best[i]),
            ]);
        }
    }
    let columns = Column::list("<parameter | <value | met, mean | met, most | best sets, %");
    let text = format!(
        "How many of the {} conditions are met by the sets with a value, and which share of the best sets has it.",
        explained.asked.conditions.len()
    );
    section("By value", vec![text], Table::new(columns, rows))
}

fn conditions(explained: &Explanation) -> Section {
    let rows = explained.met.iter().enumerate().map(|(i, met)| {
        let by = met.by.iter().map(|(parameter, main)| {
            format!("{} {:.0} %", explained.asked.parameters[*parameter].name, 100.0 * main.share)
        });
        let by = by.collect::<Vec<_>>().join(", ");
        vec![
            (i + 1).to_string(),
            explained.asked.conditions[i].clone(),
            if met.assumed { "yes" } else { "no" }.to_owned(),
            format!("{:.0}", 100.0 * met.share),
            by,
        ]
    });
    let columns = Column::list(" | <condition | <as assumed | sets, % | <decided by");
    let never: Vec<String> = (0..explained.met.len())
        .filter(|i| explained.met[*i].share == 0.0)
        .map(|i| (i + 1).to_string())
        .collect();
    let never = match never.as_slice() {
        [] => "Each condition is met by some set.".to_owned(),
        [one] => format!("No set meets condition {one}."),
        all => format!("No set meets the conditions {}.", all.join(", ")),
    };
    let text = "Whether the assumed values meet a condition, how many sets do, and the parameters with the largest main \
                effects on the rank of the measured value (on whether the condition holds, where nothing is measured).";
    section("Conditions", vec![text.to_owned(), never], Table::new(columns, rows))
}

fn pairs(explained: &Explanation) -> Option<Section> {
    if explained.apart.is_empty() {
        return None;
    }
    let rows = explained.apart.iter().take(MOST_PAIRS).map(|apart| {
        let (a, b) = apart.conditions;
        let name = |c: usize| format!("{}. {}", c + 1, explained.asked.conditions[c]);
        vec![name(a), name(b), short(apart.by_chance.round())]
    });
    let columns = Column::list("<condition | <and | by chance");
    let text = format!(
        "{} exclude each other: no set meets both. The table shows how many would by chance.",
        plural(explained.apart.len() as u64, "pair")
    );
    Some(section("Never together", vec![text], Table::new(columns, rows)))
}

fn best(explained: &Explanation) -> Section {
    let experiment = &explained.asked;
    let of = experiment.conditions.len();
    let most = explained.best.first().map_or(0, |i| experiment.sets[*i].met());
    let again =
        |i: usize| explained.again.get(i).map_or_else(String::new, |set| set.met().to_string());
    let row = |name: String, set: &SetResult, i: usize| vec![name, set.met().to_string(), again(i)];
    let listed = explained.listed();
    let mut rows = vec![row("as assumed".to_owned(), &experiment.assumed, 0)];
    rows.extend(
        listed
            .iter()
            .enumerate()
            .map(|(i, set)| row((set + 1).to_string(), &experiment.sets[*set], i + 1)),
    );
    let columns = Column::list("<set | met | again");
    let mut text = vec![format!(
        "{} of {} meet the most, {most} of {of} conditions; the assumed values meet {}.",
        explained.best.len(),
        plural(experiment.sets.len() as u64, "set"),
        experiment.assumed.met()
    )];
    if !explained.again.is_empty() {
        text.push(format!(
            "Again: how many with {} and whole transfers. The best of many sets is partly luck.",
            plural(explained.again_seeds.into(), "seed")
        ));
    }
    let named = |setting: &&String| {
        let key = setting.split('=').next();
        experiment.parameters.iter().any(|parameter| Some(parameter.name.as_str()) == key)
    };
    text.extend(listed.iter().map(|set| {
        let settings: Vec<&str> =
            experiment.sets[*set].sets.iter().filter(named).map(String::as_str).collect();
        format!("Set {}: {}", set + 1, settings.join(" "))
    }));
    section("Best sets", text, Table::new(columns, rows))
}

fn split(explained: &Explanation) -> Option<Section> {
    let split = explained.split.as_ref()?;
    let chosen = if split.fit.is_empty() {
        format!("{} conditions drawn at random, again and again", split.on)
    } else {
        let fit: Vec<String> = split.fit.iter().map(|c| (c + 1).to_string()).collect();
        format!("the conditions {}", fit.join(", "))
    };
    let text = format!(
        "Chosen on {chosen}, the best sets meet {} of these, and {} of the other {}. An average set \
         meets {} of the others, the assumed values {}. Only conditions among the others count as \
         found: the rest is fitted.",
        short(split.met_on),
        short(split.met_others),
        split.others,
        short(split.any),
        short(split.assumed)
    );
    Some(Section { title: "Fitted and judged".to_owned(), text: vec![text], ..Section::default() })
}
