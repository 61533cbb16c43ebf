//! Numbers of the protocols above IP.

/// The IP protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// The IP protocol number of UDP (RFC 768).
pub const PROTOCOL_UDP: u8 = 17;
/// The IP protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;
/// The IP protocol number of ICMPv6.
pub const PROTOCOL_ICMPV6: u8 = 58;
