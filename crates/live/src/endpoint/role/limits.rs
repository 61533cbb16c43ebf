//! Limits of roles, in total and for each client.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use lasthop_proto::units::{Span, Time};

use super::Refusal;

/// Limits of roles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoleLimits {
    /// Longest duration of a connection with a role.
    pub duration: Span,
    /// Most bytes that a download sends.
    pub bytes: u64,
    /// Most payload of datagrams to a client, bytes per second.
    pub udp_rate: u64,
    /// Most new roles in one second, of all clients.
    pub per_second: u32,
    /// Most new roles in one second, of one client.
    pub client_per_second: u32,
    /// Most connections with a role at the same time, of one client.
    pub client_at_once: usize,
}

impl Default for RoleLimits {
    /// Two minutes, 64 GiB, datagrams at 100 Mb/s, and 256 new roles per second. A client may have 64 of these, and 56
    /// at the same time: a measurement with 24 streams in each direction needs 50.
    fn default() -> RoleLimits {
        RoleLimits {
            duration: Span::secs(120),
            bytes: 64 << 30,
            udp_rate: 12_500_000,
            per_second: 256,
            client_per_second: 64,
            client_at_once: 56,
        }
    }
}

/// The client of an address. One site has the addresses of a 64-bit network of IPv6, so these are one client.
pub(in crate::endpoint) fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_unicast_link_local() => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        other => other,
    }
}

/// Counts the new roles of the present second.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Admission {
    since: Time,
    count: u32,
    /// At most as many clients as new roles.
    clients: BTreeMap<IpAddr, u32>,
}

impl Admission {
    pub(in crate::endpoint) fn new() -> Admission {
        Admission { since: Time::ZERO, count: 0, clients: BTreeMap::new() }
    }

    /// Counts a new role of `client`, which has `open` connections with roles.
    ///
    /// # Errors
    ///
    /// A limit is reached.
    pub(in crate::endpoint) fn admit(
        &mut self,
        client: IpAddr,
        open: usize,
        limits: &RoleLimits,
        now: Time,
    ) -> Result<(), Refusal> {
        if now.since(self.since) >= Span::secs(1) {
            (self.since, self.count) = (now, 0);
            self.clients.clear();
        }
        let begun = self.clients.get(&client).copied().unwrap_or(0);
        if open >= limits.client_at_once || begun >= limits.client_per_second {
            return Err(Refusal::Client);
        }
        if self.count >= limits.per_second {
            return Err(Refusal::Busy);
        }
        self.count += 1;
        self.clients.insert(client, begun + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "192.0.2.1";
    const B: &str = "192.0.2.2";

    fn of(text: &str) -> IpAddr {
        client(text.parse().unwrap())
    }

    #[test]
    fn the_rate_limit_restarts_each_second() {
        let limits = RoleLimits { per_second: 2, ..RoleLimits::default() };
        let mut admission = Admission::new();
        let at = |ms| Time::ZERO + Span::millis(ms);
        let admitted = [0, 10, 20, 999, 1000, 1001, 1002]
            .map(|ms| admission.admit(of(A), 0, &limits, at(ms)).is_ok());
        assert_eq!(admitted, [true, true, false, false, true, true, false]);
    }

    /// Requests of a client above its limit do not count, so other clients can use the remaining roles.
    #[test]
    fn a_client_may_use_only_part_of_the_limit() {
        let limits = RoleLimits {
            per_second: 4,
            client_per_second: 2,
            client_at_once: 3,
            ..RoleLimits::default()
        };
        let mut admission = Admission::new();
        let mut admit = |address, open| admission.admit(of(address), open, &limits, Time::ZERO);
        assert_eq!(admit(A, 3), Err(Refusal::Client));
        assert_eq!([admit(A, 0), admit(A, 1), admit(A, 2)], [Ok(()), Ok(()), Err(Refusal::Client)]);
        assert_eq!([admit(B, 0), admit(B, 1)], [Ok(()), Ok(())]);
        assert_eq!(admit("192.0.2.3", 0), Err(Refusal::Busy));
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_ne!(of("fe80::1"), of("fe80::2"));
        assert_eq!(of("::ffff:192.0.2.1"), of(A));
    }
}
