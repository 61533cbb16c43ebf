//! A host whose protocol is none of ours: somebody else's stack as a machine of the path.

use core::fmt::Debug;

use lasthop_proto::machine::Machine;
use lasthop_proto::units::Bytes;
use lasthop_proto::wire::{Addr, FlowKey};
use lasthop_scenario::Scenario;

/// A host with a stack of its own. It tells what its connections do by the same events as ours
/// ([`lasthop_proto::event::TcpEvent`]), so that whoever reads them need not know whose it is.
pub trait End: Machine + Debug + Send + Sync {
    /// Its address.
    fn addr(&self) -> Addr;

    /// Transfers that it opened and that are not over.
    fn unfinished(&self) -> usize;

    /// The transfers that it opened, in the order of the scenario.
    fn opened(&self) -> Vec<Sent>;

    /// Bytes that it has delivered in order on `flow`, which is seen from this end.
    fn delivered(&self, flow: FlowKey) -> u64;
}

/// How a transfer stands at the end that sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// From this end to its peer.
    pub flow: FlowKey,
    /// Bytes to be transferred, if bounded.
    pub wanted: Option<Bytes>,
    /// Bytes that are known to be acknowledged.
    pub acknowledged: u64,
    /// Everything was sent and acknowledged.
    pub complete: bool,
    /// The connection was given up or reset.
    pub aborted: bool,
}

/// Who makes the hosts with stacks of their own: the host of a scenario by its number, in the run with a seed. Nothing
/// where it makes none: such a host neither sends nor answers.
pub type Ends<'a> = &'a dyn Fn(&Scenario, usize, u64) -> Option<Box<dyn End>>;

/// Nobody makes any.
pub fn no_ends(_: &Scenario, _: usize, _: u64) -> Option<Box<dyn End>> {
    None
}
