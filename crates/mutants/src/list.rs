//! Lists all mutants and draws a sample.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde_json::Value;

use crate::places::Mutant;

/// All mutants of the packages `crates/NAME`, from cargo-mutants. It is called file by file, because it does not find
/// modules declared by a registry's macro.
pub fn all(root: &Path, crates: &[&str]) -> io::Result<Vec<Mutant>> {
    let mut found = Vec::new();
    for name in crates {
        let src = root.join("crates").join(name).join("src");
        let mut files = BTreeSet::new();
        sources(&src, &mut files)?;
        let mut of_tests = BTreeSet::new();
        for file in &files {
            test_modules(file, &mut of_tests)?;
        }
        for file in files {
            let stem = file.with_extension("");
            if !of_tests.iter().any(|module| stem.starts_with(module)) {
                found.extend(of_file(root, &file, &format!("lasthop-{name}"))?);
            }
        }
    }
    Ok(found)
}

/// The Rust files below `dir`.
fn sources(dir: &Path, into: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, into)?;
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            into.insert(path);
        }
    }
    Ok(())
}

/// The modules, as paths without extension, that `file` declares for tests only.
fn test_modules(file: &Path, into: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let text = fs::read_to_string(file)?;
    let items = syn::parse_file(&text).map_err(io::Error::other)?.items;
    let parent = file.parent().unwrap_or(file);
    let is_root = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| file.ends_with(name));
    let dir = if is_root { parent.to_owned() } else { file.with_extension("") };
    for item in items {
        let syn::Item::Mod(module) = item else { continue };
        let is_test = |attr: &syn::Attribute| {
            matches!(&attr.meta, syn::Meta::List(list)
                if list.path.is_ident("cfg") && list.tokens.to_string() == "test")
        };
        if module.content.is_none() && module.attrs.iter().any(is_test) {
            into.insert(dir.join(module.ident.to_string()));
        }
    }
    Ok(())
}

fn of_file(root: &Path, file: &Path, package: &str) -> io::Result<Vec<Mutant>> {
    let config = root.join(".cargo/mutants.toml");
    let output = Command::new("cargo")
        .args(["mutants", "--list", "--json", "--config"])
        .arg(config)
        .arg("--Zmutate-file")
        .arg(file)
        .output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let remedy = "cargo install --locked cargo-mutants (27.1 or later)";
        return Err(io::Error::other(format!("{}: {stderr}\nneeds: {remedy}", file.display())));
    }
    let list: Value = serde_json::from_slice(&output.stdout)?;
    let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy();
    let mutants = list.as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(mutants.iter().filter_map(|value| Mutant::of_json(value, &name, package)).collect())
}

/// Removes `count` random mutants from `all`, in random order; equal seeds give equal samples.
pub fn sample(all: &mut Vec<Mutant>, count: usize, seed: u64) -> Vec<Mutant> {
    let mut state = seed;
    let mut drawn = Vec::new();
    while drawn.len() < count && !all.is_empty() {
        drawn.push(all.swap_remove((splitmix(&mut state) % all.len() as u64) as usize));
    }
    drawn
}

/// The generator of Steele, Lea and Flood (SplitMix64).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn population(n: u64) -> Vec<Mutant> {
        let one = |i: u64| {
            let place = serde_json::json!({ "line": i, "column": 1 });
            let value = serde_json::json!({
                "name": format!("f.rs:{i}:1: replace + with -"),
                "genre": "BinaryOperator",
                "replacement": "-",
                "span": { "start": place, "end": place },
            });
            Mutant::of_json(&value, "crates/proto/src/f.rs", "lasthop-proto").unwrap()
        };
        (1..=n).map(one).collect()
    }

    #[test]
    fn a_sample_depends_on_its_seed_without_duplicates() {
        let names = |seed| -> Vec<String> {
            sample(&mut population(1000), 300, seed).into_iter().map(|m| m.name).collect()
        };
        let first = names(1);
        assert_eq!(first, names(1));
        assert_ne!(first, names(2));
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 300);
        // The sample is uniform: about half is from the first half, deviation 7.2.
        let line =
            |m: &Mutant| m.name.split(':').nth(1).and_then(|n| n.parse::<u32>().ok()).unwrap();
        let mut rest = population(1000);
        let all = sample(&mut rest, 300, 1);
        let half = all.iter().filter(|m| line(m) <= 500).count();
        assert!((110..=190).contains(&half), "{half}");
        assert_eq!(sample(&mut population(5), 300, 1).len(), 5);
        // A mutant is drawn only once.
        let drawn: BTreeSet<String> = all.into_iter().map(|m| m.name).collect();
        assert!(sample(&mut rest, 700, 2).iter().all(|m| !drawn.contains(&m.name)));
    }

    /// Test modules are excluded, wherever they are declared.
    #[test]
    fn modules_of_tests_are_found() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/src");
        let mut found = BTreeSet::new();
        test_modules(&src.join("channel/two_state.rs"), &mut found).unwrap();
        assert_eq!(found, BTreeSet::from([src.join("channel/two_state/tests")]));
        found.clear();
        test_modules(&src.join("tunnel/mod.rs"), &mut found).unwrap();
        assert!(found.contains(&src.join("tunnel/tests")), "{found:?}");
    }
}
