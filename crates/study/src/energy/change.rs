//! Single changes to a TCP or its hop that may save energy.

use lasthop_proto::mac::MacConfig;
use lasthop_proto::tcp::config::{DelayedAck, Prediction, TcpConfig, Variant};
use lasthop_scenario::{Host, LeftOut, Scenario, StageKind};

use crate::Alternative;

/// The largest MSS on 802.11: its longest packet with LLC and SNAP, less the headers of IP and TCP.
const LARGE_MSS: u32 = 2296 - 40;
/// The threshold that turns RTS off: no frame is larger.
const NO_RTS: u32 = 2347;

/// The settings of a change, or the reason why it does not apply.
type Sets = Result<Vec<String>, &'static str>;

/// The applicable changes for the transfer between the two hosts `ends`, and the other changes with their reasons.
pub fn changes(scenario: &Scenario, ends: [usize; 2]) -> (Vec<Alternative>, Vec<LeftOut>) {
    let hosts = ends.map(|i| &scenario.hosts[i]);
    let (mut changes, mut left_out) = (Vec::new(), Vec::new());
    for (name, description, sets) in of_tcp(hosts).into_iter().chain(of_hop(scenario)) {
        match sets {
            Ok(sets) => changes.push(Alternative::setting(name, description, sets)),
            Err(reason) => {
                left_out.push(LeftOut { name: name.to_owned(), reason: reason.to_owned() });
            }
        }
    }
    (changes, left_out)
}

/// A change's name, description and settings.
type Kind = (&'static str, &'static str, Sets);

/// Changes of the TCPs at both ends.
fn of_tcp(ends: [&Host; 2]) -> [Kind; 6] {
    let both = |of: fn(&TcpConfig) -> bool| ends.iter().all(|host| of(&host.tcp));
    let set = |key: &str, value: &str| -> Vec<String> {
        ends.iter().map(|host| format!("host.{}.{key}={value}", host.name)).collect()
    };
    let timestamps = both(|tcp| tcp.timestamps);
    [
        (
            "larger-mss",
            "packets of 2296 bytes, the most that 802.11 carries; every link of the path must carry them",
            match both(|tcp| tcp.mss >= LARGE_MSS) {
                true => Err("segments are as large already"),
                false => Ok(set("mss", &LARGE_MSS.to_string())),
            },
        ),
        (
            "no-timestamps",
            "no timestamps, and with them no check for old duplicates",
            if timestamps { Ok(set("timestamps", "false")) } else { Err("they are not in use") },
        ),
        ("no-sack", "no selective acknowledgements", no_sack(ends)),
        (
            "no-window-scale",
            "windows of at most 64 KB",
            match both(|tcp| tcp.window_scale) {
                true => Ok(set("window-scale", "false")),
                false => Err("it is not in use"),
            },
        ),
        (
            "predict-before-paws",
            "header prediction before the check of timestamps (agarwal00 4.4)",
            match both(|tcp| tcp.prediction == Prediction::BeforePaws) {
                _ if !timestamps => Err("without timestamps there is no check to skip"),
                true => Err("headers are predicted so already"),
                false => Ok(set("prediction", "before-paws")),
            },
        ),
        (
            "ack-by-time",
            "one ACK each 500 ms instead of one for each second segment",
            match both(|tcp| tcp.delayed_ack.every == DelayedAck::BY_TIME) {
                true => Err("time alone counts already"),
                false => Ok(set("delayed-ack", "{ every = \"none\", timeout = \"500ms\" }")),
            },
        ),
    ]
}

fn no_sack(ends: [&Host; 2]) -> Sets {
    if ends.iter().any(|host| !host.tcp.sack) {
        return Err("it is not in use");
    }
    if ends.iter().any(|host| host.tcp.variant == Variant::Rack) {
        return Err("RACK needs it");
    }
    let mut sets = Vec::new();
    for Host { name, tcp, .. } in ends {
        let needs_it = tcp.variant == Variant::Sack;
        sets.extend(needs_it.then(|| format!("host.{name}.tcp=newreno")));
        sets.push(format!("host.{name}.sack=false"));
    }
    Ok(sets)
}

/// Changes of the first hop with DCF.
fn of_hop(scenario: &Scenario) -> [Kind; 2] {
    let found = scenario.path.iter().enumerate().find_map(|(i, stage)| match &stage.kind {
        StageKind::Radio(radio) => match radio.hop.as_deref()?.mac {
            MacConfig::Dcf(ref dcf) => Some((i + 1, dcf.rts_threshold < NO_RTS)),
            _ => None,
        },
        _ => None,
    });
    let dcf = found.ok_or("the path has no hop with `mac = \"dcf\"`");
    let threshold = |i: usize, bytes: u32| Ok(vec![format!("path.{i}.dcf.rts-threshold={bytes}B")]);
    let rts = dcf.and_then(|(i, used)| match used {
        true => Err("it is in use already"),
        false => threshold(i, 1000),
    });
    let no_rts = dcf.and_then(|(i, used)| match used {
        true => threshold(i, NO_RTS),
        false => Err("it is not in use"),
    });
    [
        ("rts", "RTS and CTS before frames of more than 1000 bytes", rts),
        ("no-rts", "no RTS and CTS", no_rts),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "transfer = { from = \"a\", to = \"b\", bytes = \"1MB\" }\n[host.a]\npreset = \"linux\"\ntcp = \"sack\"\n\
                        [host.b]\npreset = \"linux\"\ntcp = \"sack\"\n[[path]]\nradio = { rate = \"11mbit\" }\nmac = \"dcf\"\n";

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
        let (changes, left_out) = named(
            &TEXT.replace("preset = \"linux\"\ntcp = \"sack\"", "preset = \"rfc\"\nmss = 2256"),
        );
        assert_eq!(changes, ["ack-by-time", "rts"]);
        assert_eq!(left_out.len(), 6);
        let (changes, _) = named(&(TEXT.to_owned() + "dcf = { rts-threshold = 500 }\n"));
        assert!(changes.contains(&"no-rts".to_owned()) && !changes.contains(&"rts".to_owned()));
        let (_, left_out) = named(&TEXT.replace("mac = \"dcf\"\n", ""));
        assert_eq!(left_out, ["rts", "no-rts"]);
    }
}
