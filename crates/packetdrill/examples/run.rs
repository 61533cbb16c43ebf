//! Runs scripts against lasthop's TCP and prints a line for each: `cargo run --example run FILE...`.

use lasthop_packetdrill::run::own::Own;
use lasthop_packetdrill::run::{Rules, Verdict, play};
use lasthop_packetdrill::script::{FaultKind, Script};

fn main() {
    let trace = std::env::var_os("TRACE").is_some();
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let script = match Script::parse(&text) {
            Ok(script) => script,
            Err(fault) => {
                let kind = if fault.kind == FaultKind::Syntax { "fail" } else { "unsupported" };
                println!("{kind} {path}: {fault}");
                continue;
            }
        };
        let outcome = play(&script, &mut Own::default(), &Rules::default());
        if trace {
            for entry in &outcome.trace {
                println!(
                    "  {:.6} {:?} {:?} {}",
                    entry.at as f64 / 1e9,
                    entry.line,
                    entry.kind,
                    entry.text
                );
            }
        }
        match outcome.verdict {
            Verdict::Pass => println!("pass {path}"),
            Verdict::Fail { line, expected, got } => {
                println!("fail {path}:{line}: expected {expected}; got {got}");
            }
            Verdict::Unsupported { line, feature } => {
                println!("unsupported {path}:{line}: {feature}");
            }
        }
    }
}
