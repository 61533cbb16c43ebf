//! The same for the files of stations and tunnels, whose settings are compared field by field in printed
//! form.

use std::collections::BTreeSet;

use lasthop_proto::describe::{Form, Value};
use lasthop_scenario::keys::Listed;
use lasthop_scenario::{parse_station, parse_tunnel};

use super::{braces, other, part};

/// The fields of a file of a station or a tunnel that differ, by their lines.
fn lines(a: &str, b: &str) -> BTreeSet<String> {
    let (a, b): (BTreeSet<&str>, BTreeSet<&str>) = (a.lines().collect(), b.lines().collect());
    let field = |line: &&str| line.trim().split([':', ' ']).next().unwrap_or_default().to_owned();
    a.symmetric_difference(&b).map(field).filter(|field| !field.is_empty()).collect()
}

/// Sets the keys of a station's or a tunnel's file one by one; `read` shows what a file means, field by field.
fn check_file(part_name: &str, base: &str, read: &dyn Fn(&str) -> String) {
    for Listed { key, default, inner } in part(part_name) {
        let rows: Vec<(Vec<&str>, &Form, &Value)> = match inner.as_slice() {
            [] => vec![(vec![key.name], &key.form, default)],
            inner => inner
                .iter()
                .map(|listed| (vec![key.name, listed.key.name], &listed.key.form, &listed.default))
                .collect(),
        };
        for (way, form, default) in rows {
            let value = match way[..] {
                ["right"] => "\"wlan7\"".to_owned(),
                ["listen"] => "\"0.0.0.0:4748\"".to_owned(),
                ["tun"] => "\"tun7\"".to_owned(),
                ["left"] => "\"eth7\"".to_owned(),
                _ => other(form, default),
            };
            let needed = match way[..] {
                ["capture", _] => "capture = { dir = \"/tmp\" }\n",
                ["subscribers", _] => "subscribers = {}\n",
                _ => "",
            };
            let set = braces(&way, &value);
            let set = match way[..] {
                ["capture", sub] if sub != "dir" => set.replacen("{ ", "{ dir = \"/tmp\", ", 1),
                _ => set,
            };
            let remaining = base.lines().filter(|line| line.split(' ').next() != Some(way[0]));
            let remaining: Vec<&str> = remaining.collect();
            let after = format!("{set}\n{}", remaining.join("\n"));
            let before = format!("{needed}{base}");
            let changed = lines(&read(&before), &read(&after));
            let name = way[way.len() - 1].replace('-', "_");
            let fits = |field: &String| match way[..] {
                ["key-file" | "key-env"] => {
                    field == "key" || field.starts_with(['N', 'F', 'E', '"', ')'])
                }
                ["metrics", "listen"] => {
                    field == "metrics" || !field.starts_with(|c: char| c.is_ascii_lowercase())
                }
                ["addresses"] => field.starts_with(['"', ']']) || field == "addresses",
                _ => *field == name || field.starts_with(|c: char| !c.is_ascii_lowercase()),
            };
            assert!(!changed.is_empty(), "`{set}` changes nothing");
            assert!(changed.iter().all(fits), "`{set}` changes {changed:?}");
        }
    }
}

#[test]
fn keys_of_stations_and_tunnels() {
    let station = "left = \"eth0\"\nright = \"wlan0\"\n[[path]]\nagent = \"none\"\n";
    check_file("station", station, &|text| {
        let (file, _) = parse_station(text).unwrap_or_else(|e| panic!("{e}: {}\n{text}", e.help));
        format!("{:#?}", file.settings)
    });
    check_file("tunnel", "listen = \"0.0.0.0:4747\"\n", &|text| {
        let file = parse_tunnel(text).unwrap_or_else(|e| panic!("{e}: {}\n{text}", e.help));
        format!("{file:#?}")
    });
}
