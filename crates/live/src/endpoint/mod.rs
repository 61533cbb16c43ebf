//! End points of testbeds on the kernel's TCP: the test sender and the discard receiver (west97 4.5).
//!
//! [`send()`] opens one connection, sends, closes its direction and waits until the peer has closed too, so
//! that its times cover delivery. [`discard()`] accepts a number of connections, reads and counts.
//! [`ask()`] and [`answer()`] exchange requests and responses. Each is one loop in the calling thread, so a thread that has
//! entered a network namespace remains in it. All stop within a tenth of a second after their flag is raised.

mod discard;
mod error;
mod exchange;
mod sample;
mod send;
mod socket;
mod source;
mod tcp_info;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_proto::units::{Span, Time};
use sha2::{Digest as _, Sha256};

use crate::clock::Clock;

pub use discard::{Received, discard};
pub use error::EndpointError;
pub use exchange::{Client, answer, ask};
pub use sample::Sampler;
pub(crate) use send::flow;
pub use send::{SendOptions, SendReport, send};
pub use socket::listen;
pub(crate) use socket::{LOOK, wait};
pub use source::{Pattern, Source};
pub use tcp_info::{CaState, TcpInfo};

/// Clock and stop flag of a sender or receiver.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    /// Source of the times of events.
    pub clock: Clock,
    /// Raised to end the loop.
    pub stop: &'a AtomicBool,
}

impl Session<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until `time`. Returns false if the session was stopped before.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn wait_until(&self, time: Time) -> io::Result<bool> {
        while !self.stopped() {
            let left = time.since(self.clock.now());
            if left == Span::ZERO {
                return Ok(true);
            }
            wait(&mut [], left.min(LOOK))?;
        }
        Ok(false)
    }
}

/// How a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// Both ends closed: all data arrived.
    Closed,
    /// The session was stopped.
    Stopped,
    /// The connection failed.
    Failed {
        /// Error of the system.
        why: String,
    },
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Closed => f.write_str("complete"),
            End::Stopped => f.write_str("stopped"),
            End::Failed { why } => f.write_str(why),
        }
    }
}

/// Size of a read or write, bytes.
const CHUNK: usize = 1 << 16;

/// A digest in hexadecimal.
pub(crate) fn hex(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
