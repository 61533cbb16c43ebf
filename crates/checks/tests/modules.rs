//! The modules of `proto` import in one direction: lower modules do not use higher ones. Each file of tests is run.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules from the bottom up: each may import those before it.
const ORDER: [&str; 24] = [
    "names", "units", "describe", "rng", "side", "wake", "wire", "fates", "udp", "flows", "travel",
    "channel", "air", "energy", "event", "machine", "queue", "link", "mac", "hop", "tunnel", "tcp",
    "agent", "systems",
];

/// The files of a module, which is a file, a directory, or both.
fn files(path: PathBuf) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path];
    }
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    entries.flat_map(|entry| files(entry.expect("sources can be read").path())).collect()
}

/// The text after `crate::` in code; links in documentation may point anywhere.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split("crate::").skip(1)).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

#[test]
fn modules_of_proto_import_downwards_only() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/src");
    let listed = fs::read_to_string(sources.join("lib.rs")).expect("proto has a root");
    for module in listed.lines().filter_map(|line| line.strip_prefix("pub mod ")) {
        let name = module.trim_end_matches(';');
        assert!(ORDER.contains(&name), "add the new module `{name}` to ORDER");
    }
    for (place, module) in ORDER.into_iter().enumerate() {
        let found = files(sources.join(module)).into_iter();
        for path in found.chain(files(sources.join(format!("{module}.rs")))) {
            let text = fs::read_to_string(&path).expect("sources can be read");
            for import in imports(&text) {
                let below = ORDER[..=place].contains(&import);
                assert!(below, "{}: `{module}` lies below `{import}`", path.display());
            }
        }
    }
}

/// Whether a program of `tests`, or one of its modules, declares the module `name`.
fn declared(tests: &Path, name: &str) -> bool {
    let files = fs::read_dir(tests).expect("tests can be listed");
    let texts = files.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    let line = format!("mod {name};");
    texts.into_iter().any(|text| text.lines().any(|it| it == line))
}

#[test]
fn each_file_of_tests_is_part_of_a_program() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut programs = 0;
    for entry in fs::read_dir(crates).expect("there are crates") {
        let tests = entry.expect("crates can be listed").path().join("tests");
        // Without this file cargo itself finds each program.
        if !tests.join("all.rs").is_file() {
            continue;
        }
        programs += 1;
        let manifest = fs::read_to_string(tests.join("../Cargo.toml")).expect("a crate has one");
        assert!(manifest.contains("path = \"tests/all.rs\""), "{} is not run", tests.display());
        for entry in fs::read_dir(&tests).expect("tests can be listed") {
            let path = entry.expect("tests can be listed").path();
            let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            let (module, main) = match path.extension() {
                Some(ext) if ext == "rs" && name != "all" => (true, format!("tests/{name}.rs")),
                None => (path.join("mod.rs").is_file(), format!("tests/{name}/main.rs")),
                _ => continue,
            };
            if module || tests.join("..").join(&main).is_file() {
                let listed =
                    declared(&tests, &name) || manifest.contains(&format!("path = \"{main}\""));
                assert!(listed, "{} is not run: add it to all.rs", path.display());
            }
        }
    }
    assert!(programs > 0);
}
