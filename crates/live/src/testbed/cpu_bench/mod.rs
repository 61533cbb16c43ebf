//! CPU time of the kernel's TCP, sender and receiver apart.
//!
//! Two hosts are joined by cables without a rate, a delay or a queue: nothing but the two TCPs and the cable is at
//! work, so CPU time per byte needs no limit of the rate. What makes the ends inseparable on one machine is that the
//! kernel does the receiver's work where the sender's ends: a thread that sends into a `veth` goes on, in softirq
//! context, as the receiver's TCP, and the time is counted as its own. So the cables are made in such a way that what
//! arrives is taken in by a thread of the receiving end (threaded NAPI): its work is
//!
//! ```text
//!   sender    the thread that writes, and `napi/...s`: ACKs and what they let out
//!   receiver  the thread that reads, and `napi/...r`: segments and the ACKs for them
//! ```
//!
//! each with a CPU clock of its own, exact to the nanosecond and not disturbed by what else runs. The price is that a
//! thread has to be woken; cables without such threads are measured beside them, where only the sum of both ends has a
//! meaning ([`Wire::apart`]).
//!
//! A `veth` takes packets in by NAPI only if GRO is on and its other end does not send super-packets (TSO), so
//!
//! - without offloads GRO is on and may not join anything (`gro_max_size 1`), and TCP may not make super-packets
//!   (`gso_max_segs 1`: since Linux 4.17 it does so even where the interface cannot take them);
//! - with offloads GSO and GRO are on, and TSO is off, as with most wireless cards.
//!
//! A congestion window of at most [`FLIGHT`] segments keeps what is on its way below what a `veth` has room for, 256
//! packets: nothing is lost. The kernel keeps such a bound with what it remembers of the path, so it may remember; the
//! routes hold the rest of it constant.

mod cable;
mod place;
mod threads;
mod transfer;

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_trace::cpu_time::{About, Case, Change, Sample, Wire};

use self::cable::Cable;
use super::error::{Error, Tried as _};
use super::{HostSpec, Net, NetSpec, Preset, Side, preset};
use crate::endpoint;

/// The host that sends.
pub const SENDER: &str = "ravel";

/// The host that receives.
pub const RECEIVER: &str = "chopin";

/// Most segments on their way.
pub const FLIGHT: u32 = 200;

/// Largest segment: the MTU of the cables, 9000 bytes, without headers.
pub const MOST_MSS: u16 = 8960;

/// Smallest segment that a kernel makes.
pub const LEAST_MSS: u16 = 88;

/// Where the receiver listens.
const PORT: u16 = 5001;

/// Bytes of the transfer that shows whether a cable works.
const TRIAL: u64 = 1 << 20;

/// Two hosts and the cables between them.
#[derive(Debug)]
pub struct Laboratory {
    net: Net,
    cables: Vec<Cable>,
    listener: TcpListener,
    about: About,
    /// Counts of the hosts after the last transfer, which are those before the next one.
    counted: Option<transfer::Counted>,
    /// Whether each cable has carried something.
    tried: bool,
}

impl Laboratory {
    /// Makes the calling process the owner of two hosts in a private network, for as long as it lives.
    ///
    /// # Errors
    ///
    /// As [`Net::enter`]; or if the kernel cannot tell the ends' work apart: it is too old (Linux 5.17, iproute2
    /// 5.18), or hides its threads or /sys, as in a container.
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

    /// One small transfer on each cable from each address, so that what does not work is known before anything is
    /// measured. With its end the kernel keeps the bound of the congestion window for those that follow.
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

    /// The interfaces of a cable: the sender's and the receiver's.
    pub fn interfaces(&self, wire: Wire) -> Option<(&str, &str)> {
        let cable = self.cables.iter().find(|cable| cable.wire == wire)?;
        Some((&cable.ends[0].interface, &cable.ends[1].interface))
    }

    /// The network, to look into its hosts.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// Measures every case once in each round; each sample is handed to `told`, which says whether to go on. Every
    /// second round goes backwards, so that no case always follows the same one.
    ///
    /// # Errors
    ///
    /// If a transfer fails, or was not what its case says.
    pub fn run(
        &mut self,
        cases: &[Case],
        bytes: u64,
        rounds: u32,
        stop: &AtomicBool,
        mut told: impl FnMut(Sample) -> bool,
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
                if !told(Sample { case: place, round, ..sample }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Which of `count` cases comes at `place` of a round: every second round goes backwards.
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
