//! Hosts with other protocol stacks, as machines of the path.

use core::fmt::Debug;

use lasthop_proto::machine::Machine;
use lasthop_proto::units::Bytes;
use lasthop_proto::wire::{Addr, FlowKey};
use lasthop_scenario::Scenario;

/// A host with its own protocol stack. It reports its connections by the same events as our TCP
/// ([`lasthop_proto::event::TcpEvent`]), so readers need not distinguish them.
pub trait End: Machine + Debug + Send + Sync {
    fn addr(&self) -> Addr;

    /// Transfers that it opened and that are not over.
    fn unfinished(&self) -> usize;

    /// Transfers that it opened, in the order of the scenario.
    fn opened(&self) -> Vec<TransferState>;

    /// Bytes delivered in order on `flow`, which is oriented from this end.
    fn delivered(&self, flow: FlowKey) -> u64;
}

/// The state of a transfer at its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferState {
    /// From this end to its peer.
    pub flow: FlowKey,
    /// Bytes to transfer, if bounded.
    pub wanted: Option<Bytes>,
    /// Acknowledged bytes.
    pub acknowledged: u64,
    /// Whether all data was sent and acknowledged.
    pub complete: bool,
    /// Whether the connection was aborted or reset.
    pub aborted: bool,
}

/// Creates hosts with other protocol stacks: the host with this index of a scenario, in the run with a seed. `None` for
/// a host that neither sends nor answers.
pub type Ends<'a> = &'a dyn Fn(&Scenario, usize, u64) -> Option<Box<dyn End>>;

/// Creates no such hosts.
pub fn no_ends(_: &Scenario, _: usize, _: u64) -> Option<Box<dyn End>> {
    None
}
