//! Forms of values in golden figures: JSON, bytes of packets, and positions of errors.

use std::fmt::Write;

use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::parse::View;
use lasthop_proto::wire::{Body, Damage, Packet};
use lasthop_scenario::Diagnostic;
use serde::Serialize;

use super::Digest;

pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("text keys and finite numbers")
}

/// The kind, the key and the position of an error or a warning in `text`. Its message may list the names of a registry.
pub fn position(diagnostic: &Diagnostic, text: &str) -> String {
    let (line, column) = diagnostic.at.line_column(text);
    format!("{} {} {line}:{column}", diagnostic.code, diagnostic.key)
}

fn damage(damage: Damage) -> &'static str {
    match damage {
        Damage::None => "intact",
        Damage::Ip => "ip damaged",
        Damage::Tcp => "tcp damaged",
    }
}

/// Adds the header of a packet in the form of the wire.
pub fn headers(packet: &Packet, digest: &mut Digest) {
    let mut bytes = Vec::new();
    match emit(packet, &mut bytes) {
        Ok(_) => digest.bytes(&bytes[..bytes.len().saturating_sub(packet.body.len() as usize)]),
        Err(error) => {
            let _ = write!(digest, "{error}");
        }
    }
    let _ = write!(digest, "{} {}", damage(packet.damage), packet.piece);
}

/// Adds what a packet's bytes were parsed to.
pub fn viewed(view: &View, digest: &mut Digest) {
    let View { src, dst, tos, ttl, ip_id, body_at, body_len, captured, .. } = view;
    let _ = write!(digest, "{src} {dst} {tos} {ttl} {ip_id} {body_at} {body_len} {captured}");
    if let Some(error) = &view.bad_option {
        let _ = write!(digest, "{error}");
    }
    let packet = Packet::opaque(*src, *dst, view.transport.clone(), Body::EMPTY);
    headers(&packet.with(|parts| parts.damage = view.damage), digest);
}
