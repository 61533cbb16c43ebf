//! Every dependency has a compatible licence, comes from the registry, and brings no randomness into the pure
//! crates. Works without network, from cargo's metadata.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// Licences allowed for dependencies of a program under MIT OR Apache-2.0. `deny.toml` has the same list.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages with a missing or outdated licence in the manifest: the package, the file to read, and the
/// reason.
const CLARIFIED: [(&str, &str, &str); 0] = [];

/// The crates that must be pure.
const PURE: [&str; 8] = [
    "lasthop-proto",
    "lasthop-scenario",
    "lasthop-observe",
    "lasthop-path",
    "lasthop-sim",
    "lasthop-analyze",
    "lasthop-study",
    "lasthop-web",
];

/// Packages with ambient randomness or time.
const AMBIENT: [&str; 9] =
    ["ahash", "fastrand", "getrandom", "instant", "rand", "time", "chrono", "uuid", "wasm-bindgen"];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version", "1"])
        .output()
        .expect("cargo can be started again");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {complaint}");
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().expect("a list of packages")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Whether an SPDX expression offers an allowed choice. An unreadable one does not.
fn is_allowed(expression: &str) -> bool {
    // Before SPDX a slash meant OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) == Some(true) && rest.is_empty()
}

fn any_of(words: &mut &[&str]) -> Option<bool> {
    let mut answer = all_of(words)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        answer |= all_of(words)?;
    }
    Some(answer)
}

fn all_of(words: &mut &[&str]) -> Option<bool> {
    let mut answer = one(words)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        answer &= one(words)?;
    }
    Some(answer)
}

fn one(words: &mut &[&str]) -> Option<bool> {
    let (answer, rest) = match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let answer = any_of(words)?;
            (answer, words.strip_prefix(&[")"])?)
        }
        [licence, "WITH", exception, rest @ ..] => {
            (ALLOWED.contains(&format!("{licence} WITH {exception}").as_str()), rest)
        }
        [licence, rest @ ..] => (ALLOWED.contains(licence), rest),
        [] => return None,
    };
    *words = rest;
    Some(answer)
}

#[test]
fn expressions_are_read() {
    for good in ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(MIT OR GPL-3.0) AND Unicode-3.0"] {
        assert!(is_allowed(good), "{good}");
    }
    for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT OR", "MIT WITH GPL", "MIT MIT"] {
        assert!(!is_allowed(bad), "{bad}");
    }
}

#[test]
fn every_dependency_may_be_used() {
    let metadata = metadata();
    let refused: Vec<String> = packages(&metadata)
        .iter()
        .filter(|package| {
            let clarified = CLARIFIED.iter().find(|(name, ..)| *name == text(package, "name"));
            !is_allowed(clarified.map_or(text(package, "license"), |(_, licence, _)| licence))
        })
        .map(|p| format!("{} {}: {:?}", text(p, "name"), text(p, "version"), text(p, "license")))
        .collect();
    assert!(refused.is_empty(), "licences that are not on the list: {refused:#?}");
}

#[test]
fn every_dependency_comes_from_the_registry() {
    let metadata = metadata();
    let strangers: Vec<&str> = packages(&metadata)
        .iter()
        .filter(|package| {
            let source = &package["source"];
            let registry = source.as_str().is_some_and(|s| s.contains("crates.io-index"));
            !(source.is_null() && text(package, "name").starts_with("lasthop") || registry)
        })
        .map(|package| text(package, "name"))
        .collect();
    assert!(strangers.is_empty(), "neither ours nor from crates.io: {strangers:?}");
}

/// All packages that the normal dependencies of `roots` reach, with the features requested there. Features
/// enabled by other parts of the workspace, such as the QUIC stack in `sim`, do not count. Build
/// dependencies and macros run elsewhere.
fn reached(roots: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal,no-proc-macro"])
        .args(["--prefix", "none", "--format", "{p}"])
        .args(roots.iter().flat_map(|root| ["--package", root]))
        .output()
        .expect("cargo can be started again");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree: {complaint}");
    let names = String::from_utf8_lossy(&output.stdout);
    names.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_pure_crates_bring_no_chance_and_no_clock() {
    let reached = reached(&PURE);
    for pure in PURE {
        assert!(reached.contains(pure), "{pure} is not in the workspace");
    }
    let ambient: Vec<&&str> = AMBIENT.iter().filter(|name| reached.contains(**name)).collect();
    assert!(ambient.is_empty(), "the pure crates depend on {ambient:?}");
    // Real randomness is found.
    assert!(self::reached(&["lasthop-campaign"]).contains("rand"));
}
