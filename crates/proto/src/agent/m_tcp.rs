//! M-TCP: a split connection that keeps TCP's promise end to end, and outlives disconnections (K. Brown and S. Singh,
//! "M-TCP: TCP for Mobile Cellular Networks", ACM Computer Communication Review 27(5), 1997). The machine is that of
//! [`super::split`].
//!
//! - Nothing is acknowledged to the fixed host but what the mobile host has acknowledged, less one byte as long as more
//!   is under way to it. The same holds the other way, without an end: what the mobile host sends is acknowledged when
//!   the fixed host has it.
//! - When the mobile host is gone that byte is acknowledged, with a window of zero. A sender whose window is closed
//!   neither times out nor shrinks its congestion window: it probes (4.4BSD enters persist mode although data is under
//!   way, and so do the senders here that have its timers; others wait for their timer first).
//! - When it is back the window is opened, by an ACK that says nothing else, and what was outstanding over the air is
//!   sent again at once, with the windows of before.
//!
//! The mobile host counts as gone when the half towards it would time out, by its own round trips, or when the radio
//! says that its channel is bad (`channel-signals`). It is back when anything comes from it, or when the channel is
//! good. While it is gone the oldest outstanding segment is sent to it every so often (`knock`): what answers it tells.
//!
//! Of the paper no more than the abstract and its authors' summary could be read. There the mobile host has a TCP of
//! its own, which freezes when its radio tells it of the disconnection and greets the base station when it is back.
//! Here it is an ordinary host. And there the radio's link layer repairs losses, so a time-out means a disconnection.
//! Here it may be a loss, and then the pause is as short as the answer to the first knock.

use serde::Serialize;

use super::split::SplitConfig;
use super::{AgentConfig, Read};
use crate::describe::{Descriptor, Kind, System};
use crate::units::Span;

/// What M-TCP adds to a split connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MtcpConfig {
    /// The time between two segments that are sent to a mobile host that is gone.
    pub knock: Span,
    /// Whether the mobile host is gone as long as the channel of the radio is bad.
    pub channel_signals: bool,
}

pub(super) const WORD: Descriptor<Read> = Descriptor {
    word: "m-tcp",
    system: System::new(
        Kind::Agent,
        "m-tcp",
        "path: agent = \"m-tcp\"",
        "splits, but acknowledges only what the mobile host has, and closes the sender's window while that is gone",
        "parsa98 2, agarwal00 2; Brown and Singh 1997",
    )
    .tier(2),
    read: |k| {
        let split = SplitConfig::keys(k);
        let mut c = MtcpConfig { knock: Span::millis(200), channel_signals: false };
        let times = Span::millis(1)..=Span::secs(60);
        let what = "the time between two segments to a mobile host that is gone, to see whether it is back";
        k.within("knock", &mut c.knock, times, what);
        let what = "whether the mobile host is gone while its radio channel is bad, where the radio tells of that";
        k.flag("channel-signals", &mut c.channel_signals, what);
        AgentConfig::Split(SplitConfig { mtcp: Some(c), ..split })
    },
};
