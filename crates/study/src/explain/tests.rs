use super::*;

/// Three conditions: the first depends on `a`, the second is its opposite, the third is independent.
fn experiment(count: usize) -> Experiment {
    let parameter = |name: &str| Parameter {
        name: name.to_owned(),
        assumed: "off".to_owned(),
        range: "off, on".to_owned(),
        parts: vec!["off".to_owned(), "on".to_owned()],
        why: String::new(),
    };
    let tried = |places: &[f64]| {
        let [a, b] = [0, 1].map(|i| places.get(i).is_some_and(|place| *place >= 0.5));
        SetResult {
            sets: Vec::new(),
            places: places.to_vec(),
            holds: vec![a, !a, a && b],
            values: vec![places.first().copied(), None, None],
        }
    };
    let design = design(1, 2, count);
    Experiment {
        claims: vec!["X".to_owned()],
        parameters: vec![parameter("a"), parameter("b")],
        conditions: ["one", "two", "three"].map(str::to_owned).to_vec(),
        seeds: 1,
        assumed: tried(&[]),
        blocks: design.iter().map(Vec::len).collect(),
        sets: design.iter().flatten().map(|places| tried(places)).collect(),
    }
}

#[test]
fn an_answer_names_deciding_parameters_conflicts_and_best_set() {
    let explained = answer(experiment(180), &[]);
    // One of the first two always holds, so the third decides: by `a` and `b` together.
    let names: Vec<usize> = explained.ranking.iter().map(|decides| decides.parameter).collect();
    assert_eq!(names.len(), 2);
    assert!(explained.ranking.iter().all(|decides| decides.effect.total.share > 0.3));
    assert_eq!(explained.apart[0].conditions, (0, 1));
    assert!(explained.apart.iter().any(|apart| apart.conditions == (1, 2)));
    assert_eq!(explained.met[0].by.first().map(|(parameter, _)| *parameter), Some(0));
    let best = &explained.asked.sets[explained.best[0]];
    assert_eq!(best.met(), 2);
    assert!(best.places.iter().all(|place| *place >= 0.5), "{best:?}");
    assert_eq!(explained.ranking[0].best, [0.0, 1.0]);
    let titles: Vec<String> =
        sections(&explained).into_iter().map(|section| section.title).collect();
    assert_eq!(titles.first().map(String::as_str), Some("What decides"));
    assert!(titles.contains(&"Never together".to_owned()));
    assert!(page(&explained, "lasthop explain X").contains("What decides X"));
    assert!(picture(&explained).svg().contains("main effect"));
}

#[test]
fn an_experiment_without_sets_has_no_findings() {
    let explained = answer(experiment(0), &[]);
    assert!(explained.best.is_empty() && explained.apart.is_empty() && explained.split.is_none());
    assert!(!sections(&explained).is_empty());
}

#[test]
fn equal_values_share_a_rank() {
    assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.0, 0.5, 3.0, 1.5]);
}
