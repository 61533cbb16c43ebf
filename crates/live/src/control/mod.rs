//! The control socket: clients query and change a running station over it.
//!
//! It is a socket in the file system, for its owner and root only. Each client has a thread, so a slow
//! client does not delay others; there are few clients. No client delays the station, which answers only
//! between two rounds of its loop.

pub mod client;
pub mod protocol;
mod running;
mod server;

use protocol::{Changed, Request, Response};

pub use running::{About, Running};
pub(crate) use server::who;
pub use server::{Guard, MAX_CLIENTS, serve};

/// A program that answers requests over a control socket.
pub trait Served: Send + Sync {
    /// Answers a request.
    fn answer(&self, request: &Request) -> Response;

    /// Called after the client `who` has changed a setting.
    fn changed(&self, who: &str, changed: &Changed) {
        let _ = (who, changed);
    }
}
