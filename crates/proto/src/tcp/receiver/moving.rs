//! Transfer of a receiver's state to another base station.

use super::{OutOfOrder, Piece, Receiver};
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
            self.quick.iter_mut().for_each(|quick| quick.buffer().resume_ahead(from, to));
            Piece { from, to, body }
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
