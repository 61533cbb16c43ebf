//! The engine from outside: its answers, their determinism, and its robustness.

#[path = "../../../checks/shared/can_run.rs"]
mod can_run;
mod purity;

use lasthop_scenario::{SchemeChoice, compare, example, examples};
use lasthop_sim::runs::measure;
use lasthop_web::{answer, envelope};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Sends a question and opens the answer.
fn ask(question: &Value, bytes: &[u8]) -> (Value, Vec<u8>) {
    let answer = answer(&envelope::question(question, bytes));
    let (json, columns) = envelope::open(&answer).expect("an envelope");
    assert_eq!((json.len() + 4) % 8, 0, "columns begin at a multiple of eight");
    (serde_json::from_slice(json).expect("JSON"), columns.to_vec())
}

fn text(name: &str) -> &'static str {
    example(name).map_or("", |example| example.text)
}

fn run(name: &str, scheme: Option<&str>, seed: u64) -> (Value, Vec<u8>) {
    let question =
        json!({ "ask": "run", "text": text(name), "name": name, "scheme": scheme, "seed": seed });
    ask(&question, &[])
}

/// A column of numbers of an answer.
fn column(json: &Value, columns: &[u8], name: &str) -> Vec<f64> {
    let all = json["columns"].as_array().expect("columns");
    let Some(it) = all.iter().find(|column| column["name"] == name) else { return Vec::new() };
    let (at, len) = (it["at"].as_u64().unwrap() as usize, it["len"].as_u64().unwrap() as usize);
    let bytes = &columns[at..at + 8 * len];
    bytes.chunks(8).map(|n| f64::from_le_bytes(n.try_into().unwrap())).collect()
}

/// The page is compared with the same file: `web/tests/digests.json`.
const CASES: [(&str, Option<&str>, u64); 12] = [
    ("quickstart", None, 1),
    ("quickstart", Some("snoop"), 1),
    ("rivals", Some("tulip"), 2),
    ("rivals", Some("split"), 3),
    ("rivals", Some("eln"), 4),
    ("west97-lan", Some("snoop+ackp"), 5),
    ("slow-return", Some("ack-filter"), 1),
    ("tulip", None, 7),
    ("handoff-agents", None, 8),
    ("today", Some("bbr"), 9),
    ("fading", None, 10),
    ("web", None, 11),
];

#[test]
fn digests_match_the_expected_digests_of_the_page() {
    let found: Vec<Value> = CASES
        .iter()
        .map(|(scenario, scheme, seed)| {
            let (json, _) = run(scenario, *scheme, *seed);
            assert_eq!(json["error"], Value::Null, "{scenario}");
            json!({ "scenario": scenario, "scheme": scheme, "seed": seed, "digest": json["digest"] })
        })
        .collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/tests/digests.json");
    let found = serde_json::to_string_pretty(&found).unwrap() + "\n";
    if std::env::var_os("LASTHOP_WRITE_DIGESTS").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap();
    assert_eq!(
        found, expected,
        "LASTHOP_WRITE_DIGESTS=1 writes them again if results have changed"
    );
}

#[test]
fn a_run_equals_the_run_of_the_command_line() {
    for (name, scheme, seed) in CASES {
        let wanted =
            SchemeChoice::Named(scheme.iter().map(|scheme| (*scheme).to_owned()).collect());
        let all = compare(text(name), name, &[], &wanted, &[], None, None).unwrap();
        let at = if scheme.is_some() { all.points() } else { 0 };
        let result = measure(&all.plan.cells[at].scenario, seed);
        let (json, _) = run(name, scheme, seed);
        let scalars = serde_json::to_value(result.metrics.scalars()).unwrap();
        assert_eq!(json["scalars"], scalars, "{name} {scheme:?}");
        assert_eq!(json["cut"], false);
    }
}

#[test]
fn events_are_retrieved_by_their_index() {
    let (json, columns) = run("quickstart", Some("snoop"), 1);
    let times = column(&json, &columns, "event.t");
    assert_eq!(Some(times.len() as u64), json["events"].as_u64());
    assert!(times.is_sorted());
    for index in [0, 1000, times.len() - 1] {
        let question = json!({
            "ask": "event", "text": text("quickstart"), "scheme": "snoop", "seed": 1, "index": index,
        });
        let (event, _) = ask(&question, &[]);
        assert_eq!(event["t"].as_f64(), Some(times[index]), "{index}");
        assert!(event["what"].as_str().is_some_and(|what| what.len() > 10));
    }
}

#[test]
fn a_look_shows_the_snoop_cache_and_sender_state() {
    let question = json!({ "ask": "look", "text": text("quickstart"), "scheme": "snoop", "seed": 1, "at": 2.0 });
    let (json, _) = ask(&question, &[]);
    let stages = json["stages"].as_array().unwrap();
    let cached = stages.iter().find_map(|stage| stage["kept"].as_array()).unwrap();
    assert!(!cached.is_empty());
    for packet in cached {
        assert!(packet["from"].as_u64() < packet["to"].as_u64(), "{packet}");
    }
    let una = json["senders"][0]["snd_una"].as_u64().unwrap();
    // Data acknowledged at the sender was removed from the cache before: positions of the sender count its SYN.
    assert!(cached.iter().all(|packet| packet["to"].as_u64().unwrap() + 1 > una));
}

#[test]
fn a_look_shows_link_layer_and_split_agent_buffers() {
    for scheme in ["tulip", "airmail", "ll", "ll-sack", "split"] {
        let mut most = 0;
        for tenths in 1..30 {
            let at = f64::from(tenths) / 10.0;
            let question = json!({ "ask": "look", "text": text("quickstart"), "scheme": scheme, "seed": 1, "at": at });
            let (json, _) = ask(&question, &[]);
            let stages = json["stages"].as_array().unwrap();
            let una = json["senders"][0]["snd_una"].as_u64().unwrap();
            for packet in stages.iter().filter_map(|stage| stage["kept"].as_array()).flatten() {
                let (from, to) = (packet["from"].as_u64().unwrap(), packet["to"].as_u64().unwrap());
                assert!(from <= to && to <= 2_000_000, "{scheme} at {at}: {packet}");
                // A link layer may detect delivery after TCP: its acknowledgements may be lost, or delayed. But it
                // stores nothing old. A base station that splits the connection has acknowledged the data that it
                // stores.
                let window = 64 << 10;
                assert!(
                    to + window > una && from <= una + 4 * window,
                    "{scheme} at {at}: {packet}, {una}"
                );
                most = most.max(to - from);
            }
        }
        assert!(most > 1000, "{scheme} keeps data at some time");
    }
}

#[test]
fn a_band_holds_the_mean_of_its_seeds() {
    let question = json!({ "ask": "band", "text": text("quickstart"), "seed": 1, "runs": 5 });
    let (json, columns) = ask(&question, &[]);
    let [low, mean, high] = ["low", "mean", "high"].map(|name| column(&json, &columns, name));
    assert!(mean.is_sorted() && mean.last() == Some(&2_000_000.0));
    assert!((0..mean.len()).all(|i| low[i] <= mean[i] && mean[i] <= high[i]));
}

#[test]
fn errors_have_a_position() {
    let wrong = text("quickstart").replace("delay = \"5ms\"", "ö = \"\"\ndealy = \"5ms\"");
    let (json, _) = ask(&json!({ "ask": "check", "text": wrong }), &[]);
    assert!(json["error"]["line"].as_u64() > Some(1) && json["error"]["help"] != "");
    let wrong = format!(
        "# ö\u{1F600}\n{}",
        text("quickstart").replace("delay = \"5ms\"", "dealy = \"5ms\"")
    );
    let (json, _) = ask(&json!({ "ask": "check", "text": wrong }), &[]);
    let units: Vec<u16> = wrong.encode_utf16().collect();
    let [start, end] = ["start", "end"].map(|end| json["error"][end].as_u64().unwrap() as usize);
    assert_eq!(String::from_utf16(&units[start..end]).unwrap(), "dealy");
    let (json, _) =
        ask(&json!({ "ask": "run", "text": text("quic"), "set": ["transfer.protocol=quic"] }), &[]);
    assert!(json["error"]["message"].as_str().unwrap().contains("QUIC"));
    let (json, _) =
        ask(&json!({ "ask": "run", "text": text("quickstart"), "scheme": "nonsense" }), &[]);
    assert!(json["error"]["message"].as_str().unwrap().contains("nonsense"));
}

#[test]
fn every_built_in_scenario_is_checked_and_has_sliders() {
    for example in examples() {
        let (json, _) =
            ask(&json!({ "ask": "check", "text": example.text, "name": example.name }), &[]);
        assert_eq!(json["error"], Value::Null, "{}", example.name);
        assert!(json["sliders"].as_array().is_some_and(|all| !all.is_empty()), "{}", example.name);
        assert_eq!(json["files"], json!([]), "{}", example.name);
    }
}

#[test]
fn a_capture_of_a_run_is_analysed() {
    let question = json!({
        "ask": "file", "text": text("quickstart"), "seed": 1, "form": "pcapng", "set": ["errors.mean=32KiB"],
    });
    let (json, columns) = ask(&question, &[]);
    let it = &json["columns"][0];
    let at = it["at"].as_u64().unwrap() as usize;
    let capture = &columns[at..at + it["len"].as_u64().unwrap() as usize];
    let (json, columns) = ask(&json!({ "ask": "capture", "name": "link.pcapng" }), capture);
    assert_eq!(json["error"], Value::Null);
    assert_eq!(json["transfers"], 1);
    assert!(column(&json, &columns, "flow.0.sent.t").len() > 1000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(envelope::open(&answer(&bytes)).is_some());
    }

    #[test]
    fn any_capture_is_answered(bytes in prop::collection::vec(any::<u8>(), 0..600), magic in any::<bool>()) {
        let mut bytes = bytes;
        if magic && bytes.len() > 24 {
            bytes[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
        }
        ask(&json!({ "ask": "capture", "name": "any" }), &bytes);
    }

    #[test]
    fn mutated_scenarios_are_answered(
        which in 0..examples().len(), at in any::<prop::sample::Index>(), len in 0..20_usize, part in ".{0,12}",
    ) {
        let text = examples()[which].text;
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        let end = (at + len).min(chars.len());
        chars.splice(at..end, part.chars());
        let text: String = chars.into_iter().collect();
        ask(&json!({ "ask": "check", "text": text }), &[]);
    }
}
