//! Keys of cells, of visits and of hand-offs.

use std::collections::BTreeSet;

use super::{HEAD, HOSTS, braces, check, configuration, difference, part};

#[test]
fn keys_of_cells() {
    let mut done = BTreeSet::new();
    let radio = "[[cell.path]]\nradio = { rate = \"1mbit\" }\n";
    let text = |visits: &str, handoff: &str, name: &str| {
        let cells = ["east", name].map(|name| format!("[[cell]]\nname = \"{name}\"\n{radio}"));
        let [east, other] = cells;
        let wired = "[[path]]\nlink = { delay = \"1ms\" }\n";
        format!(
            "{HEAD}visits = {{ {visits} }}\nhandoff = {{ {handoff} }}\n{HOSTS}{wired}{east}{other}"
        )
    };
    let handoff = |way: &[&str], value: &str| {
        if let [key @ ("state-delay" | "state-rate")] = way {
            // They define how the state moves.
            let set = format!("state = \"move\", {key} = {value}");
            return Some((
                text("every = \"8s\"", "state = \"move\"", "west"),
                text("every = \"8s\"", &set, "west"),
            ));
        }
        Some((
            text("every = \"8s\"", "", "west"),
            text("every = \"8s\"", &braces(way, value), "west"),
        ))
    };
    check(part("handoff"), &[], &handoff, &mut done);
    let visits = |way: &[&str], value: &str| match way {
        ["host"] => None,
        ["list", ..] | ["file"] => None,
        ["table"] => {
            Some((text("table = \"0s west\"", "", "west"), text("table = \"0s east\"", "", "west")))
        }
        ["cells"] => {
            let set = "every = \"8s\", cells = [\"west\"]";
            Some((text("every = \"8s\"", "", "west"), text(set, "", "west")))
        }
        ["every"] => Some((text("every = \"8s\"", "", "west"), text("every = \"9s\"", "", "west"))),
        _ => Some((text("dwell = \"8s\"", "", "west"), text(&braces(way, value), "", "west"))),
    };
    check(part("visits"), &[], &visits, &mut done);
    let name = |_: &[&str], _: &str| {
        Some((text("every = \"8s\"", "", "west"), text("every = \"8s\"", "", "north")))
    };
    check(part("cell"), &[], &name, &mut done);
    // The rows of a list.
    let row = |row: &str| text(&format!("list = [{row}]"), "", "west");
    let usual = configuration(&row("{ cell = \"west\", from = \"1s\" }"));
    for (set, field) in [
        ("{ cell = \"east\", from = \"1s\" }", "/cell"),
        ("{ cell = \"west\", from = \"2s\" }", "/from"),
        ("{ cell = \"west\", from = \"1s\", until = \"9s\" }", "/until"),
    ] {
        let changed = difference(&usual, &configuration(&row(set)));
        assert!(changed.len() == 1 && changed[0].ends_with(field), "{set}: {changed:?}");
    }
    assert_eq!(done.len(), 14, "{done:?}");
}
