//! Assumptions and open parameters of each paper's experiments, from its `assumptions.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use lasthop_report::model::Assumption;
use serde::Deserialize;

use crate::{Claim, Open, Paper};

/// The file of a paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Assumptions {
    assumed: Vec<Assumption>,
    /// By the name that a testbed refers to.
    #[serde(default)]
    open: BTreeMap<String, Vec<Open>>,
}

/// The error names the file and the line.
fn read(folder: &str, text: &str) -> Result<Assumptions, String> {
    toml::from_str(text)
        .map_err(|error| format!("crates/papers/src/{folder}/assumptions.toml: {error}"))
}

static ALL: LazyLock<BTreeMap<&str, Assumptions>> = LazyLock::new(|| {
    let west97 = include_str!("west97/assumptions.toml");
    let files = [
        ("west97", "west97", west97),
        ("experiments", "west97", west97),
        ("parsa98", "parsa98", include_str!("parsa98/assumptions.toml")),
        ("bakshi96", "bakshi96", include_str!("bakshi96/assumptions.toml")),
        ("balakrishnan97", "balakrishnan97", include_str!("balakrishnan97/assumptions.toml")),
        ("agarwal00", "agarwal00", include_str!("agarwal00/assumptions.toml")),
        ("related", "related", include_str!("related/assumptions.toml")),
        ("modern", "modern", include_str!("modern/assumptions.toml")),
    ];
    let read =
        |(key, folder, text)| (key, read(folder, text).unwrap_or_else(|error| panic!("{error}")));
    files.map(read).into()
});

impl Paper {
    /// Assumptions of its experiments where it is silent, each with the reason.
    ///
    /// # Panics
    ///
    /// If its file is malformed: it is part of this crate.
    pub fn assumed(&self) -> &'static [Assumption] {
        &ALL[self.key].assumed
    }
}

impl Claim {
    /// The open parameters of its testbed.
    ///
    /// # Panics
    ///
    /// If the paper's file is malformed or does not have the testbed: it is part of this crate.
    pub fn open(&self) -> &'static [Open] {
        self.testbed.map_or(&[], |testbed| &ALL[self.paper].open[testbed.open])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_has_assumptions_with_reasons() {
        for paper in crate::works() {
            let all = paper.assumed();
            assert!(!all.is_empty(), "{}", paper.key);
            assert!(all.iter().all(|a| !a.what.is_empty() && !a.why.is_empty()), "{}", paper.key);
        }
    }

    #[test]
    fn an_error_names_file_and_line() {
        let right = "[[assumed]]\nwhat = 'a'\nwhy = 'b'\n[[open.x]]\nkeys = ['k']\nassumed = '1'\n\
                     assumption = 'a'\nwhy = 'w'\nvalues = ";
        assert!(read("west97", &format!("{right}{{ log = [1, 2], unit = 'ms' }}")).is_ok());
        for (values, line) in
            [("{ log = [1] }", "line 9"), ("[1]", "line 9"), ("'x'\nmore = 1", "line 10")]
        {
            let error = read("west97", &format!("{right}{values}")).unwrap_err();
            assert!(error.contains("src/west97/assumptions.toml"), "{error}");
            assert!(error.contains(line), "{error}");
        }
        let error = read("west97", "[[assumed]]\nwhat = 'a'\nwhere = 'b'\n").unwrap_err();
        assert!(error.contains("line 3") && error.contains("where"), "{error}");
    }
}
