//! Descriptions of the members of JSON answers: the doc comments of the fields that become these members. A schema names
//! no struct, so an object is described by the struct that has most of its members. `members.txt` has the rest.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Minimum share of an object's members that its struct must have.
const ALIKE: f64 = 0.25;

/// The doc comment of each field of a struct, by the name in JSON.
type Fields = BTreeMap<String, String>;

/// Doc comments of the fields of structs and variants, and texts for paths such as `list/schemes/name`, of which the end suffices.
pub struct Descriptions {
    structs: Vec<Fields>,
    paths: Vec<(String, String)>,
}

impl Descriptions {
    pub fn read() -> Descriptions {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut structs = Vec::new();
        walk(here.parent().expect("crates"), &mut structs);
        let text = fs::read_to_string(here.join("tests/schemas/members.txt")).expect("members.txt");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let parts = lines.filter_map(|line| line.split_once(": "));
        let paths = parts.map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
        Descriptions { structs, paths }
    }

    /// Describes all members below the object `schema` at `path`. Returns the paths of those without a description.
    pub fn describe(&self, schema: &mut Value, path: &str) -> Vec<String> {
        let mut missing = Vec::new();
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get_mut(key).filter(|inner| inner.is_object()) {
                missing.extend(self.describe(inner, path));
            }
        }
        let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
            return missing;
        };
        let names: Vec<String> = members.keys().cloned().collect();
        for (name, member) in members {
            let path = format!("{path}/{name}");
            missing.extend(self.describe(member, &path));
            match self.of(&path, name, &names) {
                Some(text) => member["description"] = json!(text),
                None => missing.push(path),
            }
        }
        missing
    }

    /// The description of the member `name` of an object with the members `names`.
    fn of(&self, path: &str, name: &str, names: &[String]) -> Option<String> {
        let ends = |end: &str| {
            path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let known = self.paths.iter().filter(|(end, _)| ends(end)).max_by_key(|(end, _)| end.len());
        if let Some((_, text)) = known {
            return Some(text.clone());
        }
        let common =
            |fields: &Fields| names.iter().filter(|name| fields.contains_key(*name)).count();
        let having = self.structs.iter().filter(|fields| fields.contains_key(name));
        let (alike, fields) = having
            .map(|fields| (common(fields), fields))
            .max_by_key(|(alike, fields)| (*alike, std::cmp::Reverse(fields.len())))?;
        let text = &fields[name];
        if (alike as f64) < ALIKE * names.len() as f64 {
            return None;
        }
        let unit = [("_s", "second", "Seconds."), ("_j", "joule", "Joules.")]
            .into_iter()
            .find(|(end, word, _)| name.ends_with(end) && !text.to_lowercase().contains(word));
        Some(unit.map_or_else(|| text.clone(), |(_, _, unit)| format!("{text} {unit}")))
    }
}

/// Reads the fields of all structs below a directory.
fn walk(directory: &Path, structs: &mut Vec<Fields>) {
    let entries =
        fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && !path.ends_with("tests") {
            walk(&path, structs);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            structs.extend(fields(&fs::read_to_string(&path).expect("a text")));
        }
    }
}

/// The fields of the structs and variants in a source, without the links of their comments.
fn fields(source: &str) -> Vec<Fields> {
    let mut structs: Vec<Fields> = Vec::new();
    let (mut comment, mut renamed) = (String::new(), None);
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment = format!("{comment} {}", text.trim());
            continue;
        }
        if line.starts_with("#[") {
            let name = line.split_once("rename = \"").and_then(|(_, rest)| rest.split('"').next());
            renamed = name.map(str::to_owned).or(renamed);
            continue;
        }
        let line =
            line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub(super) ")).unwrap_or(line);
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let is_variant = line.ends_with(" {") && line.starts_with(|c: char| c.is_ascii_uppercase());
        if line.starts_with("struct ") || is_variant {
            structs.push(Fields::new());
        } else if let (Some((name, kind)), Some(last)) = (line.split_once(": "), structs.last_mut())
            && !comment.is_empty()
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            && kind.ends_with(',')
        {
            let name = renamed.take().unwrap_or_else(|| name.to_owned());
            last.entry(name).or_insert_with(|| plain(comment.trim()));
        }
        (comment, renamed) = (String::new(), None);
    }
    structs
}

/// A comment without links to code: ``[`crate::Config::losses`]`` is `losses`.
fn plain(comment: &str) -> String {
    let mut text = String::new();
    let mut rest = comment;
    while let Some((before, after)) = rest.split_once("[`") {
        let (link, behind) = after.split_once("`]").unwrap_or((after, ""));
        text += before;
        text += &format!("`{}`", link.rsplit("::").next().unwrap_or(link));
        rest = behind;
    }
    text + rest
}

#[test]
fn comments_of_fields_describe_members() {
    let source = "/// A link.\npub struct Link {\n    /// Its delay, see [`crate::Delay`].\n    pub delay_s: f64,\n    \
                  /// Bytes.\n    #[serde(rename = \"size\")]\n    bytes: u64,\n}\n";
    let fields = fields(source);
    let descriptions =
        Descriptions { structs: fields, paths: vec![("run/size".to_owned(), "x".to_owned())] };
    let names = ["delay_s".to_owned(), "size".to_owned()];
    let of = |path: &str, name: &str| descriptions.of(path, name, &names);
    assert_eq!(of("a/delay_s", "delay_s").as_deref(), Some("Its delay, see `Delay`. Seconds."));
    assert_eq!(of("a/size", "size").as_deref(), Some("Bytes."));
    assert_eq!(of("run/size", "size").as_deref(), Some("x"));
    assert_eq!(of("a/bytes", "bytes"), None);
}
