//! The control socket: a running station is asked and changed over it.
//!
//! A socket in the file system, for its owner and root only. Each client has a thread of its own, since there are
//! few and a slow one must not hold up another; none of them can hold up the station, which is only asked between
//! two rounds of its loop.

pub mod client;
pub mod protocol;
mod running;
mod server;

use protocol::{Answer, Changed, Request};

pub use running::{About, Running};
pub(crate) use server::who;
pub use server::{Guard, MAX_CLIENTS, serve};

/// What can be asked over a control socket.
pub trait Served: Send + Sync {
    /// Answers a request.
    fn answer(&self, request: &Request) -> Answer;

    /// Hears that `who` has changed something.
    fn changed(&self, who: &str, changed: &Changed) {
        let _ = (who, changed);
    }
}
