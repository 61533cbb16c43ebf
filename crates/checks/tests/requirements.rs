//! A test that cannot run is reported, and fails in CI.

use std::process::Command;

use crate::can_run::can_run;

#[test]
#[ignore = "what the other one runs"]
fn lacks_something() {
    assert!(!can_run(false, "what no machine has"));
}

#[test]
fn unrunnable_tests_are_listed_and_fail_in_ci() {
    assert!(can_run(true, "nothing"));
    let list = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("not-run.txt");
    let _ = std::fs::remove_file(&list);
    let run = |ci: Option<&str>| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--ignored", "--exact", "requirements::lacks_something"])
            .env("LASTHOP_NOT_RUN", &list);
        command.env_remove("CI").envs(ci.map(|ci| ("CI", ci)));
        command.output().unwrap().status.success()
    };
    assert!(run(None));
    let listed = std::fs::read_to_string(&list).unwrap();
    assert_eq!(
        listed,
        "lasthop-checks all: requirements::lacks_something needs what no machine has\n"
    );
    assert!(!run(Some("true")));
}
