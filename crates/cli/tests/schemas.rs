//! Schemas of JSON answers (`lasthop generate schema --answer`), validated against answers of the program.
//! python/tests does the same with another implementation of JSON Schema.
//!
//! `LASTHOP_WRITE_SCHEMAS=1` generates them from the first answers of each command. Members in all of these
//! are required, and unknown members are rejected. Objects with keys from users or measurements, such as
//! hosts, are listed in `MAPS`. The other answers only validate the schemas.

#[path = "schemas/members.rs"]
mod members;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use members::Descriptions;

const ANSWERS: &[&str] = &["run", "advise", "analyze", "battery", "list", "doctor"];

/// Members with arbitrary keys, whose values all have one form.
const MAPS: &[&str] = &[
    "dropped",
    "dropped_acks",
    "originated",
    "originated_acks",
    "repeated",
    "marked",
    "summary",
    "kernel",
];

/// A directory with scenarios, captures and results.
struct Workdir(tempfile::TempDir);

impl Workdir {
    fn new() -> Workdir {
        let workdir = Workdir(tempfile::tempdir().expect("a directory"));
        let run = "run quickstart --seeds 1 --set transfer.count=3 --set agent=none -o DIR";
        workdir.answer(run);
        for (name, made) in [("wired.pcapng", "link"), ("radio.pcapng", "radio")] {
            let made = workdir.path().join(format!("DIR/trace/run/{made}.pcapng"));
            fs::copy(made, workdir.path().join(name)).expect("a capture");
        }
        workdir
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn answer(&self, words: &str) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_lasthop"))
            .args(words.split_whitespace())
            .arg("--json")
            .current_dir(self.path())
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{words}: {shown}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words}: {error}"))
    }
}

/// Commands that generate the schema of `name`, and further commands whose answers must fit it.
fn commands(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "run" => (
            &[
                "run quickstart --seeds 2",
                "run west97-lan --seeds 1 --vary tcp=reno,sack",
                "run satellite --seeds 1",
                "run today --seeds 1 --set horizon=4s",
                "run energy-today --seeds 1",
                "run handoff-wavelan --seeds 1",
                "run quic --seeds 1",
                "run l4s --seeds 1",
                "run lte-video --seeds 1",
                "run disconnections --seeds 1",
                "run transactions --seeds 1",
                "run quickstart --seeds 1 --set horizon=500ms",
            ],
            &[
                "run quickstart --seeds 3 --vary agent=snoop,split",
                "run rivals --seeds 1",
                "run slow-return --seeds 1",
            ],
        ),
        "advise" => (
            &[
                "advise --rate 2mbit --loss 2% --bytes 200kB --seeds 2",
                "advise --rate 2mbit --loss 2% --bytes 200kB --seeds 2 --can sender,link",
                "advise --rate 2mbit --loss 2% --bytes 200kB --seeds 2 --quick --can sender",
                "advise --capture wired.pcapng --seeds 2 --quick",
                "advise --rate 10mbit --queue 20p --customers 2 --bytes 1MB --seeds 2 --quick --handoff every=1s,gap=80ms",
                "advise --rate 1mbit --bytes 200kB --loss 1% --arq ll-sack --seeds 2 --quick",
            ],
            &["advise --rate 20mbit --bytes 200kB --seeds 2 --quick"],
        ),
        "analyze" => (
            &[
                "analyze wired.pcapng",
                "analyze wired.pcapng radio.pcapng",
                "analyze radio.pcapng --over-time",
            ],
            &["analyze radio.pcapng wired.pcapng --over-time", "analyze wired.pcapng --checksums"],
        ),
        "battery" => (
            &[
                "battery --seeds 1",
                "battery --seeds 1 --over mqtt --session full",
                "battery lora-sf12 --reports 700",
            ],
            &[
                "battery nb-iot --rest edrx:81.92s --release-assistance --seeds 1",
                "battery lte-m --over mqtt --session resumed --seeds 1",
            ],
        ),
        "list" => (
            &[
                "list systems",
                "list claims",
                "list scenarios",
                "list schemes",
                "list presets",
                "list hardware",
                "list scenarios --show quickstart",
            ],
            &["list scenarios --show west97-lan"],
        ),
        "doctor" => (&["doctor"], &["doctor -o /proc/nowhere"]),
        _ => unreachable!("{name}"),
    }
}

/// Forms of the values at one position of a schema.
#[derive(Default, Clone, Debug)]
struct Form {
    types: BTreeSet<&'static str>,
    seen: u64,
    members: BTreeMap<String, Form>,
    objects: u64,
    is_map: bool,
    any: Option<Box<Form>>,
}

impl Form {
    fn take(&mut self, value: &Value, name: &str) {
        self.seen += 1;
        self.types.insert(match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        });
        match value {
            Value::Array(items) => {
                let any = self.any.get_or_insert_default();
                items.iter().for_each(|item| any.take(item, ""));
            }
            Value::Object(members) => {
                self.objects += 1;
                self.is_map |= MAPS.contains(&name);
                for (key, value) in members {
                    match self.is_map {
                        true => self.any.get_or_insert_default().take(value, ""),
                        false => self.members.entry(key.clone()).or_default().take(value, key),
                    }
                }
            }
            _ => {}
        }
    }

    fn schema(&self) -> Value {
        let mut schema = Map::new();
        let types: Vec<&str> = self.types.iter().copied().collect();
        match types[..] {
            [] => return json!({}),
            [one] => schema.insert("type".to_owned(), json!(one)),
            _ => schema.insert("type".to_owned(), json!(types)),
        };
        if let Some(any) = &self.any {
            let key = if self.is_map { "additionalProperties" } else { "items" };
            schema.insert(key.to_owned(), any.schema());
        }
        if self.types.contains("object") && !self.is_map {
            let required: Vec<&String> = self
                .members
                .iter()
                .filter(|(_, form)| form.seen == self.objects)
                .map(|(key, _)| key)
                .collect();
            let properties: Map<String, Value> =
                self.members.iter().map(|(key, form)| (key.clone(), form.schema())).collect();
            schema.insert("properties".to_owned(), properties.into());
            schema.insert("required".to_owned(), json!(required));
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
        schema.into()
    }
}

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/cmd/schema/{name}.json"))
}

fn write(workdir: &Workdir) {
    let descriptions = Descriptions::read();
    for name in ANSWERS {
        let mut form = Form::default();
        for words in commands(name).0 {
            form.take(&workdir.answer(words), "");
        }
        let mut schema = form.schema();
        let head = schema.as_object_mut().expect("an object");
        head.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        head.insert("title".to_owned(), json!(format!("what `lasthop {name} --json` prints")));
        head["properties"]["format"] = json!({ "const": format!("lasthop-{name}") });
        let version = workdir.answer(commands(name).0[0])["format_version"].take();
        head["properties"]["format_version"] = json!({ "const": version });
        // Only builds from a commit have it.
        head["properties"]["commit"] = json!({ "type": "string" });
        let missing = descriptions.describe(&mut schema, name);
        assert!(
            missing.is_empty(),
            "describe the fields, or add to tests/schemas/members.txt: {missing:#?}"
        );
        let mut text = serde_json::to_string_pretty(&schema).expect("JSON");
        text.push('\n');
        fs::write(file(name), text).expect("written");
    }
}

#[test]
fn answers_fit_their_schemas() {
    let workdir = Workdir::new();
    if std::env::var_os("LASTHOP_WRITE_SCHEMAS").is_some() {
        return write(&workdir);
    }
    for name in ANSWERS {
        let text = fs::read_to_string(file(name)).expect("there is a schema");
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(place_schema(name), schema, "the program prints another schema of {name}");
        let (first, more) = commands(name);
        for words in first.iter().chain(more) {
            let answer = workdir.answer(words);
            let errors = faults(&answer, &schema, "");
            assert!(
                errors.is_empty(),
                "{words}: {errors:?}\nmeant? LASTHOP_WRITE_SCHEMAS=1 cargo test -p lasthop --test cli schemas::; a member that was \
                 removed or means something else raises the version of its format"
            );
        }
        // A schema that accepts everything would not detect a change.
        let mut other = workdir.answer(first[0]);
        let version = std::mem::replace(&mut other["format_version"], json!(0));
        assert!(!faults(&other, &schema, "").is_empty(), "{name}");
        other["format_version"] = version;
        other["surprise"] = json!(1);
        assert!(!faults(&other, &schema, "").is_empty(), "{name}");
    }
}

/// Positions at which a value does not fit a schema, by the keywords of these schemas.
fn faults(value: &Value, schema: &Value, at: &str) -> Vec<String> {
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("a type {other}"),
    };
    let kinds = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind)) {
        return vec![format!("{at}: {value} is none of {kinds:?}")];
    }
    let mut found = Vec::new();
    if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != value) {
        found.push(format!("{at}: {value} is not {wanted}"));
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(
            schema.get("items").into_iter().flat_map(|s| faults(item, s, &format!("{at}/{i}"))),
        );
    }
    let Some(members) = value.as_object() else { return found };
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(key) {
            found.push(format!("{at}: no `{key}`"));
        }
    }
    for (key, member) in members {
        let place = format!("{at}/{key}");
        match schema["properties"].get(key).or(schema.get("additionalProperties")) {
            Some(Value::Bool(false)) => found.push(format!("{place}: not known")),
            Some(schema) => found.extend(faults(member, schema, &place)),
            None => {}
        }
    }
    found
}

fn place_schema(name: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .args(["generate", "schema", "--answer", name])
        .output()
        .expect("the program starts");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The paths of members without a description.
fn undescribed(schema: &Value, path: &str) -> Vec<String> {
    let inner = ["items", "additionalProperties"].into_iter().filter_map(|key| schema.get(key));
    let mut found: Vec<String> = inner.flat_map(|inner| undescribed(inner, path)).collect();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        found.extend(undescribed(member, &path));
        if member["description"].as_str().is_none_or(str::is_empty) {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_member_of_an_answer_is_described() {
    for name in ANSWERS {
        let text = fs::read_to_string(file(name)).expect("there is a schema");
        let missing = undescribed(&serde_json::from_str(&text).expect("JSON"), name);
        assert!(missing.is_empty(), "LASTHOP_WRITE_SCHEMAS=1 writes descriptions: {missing:?}");
    }
}

/// Every JSON answer names its format.
#[test]
fn every_answer_has_a_format() {
    let workdir = Workdir::new();
    fs::write(workdir.path().join("rates.csv"), "0s,1mbit\n1s,2mbit\n").expect("written");
    for (words, format) in [
        ("run quickstart --dry-run", "lasthop-plan"),
        ("compare quickstart --schemes snoop --seeds 2", "lasthop-compare"),
        ("energy quickstart --set agent=none --hardware sens-800 --seeds 2", "lasthop-energy"),
        ("sweep quickstart --seeds 2 --store store", "lasthop-sweep"),
        ("report DIR", "lasthop-report"),
        ("trace show rates.csv", "lasthop-trace"),
        ("explain W-F10 --open", "lasthop-explain"),
        ("--version", "lasthop-version"),
    ] {
        let answer = workdir.answer(words);
        assert_eq!(
            (&answer["format"], &answer["format_version"]),
            (&json!(format), &json!(1)),
            "{words}"
        );
    }
}
