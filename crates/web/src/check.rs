//! Diagnostics and sliders of a text, and the available choices.

use lasthop_scenario::{
    AS_IS, File, SchemeChoice, compare, examples, files, json_schema, parse, schemes, sliders,
};
use serde_json::{Value, json};

use crate::request::{ErrorAnswer, ScenarioRequest, diagnostic};

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
