//! Transfer of a receiver's state to another base station.

use super::{OutOfOrder, PIECES_MAX, Piece, Receiver, Stored};
use crate::travel::travels;
use crate::units::Time;
use crate::wire::Body;

/// The state of a receiver on which the peer relies.
#[derive(Clone, Debug, Default)]
pub struct Inbound {
    /// Next expected position.
    pub nxt: u64,
    /// One past the last position that was ever advertised.
    pub edge: u64,
    /// Number of delivered bytes that the application has not read.
    pub unread: u64,
    /// Data behind a hole, by position.
    pub pieces: Vec<(u64, Body)>,
    /// Position of the peer's FIN.
    pub fin_at: Option<u64>,
    /// Pattern of the delivered data, and offset of its next byte.
    pub stream: Option<(u32, u64)>,
}

travels!(Inbound { nxt, edge, unread, pieces, fin_at, stream });

impl Inbound {
    /// Whether this state is possible with a buffer of `room` bytes: the pieces are in order, between the expected
    /// position and the edge of the window, and not behind the FIN. Unread data and the window fit the buffer.
    pub fn is_sound(&self, room: u64) -> bool {
        let mut at = self.nxt;
        let in_order = self.pieces.iter().all(|(from, body)| {
            let follows = *from >= at && !body.is_empty();
            at = from.saturating_add(body.len().into());
            follows
        });
        let fin = match self.fin_at {
            Some(fin) if fin < self.nxt => fin + 1 == self.nxt && self.pieces.is_empty(),
            Some(fin) => fin >= at && fin <= self.edge,
            None => true,
        };
        // A FIN may lie one beyond a window that was closed exactly before it.
        let edge = self.edge + u64::from(self.fin_at.is_some());
        in_order
            && fin
            && self.pieces.len() <= PIECES_MAX
            && (self.nxt..=self.nxt + room + 1).contains(&edge)
            && at <= edge
            && self.edge.saturating_sub(self.nxt) + self.unread <= room
    }
}

impl Receiver {
    /// The state for another base station.
    pub fn inbound(&self) -> Inbound {
        Inbound {
            nxt: self.nxt,
            edge: self.edge,
            unread: self.unread,
            // The next station would discard data behind the FIN.
            pieces: (self.pieces().iter())
                .filter(|piece| self.fin_at.is_none_or(|fin| piece.to <= fin))
                .map(|piece| (piece.from, piece.body.clone()))
                .collect(),
            fin_at: self.fin_at,
            stream: self.stream.map(|stream| (stream, self.offset)),
        }
    }

    /// Continues from the state of another receiver after its handshake.
    pub fn resume(&mut self, now: Time, inbound: Inbound) {
        let Inbound { nxt, edge, unread, pieces, fin_at, stream } = inbound;
        (self.nxt, self.edge, self.unread) = (nxt, edge, unread);
        self.fin_at = fin_at;
        (self.stream, self.offset) = stream.map_or((None, 0), |(of, at)| (Some(of), at));
        let mut piece = |(from, body): (u64, Body)| {
            let to = from + u64::from(body.len());
            let quick = self.quick.as_mut();
            let stored = quick.map_or_else(Stored::default, |q| q.buffer().hold(body.len(), 0));
            Piece { from, to, body, stored }
        };
        let waits = fin_at.filter(|at| *at > nxt);
        self.out_of_order = pieces.last().map(|(last, _)| *last).or(waits).map(|last| {
            let recent = [last, waits.unwrap_or(u64::MAX), u64::MAX, u64::MAX];
            let pieces: Vec<Piece> = pieces.into_iter().map(&mut piece).collect();
            let mut stored = OutOfOrder { recent, ..OutOfOrder::default() };
            pieces.iter().for_each(|piece| stored.note_as_linux((piece.from, piece.to)));
            waits.into_iter().for_each(|fin| stored.note_as_linux((fin, fin + 1)));
            stored.pieces = pieces;
            Box::new(stored)
        });
        self.established(now);
    }
}
