//! The receiving application: reads all streams and compares each byte.

use lasthop_proto::event::TcpKind;
use quinn_proto::{Connection, Dir, ReadError, StreamId};

use crate::quic::pattern;

/// Received data of one connection.
#[derive(Default, Debug)]
pub(crate) struct Receiver {
    /// Bytes delivered to the application in order, over all streams.
    pub delivered: u64,
    /// Open streams with their read positions.
    open: Vec<(StreamId, u64)>,
}

impl Receiver {
    /// Accepts new streams.
    pub(crate) fn accept(&mut self, connection: &mut Connection) {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.open.push((id, 0));
        }
    }

    /// Reads available data and reports its length by `emit`.
    pub(crate) fn read(&mut self, connection: &mut Connection, mut emit: impl FnMut(TcpKind)) {
        let mut bytes = 0;
        let mut right = true;
        self.open.retain_mut(|(id, offset)| {
            let mut stream = connection.recv_stream(*id);
            let Ok(mut chunks) = stream.read(true) else { return false };
            let open = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        right &= chunk.offset == *offset
                            && pattern::is_right(id.index(), chunk.offset, &chunk.bytes);
                        *offset += chunk.bytes.len() as u64;
                        bytes += chunk.bytes.len() as u64;
                    }
                    Ok(None) | Err(ReadError::Reset(_)) => break false,
                    Err(ReadError::Blocked) => break true,
                }
            };
            // The frames due to reading, such as a new limit, are polled in any case.
            let _ = chunks.finalize();
            open
        });
        self.delivered += bytes;
        if bytes > 0 {
            emit(TcpKind::Delivered { bytes: bytes as u32 });
        }
        if !right {
            emit(TcpKind::Corrupted);
        }
    }
}
