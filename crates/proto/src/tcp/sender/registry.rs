//! The registry of senders: a sender is one file and one line here.
//!
//! A line has the module of the file, the constants with its keywords ([`Keyword`](crate::tcp::keyword::Keyword)), and the part
//! that the file implements. This is a `recovery` ([`Recovery`](super::recovery::Recovery)), which names its loss
//! detection, or a congestion control ([`CongestionControl`](super::congestion_control::CongestionControl)). A sender that combines parts of others
//! has only keywords. Macros derive everything else from the line: the module, the variant of [`Variant`] or
//! [`Congestion`], the machine with its constructor `new(&TcpConfig)`, and the entry of
//! [`TCPS`](crate::tcp::words::TCPS).

use serde::Serialize;

/// Passes all senders to the macro `$part`, in the order of the manual.
macro_rules! senders {
    ($part:ident) => {
        $part! {
            tahoe(WORD) recovery Tahoe(Box<Tahoe>);
            reno(WORD) recovery Reno(Inline<Reno>);
            newreno(WORD) recovery NewReno(Inline<NewReno>);
            sack(WORD) recovery Sack(Box<Sack>);
            integrated(WORD);
            smart(WORD) recovery Smart(Box<Smart>);
            eln(WORD, AT_ONCE);
            rack(WORD) recovery Rack(Box<Rack>);
            cubic(WORD) congestion_control Cubic(Box<Cubic>);
            bbr(WORD) congestion_control Bbr(Box<Bbr>);
            bbr3(WORD) congestion_control Bbr3(Box<Bbr3>);
            htcp(WORD) congestion_control Htcp(Box<Htcp>);
            hybla(WORD) congestion_control Hybla(Box<Hybla>);
            westwood(WORD) congestion_control Westwood(Box<Westwood>);
            veno(WORD) congestion_control Veno(Box<Veno>);
            prague(WORD) congestion_control Prague(Box<Prague>);
            right_edge(WORD);
            vegas(WORD) congestion_control Vegas(Box<Vegas>);
            snack(WORD) recovery Snack(Box<Holes>);
        }
    };
}

pub(in crate::tcp) use senders;

/// The enums of the configurable parts of [`senders`].
macro_rules! parts {
    ($($file:ident $words:tt $(recovery $R:ident $r:tt)? $(congestion_control $G:ident $g:tt)?;)*) => {
        /// Loss detection and recovery of a sender.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Variant {
            $($(
                #[doc = concat!("See [`", stringify!($file), "`](super::systems::", stringify!($file), ").")]
                $R,
            )?)*
        }

        /// Growth of the congestion window, and its reduction after a loss.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Congestion {
            /// Slow start and congestion avoidance; a loss halves the window (RFC 5681).
            Reno,
            $($(
                #[doc = concat!("See [`", stringify!($file), "`](super::systems::", stringify!($file), ").")]
                $G,
            )?)*
        }
    };
}
senders!(parts);
