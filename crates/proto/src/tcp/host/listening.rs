//! Ports that accept connections, where not every port does.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::tcp::Settings;
use crate::tcp::config::GrowthRule;
use crate::tcp::connection::Connection;
use crate::units::Time;
use crate::wire::{Addr, Flags, FlowKey, Segment};

use super::{Host, flow_of};

/// Settings and queue of a listening port.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Settings of incoming connections.
    pub settings: Arc<Settings>,
    /// Maximum number of open connections that are not accepted; one more is admitted, as in Linux.
    pub backlog: u32,
    /// Bytes that an application may write ahead on such a connection.
    pub outbox: u32,
    /// Incoming connections that were not accepted, oldest first.
    pub waiting: Vec<usize>,
}

/// The listening ports.
#[derive(Clone, Debug, Default)]
pub struct Listeners {
    ports: BTreeMap<u16, Listener>,
}

impl Host {
    /// From now on ports refuse connections unless [`Host::listen`] names them.
    pub fn refuse_by_default(&mut self) {
        self.listeners.get_or_insert_default();
    }

    /// Accepts connections on `port` with these settings.
    pub fn listen(&mut self, port: u16, listener: Listener) {
        self.listeners.get_or_insert_default().ports.insert(port, listener);
    }

    /// Refuses further connections on `port`, and returns unaccepted ones.
    pub fn stop_listening(&mut self, port: u16) -> Vec<usize> {
        let stopped = self.listeners.as_mut().and_then(|all| all.ports.remove(&port));
        stopped.map_or(Vec::new(), |listener| listener.waiting)
    }

    /// The listener of `port`.
    pub fn listener(&mut self, port: u16) -> Option<&mut Listener> {
        self.listeners.as_mut()?.ports.get_mut(&port)
    }

    /// The settings of connections without separate ones.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Opens a connection at `at` from an unused port, with separate settings. Returns its index.
    pub fn connect_with(
        &mut self,
        (to, port): (Addr, u16),
        at: Time,
        limit: u32,
        settings: Arc<Settings>,
    ) -> usize {
        let flow = flow_of(self.config.addr, to, port, self.opened.len());
        self.open_flow(flow, at, limit, settings)
    }

    /// Like [`Host::connect_with`], from a given port.
    pub fn open_flow(
        &mut self,
        flow: FlowKey,
        at: Time,
        limit: u32,
        settings: Arc<Settings>,
    ) -> usize {
        let index = self.add_with(flow, 0, settings, None);
        let connection = &mut self.connections[index];
        connection.attach(limit);
        connection.connect(at);
        self.wakes.set(index, Some(at));
        self.opened.push(index as u32);
        self.unfinished += 1;
        index
    }

    /// Whether `port` accepts connections.
    pub(super) fn listens(&self, port: u16) -> bool {
        self.listeners.as_ref().is_none_or(|all| all.ports.contains_key(&port))
    }

    /// Whether a SYN for `port` is ignored, since too many connections wait to be accepted.
    pub(super) fn drops_syn(&self, port: u16) -> bool {
        let Some(listener) = self.listeners.as_ref().and_then(|all| all.ports.get(&port)) else {
            return false;
        };
        let open = |index: &&usize| {
            self.connections.get(**index).is_some_and(|c: &Connection| c.state().is_synchronised())
        };
        listener.waiting.iter().filter(open).count() > listener.backlog as usize
    }

    /// Whether Linux ignores a SYN for a listening `port`: one with a FIN (`tcp_rcv_state_process`). The other presets
    /// accept it, since RFC 1644 needs such SYNs.
    pub(super) fn ignores_syn(&self, port: u16, syn: &Segment) -> bool {
        let linux =
            |settings: Arc<Settings>| settings.growth == GrowthRule::Linux && !settings.t_tcp;
        syn.flags.has(Flags::FIN) && self.listens(port) && linux(self.settings_of(port))
    }

    /// The settings of an incoming connection at `port`.
    pub(super) fn settings_of(&self, port: u16) -> Arc<Settings> {
        let listener = self.listeners.as_ref().and_then(|all| all.ports.get(&port));
        listener.map_or_else(|| self.settings.clone(), |listener| listener.settings.clone())
    }

    /// Adds an incoming connection to its listener.
    pub(super) fn came_in(&mut self, index: usize) {
        let port = self.connections[index].flow.src_port;
        let Some(listener) = self.listener(port) else { return };
        listener.waiting.push(index);
        let limit = listener.outbox;
        self.connections[index].attach(limit);
    }
}
