//! Tests that start their program again, for themselves alone.

use std::process::Command;

/// Arguments that select the test of this name, which may lack the names of its modules.
pub fn only(name: &str) -> [String; 2] {
    let program = std::env::current_exe().expect("a test has a file");
    let listed = Command::new(program).args(["--list", "--format", "terse"]).output();
    let listed = String::from_utf8(listed.expect("it starts").stdout).expect("names");
    let mut paths = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let path = paths.find(|path| {
        path.rsplit_once(name).is_some_and(|(modules, rest)| {
            rest.is_empty() && (modules.is_empty() || modules.ends_with("::"))
        })
    });
    ["--exact".to_owned(), path.unwrap_or_else(|| panic!("no test {name}")).to_owned()]
}
