//! `lasthop plot`: figures of stored results.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn lasthop(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).current_dir(dir).env("NO_COLOR", "1").stdin(Stdio::null());
    command.output().expect("the program starts")
}

fn good(dir: &Path, arguments: &[&str]) {
    let output = lasthop(dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
}

/// The message of a command that fails with bad input.
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = lasthop(dir, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_figure_is_drawn_from_stored_results() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let dir = temporary.path();
    let set = ["--seeds", "3", "--set", "transfer.bytes=200kB", "-o", "results"];
    good(dir, &[&["run", "quickstart"], &set[..]].concat());
    let text = |name: &str| fs::read_to_string(dir.join(name)).expect("a figure");

    for kind in ["sequence", "window", "delay", "cdf", "sweep", "ranking"] {
        good(dir, &["plot", kind, "results"]);
        let svg = text(&format!("results/{kind}.svg"));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{kind}");
        // A paper has one theme.
        assert!(!svg.contains("prefers-color-scheme") && !svg.contains("var(--"), "{kind}");
    }
    assert!(text("results/cdf.svg").contains("throughput (Mbit/s)"));
    assert!(text("results/window.svg").contains("agent=snoop"));

    good(dir, &["plot", "cdf", "results", "--of", "timeouts", "-o", "timeouts.svg"]);
    good(dir, &["plot", "delay", "results", "--cell", "agent=snoop", "--dark", "-o", "delay.png"]);
    let png = fs::read(dir.join("delay.png")).expect("a figure");
    assert!(png.starts_with(b"\x89PNG"));

    let message = refused(dir, &["plot", "delay", "results", "--cell", "snoop"]);
    assert!(message.contains("agent=none; agent=snoop"), "{message}");
    let message = refused(dir, &["plot", "cdf", "results", "--of", "time"]);
    assert!(message.contains("transfer_time"), "{message}");
    let message = refused(dir, &["plot", "cdf", "results", "-o", "figure.jpg"]);
    assert!(message.contains(".svg or FILE.png"), "{message}");
}

#[test]
fn many_cells_are_heat_maps_and_a_ranking_has_its_ends() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let dir = temporary.path();
    let vary = [
        "--vary",
        "path.3.radio.rate=1mbit,2mbit,4mbit,8mbit,16mbit,32mbit,64mbit",
        "--vary",
        "path.3.errors.mean=16KiB,32KiB,64KiB,128KiB,256KiB,512KiB,1MiB",
    ];
    let set = [
        "--seeds",
        "1",
        "--set",
        "transfer.bytes=20kB",
        "--vary",
        "agent=none,snoop",
        "-o",
        "results",
    ];
    good(dir, &[&["run", "quickstart"], &set[..], &vary[..]].concat());
    let text = |name: &str| fs::read_to_string(dir.join("results").join(name)).expect("a figure");
    let height = |svg: &str| -> f64 {
        let (_, rest) = svg.split_once(" height=\"").expect("a height");
        rest.split('"').next().expect("a number").parse().expect("a number")
    };
    good(dir, &["plot", "sweep", "results"]);
    let svg = text("sweep.svg");
    assert!(svg.contains("all 98 cells"), "the figure states that it leaves nothing out");
    assert_eq!(svg.matches("fill-opacity").count() - svg.matches(".b-").count(), 98 + 9);
    for label in ["agent=snoop", "64mbit", "512KiB"] {
        assert!(svg.contains(label), "{label}");
    }
    good(dir, &["plot", "ranking", "results"]);
    let svg = text("ranking.svg");
    assert!(
        svg.contains("the 20 highest and the 20 lowest of 98 cells")
            && svg.contains("(58 cells between)")
    );
    assert!(height(&svg) < 1500.0);
    let page = text("report.html");
    assert!(page.contains("The 10 cells with the highest throughput") && page.contains("98 of 98"));
}
