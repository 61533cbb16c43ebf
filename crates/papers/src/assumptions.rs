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

static ALL: LazyLock<BTreeMap<&str, Assumptions>> = LazyLock::new(|| {
    let read = |(key, folder, text): (&'static str, &str, &str)| match toml::from_str(text) {
        Ok(assumptions) => (key, assumptions),
        Err(error) => panic!("crates/papers/src/{folder}/assumptions.toml: {error}"),
    };
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
