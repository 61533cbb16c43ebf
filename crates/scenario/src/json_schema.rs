//! JSON Schema (draft 2020-12) of scenario, station and tunnel files, for completion and checks in editors.
//!
//! The schema is generated from the same lists of keys that the reader uses. Only the reader checks
//! conditions between keys: keys that exclude each other, limits that depend on other keys, and the options
//! of a selected system.

use lasthop_proto::describe::{Form, Need, Value as Of};
use lasthop_proto::{agent, channel};
use serde_json::{Map, Value, json};

use crate::keys::{Listed, list, written};
use crate::parts::errors::{KEYS, any_rate};
use crate::schema::of;

/// A file that has a schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum File {
    /// A scenario.
    Scenario,
    /// The file of a station.
    Station,
    /// The file of a tunnel.
    Tunnel,
}

/// The schema of a file.
pub fn json_schema(file: File) -> Value {
    let (title, mut schema) = match file {
        File::Scenario => ("A scenario of lasthop", scenario()),
        File::Station => {
            let mut station = table(&of("station").keys);
            put(&mut station, "path", path());
            put(&mut station, "files", files());
            ("The file of a base station of lasthop", station)
        }
        File::Tunnel => ("The file of a tunnel of lasthop", table(&of("tunnel").keys)),
    };
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema
}

fn put(table: &mut Value, key: &str, schema: Value) {
    table["properties"][key] = schema;
}

fn scenario() -> Value {
    let mut file = table(&of("scenario").keys);
    let transfer = table(&of("transfer").keys);
    let several = json!({ "type": "array", "items": transfer, "minItems": 1 });
    let description = "the transfers, each with sender, receiver and size";
    put(&mut file, "transfer", json!({ "description": description, "anyOf": [transfer, several] }));
    let host = table(&of("host").keys);
    let hosts = json!({
        "description": "the hosts, by name",
        "type": "object",
        "additionalProperties": host,
        "minProperties": 1,
    });
    put(&mut file, "host", hosts);
    put(&mut file, "path", path());
    let mut cell = table(&of("cell").keys);
    put(&mut cell, "path", path());
    cell["required"] = json!(["name", "path"]);
    let description = "for hosts that move: base stations with their radios, behind the path";
    let cells =
        json!({ "description": description, "type": "array", "items": cell, "minItems": 1 });
    put(&mut file, "cell", cells);
    let visits = table(&of("visits").keys);
    let several = json!({ "type": "array", "items": visits, "minItems": 1 });
    let description = "which cells the hosts at the right end are in, and when";
    put(&mut file, "visits", json!({ "description": description, "anyOf": [visits, several] }));
    let mut handoff = table(&of("handoff").keys);
    handoff["description"] = json!("what happens between two cells");
    put(&mut file, "handoff", handoff);
    let description =
        "axes: a key and the list of its values, or labelled points that set several keys";
    put(&mut file, "vary", json!({ "description": description, "type": "object" }));
    let description = "schemes for `lasthop compare`, defined by this scenario";
    put(&mut file, "schemes", json!({ "description": description, "type": "object" }));
    put(&mut file, "files", files());
    file["required"] = json!(["transfer", "host", "path"]);
    file
}

fn files() -> Value {
    let description = "contents of the files that links refer to, by file name";
    json!({ "description": description, "type": "object" })
}

fn path() -> Value {
    let name = json!({ "description": "the name of the stage", "type": "string" });
    let stage = |kind: &str, parts: &[&str], inside: Value| {
        let keys = parts.iter().flat_map(|part| of(part).keys.clone());
        let mut stage = table(&keys.collect::<Vec<_>>());
        put(&mut stage, "name", name.clone());
        put(&mut stage, kind, inside);
        stage["required"] = json!([kind]);
        stage
    };
    let words: Vec<&str> = agent::words().map(|agent| agent.word).collect();
    let description = "what runs at the base station";
    let agents = json!({ "description": description, "enum": words });
    let stages = [
        stage("link", &[], table(&of("link").keys)),
        stage("agent", &["agent"], agents),
        stage("radio", &["errors", "hop"], table(&of("radio").keys)),
        stage("cross", &[], table(&of("cross").keys)),
        stage("tbf", &[], table(&of("tbf").keys)),
        stage("police", &[], table(&of("police").keys)),
    ];
    let description = "the stages between the hosts, from the wired side to the wireless";
    json!({ "description": description, "type": "array", "minItems": 1, "items": { "anyOf": stages } })
}

/// A table that has these keys and no others.
fn table(keys: &[Listed]) -> Value {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    for listed in keys {
        properties.insert(listed.key.name.to_owned(), property(listed));
        if let Need::Required(_) = listed.key.need {
            required.push(listed.key.name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// A table of errors for each model, with the keys that it has.
fn errors(every: &[Listed]) -> Value {
    let general = |listed: &&Listed| ["on", "only"].contains(&listed.key.name);
    let models = channel::words().map(|model| {
        let mut keys: Vec<Listed> = every.iter().filter(general).cloned().collect();
        keys.extend(list(|k| (model.read)(k, any_rate())));
        let mut schema = table(&keys);
        let description = model.system.summary;
        put(&mut schema, "model", json!({ "description": description, "const": model.word }));
        if let Some(required) = schema["required"].as_array_mut() {
            required.push(json!("model"));
        }
        schema
    });
    let none = json!({ "const": "none" });
    json!({ "anyOf": models.chain([none]).collect::<Vec<_>>() })
}

fn property(listed: &Listed) -> Value {
    let of_errors = KEYS.iter().any(|(key, _)| *key == listed.key.name);
    let mut schema = match of_errors {
        true => errors(&listed.inner),
        false => form(&listed.key.form, &listed.inner),
    };
    let default = match listed.key.need {
        Need::Default => written(&listed.default).map(|default| format!("; default {default}")),
        Need::Required(example) => Some(format!("; for example {example}")),
        Need::Else("") => None,
        Need::Else(otherwise) => Some(format!("; without it {otherwise}")),
    };
    let description = listed.key.summary;
    schema["description"] = json!(format!("{description}{}", default.unwrap_or_default()));
    schema
}

/// A quantity with its unit; letters may be of either case.
fn quantity(units: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^\\s*[0-9._]+([eE][+-]?[0-9]+)?\\s*{units}\\s*$") })
}

/// Zero, with or without a unit.
fn or_zero(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "const": 0 }, { "const": "0" }] })
}

fn form(form: &Form, inner: &[Listed]) -> Value {
    let alternatives = |schemas: Vec<Value>| json!({ "anyOf": schemas });
    match form {
        Form::Flag => json!({ "type": "boolean" }),
        Form::Range(Of::Count(least), Of::Count(most)) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Form::Range(Of::Number(least), Of::Number(most)) => {
            json!({ "type": "number", "minimum": least, "maximum": most })
        }
        Form::Range(Of::Time(_), _) => or_zero(quantity("[nNuUmM]?[sS]([eE][cC][sS]?)?")),
        Form::Range(Of::Size(_), _) => alternatives(vec![
            json!({ "type": "integer", "minimum": 0 }),
            quantity("([kKmMgG][iI]?)?[bB]?"),
        ]),
        Form::Rate => quantity("[kKmMgG]?[bB][iI][tT]"),
        Form::Probability => alternatives(vec![
            json!({ "type": "number", "minimum": 0, "maximum": 1 }),
            quantity("%?"),
        ]),
        Form::Limit => quantity("(p|([kKmMgG][iI]?)?[bB])"),
        Form::Range(Of::Speed(_), _) => or_zero(quantity("([kK][mM]/?[hH]|[mM]/[sS])")),
        Form::Range(Of::Frequency(_), _) => quantity("[mMgGkK]?[hH][zZ]"),
        Form::Range(Of::Decibels(_), _) => {
            json!({ "type": "string", "pattern": "^\\s*[+-]?[0-9.]+\\s*[dD][bB]\\s*$" })
        }
        Form::Power => or_zero(quantity("[uUmM]?[wWaA]")),
        Form::Energy => or_zero(quantity("([nNuUmMkK]?[jJ]|[mM]?[wWaA][hH])")),
        Form::Voltage => quantity("[mM]?[vV]"),
        Form::Keyword(words) => json!({ "enum": words }),
        Form::Keywords(words) => {
            let word = json!({ "enum": words });
            alternatives(vec![
                word.clone(),
                json!({ "type": "array", "items": word, "minItems": 1 }),
            ])
        }
        Form::Text(_) | Form::File(_) | Form::Range(..) => json!({ "type": "string" }),
        Form::Texts(_) => json!({ "type": "array", "items": { "type": "string" } }),
        Form::Or(words, other) => {
            alternatives(vec![json!({ "enum": words }), self::form(other, inner)])
        }
        Form::Table => table(inner),
        Form::TableOr(other) => alternatives(vec![table(inner), self::form(other, inner)]),
        Form::Tables => json!({ "type": "array", "items": table(inner) }),
    }
}
