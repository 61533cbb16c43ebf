//! Keys that a word of another program or a typing error may mean.

use super::{Like, Site, find_key, of_transfer};
use crate::schema;
use crate::synonyms::{meaning, same};

/// The keys of `--set` with the meaning of `word` in a scenario with a link and a radio, such as `link.rate` and
/// `radio.rate` for `bandwidth`. Empty if no key has this meaning.
pub fn settings(word: &str) -> Vec<String> {
    settings_by(word, same)
}

/// [`settings`], also for a `word` with a typing error.
pub fn settings_like(word: &str) -> Vec<String> {
    settings_by(word, meaning)
}

fn settings_by(word: &str, like: Like) -> Vec<String> {
    let top = schema::keys("scenario").iter().filter(|key| **key != "name");
    // Keys of agents have common names, such as `buffer`. A user seldom means them.
    let bare = top.chain(&["agent"]).chain(schema::keys("host")).chain(schema::stage_keys("radio"));
    let mut known: Vec<(&str, String)> = bare.map(|key| (*key, (*key).to_owned())).collect();
    let stages = vec![(None, "link"), (None, "radio")];
    known.extend(Site { number: None, cell: None, stages }.inner_keys());
    known.extend(of_transfer());
    find_key(word, &known, like)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_same_meaning_lead_to_dotted_keys() {
        for word in ["rate", "bandwidth", "speed"] {
            assert_eq!(settings(word), ["link.rate", "radio.rate"], "{word}");
        }
        for (word, key) in [
            ("tcp", "tcp"),
            ("congestion_control", "tcp"),
            ("mtu", "mss"),
            ("size", "transfer.bytes"),
            ("flows", "transfer.count"),
            ("timeout", "horizon"),
            ("seed", "seed"),
            ("pep", "agent"),
            ("plr", "link.frame-loss"),
            ("jitter", "link.jitter"),
        ] {
            assert_eq!(settings(word).first().map(String::as_str), Some(key), "{word}");
        }
        assert!(settings("buffer").contains(&"link.queue".to_owned()));
        assert_eq!(settings("colour"), [""; 0]);
        assert_eq!(settings("bandwith"), [""; 0]);
        assert_eq!(settings_like("bandwith"), ["link.rate", "radio.rate"]);
    }
}
