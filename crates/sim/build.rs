//! Finds the commit: from the environment (packagers), from `commit.txt` (archives that git made), or from git.
//!
//! Debug builds do not ask git: each commit would build the command again. A build without any of the three has no commit.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=commit.txt");
    println!("cargo::rerun-if-env-changed=LASTHOP_COMMIT");
    let given = env::var("LASTHOP_COMMIT").ok().filter(|commit| !commit.trim().is_empty());
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    // A module in a page gives the same documents as a native debug build.
    let is_module = env::var("TARGET").is_ok_and(|target| target.starts_with("wasm32"));
    let names_commit = is_release && !is_module;
    let commit = given.or_else(archived).or_else(|| names_commit.then(from_git).flatten());
    let commit: Option<String> = commit.map(|text| {
        let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        text.trim().chars().filter(plain).take(60).collect()
    });
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let line = commit.as_ref().map_or(version.clone(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=LASTHOP_VERSION_LINE={line}");
    if let Some(commit) = commit {
        println!("cargo::rustc-env=LASTHOP_VERSION_COMMIT={commit}");
    }
}

/// The commit in an archive of `git archive`, which replaces the text of `commit.txt`.
fn archived() -> Option<String> {
    let text = std::fs::read_to_string("commit.txt").ok()?;
    let shortened = text.trim().chars().take(12).collect();
    (!text.contains('$') && !text.trim().is_empty()).then_some(shortened)
}

/// The commit that is checked out, if this file belongs to the repository around it.
fn from_git() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // Sources that are unpacked in another repository are not of its commit.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let log = PathBuf::from(git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no", ":/"])?;
    Some(if changed.is_empty() { commit } else { commit + "-changed" })
}
