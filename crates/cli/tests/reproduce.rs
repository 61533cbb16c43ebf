//! `lasthop reproduce`: one line per claim, exit codes, and results stored between commands.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

struct Workdir(tempfile::TempDir);

impl Workdir {
    fn new() -> Workdir {
        Workdir(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("out/reproduce").join(name)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
        command.arg("reproduce").args(arguments.split_whitespace());
        command.current_dir(self.0.path()).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &str) -> (Option<i32>, String) {
        let Output { status, stdout, stderr } =
            self.command(arguments).output().expect("the program starts");
        // Files and runs are reported on stderr.
        let verbose = arguments.contains("--verbose");
        assert!(verbose || stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
        (status.code(), String::from_utf8(stdout).expect("text"))
    }

    fn claims(&self) -> Vec<Value> {
        let text = fs::read(self.path("claims.json")).expect("it was written");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Changes the stored reason of a claim.
    fn mark(&self, id: &str) {
        let path = self.path(&format!("claims/{id}.json"));
        let mut claim: Value =
            serde_json::from_slice(&fs::read(&path).expect("kept")).expect("JSON");
        claim["result"]["reason"] = "MARKED".into();
        fs::write(path, claim.to_string()).expect("written");
    }
}

#[test]
fn claims_have_a_line_and_check_sets_exit_codes() {
    let workdir = Workdir::new();
    let (code, text) = workdir.run("west97 --seeds 2");
    assert_eq!(code, Some(0), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let claims = workdir.claims();
    for (line, claim) in lines.iter().zip(&claims) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..2], [claim["id"].as_str().unwrap(), claim["verdict"].as_str().unwrap()]);
    }
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    let count = |word: &str| claims.iter().filter(|claim| claim["verdict"] == word).count();
    let (all, holds, failed, undecided) =
        (claims.len(), count("holds"), count("fails"), count("undecided"));
    assert!(failed > 0 && undecided > 0, "two runs are too few: {text}");
    assert_eq!(holds + failed + undecided, all);
    let counts = format!("claims: {all}, holds: {holds}, fails: {failed}, undecided: {undecided}");
    assert_eq!(lines[all + 1], counts);
    assert!(lines.last().unwrap().ends_with("report.html"), "{text}");

    // The same from stored results, with the exit code for scripts.
    assert_eq!(workdir.run("west97 --seeds 2 --strict").0, Some(1));
    let good = claims.iter().find(|claim| claim["verdict"] == "holds").expect("one");
    let good = good["id"].as_str().unwrap();
    assert_eq!(workdir.run(&format!("{good} --seeds 2 --strict")).0, Some(0));
    let (_, verbose) = workdir.run(&format!("{good} --seeds 2 --verbose"));
    assert!(
        verbose.contains("What west97 leaves open") && verbose.contains("published"),
        "{verbose}"
    );
}

#[test]
fn the_report_has_the_claims_of_all_commands() {
    let workdir = Workdir::new();
    workdir.run("W-T2 --seeds 1");
    workdir.run("W-T1 --seeds 2");
    let claims: Vec<(Value, Value, Value)> = workdir
        .claims()
        .into_iter()
        .map(|mut claim| (claim["id"].take(), claim["seeds"].take(), claim["stale"].take()))
        .collect();
    assert_eq!(
        claims,
        [("W-T1".into(), 2.into(), false.into()), ("W-T2".into(), 1.into(), true.into())]
    );
    let page = fs::read_to_string(workdir.path("report.html")).expect("written");
    for part in [
        "claim-W-T1",
        "claim-W-T2",
        "Evaluated with 2 seeds",
        "Evaluated with 1 seed by lasthop 0.2.1, other seeds than in the last run",
        "lasthop reproduce W-T2 --seeds 1\nlasthop reproduce W-T1 --seeds 2",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn claims_of_related_work_are_listed_separately() {
    let workdir = Workdir::new();
    let (code, text) = workdir.run("C-DISCONNECTION W-T1 --seeds 1");
    assert_eq!(code, Some(0), "{text}");
    let counts: Vec<&str> = text.lines().filter(|line| line.starts_with("claims")).collect();
    assert_eq!(counts.len(), 2, "{text}");
    assert!(counts[0].starts_with("claims: 1, "), "{text}");
    assert_eq!(counts[1], "claims of related work: 1, holds: 1, fails: 0");
    let papers: Vec<Value> = workdir.claims().iter().map(|claim| claim["paper"].clone()).collect();
    assert_eq!(papers, ["west97", "related"]);
    let page = fs::read_to_string(workdir.path("report.html")).expect("written");
    let (own, related) = page.split_once("<h2>Related work</h2>").expect("a heading");
    assert!(own.contains("#claim-W-T1") && !own.contains("C-DISCONNECTION\">"), "{own}");
    assert!(related.contains("id=\"claim-C-DISCONNECTION\""), "{related}");
    assert!(page.contains("lasthop reproduce W-T1 C-DISCONNECTION --seeds 1"), "{page}");
}

#[test]
fn stored_claims_are_reused_for_equal_seeds_and_build() {
    let workdir = Workdir::new();
    workdir.run("W-T1 --seeds 1");
    workdir.mark("W-T1");
    let (_, text) = workdir.run("W-T1 --seeds 1");
    assert!(text.contains("MARKED") && text.contains("stored by an earlier run: 1"), "{text}");
    for other in ["W-T1 --seeds 2", "W-T1 --seeds 2 --fresh", "W-T1 --seeds 2 --json"] {
        let (_, text) = workdir.run(other);
        assert!(!text.contains("MARKED") && !text.contains("kept"), "{text}");
        workdir.mark("W-T1");
    }
    // A result of another build.
    let path = workdir.path("claims/W-T1.json");
    let stored = fs::read_to_string(&path).expect("kept");
    let stored: Value = serde_json::from_str(&stored).expect("JSON");
    let build = stored["origin"]["build"].as_str().expect("known").to_owned();
    fs::write(&path, stored.to_string().replace(&build, "other")).expect("written");
    let (_, text) = workdir.run("W-T1 --seeds 2");
    assert!(!text.contains("MARKED"), "{text}");
    // An unreadable file counts as missing.
    fs::write(&path, "{").expect("written");
    assert_eq!(workdir.run("W-T1 --seeds 2").0, Some(0));
}

#[cfg(unix)]
#[test]
fn after_an_interruption_the_same_command_resumes() {
    let workdir = Workdir::new();
    let arguments = "west97 --seeds 6";
    let mut child = workdir
        .command(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let first = workdir.path("claims/W-T1.json");
    while !first.exists() {
        assert!(child.try_wait().expect("asked").is_none(), "it has ended");
        std::thread::yield_now();
    }
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
    assert_eq!(child.wait().expect("ended").code(), Some(130));
    let before = workdir.claims().len();
    workdir.mark("W-T1");
    let (code, text) = workdir.run(arguments);
    assert_eq!(code, Some(0));
    assert!(text.contains("MARKED"), "{text}");
    assert!(text.contains(&format!("stored by an earlier run: {before} ")), "{text}");
    assert!(before < workdir.claims().len(), "it was not interrupted");
}

/// What depends on chance says so, and how many seeds would decide; a value without chance has no interval.
#[test]
fn a_verdict_that_depends_on_the_seeds_is_undecided() {
    let workdir = Workdir::new();
    workdir.run("W-T1 W-F9 --seeds 2");
    let claims = workdir.claims();
    let conditions = |id: &str| {
        let claim = claims.iter().find(|claim| claim["id"] == id).expect("evaluated");
        claim["conditions"].as_array().expect("conditions").clone()
    };
    let undecided = conditions("W-T1").into_iter().find(|c| c["verdict"] == "undecided");
    assert!(undecided.expect("two runs decide little")["interval95"].is_array());
    let reason =
        claims.iter().find(|claim| claim["id"] == "W-T1").expect("evaluated")["reason"].clone();
    assert!(reason.as_str().expect("text").contains("seeds would decide"), "{reason}");
    assert!(conditions("W-F9").iter().all(|c| c["interval95"].is_null()), "one run without errors");
}

#[test]
fn the_list_of_claims_has_the_verdicts_of_the_last_reproduction() {
    let list = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_lasthop")).args(arguments).output();
        String::from_utf8(output.expect("the program starts").stdout).expect("text")
    };
    let text = list(&["list", "claims"]);
    // Claims of other works are not part of the record.
    let apart = |line: &&str| line.starts_with("  C-") || line.starts_with("  M-");
    // Neither are studies without a published result.
    let (claims, _) = text.split_once("\nexperiments:").expect("studies follow the claims");
    let of_paper = claims.lines().filter(|line| line.starts_with("  ") && !apart(line));
    for line in of_paper {
        let verdict = line.split_whitespace().nth(1).expect("a verdict");
        // A star marks seeds of its own.
        let verdict = verdict.trim_end_matches('*');
        assert!(["holds", "fails", "undecided"].contains(&verdict), "{line}");
    }
    assert!(text.contains("verdicts and conditions that hold: lasthop 0.2.1 with seeds 1 to 20"));
    let answer: Value = serde_json::from_str(&list(&["list", "claims", "--json"])).expect("JSON");
    assert_eq!(answer["recorded"]["seeds"], 20);
    assert!(answer["claims"][0]["conditions"].is_array(), "{}", answer["claims"][0]);
}
