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

/// An event that a user sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientNews {
    /// A page is requested.
    PageAsked,
    /// Its first byte has arrived.
    PageBegins,
    /// All its objects have arrived.
    PageLoaded,
    /// The first segment of a video is requested.
    VideoAsked,
    /// A segment of this rate has arrived.
    Segment(Rate),
    /// The video starts or resumes.
    Plays,
    /// The buffer is empty, and playback stops.
    Stalls,
    /// Playback is complete.
    Ends,
}

impl ClientNews {
    /// Its name in traces.
    pub fn name(self) -> &'static str {
        match self {
            ClientNews::PageAsked => "page-asked",
            ClientNews::PageBegins => "page-begins",
            ClientNews::PageLoaded => "page-loaded",
            ClientNews::VideoAsked => "video-asked",
            ClientNews::Segment(_) => "video-segment",
            ClientNews::Plays => "video-plays",
            ClientNews::Stalls => "video-stalls",
            ClientNews::Ends => "video-ends",
        }
    }
}
