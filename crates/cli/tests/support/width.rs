//! Output on terminals of different widths: lines fit, and no word is truncated.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Widths of terminals.
const WIDTHS: [u16; 3] = [40, 80, 120];

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).current_dir(dir).env("NO_COLOR", "1").env("TERM", "xterm");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// Output of a command on a terminal with `columns` columns.
fn on_terminal(dir: &Path, arguments: &[&str], columns: u16) -> String {
    let size = nix::pty::Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = nix::pty::openpty(Some(&size), None).expect("a pseudo-terminal");
    let mut command = command(dir, arguments);
    let mut child = command.stdout(Stdio::from(pty.slave)).spawn().expect("it starts");
    // The command also holds the terminal open.
    drop(command);
    let mut shown = Vec::new();
    // Linux reports the end of a pseudo-terminal as an error.
    let _ = File::from(pty.master).read_to_end(&mut shown);
    child.wait().expect("it ends");
    String::from_utf8_lossy(&shown).replace('\r', "")
}

/// Words without the borders of cells, the colons after names of cells, and pictures.
fn words(text: &str) -> BTreeSet<String> {
    let drawn = |c: char| ('\u{2500}'..='\u{28ff}').contains(&c) || c == '×' || c == '…';
    let split = text.split(|c: char| c.is_whitespace() && c != '\u{2009}' || drawn(c));
    split.map(|word| word.trim_end_matches(':').to_owned()).collect()
}

fn fits(arguments: &[&str], text: &str, width: u16) {
    for line in text.lines() {
        let drawn = |c: char| ('\u{2500}'..='\u{257f}').contains(&c);
        let alone =
            line.split(' ').filter(|word| !word.trim_matches(drawn).is_empty()).count() <= 1;
        let columns = lasthop_report::wrap::columns(line);
        assert!(
            columns <= width.into() || alone,
            "{arguments:?} at {width}: {columns} columns: {line}"
        );
    }
}

/// The main output of each command that needs neither network nor privileges.
#[test]
fn tables_and_words_fit_the_terminal() {
    let dir = tempfile::tempdir().expect("a directory");
    let here = dir.path();
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/warning.toml"));
    std::fs::copy(data, here.join("warning.toml")).expect("copied");
    let station = "left = \"left0\"\nright = \"right0\"\n[[path]]\nagent = \"snoop\"\n";
    std::fs::write(here.join("base.toml"), station).expect("written");
    let scenario = include_str!("../../../../scenarios/quickstart.toml");
    std::fs::write(here.join("quick.toml"), scenario).expect("written");
    let prepared = [
        &["run", "quick.toml", "--seeds", "2", "-o", "out"][..],
        &["trace", "make", "lte", "--rate", "12mbit", "-o", "lte.up"],
    ];
    for arguments in prepared {
        assert!(command(here, arguments).output().expect("it runs").status.success());
    }
    let capture = "out/trace/agent=none/link.pcapng";
    let commands: &[&[&str]] = &[
        &["list", "systems"],
        &["list", "claims"],
        &["list", "scenarios"],
        &["list", "schemes"],
        &["list", "presets"],
        &["list", "hardware"],
        &["run", "quick.toml", "--dry-run"],
        &[
            "run",
            "west97-lan",
            "--vary",
            "tcp=reno,sack",
            "--vary",
            "agent=none,snoop",
            "--dry-run",
        ],
        &["run", "quick.toml", "--seeds", "2"],
        &["run", "quick.toml", "--seeds", "2"],
        &["run"],
        &["compare", "quick.toml", "--seeds", "2", "--schemes", "sack,snoop,split,tulip"],
        &["compare", "quick.toml", "--seeds", "2", "--schemes", "sack,snoop", "--errors", "0,1%"],
        &[
            "advise", "--rate", "2mbit", "--loss", "2%", "--seeds", "2", "--quick", "--can",
            "sender",
        ],
        &[
            "advise",
            "--capture",
            capture,
            "--rate",
            "2mbit",
            "--seeds",
            "2",
            "--quick",
            "--can",
            "sender",
        ],
        &["energy", "slow-return", "--set", "agent=none", "--seeds", "2"],
        &["battery", "lte-m", "wifi-twt", "lora-sf7", "--seeds", "2"],
        &["explain", "W-F10", "--open"],
        &["explain", "W-F10", "--sets", "20", "--seeds", "1", "--again", "0", "-o", "explained"],
        &["reproduce", "W-F10", "--seeds", "2", "-o", "reproduced"],
        &["reproduce", "W-F10", "--seeds", "2", "-o", "reproduced", "--verbose"],
        &["analyze", capture],
        &["trace", "show", "lte.up"],
        &["report", "out"],
        &["doctor"],
        &["shell", "--help"],
        &["station", "base.toml", "--check"],
        &["station", "--help"],
        &["testbed", "list"],
        &["ctl", "--help"],
        &["ctl", "watch", "--help"],
        &["advise", "--help"],
        &["no-such-command"],
    ];
    for arguments in commands {
        let piped = command(here, arguments).output().expect("it runs").stdout;
        let wide = on_terminal(here, arguments, 300);
        // Narrow tables have other headings than wide ones.
        let narrow =
            "done wired gp wireless fast rx short 2/2 20/20 0/2 1/2 terminal colours with without";
        let mut known = words(&String::from_utf8_lossy(&piped));
        known.extend(words(&wide));
        known.extend(words(narrow));
        for width in WIDTHS {
            let text = on_terminal(here, arguments, width);
            fits(arguments, &text, width);
            // Pictures have their own scales, and numbers with intervals other digits; free memory changes.
            let numbers = |word: &String| {
                word.trim_end_matches("MiB").chars().all(|c| c.is_ascii_digit() || c == '.')
            };
            let shown = words(&text).into_iter().filter(|word| !numbers(word));
            let cut: Vec<String> = shown.filter(|word| !known.contains(word)).collect();
            assert!(cut.is_empty(), "{arguments:?} at {width}: {cut:?} in\n{text}");
        }
    }
}

/// A serial console does not report its size.
#[test]
fn a_terminal_without_a_size_has_80_columns() {
    let dir = tempfile::tempdir().expect("a directory");
    for arguments in [&["list", "schemes"][..], &["list", "systems"]] {
        let text = on_terminal(dir.path(), arguments, 0);
        assert_eq!(text, on_terminal(dir.path(), arguments, 80), "{arguments:?}");
        fits(arguments, &text, 80);
    }
}

/// Output for programs does not depend on the terminal.
#[test]
fn output_for_programs_ignores_the_terminal_width() {
    let dir = tempfile::tempdir().expect("a directory");
    for arguments in [
        &["list", "schemes", "--json"][..],
        &["battery", "lte-m", "--seeds", "1", "--json"],
        &["list", "scenarios", "--show", "quickstart"],
        &["generate", "completions", "bash"],
        &["generate", "schema"],
    ] {
        let piped = command(dir.path(), arguments).output().expect("it runs").stdout;
        assert_eq!(
            on_terminal(dir.path(), arguments, 40),
            String::from_utf8_lossy(&piped),
            "{arguments:?}"
        );
    }
}
