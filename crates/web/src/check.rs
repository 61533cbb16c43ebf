//! Diagnostics and sliders of a text, and the available choices.

use lasthop_scenario::{
    AS_IS, Code, Diagnostic, File, SchemeChoice, Source, compare, examples, files, json_schema,
    parse, schemes, sliders,
};
use serde_json::{Value, json};

use crate::ask::{ErrorAnswer, ScenarioRequest};

/// The built-in scenarios, the schemes, and the schema of files.
pub(crate) fn known() -> Value {
    let scenarios: Vec<Value> = examples()
        .iter()
        .map(|it| json!({ "name": it.name, "summary": it.summary(), "text": it.text }))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "scenarios": scenarios,
        "schemes": schemes(),
        "schema": json_schema(File::Scenario),
    })
}

/// Warnings and sliders of a text. Takes a small part of the time of [`choices`].
pub(crate) fn check(scene: &ScenarioRequest) -> Result<Value, ErrorAnswer> {
    scene.bounded()?;
    let arguments = scene.arguments();
    let wrong = |error| scene.wrong(&error);
    let (plan, warnings) = parse(&scene.text, scene.named(), &arguments).map_err(wrong)?;
    let sliders = sliders(&scene.text, &arguments).map_err(wrong)?;
    let missing: Vec<Value> = files::named(&scene.text, &arguments)
        .iter()
        .filter(|named| examples::file(&named.name).is_none())
        .map(|named| json!(named.name))
        .collect();
    let first = plan.cells.first().map(|cell| cell.scenario.first_seed);
    Ok(json!({
        "name": plan.name,
        "first_seed": first,
        "axes": plan.axes,
        "warnings": warnings.iter().map(|w| diagnostic(scene, w)).collect::<Vec<_>>(),
        "sliders": sliders,
        "files": missing,
    }))
}

/// The schemes that apply to a scenario, its own first.
pub(crate) fn choices(scene: &ScenarioRequest) -> Result<Value, ErrorAnswer> {
    scene.bounded()?;
    let arguments = scene.arguments();
    let all = |choice: SchemeChoice| {
        compare(&scene.text, scene.named(), &arguments, &choice, &[], None, None)
            .map(|all| all.schemes.into_iter().map(|scheme| scheme.name).collect::<Vec<_>>())
            .map_err(|error| scene.wrong(&error))
    };
    let own = all(SchemeChoice::Own)?;
    let rest = all(SchemeChoice::All)?;
    // A scenario without own schemes has all of them, and the unchanged scenario is first.
    let has_own = own != rest;
    let mut names = vec![AS_IS.to_owned()];
    for name in own.iter().chain(&rest) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Ok(json!({ "schemes": names, "own": if has_own { own } else { Vec::new() } }))
}

/// The error in the page's format.
pub(crate) fn error_document(scene: &ScenarioRequest, error: &lasthop_scenario::Error) -> Value {
    let mut document = diagnostic(scene, error);
    if error.code == Code::NoScheme {
        document["source"] = json!("scheme");
    }
    document
}

/// Line and column count from one; `start` and `end` are UTF-16 offsets, as in the page.
fn diagnostic(scene: &ScenarioRequest, it: &Diagnostic) -> Value {
    let empty = String::new();
    let in_file;
    let (source, text) = match it.at.source {
        Source::File => ("file", &scene.text),
        Source::Argument(i) => ("set", scene.set.get(i).unwrap_or(&empty)),
        Source::Points => ("points", &empty),
        Source::Referenced(_) => {
            in_file = files::located(&it.at, "", &scene.text, &scene.arguments()).1;
            ("referenced", &in_file)
        }
    };
    let (line, column) = it.at.line_column(text);
    json!({
        "code": it.code,
        "message": it.message,
        "key": it.key,
        "label": it.label,
        "help": it.help,
        "source": source,
        "line": line,
        "column": column,
        "start": utf16(text, it.at.span.start),
        "end": utf16(text, it.at.span.end),
    })
}

/// The UTF-16 offset of a byte offset.
fn utf16(text: &str, byte: usize) -> usize {
    text.char_indices().take_while(|(i, _)| *i < byte).map(|(_, c)| c.len_utf16()).sum()
}
