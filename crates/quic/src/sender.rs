//! The application that sends: so many bytes, spread over streams.

use lasthop_proto::units::{Bytes, Time};
use lasthop_scenario::Quic;
use quinn_proto::{Connection, Dir, StreamId};

use crate::ledger::Ledger;
use crate::pattern;

/// A transfer at the end that sends.
#[derive(Debug)]
pub(crate) struct Sender {
    pub config: Quic,
    pub stop: Option<Time>,
    pub wanted: Option<Bytes>,
    pub ledger: Ledger,
    streams: Vec<Writing>,
    done: usize,
    /// Bytes that were acknowledged when it was last asked.
    told: u64,
    pub complete: bool,
    pub aborted: bool,
    /// The slow-start threshold when it was last looked at.
    pub threshold: Option<u64>,
}

/// A stream that is written.
#[derive(Debug)]
struct Writing {
    id: StreamId,
    written: u64,
    /// How much it carries; without end if there is none.
    share: Option<u64>,
    finished: bool,
}

/// What is written at once, at most.
const ONCE: u64 = 1 << 16;

impl Sender {
    pub(crate) fn new(config: Quic, wanted: Option<Bytes>, stop: Option<Time>) -> Sender {
        Sender {
            config,
            stop,
            wanted,
            ledger: Ledger::default(),
            streams: Vec::new(),
            done: 0,
            told: 0,
            complete: false,
            aborted: false,
            threshold: Some(u64::MAX),
        }
    }

    /// Whether nothing is to be done any more.
    pub(crate) fn is_over(&self) -> bool {
        self.complete || self.aborted
    }

    /// Whether more is acknowledged than when this was last asked.
    pub(crate) fn has_moved(&mut self) -> bool {
        let acked = self.ledger.acked();
        core::mem::replace(&mut self.told, acked) < acked
    }

    /// The handshake is done: opens the streams.
    pub(crate) fn open(&mut self, connection: &mut Connection) {
        let count = u64::from(self.config.streams);
        for i in 0..count {
            let Some(id) = connection.streams().open(Dir::Uni) else { break };
            // The first ones carry what does not divide.
            let share = self.wanted.map(|all| all.0 / count + u64::from(i < all.0 % count));
            self.streams.push(Writing { id, written: 0, share, finished: false });
        }
    }

    /// Writes as much as the stack takes, and finishes streams that have carried their share.
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

    /// Nothing new is sent from now on: what was written is all that was wanted.
    pub(crate) fn stop(&mut self, connection: &mut Connection) {
        self.streams.iter_mut().filter(|s| !s.finished).for_each(|s| s.finish(connection));
        self.wanted = Some(Bytes(self.streams.iter().map(|stream| stream.written).sum()));
    }

    /// All of a stream has been acknowledged; whether that was the last one.
    pub(crate) fn finished(&mut self) -> bool {
        self.done += 1;
        self.complete |= self.done == self.streams.len();
        self.complete
    }
}

impl Writing {
    fn finish(&mut self, connection: &mut Connection) {
        self.finished = true;
        // A stream that the peer has stopped is over as well.
        let _ = connection.send_stream(self.id).finish();
    }
}
