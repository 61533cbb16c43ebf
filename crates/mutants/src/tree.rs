//! A copy of the tree with the mutants in it, and its test programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde_json::Value;

use crate::places::{self, Mutant};

/// Code added to each crate with mutants: the check of the active mutant. With a directory it records there which
/// mutants a program reaches.
const CHECK: &str = r#"
/// Whether the mutant with this number is to live.
#[doc(hidden)]
#[allow(clippy::all, clippy::disallowed_types, clippy::disallowed_methods)]
pub fn is_mutant(number: u32) -> bool {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    static ALIVE: AtomicU32 = AtomicU32::new(u32::MAX);
    static SEEN: [AtomicBool; 8192] = [const { AtomicBool::new(false) }; 8192];
    let mut alive = ALIVE.load(Relaxed);
    if alive == u32::MAX {
        let asked = std::env::var("LASTHOP_MUTANT").ok();
        alive = asked.and_then(|text| text.parse().ok()).unwrap_or(0);
        ALIVE.store(alive, Relaxed);
    }
    if alive == 0 && !SEEN[number as usize].swap(true, Relaxed) {
        if let Some(file) = std::env::var_os("LASTHOP_MUTANTS_SEEN") {
            let file = std::fs::File::options().create(true).append(true).open(file);
            let _ = file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
        }
    }
    alive == number
}
"#;

/// Maximum number of mutants in one build.
pub const MOST: usize = 8191;

/// A program with tests.
#[derive(Clone, Debug)]
pub struct Program {
    /// Package and name, for reports.
    pub name: String,
    pub package: String,
    pub path: PathBuf,
    /// Its working directory: the package's directory.
    pub dir: PathBuf,
}

/// Copies the files at `root` that git tracks or would track to `to`. Unchanged files are not touched, so they are not
/// rebuilt; nor are the files of `mutants`, which [`plant`] writes. Removed files are removed there too.
pub fn copy(root: &Path, to: &Path, mutants: &[Mutant]) -> io::Result<()> {
    let planted = by_file(mutants);
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    if !listed.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&listed.stderr).into_owned()));
    }
    let names = listed.stdout.split(|b| *b == 0).filter(|name| !name.is_empty());
    let names: BTreeSet<String> =
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    forget(to, to, &names)?;
    for name in names {
        let (from, to) = (root.join(&name), to.join(&name));
        if !from.is_file() || planted.contains_key(&name) && to.exists() {
            continue;
        }
        if let Some(dir) = to.parent() {
            fs::create_dir_all(dir)?;
        }
        if fs::read(&from)? != fs::read(&to).unwrap_or_default() || !to.exists() {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

/// Removes the files below `dir` whose paths within `tree` are not in `names`.
fn forget(tree: &Path, dir: &Path, names: &BTreeSet<String>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let name = path.strip_prefix(tree).unwrap_or(&path).to_string_lossy().into_owned();
        if path.is_dir() {
            forget(tree, &path, names)?;
        } else if !names.contains(&name) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The rewritten files, each with its mutants.
fn by_file(mutants: &[Mutant]) -> BTreeMap<String, Vec<&Mutant>> {
    let mut files: BTreeMap<String, Vec<&Mutant>> = BTreeMap::new();
    for mutant in mutants {
        let name = mutant.package.trim_start_matches("lasthop-");
        // The check is added with or without mutants in this file.
        files.entry(format!("crates/{name}/src/lib.rs")).or_default();
        files.entry(mutant.file.clone()).or_default().push(mutant);
    }
    files
}

/// Writes `mutants` into the copy at `tree` and removes those that do not compile. Returns the numbers of the mutants
/// without a possible branch, and of those that do not compile.
pub fn plant(
    root: &Path,
    tree: &Path,
    mutants: &[Mutant],
    cargo: &Cargo,
) -> io::Result<(Vec<u32>, BTreeSet<u32>)> {
    let by_file = by_file(mutants);
    let packages: BTreeSet<&str> = mutants.iter().map(|m| m.package.as_str()).collect();
    // Mutants known not to compile are skipped, which saves a second build.
    let names: Vec<&str> = mutants.iter().map(|m| m.name.as_str()).collect();
    let known = tree.with_extension("refused");
    let refused_before = fs::read_to_string(&known).unwrap_or_default();
    let refused_before: BTreeSet<&str> = refused_before.lines().collect();
    let numbers =
        mutants.iter().filter(|m| refused_before.contains(m.name.as_str())).map(|m| m.number);
    let mut refused: BTreeSet<u32> = numbers.collect();
    let mut unplaced = Vec::new();
    for (file, mutants) in &by_file {
        let text = fs::read_to_string(root.join(file))?;
        unplaced.extend(places::write(&text, mutants).map_err(io::Error::other)?.unplaced);
    }
    loop {
        let mut lines = BTreeMap::new();
        for (file, mutants) in &by_file {
            let text = fs::read_to_string(root.join(file))?;
            let valid: Vec<&Mutant> =
                mutants.iter().copied().filter(|m| !refused.contains(&m.number)).collect();
            let mut written = places::write(&text, &valid).map_err(io::Error::other)?;
            if file.ends_with("/src/lib.rs") {
                // Some lints run only during code generation, after the check that finds invalid mutants; such a mutant
                // fails when it runs.
                written.text.insert_str(0, "#![allow(arithmetic_overflow, unconditional_panic)] ");
                written.text.push_str(CHECK);
            }
            lines.insert(file.clone(), written.lines);
            let to = tree.join(file);
            if fs::read_to_string(&to).ok().as_ref() != Some(&written.text) {
                fs::write(to, &written.text)?;
            }
        }
        let faults = cargo.faults(tree, &packages)?;
        if faults.is_empty() {
            let names = refused.iter().map(|number| format!("{}\n", names[*number as usize - 1]));
            fs::write(&known, names.collect::<String>())?;
            return Ok((unplaced, refused));
        }
        let before = refused.len();
        for (file, from, to, _) in &faults {
            let at = lines.get(file).into_iter().flatten();
            let hit = at.filter(|(_, first, last)| first <= to && from <= last);
            refused.extend(hit.map(|(number, _, _)| *number));
        }
        if refused.len() == before {
            // For a missing match arm the error is at the head of the match.
            let (file, line, _, text) = &faults[0];
            let behind =
                lines.get(file).into_iter().flatten().filter(|(_, first, _)| first >= line);
            let Some((number, ..)) = behind.min_by_key(|(_, first, _)| *first) else {
                let why = format!("{file}:{line}: {text}, and no mutant is there");
                return Err(io::Error::other(why));
            };
            refused.insert(*number);
        }
        eprintln!("{} mutants are no programs", refused.len());
    }
}

/// How cargo is called.
#[derive(Debug)]
pub struct Cargo {
    /// The target directory.
    pub target: PathBuf,
    /// Arguments for each call.
    pub arguments: Vec<String>,
}

/// A source location in a compiler error: file, first and last line, message.
type Fault = (String, usize, usize, String);

impl Cargo {
    fn command(&self, tree: &Path, subcommand: &str) -> Command {
        let mut command = Command::new("cargo");
        command.arg(subcommand).args(["--message-format", "json"]).args(&self.arguments);
        command.current_dir(tree).env("CARGO_TARGET_DIR", &self.target);
        command
    }

    fn messages(command: &mut Command) -> io::Result<(bool, Vec<Value>)> {
        let output = command.stderr(std::process::Stdio::inherit()).output()?;
        let lines = output.stdout.split(|b| *b == b'\n');
        let messages = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        Ok((output.status.success(), messages))
    }

    /// The compiler errors in the libraries of `packages`.
    fn faults(&self, tree: &Path, packages: &BTreeSet<&str>) -> io::Result<Vec<Fault>> {
        let mut command = self.command(tree, "check");
        command.args(["--lib", "--keep-going"]);
        command.args(packages.iter().flat_map(|package| ["-p", package]));
        let (done, messages) = Cargo::messages(&mut command)?;
        let mut faults = Vec::new();
        for message in messages.iter().map(|m| &m["message"]).filter(|m| m["level"] == "error") {
            let text = message["message"].as_str().unwrap_or_default();
            for span in message["spans"].as_array().into_iter().flatten() {
                let line = |key: &str| span[key].as_u64().unwrap_or(0) as usize;
                let file = span["file_name"].as_str().unwrap_or_default().to_owned();
                faults.push((file, line("line_start"), line("line_end"), text.to_owned()));
            }
        }
        if !done && faults.is_empty() {
            return Err(io::Error::other("cargo check fails without naming a place"));
        }
        Ok(if done { Vec::new() } else { faults })
    }

    /// Builds the test programs of `packages`.
    pub fn programs(&self, tree: &Path, packages: &[String]) -> io::Result<Vec<Program>> {
        let mut command = self.command(tree, "test");
        command.arg("--no-run");
        command.args(packages.iter().flat_map(|package| ["-p", package]));
        let (done, messages) = Cargo::messages(&mut command)?;
        if !done {
            return Err(io::Error::other("the tests cannot be built"));
        }
        let mut programs = Vec::new();
        for message in messages.iter().filter(|m| m["profile"]["test"] == true) {
            let Some(path) = message["executable"].as_str() else { continue };
            let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
            let dir = manifest.parent().unwrap_or(tree).to_owned();
            let crate_name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = message["target"]["name"].as_str().unwrap_or_default();
            programs.push(Program {
                name: format!("{crate_name}/{name}"),
                package: format!("lasthop-{crate_name}"),
                path: path.into(),
                dir,
            });
        }
        Ok(programs)
    }
}
