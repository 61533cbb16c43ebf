//! CPU time of the kernel's TCP, separately for sender and receiver.
//!
//! Two hosts are joined by cables without rate limit, delay or queue. Only the two TCPs and the cable work,
//! so CPU time per byte does not depend on a rate. On one machine the kernel normally does the receiver's
//! work in the sender's context. A thread that sends into a `veth` continues in softirq context as the
//! receiver's TCP, and that time counts as its own. So each cable receives in a thread of the receiving end
//! (threaded NAPI). Then the work of the ends is
//!
//! ```text
//!   sender    the thread that writes, and `napi/...s`: ACKs and the segments that they release
//!   receiver  the thread that reads, and `napi/...r`: segments and their ACKs
//! ```
//!
//! each with its own CPU clock, accurate to the nanosecond and independent of other processes. The cost is a
//! wakeup per thread. Cables without such threads are measured as well; there only the sum of both ends has a
//! meaning ([`Wire::apart`]).
//!
//! A `veth` receives by NAPI only if GRO is on and its other end does not send super-packets (TSO), so
//!
//! - without offloads GRO is on but must not merge (`gro_max_size 1`), and TCP must not make super-packets
//!   (`gso_max_segs 1`). Since Linux 4.17 TCP makes them even for interfaces without TSO;
//! - with offloads GSO and GRO are on, and TSO is off, as with most wireless cards.
//!
//! A congestion window of at most [`FLIGHT`] segments stays below the 256 packets of a `veth`'s queue, so no
//! packet is lost. The kernel stores this bound in its cached metrics of the path, so the cache is enabled;
//! the routes lock the other metrics.

mod cable;
mod place;
mod threads;
mod transfer;

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_observe::cpu_time::{About, Case, Change, Sample, Wire};

use self::cable::Cable;
use super::error::{Error, Tried as _};
use super::{HostSpec, Net, NetSpec, Preset, Side, preset};
use crate::endpoint;

/// Name of the sending host.
pub const SENDER: &str = "ravel";

/// Name of the receiving host.
pub const RECEIVER: &str = "chopin";

/// Largest flight, segments.
pub const FLIGHT: u32 = 200;

/// Largest segment, bytes: the cables' MTU of 9000 without headers.
pub const MOST_MSS: u16 = 8960;

/// Smallest segment size of the kernel, bytes.
pub const LEAST_MSS: u16 = 88;

/// Port of the receiver.
const PORT: u16 = 5001;

/// Bytes of the transfer that tests a cable.
const TRIAL: u64 = 1 << 20;

/// Two hosts and the cables between them.
#[derive(Debug)]
pub struct Laboratory {
    net: Net,
    cables: Vec<Cable>,
    listener: TcpListener,
    about: About,
    /// Counters of the hosts after the last transfer, the base of the next one.
    counted: Option<transfer::EndCounters>,
    /// Whether each cable has carried a test transfer.
    tried: bool,
}

impl Laboratory {
    /// Makes the calling process the owner of two hosts in a private network, for its lifetime.
    ///
    /// # Errors
    ///
    /// As [`Net::enter`]. Also if the kernel cannot separate the work of the ends: it is older than Linux
    /// 5.17 or iproute2 5.18, or a container hides its threads or /sys.
    pub fn enter() -> Result<Laboratory, Error> {
        let host = |name, side, last| {
            HostSpec::new(name, side, Ipv4Addr::new(10, 0, 0, last).into())
                .preset(Preset::LinuxCubic)
        };
        let mut hosts = vec![host(SENDER, Side::Left, 1), host(RECEIVER, Side::Right, 2)];
        for host in &mut hosts {
            host.v6 = None;
        }
        let net = Net::enter(&NetSpec { station: "verdi".to_owned(), offloads: false, hosts })?;
        net.in_host(SENDER, || preset::write_sysctl("ipv4/tcp_no_metrics_save", "0"))??;
        let cables = cable::lay(&net)?;
        let address = (Ipv4Addr::UNSPECIFIED, PORT).into();
        let listener = net
            .in_host(RECEIVER, || endpoint::listen(address))?
            .map_err(|error| Error::new(error.to_string(), error.help()))?;
        listener.set_nonblocking(false).tried(|| "set up a socket")?;
        let about = place::place(&cables)?;
        let mut laboratory =
            Laboratory { net, cables, listener, about, counted: None, tried: false };
        laboratory.try_cables()?;
        Ok(laboratory)
    }

    /// Makes one small transfer on each cable from each address, so that faults show before the measurement.
    /// It also stores the bound of the congestion window in the kernel's metrics for later transfers.
    fn try_cables(&mut self) -> Result<(), Error> {
        let unwanted = AtomicBool::new(false);
        for wire in Wire::ALL {
            for change in [Change::Base, Change::QuickAcks] {
                self.measure(Case { mss: 1460, wire, change }, TRIAL, &unwanted)?;
            }
        }
        self.tried = true;
        Ok(())
    }

    /// The machine.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Interfaces of a cable: the sender's and the receiver's.
    pub fn interfaces(&self, wire: Wire) -> Option<(&str, &str)> {
        let cable = self.cables.iter().find(|cable| cable.wire == wire)?;
        Some((&cable.ends[0].interface, &cable.ends[1].interface))
    }

    /// The network, for access to its hosts.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// Measures every case once per round. `report` receives each sample, and returns whether to continue.
    /// Every second round is reversed, so that no case always follows the same one.
    ///
    /// # Errors
    ///
    /// If a transfer fails, or does not match its case.
    pub fn run(
        &mut self,
        cases: &[Case],
        bytes: u64,
        rounds: u32,
        stop: &AtomicBool,
        mut report: impl FnMut(Sample) -> bool,
    ) -> Result<(), Error> {
        for round in 0..rounds {
            for place in 0..cases.len() {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let place = place_in(round, place, cases.len());
                let sample = match self.measure(cases[place], bytes, stop) {
                    _ if stop.load(Ordering::Relaxed) => return Ok(()),
                    sample => sample?,
                };
                if !report(Sample { case: place, round, ..sample }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The case at position `place` of a round; every second round is reversed.
fn place_in(round: u32, place: usize, count: usize) -> usize {
    if round.is_multiple_of(2) { place } else { count - 1 - place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_round_goes_backwards() {
        let order = |round| [0, 1, 2].map(|place| place_in(round, place, 3));
        assert_eq!([0, 1, 2, 3].map(order), [[0, 1, 2], [2, 1, 0], [0, 1, 2], [2, 1, 0]]);
    }
}
