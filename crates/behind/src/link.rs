//! The description of a link: a scenario built by methods.

use std::path::PathBuf;

use crate::{Error, Network};

/// A link between the hosts *near* and *far*. All values are words as in scenario files, with the units of `tc`: `2mbit`, `20ms`, `1%`.
#[derive(Clone, Default, Debug)]
pub struct Link {
    rate: Option<String>,
    rate_back: Option<String>,
    delay: Option<String>,
    loss: Option<String>,
    queue: Option<String>,
    discipline: Option<String>,
    scenario: Option<String>,
    pub(crate) set: Vec<String>,
    pub(crate) capture: Option<PathBuf>,
}

/// Hosts and a transfer, which a scenario requires; the test makes the transfers.
const HOSTS: &str = r#"transfer = { from = "far", to = "near", bytes = "1B" }

[host.far]
side = "left"
[host.near]
side = "right"
"#;

/// Packets before a link that sets no queue: more than the 50 of a scenario, as in modern devices.
const QUEUE: &str = "1000p";

impl Link {
    /// A link that is infinitely fast, short and without losses.
    pub fn new() -> Link {
        Link::default()
    }

    /// Rate towards the near host, and from it unless [`Link::rate_back`] sets another one. Infinite by
    /// default.
    pub fn rate(mut self, rate: &str) -> Link {
        self.rate = Some(rate.to_owned());
        self
    }

    /// Rate from the near host.
    pub fn rate_back(mut self, rate: &str) -> Link {
        self.rate_back = Some(rate.to_owned());
        self
    }

    /// Delay of each direction, on top of queueing and transmission.
    pub fn delay(mut self, delay: &str) -> Link {
        self.delay = Some(delay.to_owned());
        self
    }

    /// Probability that a packet is lost, in either direction: `1%` or `0.01`. A bare `1` is rejected, since
    /// `tc` reads it as 1 %.
    pub fn loss(mut self, loss: &str) -> Link {
        self.loss = Some(loss.to_owned());
        self
    }

    /// Queue before the link in each direction, in packets (`50p`) or bytes (`64KiB`); 1000 packets by
    /// default.
    pub fn queue(mut self, queue: &str) -> Link {
        self.queue = Some(queue.to_owned());
        self
    }

    /// Queue discipline: `codel`, `fq-codel`, `pie` and others; drop-tail by default.
    pub fn discipline(mut self, discipline: &str) -> Link {
        self.discipline = Some(discipline.to_owned());
        self
    }

    /// Seed of all random draws.
    pub fn seed(self, seed: u64) -> Link {
        self.set(&format!("seed={seed}"))
    }

    /// Sets a key of the scenario, such as `link.jitter=5ms`. May be called repeatedly.
    pub fn set(mut self, assignment: &str) -> Link {
        self.set.push(assignment.to_owned());
        self
    }

    /// Uses the path of a scenario (text of a file in TOML) instead of the options above. Its left end is the
    /// far host.
    pub fn scenario(mut self, text: &str) -> Link {
        self.scenario = Some(text.to_owned());
        self
    }

    /// Writes the packets of both ends, with the causes of drops, to this pcapng file.
    pub fn capture(mut self, file: impl Into<PathBuf>) -> Link {
        self.capture = Some(file.into());
        self
    }

    /// Creates the two hosts and the link between them.
    ///
    /// # Errors
    ///
    /// An invalid value, with an example of a valid one; or a restriction of the system, with the remedy.
    pub fn start(&self) -> Result<Network, Error> {
        Network::start(self)
    }

    /// The scenario of the options.
    pub(crate) fn text(&self) -> Result<String, Error> {
        if let Some(text) = &self.scenario {
            return Ok(text.clone());
        }
        if let Some(loss) = self.loss.as_deref().filter(|loss| loss.trim().parse() == Ok(1.0)) {
            let help = "write `1%` for one packet in a hundred, or `100%` for all";
            return Err(Error::new(format!("a loss of `{loss}` would lose every packet"), help));
        }
        let back = self.rate_back.as_ref().or(self.rate.as_ref());
        let keys = [
            ("queue", Some(self.queue.as_deref().unwrap_or(QUEUE))),
            ("rate-right", self.rate.as_deref()),
            ("rate-left", back.map(String::as_str)),
            ("delay", self.delay.as_deref()),
            ("frame-loss", self.loss.as_deref()),
            ("discipline", self.discipline.as_deref()),
        ];
        let keys: Vec<String> = keys
            .into_iter()
            .filter_map(|(key, value)| Some(format!("{key} = {}", quoted(value?))))
            .collect();
        Ok(format!("{HOSTS}\n[[path]]\nname = \"link\"\nlink = {{ {} }}\n", keys.join(", ")))
    }
}

/// A word as a string of TOML.
fn quoted(word: &str) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text += &format!("\\u{:04X}", u32::from(c)),
            c => text.push(c),
        }
    }
    text + "\""
}
