//! Fingerprints of packets.

use lasthop_proto::wire::{FlowKey, Segment};

fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The part of a [`fingerprint`] that is common to all packets of a flow.
pub(crate) fn flow_print(flow: &FlowKey) -> u64 {
    let mut hash = 0;
    let mut add = |value: u64| hash = mix(hash, value);
    for addr in [flow.src, flow.dst] {
        match addr.ip() {
            core::net::IpAddr::V4(v4) => add(u64::from(v4.to_bits())),
            core::net::IpAddr::V6(v6) => {
                add((v6.to_bits() >> 64) as u64);
                add(v6.to_bits() as u64);
            }
        }
    }
    add(pair(flow.src_port.into(), flow.dst_port.into()));
    hash
}

/// A number that two packets share only if all fields that a router does not change are equal.
pub(crate) fn fingerprint(flow: u64, segment: &Segment, len: u32, ip_id: Option<u16>) -> u64 {
    let mut hash = mix(flow, u64::from(segment.flags.0));
    let mut add = |value: u64| hash = mix(hash, value);
    add(pair(segment.seq.0, segment.ack.0));
    add(pair(len, u32::from(segment.window) << 16 | u32::from(ip_id.unwrap_or(0))));
    if let Some(stamps) = segment.timestamps {
        add(pair(stamps.value, stamps.echo));
    }
    for (left, right) in segment.options().sack.as_slice() {
        add(pair(left.0, right.0));
    }
    // Sequence numbers and identifications grow together, and a product passes such differences on to few bits.
    mix(hash, hash >> 32)
}
