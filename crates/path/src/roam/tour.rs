//! The visits of a scenario as moves in order of time.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Span, Time};
use lasthop_scenario::roaming::{Handoff, Stay, Stays, Tour};

/// A step of a hand-off.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Move {
    /// The host leaves a cell, possibly towards another one.
    Leaves(u16, Option<u16>),
    /// It has arrived in a cell.
    Arrives(u16),
    /// The wired side sends to this cell from now on.
    Rerouted(u16),
}

/// A planned visit: the host turns to a cell.
#[derive(Clone, Copy, Debug)]
struct Visit {
    cell: u16,
    from: Time,
    until: Option<Time>,
}

/// A mobile host on its tour.
#[derive(Clone, Debug)]
pub struct Walk {
    tour: Tour,
    handoff: Handoff,
    rng: Stream,
    /// Number of planned visits, and index of the last one in [`Tour::cells`].
    planned: usize,
    at: usize,
    last: Visit,
    /// Future moves up to the next arrival; with a slow wired side these may be many.
    ahead: BinaryHeap<Reverse<(Time, Move)>>,
}

impl Walk {
    /// Before the first visit; `rng` is the random stream of this host.
    pub fn new(tour: Tour, handoff: Handoff, rng: Stream) -> Walk {
        let last = Visit { cell: 0, from: Time::ZERO, until: None };
        let mut walk =
            Walk { tour, handoff, rng, planned: 0, at: 0, last, ahead: BinaryHeap::new() };
        if let Some(first) = walk.next_visit() {
            walk.last = first;
            walk.await_move(first.from, Move::Arrives(first.cell));
            // A host present from the start is known to the network.
            let known = if first.from == Time::ZERO { Span::ZERO } else { walk.handoff.reroute };
            walk.await_move(first.from + known, Move::Rerouted(first.cell));
        }
        walk
    }

    /// Time of the next move.
    pub fn next(&self) -> Option<Time> {
        self.ahead.peek().map(|Reverse((at, _))| *at)
    }

    /// At most two neighbours of `cell` on the tour.
    pub fn neighbours(&self, cell: u16) -> [u16; 2] {
        let cells = &self.tour.cells;
        let count = cells.len();
        let Some(at) = cells.iter().position(|other| *other == usize::from(cell)) else {
            return [super::NONE; 2];
        };
        let mut found = [super::NONE; 2];
        for (slot, on) in found.iter_mut().zip([1, count - 1]) {
            *slot = cells[(at + on) % count] as u16;
        }
        if found[0] == found[1] {
            found[1] = super::NONE;
        }
        found.map(|other| if other == cell { super::NONE } else { other })
    }

    /// Removes and returns the next move, when it is due.
    pub fn step(&mut self) -> Option<Move> {
        let Reverse((_, step)) = self.ahead.pop()?;
        if let Move::Arrives(_) = step {
            self.plan();
        }
        Some(step)
    }

    fn await_move(&mut self, at: Time, step: Move) {
        self.ahead.push(Reverse((at, step)));
    }

    /// Plans the hand-off to the next cell.
    fn plan(&mut self) {
        let Handoff { gap, overlap, announced, reroute, .. } = self.handoff;
        let last = self.last;
        let Some(next) = self.next_visit() else {
            if let Some(until) = last.until {
                self.await_move(until, Move::Leaves(last.cell, None));
            }
            return;
        };
        let leaves = last.until.unwrap_or(next.from + overlap);
        let arrives = if leaves > next.from { next.from } else { next.from.max(leaves + gap) };
        let known = if announced { leaves.min(arrives) } else { arrives };
        self.await_move(leaves, Move::Leaves(last.cell, Some(next.cell)));
        self.await_move(arrives, Move::Arrives(next.cell));
        self.await_move(known + reroute, Move::Rerouted(next.cell));
        self.last = next;
    }

    fn next_visit(&mut self) -> Option<Visit> {
        let n = self.planned;
        self.planned += 1;
        let cells = self.tour.cells.len();
        let (at, from) = match &self.tour.stays {
            Stays::List(list) => {
                let Stay { cell, from, until } = *list.get(n)?;
                let until = until.map(|until| Time::ZERO + until);
                return Some(Visit { cell: cell as u16, from: Time::ZERO + from, until });
            }
            Stays::Every(every) => (n % cells, Time::ZERO + *every * n as u64),
            Stays::Dwell(_) if n == 0 => (self.rng.below(cells as u64) as usize, Time::ZERO),
            Stays::Dwell(mean) => {
                let Handoff { gap, overlap, .. } = self.handoff;
                let stays = Span(self.rng.exponential(mean.0 as f64) as u64);
                // The host does not leave before its last hand-off is over.
                let stays = stays.max(overlap + Span::millis(1));
                let on = match cells {
                    1 => 0,
                    2 => 1,
                    _ => [1, cells - 1][self.rng.below(2) as usize],
                };
                ((self.at + on) % cells, self.last.from + gap + stays)
            }
        };
        self.at = at;
        Some(Visit { cell: self.tour.cells[at] as u16, from, until: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(stays: Stays, handoff: Handoff, until: Span) -> Vec<(u64, Move)> {
        let tour = Tour { host: 0, cells: vec![0, 1, 2], stays };
        let mut walk = Walk::new(tour, handoff, Stream::new(1, "visits"));
        let mut all = Vec::new();
        while let Some(at) = walk.next().filter(|at| *at < Time::ZERO + until) {
            all.extend(walk.step().map(|step| (at.0 / 1_000_000, step)));
        }
        all
    }

    use Move::{Arrives, Leaves, Rerouted};

    #[test]
    fn a_period_visits_all_cells_with_gap_and_delay() {
        let ms = Span::millis;
        let handoff = Handoff { gap: ms(80), reroute: ms(200), ..Handoff::default() };
        let every = Stays::Every(ms(1000));
        let expected = [
            (0, Arrives(0)),
            (0, Rerouted(0)),
            (1000, Leaves(0, Some(1))),
            (1080, Arrives(1)),
            (1280, Rerouted(1)),
            (2000, Leaves(1, Some(2))),
            (2080, Arrives(2)),
            (2280, Rerouted(2)),
            (3000, Leaves(2, Some(0))),
            (3080, Arrives(0)),
        ];
        assert_eq!(moves(every.clone(), handoff.clone(), ms(3100)), expected);
        // With an announcement, the wired side is notified when the host leaves.
        let announced = Handoff { announced: true, ..handoff };
        assert!(moves(every, announced, ms(1500)).contains(&(1200, Rerouted(1))));
    }

    #[test]
    fn with_an_overlap_a_host_leaves_after_its_arrival() {
        let ms = Span::millis;
        let handoff = Handoff { overlap: ms(50), ..Handoff::default() };
        let expected = [
            (0, Arrives(0)),
            (0, Rerouted(0)),
            (1000, Arrives(1)),
            (1000, Rerouted(1)),
            (1050, Leaves(0, Some(1))),
        ];
        assert_eq!(moves(Stays::Every(ms(1000)), handoff, ms(1900)), expected);
    }

    #[test]
    fn listed_stays_last_until_their_end_or_the_next() {
        let ms = Span::millis;
        let stay = |cell, from, until: Option<u64>| Stay {
            cell,
            from: ms(from),
            until: until.map(Span::millis),
        };
        let list = Stays::List(vec![
            stay(1, 500, None),
            stay(0, 1000, Some(2000)),
            stay(2, 3000, Some(4000)),
        ]);
        let handoff = Handoff { gap: ms(100), ..Handoff::default() };
        let arrivals: Vec<_> = moves(list, handoff, ms(9000))
            .into_iter()
            .filter(|(_, step)| !matches!(step, Rerouted(_)))
            .collect();
        let expected = [
            (500, Arrives(1)),
            (1000, Leaves(1, Some(0))),
            (1100, Arrives(0)),
            (2000, Leaves(0, Some(2))),
            (3000, Arrives(2)),
            (4000, Leaves(2, None)),
        ];
        assert_eq!(arrivals, expected);
    }

    #[test]
    fn neighbours_are_the_next_and_previous_tour_cells() {
        const NONE: u16 = super::super::NONE;
        let neighbours = |cells: &[usize], cell| {
            let stays = Stays::Every(Span::secs(1));
            let tour = Tour { host: 0, cells: cells.to_vec(), stays };
            Walk::new(tour, Handoff::default(), Stream::new(1, "visits")).neighbours(cell)
        };
        assert_eq!(neighbours(&[4, 7, 9, 2], 7), [9, 4]);
        assert_eq!(neighbours(&[4, 7, 9, 2], 4), [7, 2], "a way goes round");
        assert_eq!(neighbours(&[4, 7], 4), [7, NONE], "the same one is not listed twice");
        assert_eq!(neighbours(&[4], 4), [NONE; 2], "nor the cell itself");
        assert_eq!(neighbours(&[4, 7, 9], 5), [NONE; 2], "not on the way");
    }

    #[test]
    fn random_visits_have_their_mean_and_go_to_neighbours() {
        let mean = Span::millis(1000);
        let all = moves(Stays::Dwell(mean), Handoff::default(), Span::secs(5000));
        let arrivals: Vec<_> = all
            .iter()
            .filter_map(|(_, step)| match step {
                Arrives(cell) => Some(*cell),
                _ => None,
            })
            .collect();
        assert!((4700..5300).contains(&arrivals.len()), "{}", arrivals.len());
        assert!(arrivals.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
