//! What of a receiver moves with its connection, and how another one goes on with it.

use super::{Kept, PIECES_MAX, Piece, Receiver};
use crate::travel::travels;
use crate::units::Time;
use crate::wire::Body;

/// What has come in: the part of a receiver's state that the peer relies on.
#[derive(Clone, Debug, Default)]
pub struct Inbound {
    /// Next position expected.
    pub nxt: u64,
    /// One past the last position that was ever advertised.
    pub edge: u64,
    /// Bytes delivered and not read.
    pub unread: u64,
    /// Bytes behind a hole, by position.
    pub pieces: Vec<(u64, Body)>,
    /// Position of the peer's FIN.
    pub fin_at: Option<u64>,
    /// Where in which stream the last delivered byte was.
    pub stream: Option<(u32, u64)>,
}

travels!(Inbound { nxt, edge, unread, pieces, fin_at, stream });

impl Inbound {
    /// Whether pieces lie in order between what is expected and the edge of the window, and nothing is behind the FIN.
    /// At most `room` bytes are delivered and not read, or may come.
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
        // A FIN lies beyond the window that closed just before it.
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
    /// What has come in so far.
    pub fn inbound(&self) -> Inbound {
        Inbound {
            nxt: self.nxt,
            edge: self.edge,
            unread: self.unread,
            pieces: self.pieces().iter().map(|piece| (piece.from, piece.body.clone())).collect(),
            fin_at: self.fin_at,
            stream: self.stream.map(|stream| (stream, self.offset)),
        }
    }

    /// Goes on where another one was, behind its handshake.
    pub fn resume(&mut self, now: Time, inbound: Inbound) {
        let Inbound { nxt, edge, unread, pieces, fin_at, stream } = inbound;
        (self.nxt, self.edge, self.unread) = (nxt, edge, unread);
        self.fin_at = fin_at;
        (self.stream, self.offset) = stream.map_or((None, 0), |(of, at)| (Some(of), at));
        let piece =
            |(from, body): (u64, Body)| Piece { from, to: from + u64::from(body.len()), body };
        let waits = fin_at.filter(|at| *at > nxt);
        self.kept = pieces.last().map(|(last, _)| *last).or(waits).map(|last| {
            let recent = [last, waits.unwrap_or(u64::MAX), u64::MAX, u64::MAX];
            let pieces = pieces.into_iter().map(piece).collect();
            Box::new(Kept { pieces, recent, ..Kept::default() })
        });
        self.established(now);
    }
}
