//! M-TCP: a split connection that preserves TCP's end-to-end semantics and survives disconnections (K. Brown
//! and S. Singh, "M-TCP: TCP for Mobile Cellular Networks", ACM Computer Communication Review 27(5), 1997).
//! The machine is that of [`super::split`].
//!
//! - The fixed host receives acknowledgements only for data that the mobile host has acknowledged, less one
//!   byte while more data is in flight to it. In the other direction the mobile host's data is acknowledged
//!   after the fixed host has acknowledged it.
//! - When the mobile host is lost, that byte is acknowledged with a window of zero. A sender with a closed
//!   window sends probes. It does not time out, and does not reduce its congestion window. 4.4BSD sends
//!   probes also while data is in flight, and senders with the timers of 4.4BSD do so here. Other senders
//!   wait for their timer first.
//! - When the mobile host returns, a pure ACK opens the window. Outstanding data towards the mobile host is
//!   retransmitted at once, with the old windows.
//!
//! The mobile host counts as lost when the connection towards it would time out, or when the radio signals
//! a bad channel (`channel-signals`). Any packet from it, or a good channel, shows its return. While it is
//! lost, the base station sends the oldest outstanding segment to it, at an interval of at least `knock` and
//! an eighth of the absence.
//!
//! Only the abstract of the paper and its authors' summary were available. There the mobile host has a
//! special TCP, which freezes when its radio reports the disconnection, and contacts the base station on its
//! return. Here it is an ordinary host. There the radio's link layer repairs losses, so a timeout means a
//! disconnection. Here it may be a loss, and then the pause lasts until the answer to the first segment.

use serde::Serialize;

use super::split::SplitConfig;
use super::{AgentConfig, Read};
use crate::describe::{Descriptor, Kind, System};
use crate::units::Span;

/// Configuration of M-TCP on top of a split connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MtcpConfig {
    /// Least interval of segments sent to a lost mobile host; it grows with the absence.
    pub knock: Span,
    /// Whether the mobile host counts as lost while the channel of the radio is bad.
    pub channel_signals: bool,
}

pub(super) const WORD: Descriptor<Read> = Descriptor {
    word: "m-tcp",
    system: System::new(
        Kind::Agent,
        "m-tcp",
        "path: agent = \"m-tcp\"",
        "splits, but acknowledges only data that the mobile host has; closes the sender's window while the host is away",
        "parsa98 2, agarwal00 2; Brown and Singh 1997",
    )
    .tier(2),
    read: |k| {
        let split = SplitConfig::keys(k);
        let mut c = MtcpConfig { knock: Span::millis(200), channel_signals: false };
        let times = Span::millis(1)..=Span::secs(60);
        let doc = "the least interval of segments that probe whether a mobile host that is away is back";
        k.within("knock", &mut c.knock, times, doc);
        let doc = "whether the mobile host counts as away while its radio channel is bad, if the radio reports this";
        k.flag("channel-signals", &mut c.channel_signals, doc);
        AgentConfig::Split(SplitConfig { mtcp: Some(c), ..split })
    },
};
