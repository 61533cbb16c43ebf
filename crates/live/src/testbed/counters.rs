//! Counters of a host's kernel.

use std::fs;

use serde::{Deserialize, Serialize};

use super::error::{Error, Tried as _};
use super::net::Net;

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident = $table:literal $name:literal,)*) => {
        /// TCP and ICMPv4 counters of a host, as `nstat` shows them. Gauges are excluded, so every difference
        /// has a meaning.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Counters {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Counters {
            /// Differences to an earlier reading.
            #[must_use]
            pub fn since(&self, earlier: &Counters) -> Counters {
                Counters { $($field: self.$field.saturating_sub(earlier.$field),)* }
            }

            /// Each counter with the kernel's name, for example `TcpExtTCPTimeouts`.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((concat!($table, $name), self.$field),)*].into_iter()
            }

            fn parse(tables: &str) -> Counters {
                // A counter that the kernel lacks is zero.
                Counters { $($field: find(tables, $table, $name).unwrap_or(0),)* }
            }
        }
    };
}

counters! {
    /// Connections opened by the host.
    active_opens = "Tcp" "ActiveOpens",
    /// Connections accepted by the host.
    passive_opens = "Tcp" "PassiveOpens",
    /// Sent resets.
    out_resets = "Tcp" "OutRsts",
    /// Received segments, damaged ones included.
    in_segments = "Tcp" "InSegs",
    /// Sent segments without retransmissions.
    out_segments = "Tcp" "OutSegs",
    /// Retransmitted segments of all kinds.
    retransmitted = "Tcp" "RetransSegs",
    /// Segments dropped for an error in header or checksum.
    in_errors = "Tcp" "InErrs",
    /// Segments dropped for a wrong checksum.
    in_checksum_errors = "Tcp" "InCsumErrors",
    /// Retransmission timeouts.
    timeouts = "TcpExt" "TCPTimeouts",
    /// Timeouts that F-RTO or timestamps showed to be spurious.
    spurious_timeouts = "TcpExt" "TCPSpuriousRTOs",
    /// Retransmissions in fast recovery.
    fast_retransmitted = "TcpExt" "TCPFastRetrans",
    /// Retransmissions after a timeout.
    slow_start_retransmitted = "TcpExt" "TCPSlowStartRetrans",
    /// Lost retransmissions.
    lost_retransmissions = "TcpExt" "TCPLostRetransmit",
    /// Starts of fast recovery without SACK.
    reno_recoveries = "TcpExt" "TCPRenoRecovery",
    /// Starts of fast recovery with SACK.
    sack_recoveries = "TcpExt" "TCPSackRecovery",
    /// Recoveries that the ACK of all their data reverted.
    full_undos = "TcpExt" "TCPFullUndo",
    /// Recoveries that the ACK of a part reverted.
    partial_undos = "TcpExt" "TCPPartialUndo",
    /// Recoveries that reported duplicates reverted.
    dsack_undos = "TcpExt" "TCPDSACKUndo",
    /// Reverted reactions to a timeout.
    loss_undos = "TcpExt" "TCPLossUndo",
    /// Tail loss probes.
    loss_probes = "TcpExt" "TCPLossProbes",
    /// Duplicates that the peer reported.
    dsacks_received = "TcpExt" "TCPDSACKRecv",
    /// ACKs sent by the delayed-ACK timer.
    delayed_acks = "TcpExt" "DelayedACKs",
    /// Segments put into the out-of-order queue.
    out_of_order = "TcpExt" "TCPOFOQueue",
    /// Connections aborted after timeouts.
    aborted_on_timeout = "TcpExt" "TCPAbortOnTimeout",
    /// Received ICMP messages, damaged ones included.
    icmp_in = "Icmp" "InMsgs",
    /// ICMP messages with a wrong checksum.
    icmp_checksum_errors = "Icmp" "InCsumErrors",
}

impl Net {
    /// Current counters of a host's kernel.
    ///
    /// # Errors
    ///
    /// If the host does not exist, or the kernel does not provide counters.
    pub fn counters(&self, host: &str) -> Result<Counters, Error> {
        self.in_host(host, || {
            // `/proc/net` shows the namespace of the main thread, which is the base station's.
            let read = |name: &str| {
                let path = format!("/proc/thread-self/net/{name}");
                fs::read_to_string(&path).tried(|| format!("read {path}"))
            };
            Ok(Counters::parse(&(read("snmp")? + &read("netstat")?)))
        })?
    }
}

/// Finds a value in pairs of lines such as `Tcp: InSegs OutSegs` and `Tcp: 3 4`.
fn find(tables: &str, table: &str, name: &str) -> Option<u64> {
    let mut lines = tables.lines().filter_map(|line| line.split_once(": "));
    let (_, names) = lines.find(|(found, _)| *found == table)?;
    let (_, values) = lines.find(|(found, _)| *found == table)?;
    let index = names.split(' ').position(|found| found == name)?;
    values.split(' ').nth(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "\
Ip: Forwarding InReceives
Ip: 2 7
Tcp: InSegs OutSegs RetransSegs InErrs InCsumErrors MaxConn
Tcp: 30 20 4 3 2 -1
TcpExt: SyncookiesSent TCPTimeouts
TcpExt: 0 5
";

    #[test]
    fn counters_are_found_by_table_and_name() {
        let counters = Counters::parse(TABLES);
        let Counters { in_segments, retransmitted, in_checksum_errors, timeouts, .. } = counters;
        assert_eq!((in_segments, retransmitted, in_checksum_errors, timeouts), (30, 4, 2, 5));
        assert_eq!(counters.delayed_acks, 0);
        assert!(counters.iter().any(|pair| pair == ("TcpExtTCPTimeouts", 5)));
    }

    #[test]
    fn since_subtracts_the_earlier_counters() {
        let earlier = Counters { timeouts: 2, in_segments: 30, ..Counters::default() };
        let since = Counters::parse(TABLES).since(&earlier);
        assert_eq!((since.timeouts, since.in_segments, since.retransmitted), (3, 0, 4));
    }

    #[test]
    fn tables_cut_short_count_nothing() {
        for end in 0..TABLES.len() {
            let _ = Counters::parse(&TABLES[..end]);
        }
        assert_eq!(Counters::parse("Tcp: InSegs\nTcp: x\n"), Counters::default());
    }
}
