//! The keys of medium access and link layers.

use lasthop_proto::describe::{Form, Keys, Need, Value};
use lasthop_proto::link::{self, fec::Coding};
use lasthop_proto::mac;
use lasthop_proto::units::Bytes;

/// Visits the keys of all kinds of medium access and link layers, including unselected ones.
pub(crate) fn all(k: &mut Keys<'_>) {
    let words = |k: &mut Keys<'_>, key, words: Vec<&'static str>, description| {
        let default = Value::Keyword(words[0]);
        k.value(key, Form::Keyword(words), Need::Default, default, description);
    };
    let macs = mac::all_words().map(|mac| mac.word).collect();
    words(k, "mac", macs, "medium access: which station may send when");
    let layers = link::words().map(|layer| layer.word).collect();
    words(k, "link-layer", layers, "which frames are retransmitted, and when");
    fragment(k);
    Coding::keys(k);
    for mac in mac::all_words() {
        let _ = (mac.read)(k);
    }
    for layer in link::words() {
        let _ = (layer.read)(k, None);
    }
}

/// The longest piece of a packet that a frame carries.
pub(crate) fn fragment(k: &mut Keys<'_>) -> Option<u32> {
    let form = Form::or(vec!["none"], Bytes(16)..=Bytes(65_535));
    let description =
        "the longest piece of a packet that a frame carries; longer packets go in pieces";
    match k.value("fragment", form, Need::Default, Value::Keyword("none"), description) {
        Value::Size(bytes) => Some(bytes.0 as u32),
        _ => None,
    }
}
