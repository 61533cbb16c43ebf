//! `lasthop list presets`: two separate lists.
//!
//! Every rule of lasthop's TCP can be chosen. The kernel's TCP has only its existing settings.

use lasthop_proto::tcp::config::{PRESETS, TcpConfig};
use serde::Serialize;

use crate::failure::Failure;
use crate::{format, output, style};
use output::two_columns;

/// A preset for a program.
#[derive(Serialize)]
#[serde(rename_all = "lowercase", tag = "of")]
enum Row {
    /// Of lasthop's own TCP.
    Lasthop { name: &'static str, what: &'static str, tcp: Option<Box<TcpConfig>> },
    /// Of the kernel's TCP.
    #[cfg(live)]
    Kernel {
        name: &'static str,
        what: &'static str,
        settings: Vec<lasthop_live::testbed::preset::Setting>,
    },
}

/// Prints both lists.
pub fn list(json: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(format::LIST, &serde_json::json!({ "presets": rows() }));
    }
    let mut text =
        style::heading("lasthop's own TCP, for `preset = \"...\"` of a host in a scenario") + "\n";
    text += &indented(&two_columns(PRESETS.iter().copied()));
    #[cfg(live)]
    {
        use lasthop_live::testbed::Preset;
        text += "\n";
        text += &style::heading("the kernel's TCP, for `lasthop testbed up --preset ...`");
        text += "\n";
        let rows = Preset::ALL.into_iter().map(|preset| (preset.name(), preset.description()));
        text += &indented(&two_columns(rows));
    }
    output::print(&text)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn rows() -> Vec<Row> {
    let own = PRESETS.iter().map(|&(name, what)| Row::Lasthop {
        name,
        what,
        tcp: TcpConfig::preset(name).map(Box::new),
    });
    #[cfg(live)]
    let own = own.chain(lasthop_live::testbed::Preset::ALL.into_iter().map(|preset| Row::Kernel {
        name: preset.name(),
        what: preset.description(),
        settings: preset.settings().collect(),
    }));
    own.collect()
}
