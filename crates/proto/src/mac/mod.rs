//! Medium access: which station of a radio hop may send when.
//!
//! A [`Mac`] is the medium and the medium access of all stations on it. It is handed one frame at a time by each
//! station, decides when that goes on the air, lets the channel damage it, and tells what became of it. The stations
//! hear each other; a frame collides when another one is on the air at its receiver.

mod ether;
pub mod half_duplex_hops;
pub mod phy;

use serde::Serialize;

use crate::air::{AirEvent, FrameKind, Station};
use crate::describe::{Descriptor, Keys};
use crate::event::Cause;
use crate::link::RadioConfig;
use crate::link::fec::Coding;
use crate::link::frame::{Frame, Timing};
use crate::rng::Stream;
use crate::units::{Span, Time};

pub use dcf::{Dcf, DcfConfig, PowerSaveConfig};
pub use fama_ncs::{FamaConfig, FamaNcs};
pub use half_duplex_hops::{HalfDuplexHops, Hops};
pub use ideal::Ideal;
pub use phy::Phy;

/// How a station wants its frame to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// By the rules that all stations obey.
    Contend,
    /// At once, as the answer to the frame that has just arrived: the channel is still this pair's (MAC
    /// acceleration, parsa98 3.3). Only while [`Outcome::Arrived`] of that frame is being handled.
    Reply,
}

/// What medium access tells the hop. Handled in order, at the time of the call that gave it.
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
        /// Who must wait.
        station: Station,
        /// Who has the channel.
        from: Station,
        /// For how long.
        hold: Span,
    },
    /// The frame has reached its receiver; `intact` unless the channel or another frame destroyed it.
    Arrived {
        /// The frame.
        frame: Frame,
        /// Whether it can be read.
        intact: bool,
        /// Whether the receiver may answer with [`Access::Reply`] now.
        may_reply: bool,
    },
    /// `station` has sent its frame to `to` and may be given the next one. `acked` says what medium access knows
    /// about the arrival.
    Done {
        /// The sender.
        station: Station,
        /// The receiver.
        to: Station,
        /// Whether an acknowledgement of medium access came back; `None` where there are none.
        acked: Option<bool>,
    },
    /// Medium access gives the frame up and hands it back; [`Outcome::Done`] follows. `delivered` says whether it
    /// reached its receiver all the same, and only the acknowledgement was lost.
    Failed {
        /// The frame.
        frame: Frame,
        /// Why.
        cause: Cause,
        /// Whether an [`Outcome::Arrived`] with `intact` was told for it.
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

/// What lies around medium access: the channels between the stations, and those who listen.
pub trait Air {
    /// Whether the channel damages what `from` sends to `to` from `start` on for `span`: a frame of `kind`, `bytes`
    /// long (coding not included). Asked once for each transmission to each receiver that must read it.
    fn damages(
        &mut self,
        from: Station,
        to: Station,
        kind: FrameKind,
        bytes: u32,
        start: Time,
        span: Span,
    ) -> bool;

    /// A transmission has ended: what it was and what became of it.
    fn report(&mut self, event: AirEvent);

    /// Tells the hop.
    fn tell(&mut self, outcome: Outcome);
}

/// The medium, and the medium access of every station on it.
pub trait Mac {
    /// `frame.from`, which is idle, wants its frame to be sent.
    fn request(&mut self, now: Time, frame: Frame, access: Access, air: &mut dyn Air);

    /// The time that [`Mac::next_wake`] named has come. A call with nothing due must do nothing.
    fn on_wake(&mut self, now: Time, air: &mut dyn Air);

    /// When this wants to be called next.
    fn next_wake(&self) -> Option<Time>;

    /// Whether `station` may hand over a frame.
    fn is_idle(&self, station: Station) -> bool;

    /// Whether a station becomes idle with an [`Outcome`] only.
    fn tells_all(&self) -> bool {
        true
    }

    /// What it takes to send frames here, for the timers of link layers.
    fn timing(&self) -> Timing;

    /// From now on `station` has its frames back after so many attempts in a row that failed, if not before
    /// ([`Outcome::Failed`]). Where there is no attempt but one, nothing happens.
    fn hand_back(&mut self, station: Station, attempts: u32) {
        let _ = (station, attempts);
    }

    /// The frame of `station` that waits and has not begun to be sent, to be changed in place.
    fn waiting(&mut self, station: Station) -> Option<&mut Frame> {
        let _ = station;
        None
    }

    /// The frame that waits shall go at once, as [`Access::Reply`].
    fn hurry(&mut self, now: Time, station: Station, air: &mut dyn Air) {
        let _ = (now, station, air);
    }
}

/// Goes over the keys of medium access.
pub type Read = fn(&mut Keys<'_>) -> Chosen;

/// Medium access as a scenario asks for it.
#[derive(Clone, PartialEq, Debug)]
pub enum Chosen {
    /// Of a hop whose stations have link layers.
    Hop(MacConfig),
    /// Of packet radio over several hops, whose stations have none.
    Hops(HalfDuplexHops),
}

/// The words for medium access, in the order of the manual.
pub fn all_words() -> impl Iterator<Item = &'static Descriptor<Read>> {
    words().chain(half_duplex_hops::WORDS)
}

family! {
    $ each;

    /// Which medium access a radio hop has.
    #[derive(Clone, PartialEq, Debug, Default, Serialize)]
    #[serde(rename_all = "kebab-case", tag = "access")]
    config MacConfig;

    /// The medium of a radio hop, where each byte takes `coding` bytes on the air.
    #[derive(Clone, Debug)]
    pub machine Medium(radio: &RadioConfig, stations: u8, coding: Coding, chance: Stream);

    /// The words for medium access whose stations have link layers, in the order of the manual.
    words Read;

    /// Access costs nothing but the overhead of each frame; stations with frames waiting take turns.
    #[default]
    [ideal] Ideal => Ideal = Ideal::new(radio, stations, coding), ideal::WORDS;
    /// Floor acquisition by RTS and CTS: [`fama_ncs`].
    [fama_ncs] FamaNcs(fama: FamaConfig) => FamaNcs
        = FamaNcs::new(fama.clone(), Phy::dsss(radio, coding), stations, chance), fama_ncs::WORDS;
    /// The distributed coordination function of IEEE 802.11: [`dcf`].
    [dcf] Dcf(dcf: DcfConfig) => Dcf = Dcf::new(dcf.clone(), Phy::dsss(radio, coding), stations, chance), dcf::WORDS;
}

impl Mac for Medium {
    fn request(&mut self, now: Time, frame: Frame, access: Access, air: &mut dyn Air) {
        each!(self, mac => mac.request(now, frame, access, air));
    }

    fn on_wake(&mut self, now: Time, air: &mut dyn Air) {
        each!(self, mac => mac.on_wake(now, air));
    }

    fn next_wake(&self) -> Option<Time> {
        each!(self, mac => mac.next_wake())
    }

    fn is_idle(&self, station: Station) -> bool {
        each!(self, mac => mac.is_idle(station))
    }

    fn tells_all(&self) -> bool {
        each!(self, mac => mac.tells_all())
    }

    fn timing(&self) -> Timing {
        each!(self, mac => mac.timing())
    }

    fn waiting(&mut self, station: Station) -> Option<&mut Frame> {
        each!(self, mac => mac.waiting(station))
    }

    fn hand_back(&mut self, station: Station, attempts: u32) {
        each!(self, mac => mac.hand_back(station, attempts));
    }

    fn hurry(&mut self, now: Time, station: Station, air: &mut dyn Air) {
        each!(self, mac => mac.hurry(now, station, air));
    }
}
