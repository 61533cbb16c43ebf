//! Drives medium access without a hop.

use lasthop_proto::air::{AirEvent, FrameKind, Station};
use lasthop_proto::link::RadioConfig;
use lasthop_proto::link::frame::{Frame, Header, Load};
use lasthop_proto::mac::{Air, Mac, Outcome};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::units::{Rate, Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};

/// Transmissions that the channel damages.
pub type Harm = Box<dyn FnMut(Station, FrameKind, Time) -> bool>;

/// Outputs of medium access.
pub struct Recorder {
    pub now: Time,
    pub air: Vec<(Time, AirEvent)>,
    pub outcomes: Vec<(Time, Outcome)>,
    pub harm: Harm,
}

impl Recorder {
    pub fn new(harm: impl FnMut(Station, FrameKind, Time) -> bool + 'static) -> Recorder {
        Recorder { now: Time::ZERO, air: Vec::new(), outcomes: Vec::new(), harm: Box::new(harm) }
    }

    pub fn perfect() -> Recorder {
        Recorder::new(|_, _, _| false)
    }

    /// The kinds of frames that were on the air, in the order of their ends.
    pub fn kinds(&self) -> Vec<FrameKind> {
        self.air.iter().map(|(_, event)| event.kind).collect()
    }
}

impl Air for Recorder {
    fn damages(
        &mut self,
        from: Station,
        _: Station,
        kind: FrameKind,
        _: u32,
        start: Time,
        _: Span,
    ) -> bool {
        (self.harm)(from, kind, start)
    }

    fn report(&mut self, event: AirEvent) {
        self.air.push((self.now, event));
    }

    fn outcome(&mut self, outcome: Outcome) {
        self.outcomes.push((self.now, outcome));
    }
}

/// Calls `mac` at its deadlines until `until`, or until it has none; `hear` receives every outcome.
pub fn run<M: Mac>(
    mac: &mut M,
    air: &mut Recorder,
    until: Time,
    mut hear: impl FnMut(&mut M, &mut Recorder, Time, &Outcome),
) {
    let mut handled = 0;
    loop {
        while handled < air.outcomes.len() {
            let (at, outcome) = &air.outcomes[handled];
            let (at, outcome) = (*at, copy(outcome));
            handled += 1;
            hear(mac, air, at, &outcome);
        }
        let Some(at) = mac.next_wake().filter(|at| *at <= until) else { return };
        assert!(at >= air.now, "deadline {at} before {}", air.now);
        air.now = at;
        mac.on_wake(at, air);
    }
}

fn copy(outcome: &Outcome) -> Outcome {
    match outcome {
        Outcome::Trans { station, to, airtime } => {
            Outcome::Trans { station: *station, to: *to, airtime: *airtime }
        }
        Outcome::Wait { station, from, hold } => {
            Outcome::Wait { station: *station, from: *from, hold: *hold }
        }
        Outcome::Arrived { frame, intact, may_reply } => {
            Outcome::Arrived { frame: frame.clone(), intact: *intact, may_reply: *may_reply }
        }
        Outcome::Done { station, to, acked } => {
            Outcome::Done { station: *station, to: *to, acked: *acked }
        }
        Outcome::Doze { station, asleep } => Outcome::Doze { station: *station, asleep: *asleep },
        Outcome::Failed { frame, cause, delivered } => {
            Outcome::Failed { frame: frame.clone(), cause: *cause, delivered: *delivered }
        }
    }
}

/// A frame with a packet of `bytes`.
pub fn frame(from: u8, to: u8, bytes: u32) -> Frame {
    let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
    let body = Body::Pattern { stream: 1, len: bytes - 40, offset: 0 };
    let packet = Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body);
    let (from, to) = (Station(from), Station(to));
    Frame { from, to, header: Header::Plain, load: Load::Packet(packet), bytes, stored: false }
}

/// A radio of 1 Mb/s.
pub fn radio(delay: Span) -> RadioConfig {
    RadioConfig {
        rate: Rate::from_bps(1_000_000).unwrap(),
        delay,
        overhead: Span::ZERO,
        half_duplex: true,
        queue: Limit::Packets(1000),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    }
}

/// Asserts that `docs/FILE` has the generated `text`. With `LASTHOP_BLESS=1` it is written there, between the
/// lines `<!-- generated -->` and `<!-- end -->`.
pub fn is_in_docs(file: &str, text: &str) {
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (begin, end) = ("<!-- generated -->\n", "<!-- end -->");
    let from = page.find(begin).expect("a line `<!-- generated -->`") + begin.len();
    let to = from + page[from..].find(end).expect("a line `<!-- end -->`");
    if std::env::var_os("LASTHOP_BLESS").is_some() {
        let blessed = [&page[..from], text, &page[to..]].concat();
        std::fs::write(&path, blessed).expect("the page can be written");
    } else {
        assert_eq!(&page[from..to], text, "docs/{file}: set LASTHOP_BLESS=1 to regenerate it");
    }
}
