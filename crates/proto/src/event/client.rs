//! What clients of pages and videos tell of themselves: what their users see.

use crate::units::Rate;
use crate::wire::FlowKey;

/// A client of a page or a video tells what its user sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEvent {
    /// Who asks whom: the port of the server is that of the table, the other one is the client's number.
    pub client: FlowKey,
    /// What its user sees.
    pub news: ClientNews,
}

/// What a user sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientNews {
    /// A page is asked for.
    PageAsked,
    /// Its first byte is there.
    PageBegins,
    /// All its objects are there.
    PageLoaded,
    /// The first segment of a video is asked for.
    VideoAsked,
    /// A segment of this rate is there.
    Segment(Rate),
    /// The video begins to play, or goes on.
    Plays,
    /// The buffer is empty, and the picture stands still.
    Stalls,
    /// All was played.
    Ends,
}

impl ClientNews {
    /// The word for it in traces.
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
