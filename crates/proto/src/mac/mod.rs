//! Medium access: which station of a radio hop may send at which time.
//!
//! A [`Mac`] is the medium and the medium access of all stations on it. It accepts one frame at a time from
//! each station, decides when the frame is sent, applies the channel's errors, and reports the outcome. The
//! stations hear each other; a frame collides when another one is on the air at its receiver.

mod ether;
pub mod half_duplex_hops;
pub mod ofdm;
pub mod phy;

use serde::Serialize;

use crate::air::{AirEvent, FrameKind, Station};
use crate::describe::{Descriptor, Keys};
use crate::event::Cause;
use crate::link::RadioConfig;
use crate::link::fec::Coding;
use crate::link::frame::{Frame, Timing};
use crate::link::varied::Sky;
use crate::machine::Side;
use crate::rng::Stream;
use crate::units::{Span, Time};

pub use dcf::{AggregateConfig, Dcf, DcfConfig, PowerSaveConfig, StationRate};
pub use fama_ncs::{FamaConfig, FamaNcs};
pub use granted::{Granted, GrantedConfig};
pub use half_duplex_hops::{HalfDuplexHops, Hops};
pub use ideal::Ideal;
pub use phy::Phy;

/// How a station accesses the medium for a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// By the rules of all stations.
    Contend,
    /// At once, as the answer to the frame that has just arrived: the channel still belongs to this pair (MAC
    /// acceleration, parsa98 3.3). Valid only while [`Outcome::Arrived`] of that frame is being handled.
    Reply,
}

/// A report of medium access to the hop. The hop handles reports in order, at the time of the call that
/// produced them.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The frame of `station` for `to` is about to be on the air for `airtime`: TRANS.
    Trans {
        /// The sender.
        station: Station,
        /// The receiver.
        to: Station,
        /// Time on the air.
        airtime: Span,
    },
    /// `station` has heard that `from` will occupy the channel for `hold` beyond a short answer: WAIT.
    Wait {
        /// The station that must wait.
        station: Station,
        /// The station that has the channel.
        from: Station,
        /// Duration.
        hold: Span,
    },
    /// The frame has reached its receiver; `intact` unless the channel or another frame destroyed it.
    Arrived {
        /// The frame.
        frame: Frame,
        /// Whether it is readable.
        intact: bool,
        /// Whether the receiver may answer with [`Access::Reply`] now.
        may_reply: bool,
    },
    /// `station` has sent its frame to `to` and may receive the next one from the link layer.
    Done {
        /// The sender.
        station: Station,
        /// The receiver.
        to: Station,
        /// Whether an acknowledgement of medium access arrived; `None` without such acknowledgements.
        acked: Option<bool>,
    },
    /// Medium access drops the frame and returns it; [`Outcome::Done`] follows.
    Failed {
        /// The frame.
        frame: Frame,
        /// Cause of the failure.
        cause: Cause,
        /// Whether the frame had reached its receiver: an [`Outcome::Arrived`] with `intact` was reported,
        /// and only the acknowledgement was lost.
        delivered: bool,
    },
    /// The radio of `station` goes to sleep, or wakes up.
    Doze {
        /// The station.
        station: Station,
        /// Whether it sleeps from now on.
        asleep: bool,
    },
}

/// Environment of medium access: the channels between the stations, and the receivers of reports.
pub trait Air {
    /// Whether the channel damages a frame of `kind` from `from` to `to`, `bytes` long without coding, that
    /// is on the air from `start` on for `span`. Called once for each transmission to each receiver that must
    /// read it.
    fn damages(
        &mut self,
        from: Station,
        to: Station,
        kind: FrameKind,
        bytes: u32,
        start: Time,
        span: Span,
    ) -> bool;

    /// Reports a transmission that has ended, with its fate.
    fn report(&mut self, event: AirEvent);

    /// Reports an outcome to the hop.
    fn outcome(&mut self, outcome: Outcome);

    /// The next frame of the link layer at `from` for `to`, for medium access that takes several together.
    fn more(&mut self, from: Station, to: Station) -> Option<Frame> {
        let _ = (from, to);
        None
    }

    /// Reports that a received frame waits for an earlier one.
    fn waits_for_order(&mut self, frame: &Frame) {
        let _ = frame;
    }

    /// Reports that medium access repeats a frame.
    fn repeated(&mut self, frame: &Frame, cause: Cause) {
        let _ = (frame, cause);
    }
}

/// The side to which frames of station `s` travel.
fn side_of(s: usize) -> Side {
    if s == Station::BASE.index() { Side::Right } else { Side::Left }
}

/// The medium, and the medium access of every station on it.
pub trait Mac {
    /// Asserts the invariants of medium access.
    fn check(&self) {}

    /// Accepts `frame` from the idle station `frame.from`.
    fn request(&mut self, now: Time, frame: Frame, access: Access, air: &mut dyn Air);

    /// Called at the time of [`Mac::next_wake`]. A call with nothing due must have no effect.
    fn on_wake(&mut self, now: Time, air: &mut dyn Air);

    /// Time of the next required call.
    fn next_wake(&self) -> Option<Time>;

    /// Whether `station` may hand over a frame.
    fn is_idle(&self, station: Station) -> bool;

    /// Whether a station becomes idle only with an [`Outcome`].
    fn reports_idle(&self) -> bool {
        true
    }

    /// Duration of transmissions, for the timers of link layers.
    fn timing(&self) -> Timing;

    /// From now on `station` gets its frames back after `attempts` consecutive failures, or earlier
    /// ([`Outcome::Failed`]). Without effect where a frame has only one attempt.
    fn hand_back(&mut self, station: Station, attempts: u32) {
        let _ = (station, attempts);
    }

    /// The waiting frame of `station` that has not been started, for changes in place.
    fn waiting(&mut self, station: Station) -> Option<&mut Frame> {
        let _ = station;
        None
    }

    /// Sends the waiting frame at once, as [`Access::Reply`].
    fn hurry(&mut self, now: Time, station: Station, air: &mut dyn Air) {
        let _ = (now, station, air);
    }

    /// From now on values of the radio vary over time.
    fn vary(&mut self, sky: Sky);
}

/// Reads the keys of medium access.
pub type Read = fn(&mut Keys<'_>) -> Chosen;

/// Medium access in a scenario.
#[derive(Clone, PartialEq, Debug)]
pub enum Chosen {
    /// For a hop whose stations have link layers.
    Hop(MacConfig),
    /// For packet radio over several hops, whose stations have none.
    Hops(HalfDuplexHops),
}

/// Keywords of medium access, in the order of the manual.
pub fn all_words() -> impl Iterator<Item = &'static Descriptor<Read>> {
    words().chain(half_duplex_hops::WORDS)
}

family! {
    $ each;

    /// Medium access of a radio hop.
    #[derive(Clone, PartialEq, Debug, Default, Serialize)]
    #[serde(rename_all = "kebab-case", tag = "access")]
    config MacConfig;

    /// The medium of a radio hop, where each byte takes `coding` bytes on the air.
    #[derive(Clone, Debug)]
    pub machine Medium(radio: &RadioConfig, stations: u8, coding: Coding, rng: Stream);

    /// Keywords of medium access whose stations have link layers, in the order of the manual.
    words Read;

    /// Access costs only the overhead of each frame; stations with frames waiting take turns.
    #[default]
    [ideal] Ideal => Ideal = Ideal::new(radio, stations, coding), ideal::WORDS;
    /// Floor acquisition by RTS and CTS: [`fama_ncs`].
    [fama_ncs] FamaNcs(fama: FamaConfig) => FamaNcs
        = FamaNcs::new(fama.clone(), Phy::dsss(radio, coding), stations, rng), fama_ncs::WORDS;
    /// The distributed coordination function of IEEE 802.11: [`dcf`].
    [dcf] Dcf(dcf: DcfConfig) => Dcf = Dcf::new(dcf.clone(), dcf.phy(radio, coding), stations, rng), dcf::WORDS;
    /// Blocks granted by a base station, as in LTE and NR: [`granted`].
    [granted] Granted(granted: GrantedConfig) => Box<Granted>
        = Box::new(Granted::new(granted.clone(), radio, stations, coding, rng)), granted::WORDS;
}

impl Mac for Medium {
    forward! { [each]
        fn check(&self);
        fn request(&mut self, now: Time, frame: Frame, access: Access, air: &mut dyn Air);
        fn on_wake(&mut self, now: Time, air: &mut dyn Air);
        fn next_wake(&self) -> Option<Time>;
        fn is_idle(&self, station: Station) -> bool;
        fn reports_idle(&self) -> bool;
        fn timing(&self) -> Timing;
        fn waiting(&mut self, station: Station) -> Option<&mut Frame>;
        fn hand_back(&mut self, station: Station, attempts: u32);
        fn hurry(&mut self, now: Time, station: Station, air: &mut dyn Air);
        fn vary(&mut self, sky: Sky);
    }
}
