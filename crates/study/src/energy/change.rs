//! What could be changed about a TCP or its hop to save energy, one thing each.

use lasthop_proto::link::HopConfig;
use lasthop_proto::mac::MacConfig;
use lasthop_proto::tcp::config::{DelayedAck, Prediction, TcpConfig, Variant};
use lasthop_scenario::{Host, LeftOut, Scenario, StageKind};

use crate::Alternative;

/// The longest packet that 802.11 carries with LLC and SNAP, less the headers of IP and TCP.
const LARGE_MSS: u32 = 2296 - 40;
/// What stands before the largest frame that is sent without RTS.
const NO_RTS: u32 = 2347;

/// What a change sets, or why it does not apply.
type Sets = Result<Vec<String>, &'static str>;

/// The two hosts of a transfer, and the scenario around them.
struct View<'a> {
    scenario: &'a Scenario,
    ends: [&'a Host; 2],
}

impl View<'_> {
    fn both(&self, of: impl Fn(&TcpConfig) -> bool) -> bool {
        self.ends.iter().all(|host| of(&host.tcp))
    }

    /// The same key at both ends.
    fn set(&self, key: &str, value: &str) -> Vec<String> {
        self.ends.iter().map(|host| format!("host.{}.{key}={value}", host.name)).collect()
    }

    fn larger_mss(&self) -> Sets {
        match self.both(|tcp| tcp.mss >= LARGE_MSS) {
            true => Err("segments are as large already"),
            false => Ok(self.set("mss", &LARGE_MSS.to_string())),
        }
    }

    fn no_timestamps(&self) -> Sets {
        match self.both(|tcp| tcp.timestamps) {
            true => Ok(self.set("timestamps", "false")),
            false => Err("they are not in use"),
        }
    }

    fn no_sack(&self) -> Sets {
        if !self.both(|tcp| tcp.sack) {
            return Err("it is not in use");
        }
        if self.ends.iter().any(|host| host.tcp.variant == Variant::Rack) {
            return Err("RACK needs it");
        }
        let mut sets = Vec::new();
        for host in self.ends {
            if host.tcp.variant == Variant::Sack {
                sets.push(format!("host.{}.tcp=newreno", host.name));
            }
            sets.push(format!("host.{}.sack=false", host.name));
        }
        Ok(sets)
    }

    fn no_window_scale(&self) -> Sets {
        match self.both(|tcp| tcp.window_scale) {
            true => Ok(self.set("window-scale", "false")),
            false => Err("it is not in use"),
        }
    }

    fn predict_before_paws(&self) -> Sets {
        if !self.both(|tcp| tcp.timestamps) {
            return Err("without timestamps there is no check to skip");
        }
        match self.both(|tcp| tcp.prediction == Prediction::BeforePaws) {
            true => Err("headers are predicted so already"),
            false => Ok(self.set("prediction", "before-paws")),
        }
    }

    fn ack_by_time(&self) -> Sets {
        match self.both(|tcp| tcp.delayed_ack.every == DelayedAck::BY_TIME) {
            true => Err("time alone counts already"),
            false => Ok(self.set("delayed-ack", "{ every = \"none\", timeout = \"500ms\" }")),
        }
    }

    /// The DCF of a radio hop, and its number in the path from 1.
    fn dcf(&self) -> Result<(usize, u32), &'static str> {
        let found = self.scenario.path.iter().enumerate().find_map(|(i, stage)| {
            let StageKind::Radio(radio) = &stage.kind else { return None };
            match radio.hop.as_deref() {
                Some(HopConfig { mac: MacConfig::Dcf(dcf), .. }) => {
                    Some((i + 1, dcf.rts_threshold))
                }
                _ => None,
            }
        });
        found.ok_or("the path has no hop with `mac = \"dcf\"`")
    }

    fn rts(&self) -> Sets {
        match self.dcf()? {
            (_, threshold) if threshold < NO_RTS => Err("it is in use already"),
            (i, _) => Ok(vec![format!("path.{i}.dcf.rts-threshold=1000B")]),
        }
    }

    fn no_rts(&self) -> Sets {
        match self.dcf()? {
            (i, threshold) if threshold < NO_RTS => {
                Ok(vec![format!("path.{i}.dcf.rts-threshold={NO_RTS}B")])
            }
            _ => Err("it is not in use"),
        }
    }
}

/// A change's name, what it is, and how it is made.
type Kind = (&'static str, &'static str, fn(&View<'_>) -> Sets);

const KINDS: [Kind; 8] = [
    (
        "larger-mss",
        "packets of 2296 bytes, the most that 802.11 carries; every link of the path must carry them",
        |view| view.larger_mss(),
    ),
    ("no-timestamps", "no timestamps, and with them no check for old duplicates", |view| {
        view.no_timestamps()
    }),
    ("no-sack", "no selective acknowledgements", |view| view.no_sack()),
    ("no-window-scale", "windows of at most 64 KB", |view| view.no_window_scale()),
    (
        "predict-before-paws",
        "header prediction before the check of timestamps (agarwal00 4.4)",
        |view| view.predict_before_paws(),
    ),
    ("ack-by-time", "one ACK each 500 ms instead of one for each second segment", |view| {
        view.ack_by_time()
    }),
    ("rts", "RTS and CTS before frames of more than 1000 bytes", |view| view.rts()),
    ("no-rts", "no RTS and CTS", |view| view.no_rts()),
];

/// What could be changed for the transfer between the two hosts `ends`, and what could not.
pub fn changes(scenario: &Scenario, ends: [usize; 2]) -> (Vec<Alternative>, Vec<LeftOut>) {
    let view = View { scenario, ends: ends.map(|i| &scenario.hosts[i]) };
    let (mut changes, mut left_out) = (Vec::new(), Vec::new());
    for (name, what, sets) in KINDS {
        match sets(&view) {
            Ok(sets) => changes.push(Alternative::setting(name, what, sets)),
            Err(reason) => {
                left_out.push(LeftOut { name: name.to_owned(), reason: reason.to_owned() });
            }
        }
    }
    (changes, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "transfer = { from = \"a\", to = \"b\", bytes = \"1MB\" }\n[host.a]\npreset = \"linux\"\n\
                        [host.b]\npreset = \"linux\"\n[[path]]\nradio = { rate = \"11mbit\" }\nmac = \"dcf\"\n";

    fn named(text: &str) -> (Vec<String>, Vec<String>) {
        let (plan, _) = lasthop_scenario::parse(text, "test", &[]).unwrap();
        let (changes, left_out) = changes(&plan.cells[0].scenario, [0, 1]);
        for change in &changes {
            let arguments: Vec<_> =
                change.sets.iter().cloned().map(lasthop_scenario::Argument::Set).collect();
            let changed = lasthop_scenario::parse(text, "test", &arguments);
            let (changed, _) =
                changed.unwrap_or_else(|e| panic!("{}: {e}: {}", change.name, e.help));
            assert_ne!(changed.cells[0].scenario, plan.cells[0].scenario, "{}", change.name);
        }
        let left_out = left_out.into_iter().map(|left| left.name).collect();
        (changes.into_iter().map(|change| change.name).collect(), left_out)
    }

    #[test]
    fn each_change_changes_something_and_the_rest_is_left_out() {
        let (changes, left_out) = named(TEXT);
        assert_eq!(changes.len(), 7, "{changes:?}");
        assert_eq!(left_out, ["no-rts"]);
        let (changes, left_out) =
            named(&TEXT.replace("preset = \"linux\"", "preset = \"rfc\"\nmss = 2256"));
        assert_eq!(changes, ["ack-by-time", "rts"]);
        assert_eq!(left_out.len(), 6);
        let (changes, _) = named(&(TEXT.to_owned() + "dcf = { rts-threshold = 500 }\n"));
        assert!(changes.contains(&"no-rts".to_owned()) && !changes.contains(&"rts".to_owned()));
        let (_, left_out) = named(&TEXT.replace("mac = \"dcf\"\n", ""));
        assert_eq!(left_out, ["rts", "no-rts"]);
    }
}
