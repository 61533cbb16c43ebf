//! The sending application: a number of bytes, distributed over streams.

use lasthop_proto::units::{Bytes, Time};
use lasthop_scenario::Quic;
use quinn_proto::{Connection, Dir, StreamId};

use crate::quic::ledger::Ledger;
use crate::quic::pattern;

/// A transfer at its sender.
#[derive(Debug)]
pub(crate) struct Sender {
    pub config: Quic,
    pub stop: Option<Time>,
    pub size: Option<Bytes>,
    pub ledger: Ledger,
    streams: Vec<Writing>,
    done: usize,
    /// Acknowledged bytes at the last poll.
    polled: u64,
    pub complete: bool,
    pub aborted: bool,
    /// The slow-start threshold at the last poll.
    pub threshold: Option<u64>,
}

/// An open stream.
#[derive(Debug)]
struct Writing {
    id: StreamId,
    written: u64,
    /// Its bytes; `None` without end.
    share: Option<u64>,
    finished: bool,
}

/// Maximum size of a write.
const ONCE: u64 = 1 << 16;

impl Sender {
    pub(crate) fn new(config: Quic, size: Option<Bytes>, stop: Option<Time>) -> Sender {
        Sender {
            config,
            stop,
            size,
            ledger: Ledger::default(),
            streams: Vec::new(),
            done: 0,
            polled: 0,
            complete: false,
            aborted: false,
            threshold: Some(u64::MAX),
        }
    }

    /// Nothing is left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.complete || self.aborted
    }

    /// More data is acknowledged than at the last poll.
    pub(crate) fn has_moved(&mut self) -> bool {
        let acked = self.ledger.acked();
        core::mem::replace(&mut self.polled, acked) < acked
    }

    /// Opens the streams after the handshake.
    pub(crate) fn open(&mut self, connection: &mut Connection) {
        let count = u64::from(self.config.streams);
        for i in 0..count {
            let Some(id) = connection.streams().open(Dir::Uni) else { break };
            // The first streams carry the remainder.
            let share = self.size.map(|all| all.0 / count + u64::from(i < all.0 % count));
            self.streams.push(Writing { id, written: 0, share, finished: false });
        }
    }

    /// Writes as much as the stack accepts, and finishes complete streams.
    pub(crate) fn write(&mut self, connection: &mut Connection) {
        for stream in self.streams.iter_mut().filter(|stream| !stream.finished) {
            loop {
                let left = stream.share.map_or(u64::MAX, |share| share - stream.written);
                if left == 0 {
                    break stream.finish(connection);
                }
                let piece = pattern::piece(stream.id.index(), stream.written, left.min(ONCE));
                match connection.send_stream(stream.id).write_chunks(&mut [piece]) {
                    Ok(written) => stream.written += written.bytes as u64,
                    Err(_) => break,
                }
            }
        }
    }

    /// Sends no new data: the transfer ends with the data written so far.
    pub(crate) fn stop(&mut self, connection: &mut Connection) {
        self.streams.iter_mut().filter(|s| !s.finished).for_each(|s| s.finish(connection));
        self.size = Some(Bytes(self.streams.iter().map(|stream| stream.written).sum()));
    }

    /// A stream is fully acknowledged; true if it was the last one.
    pub(crate) fn finished(&mut self) -> bool {
        self.done += 1;
        self.complete |= self.done == self.streams.len();
        self.complete
    }
}

impl Writing {
    fn finish(&mut self, connection: &mut Connection) {
        self.finished = true;
        // A stream stopped by the peer is over as well.
        let _ = connection.send_stream(self.id).finish();
    }
}
