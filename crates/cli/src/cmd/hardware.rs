//! `lasthop list hardware`.

use std::fmt::Write as _;

use lasthop_proto::energy::{Hardware, PRESETS};
use serde::Serialize;

use crate::failure::Failure;
use crate::{format, output, style};

#[derive(Serialize)]
struct Row {
    about: &'static str,
    source: &'static str,
    #[serde(flatten)]
    hardware: Hardware,
}

/// Prints the presets.
pub fn list(json: bool) -> Result<(), Failure> {
    let rows = PRESETS.iter().map(|preset| Row {
        about: preset.about,
        source: preset.source,
        hardware: preset.hardware(),
    });
    if json {
        return output::print_json(
            format::LIST,
            &serde_json::json!({ "hardware": rows.collect::<Vec<_>>() }),
        );
    }
    let width = PRESETS.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Row { about, source, hardware } in rows {
        let Hardware { name, capacity, base, radio, segment } = hardware;
        // Padded before colours are added, which have no width.
        let _ = writeln!(text, "{}  {about}", style::heading(&format!("{name:<width$}")));
        let _ = writeln!(
            text,
            "{:<width$}  {:.1} Wh, base {}, doze {}, idle {}, receive {}, transmit {}; a full segment {}",
            "",
            capacity.watt_hours(),
            watts(base.get()),
            watts(radio.doze.get()),
            watts(radio.idle.get()),
            watts(radio.receive.get()),
            watts(radio.transmit.get()),
            joules(segment.get()),
        );
        let _ = writeln!(text, "{:<width$}  {}", "", style::dim(source));
    }
    output::print(&text)
}

fn rounded(value: f64) -> String {
    let decimals = if value >= 10.0 { 1.0 } else { 100.0 };
    ((value * decimals).round() / decimals).to_string()
}

fn watts(watts: f64) -> String {
    match watts {
        0.0 => "0 W".to_owned(),
        w if w < 0.001 => format!("{} uW", rounded(w * 1e6)),
        w if w < 0.1 => format!("{} mW", rounded(w * 1e3)),
        w => format!("{} W", rounded(w)),
    }
}

fn joules(joules: f64) -> String {
    if joules < 0.001 {
        format!("{} uJ", rounded(joules * 1e6))
    } else {
        format!("{} mJ", rounded(joules * 1e3))
    }
}
