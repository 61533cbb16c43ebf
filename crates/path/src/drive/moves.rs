//! Hosts move from cell to cell.

use lasthop_proto::machine::{Out, StageId};
use lasthop_proto::units::Time;

use super::{Outside, Path};
use crate::roam::{Move, Roam};
use crate::stage::{Junction, Stage};

impl Path {
    /// Adds the cells at the end of the path.
    pub(crate) fn set_roam(&mut self, roam: Roam) {
        self.roam = Some(Box::new(roam));
        self.branches = true;
        self.await_move();
    }

    /// Sets the router's timer to the next move.
    fn await_move(&mut self) {
        let Some(roam) = &self.roam else { return };
        let router = roam.router;
        self.stages[router] = Stage::Junction(Junction(roam.next_wake()));
        self.rearm(router);
    }

    /// Executes the due move of a host.
    #[cold]
    pub(super) fn move_host<O: Outside>(&mut self, now: Time, outside: &mut O) {
        if self.state_arrives(now, outside) {
            return self.await_move();
        }
        let Some(roam) = &mut self.roam else { return };
        match roam.next_move() {
            Some((host, Move::Leaves(cell, next))) => {
                self.at_base(now, cell, outside, |roam, out| roam.leave(host, cell, next, out));
            }
            Some((host, Move::Arrives(cell))) => {
                self.move_state(now, host, cell, outside);
                self.at_base(now, cell, outside, |roam, out| roam.arrive(host, cell, out));
                while let Some(cell) = self.roam.as_ref().and_then(|roam| roam.to_let_go(host)) {
                    self.at_base(now, cell, outside, |roam, out| roam.let_go(host, cell, out));
                }
                self.end_handoff(now, host, outside);
            }
            Some((host, Move::Rerouted(cell))) => {
                roam.reroute(host, cell);
                self.end_handoff(now, host, outside);
            }
            None => {}
        }
        self.await_move();
    }

    /// Notifies the host if its handoff is over.
    fn end_handoff<O: Outside>(&mut self, now: Time, host: usize, outside: &mut O) {
        let stage = self.roam.as_mut().and_then(|roam| roam.over(host));
        let Some(stage) = stage else { return };
        self.call(now, stage, outside, |stage, out| {
            if let Some(host) = stage.host_mut() {
                host.on_handoff(now, out);
            }
        });
    }

    /// Calls the base station of a cell, and forwards its output.
    fn at_base<O: Outside>(
        &mut self,
        now: Time,
        cell: u16,
        outside: &mut O,
        call: impl FnOnce(&mut Roam, &mut Out),
    ) {
        let Some(roam) = &mut self.roam else { return };
        let base = roam.base(cell);
        self.now = now;
        self.out.begin(StageId(base as u16), now);
        call(roam, &mut self.out);
        self.collect_next(base, outside);
        self.forward(base, outside);
    }
}
