//! The samples and pictures of README.md equal the output of the program.
//!
//! A comment `<!-- COMMAND; lines A-B -->` above a block names the command and the lines of its output.
//! `make readme` regenerates blocks and pictures.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::doc_commands::root;

fn output(dir: &Path, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .args(&words)
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{command}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

/// The text with regenerated samples.
fn regenerated(dir: &Path, text: &str) -> (String, usize) {
    let (mut made, mut rest, mut count) = (String::new(), text, 0);
    while let Some((before, behind)) = rest.split_once("<!-- lasthop ") {
        let (head, block) =
            behind.split_once(" -->\n```text\n").expect("a block below the comment");
        let (_, after) = block.split_once("```\n").expect("the block ends");
        let (command, lines) = head.split_once("; lines ").expect("which lines");
        let (first, last) = lines.split_once('-').expect("from, to");
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        let printed = output(dir, &format!("lasthop {command}"));
        let shown: String = printed
            .lines()
            .skip(first - 1)
            .take(last + 1 - first)
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        let more = if printed.lines().count() > last { "...\n" } else { "" };
        made += &format!(
            "{before}<!-- lasthop {head} -->\n```text\n$ lasthop {command}\n{shown}{more}```\n"
        );
        rest = after;
        count += 1;
    }
    (made + rest, count)
}

#[test]
fn samples_and_pictures_are_those_of_the_program() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = std::env::var_os("LASTHOP_WRITE_MANUAL").is_some();
    let path = root().join("README.md");
    let text = fs::read_to_string(&path).expect("it can be read");
    let (made, count) = regenerated(dir.path(), &text);
    assert!(count >= 2, "{count} samples");
    let mut wrong = Vec::new();
    let mut hold = |path: &Path, made: &str| {
        let old = fs::read_to_string(path).unwrap_or_default();
        if old != made {
            match write {
                true => fs::write(path, made).expect("written"),
                false => wrong.push(path.display().to_string()),
            }
        }
    };
    hold(&path, &made);
    // The pictures of the demonstration: of the seed nearest to the medians, which it names.
    let demonstration = output(dir.path(), "lasthop run");
    let seed = demonstration.split_once("of seed ").and_then(|(_, rest)| rest.split_once(':'));
    let seed = seed.expect("the seed is named").0;
    assert!(text.contains(&format!("of seed {seed},")), "README names seed {seed}");
    for (name, agent) in [("without-snoop", "none"), ("with-snoop", "snoop")] {
        let run = format!(
            "lasthop run quickstart --seeds 1 --set seed={seed} --set agent={agent} -o {name}"
        );
        output(dir.path(), &run);
        let picture =
            fs::read_to_string(dir.path().join(format!("{name}/trace/run/sequence-1.svg")));
        hold(&root().join(format!("docs/pictures/{name}.svg")), &picture.expect("a picture"));
    }
    assert!(wrong.is_empty(), "out of date: {}; `make readme` writes them again", wrong.join(", "));
}
