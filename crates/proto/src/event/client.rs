//! Events of clients of pages and videos, from the view of their users.

use crate::units::Rate;
use crate::wire::FlowKey;

/// An event of a client of a page or a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEvent {
    /// Client and server: the server's port is that of the table, the client's port is the client's number.
    pub client: FlowKey,
    /// The event.
    pub news: ClientNews,
}

with_meanings! {
    /// An event that a user sees.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ClientNews {
        /// A user requests a page.
        PageAsked,
        /// The first byte of the page has arrived.
        PageBegins,
        /// The page and all its objects have arrived.
        PageLoaded,
        /// A user requests a video.
        VideoAsked,
        /// A segment of the video has arrived.
        VideoSegment(Rate),
        /// The video plays.
        VideoPlays,
        /// The buffer is empty, and the video stalls.
        VideoStalls,
        /// The video has ended.
        VideoEnds,
    }
}
