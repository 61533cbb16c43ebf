//! What the kernel of a host counted.

use std::fs;

use serde::{Deserialize, Serialize};

use super::error::{Error, Tried as _};
use super::net::Net;

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident = $table:literal $name:literal,)*) => {
        /// Counters of a host's TCP and of ICMPv4, as `nstat` shows them. Gauges are not among them, so that a
        /// difference always has a meaning.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Counters {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Counters {
            /// What was counted since an earlier reading.
            #[must_use]
            pub fn since(&self, earlier: &Counters) -> Counters {
                Counters { $($field: self.$field.saturating_sub(earlier.$field),)* }
            }

            /// Each counter with the kernel's name for it, for example `TcpExtTCPTimeouts`.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((concat!($table, $name), self.$field),)*].into_iter()
            }

            fn parse(tables: &str) -> Counters {
                // A kernel that does not have a counter has counted nothing by it.
                Counters { $($field: find(tables, $table, $name).unwrap_or(0),)* }
            }
        }
    };
}

counters! {
    /// Connections that were opened from here.
    active_opens = "Tcp" "ActiveOpens",
    /// Connections that were accepted.
    passive_opens = "Tcp" "PassiveOpens",
    /// Resets that were sent.
    out_resets = "Tcp" "OutRsts",
    /// Segments that came in, damaged ones included.
    in_segments = "Tcp" "InSegs",
    /// Segments that were sent, without retransmissions.
    out_segments = "Tcp" "OutSegs",
    /// Segments that were sent again, for whatever reason.
    retransmitted = "Tcp" "RetransSegs",
    /// Segments that were thrown away for a fault in their header or checksum.
    in_errors = "Tcp" "InErrs",
    /// Those of them whose checksum was wrong.
    in_checksum_errors = "Tcp" "InCsumErrors",
    /// Retransmission time-outs.
    timeouts = "TcpExt" "TCPTimeouts",
    /// Time-outs that F-RTO or timestamps found to be unnecessary.
    spurious_timeouts = "TcpExt" "TCPSpuriousRTOs",
    /// Retransmissions in fast recovery.
    fast_retransmitted = "TcpExt" "TCPFastRetrans",
    /// Retransmissions after a time-out.
    slow_start_retransmitted = "TcpExt" "TCPSlowStartRetrans",
    /// Retransmissions that were lost again.
    lost_retransmissions = "TcpExt" "TCPLostRetransmit",
    /// Times that fast recovery began without SACK.
    reno_recoveries = "TcpExt" "TCPRenoRecovery",
    /// Times that fast recovery began with SACK.
    sack_recoveries = "TcpExt" "TCPSackRecovery",
    /// Tail loss probes.
    loss_probes = "TcpExt" "TCPLossProbes",
    /// Duplicates that the other side reported.
    dsacks_received = "TcpExt" "TCPDSACKRecv",
    /// ACKs that waited for their timer.
    delayed_acks = "TcpExt" "DelayedACKs",
    /// Segments that lay in the queue for reordering.
    out_of_order = "TcpExt" "TCPOFOQueue",
    /// Connections that were given up because of time-outs.
    aborted_on_timeout = "TcpExt" "TCPAbortOnTimeout",
    /// ICMP messages that came in, damaged ones included.
    icmp_in = "Icmp" "InMsgs",
    /// Those of them whose checksum was wrong.
    icmp_checksum_errors = "Icmp" "InCsumErrors",
}

impl Net {
    /// What the kernel of a host has counted until now.
    ///
    /// # Errors
    ///
    /// If there is no such host, or if the kernel does not say.
    pub fn counters(&self, host: &str) -> Result<Counters, Error> {
        self.in_host(host, || {
            // `/proc/net` belongs to the process, whose main thread is at the base station.
            let read = |name: &str| {
                let path = format!("/proc/thread-self/net/{name}");
                fs::read_to_string(&path).tried(|| format!("read {path}"))
            };
            Ok(Counters::parse(&(read("snmp")? + &read("netstat")?)))
        })?
    }
}

/// A value from pairs of lines such as `Tcp: InSegs OutSegs` and `Tcp: 3 4`.
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
    fn a_difference_counts_what_came_between() {
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
