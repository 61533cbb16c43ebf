//! A stage of a path.

use lasthop_proto::agent::{Agent, BaseStation as _, StoredSegment};
use lasthop_proto::channel::{Channel, ErrorModel, Scripted, ScriptedErrors};
use lasthop_proto::hop::Hop;
use lasthop_proto::link::tc::{Emulator, Police, Tbf};
use lasthop_proto::link::varied::Sky;
use lasthop_proto::link::{Cross, Line, Radio, Serial, Varied};
use lasthop_proto::mac::Hops;
use lasthop_proto::machine::{Machine, Out, Side, Signal, has_checks};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::Host;
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Addr, Packet};
use lasthop_scenario::{ErrorSpec, StageKind, model};

use crate::end::End;
use crate::witness::Witness;

/// A stage of a path. A match, unlike function pointers, can be inlined.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a path has few stages, and a plain line costs no pointer to follow"
)]
pub enum Stage {
    /// A host with our TCP.
    Host(Box<Host>),
    /// A host with another protocol stack.
    End(Box<dyn End>),
    /// A host outside of lasthop, observed from its packets.
    Witness(Box<Witness>),
    /// A line.
    Line(Line),
    /// A line with header compression or frame losses.
    Serial(Box<Serial>),
    /// A line that varies over time.
    Varied(Box<Varied>),
    /// A radio hop.
    Radio(Box<Radio>),
    /// A radio hop that varies over time.
    VariedRadio(Box<Radio<true>>),
    /// A radio hop with medium access and a link layer.
    Hop(Box<Hop>),
    /// Packet radio over several hops.
    Hops(Box<Hops>),
    /// The agent of a base station.
    Agent(Box<Agent>),
    /// A router with cross traffic.
    Cross(Cross),
    /// A link with netem's impairments.
    Netem(Box<Emulator>),
    /// A token bucket filter.
    Tbf(Box<Tbf>),
    /// A policer.
    Police(Box<Police>),
    /// The router before cells, or a base station: [`crate::Roam`] has their logic.
    Junction(Junction),
}

/// A stage without logic; holds its next deadline.
#[derive(Clone, Debug, Default)]
pub struct Junction(pub(crate) Option<Time>);

impl Machine for Junction {
    fn on_packet(&mut self, _: Time, from: Side, packet: Packet, out: &mut Out) {
        out.send(from.other(), packet);
    }
    fn on_wake(&mut self, _: Time, _: &mut Out) {}
    fn next_wake(&self) -> Option<Time> {
        self.0
    }
}

macro_rules! each {
    ($self:ident, $m:ident => $call:expr) => {
        match $self {
            Stage::Host($m) => $call,
            Stage::End($m) => $call,
            Stage::Witness($m) => $call,
            Stage::Line($m) => $call,
            Stage::Serial($m) => $call,
            Stage::Varied($m) => $call,
            Stage::Radio($m) => $call,
            Stage::VariedRadio($m) => $call,
            Stage::Hop($m) => $call,
            Stage::Hops($m) => $call,
            Stage::Agent($m) => $call,
            Stage::Cross($m) => $call,
            Stage::Netem($m) => $call,
            Stage::Tbf($m) => $call,
            Stage::Police($m) => $call,
            Stage::Junction($m) => $call,
        }
    };
}

/// Asserts the invariants of a machine after a call.
macro_rules! debug_check {
    ($machine:ident, $now:expr) => {
        if has_checks($now) {
            $machine.check();
        }
    };
}

impl Machine for Stage {
    #[inline]
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        each!(self, m => {
            m.on_packet(now, from, packet, out);
            debug_check!(m, now);
        });
    }
    #[inline]
    fn on_wake(&mut self, now: Time, out: &mut Out) {
        each!(self, m => {
            m.on_wake(now, out);
            debug_check!(m, now);
        });
    }
    #[inline]
    fn next_wake(&self) -> Option<Time> {
        each!(self, m => m.next_wake())
    }
    #[inline]
    fn wake_bound(&self) -> Option<Time> {
        each!(self, m => m.wake_bound())
    }
    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        each!(self, m => {
            m.on_signal(now, from, signal, out);
            debug_check!(m, now);
        });
    }
    fn check(&self) {
        each!(self, m => m.check());
    }
    fn holds(&self) -> usize {
        each!(self, m => m.holds())
    }
}

impl Stage {
    /// Processes an arriving packet, and returns the next deadline. Both need only one match.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) -> Time {
        each!(self, m => {
            m.on_packet(now, from, packet, out);
            debug_check!(m, now);
            m.wake_bound().unwrap_or(Time::NEVER)
        })
    }

    /// A copy in the same state; `None` for a host with another protocol stack.
    pub(crate) fn fork(&self) -> Option<Stage> {
        macro_rules! fork {
            ($($kind:ident)*) => {
                match self {
                    $(Stage::$kind(machine) => Some(Stage::$kind(machine.clone())),)*
                    Stage::End(_) => None,
                }
            };
        }
        fork!(Host Witness Line Serial Varied Radio VariedRadio Hop Hops Agent Cross Netem Tbf Police Junction)
    }

    /// The host with our TCP.
    pub fn host(&self) -> Option<&Host> {
        match self {
            Stage::Host(host) => Some(host),
            _ => None,
        }
    }

    /// The host, for its application.
    pub fn host_mut(&mut self) -> Option<&mut Host> {
        match self {
            Stage::Host(host) => Some(host),
            _ => None,
        }
    }

    /// The host with another protocol stack.
    pub fn end(&self) -> Option<&dyn End> {
        match self {
            Stage::End(end) => Some(&**end),
            _ => None,
        }
    }

    pub fn agent(&self) -> Option<&Agent> {
        match self {
            Stage::Agent(agent) => Some(agent),
            _ => None,
        }
    }

    /// Calls `each` for every packet that a base station buffers for the last hop, in its agent or its link layer. True
    /// if this stage may buffer any.
    pub fn stored_segments(&self, each: &mut dyn FnMut(StoredSegment)) -> bool {
        match self {
            Stage::Agent(agent) => agent.stored_segments(each),
            Stage::Hop(hop) => hop.stored_packets(&mut |packet, again| {
                let (Some(flow), Some(segment)) = (packet.flow(), packet.segment()) else { return };
                let (len, attempts) = (packet.body.len(), u32::from(again));
                each(StoredSegment { flow, seq: segment.seq, len, attempts });
            }),
            _ => return false,
        }
        true
    }

    /// The agent, for calls other than packets.
    pub fn agent_mut(&mut self) -> Option<&mut Agent> {
        match self {
            Stage::Agent(agent) => Some(agent),
            _ => None,
        }
    }

    /// Whether the stage delays packets, and still forwards them after its replacement.
    pub(crate) fn is_link(&self) -> bool {
        !matches!(
            self,
            Stage::Host(_)
                | Stage::End(_)
                | Stage::Witness(_)
                | Stage::Agent(_)
                | Stage::Junction(_)
        )
    }

    /// Number of packets that the silence of a host has lost at this router.
    pub fn lost_in_silence(&self) -> u64 {
        match self {
            Stage::Cross(cross) => cross.lost_in_silence(),
            _ => 0,
        }
    }

    /// The script of fates towards `side` of a serial line or a radio; of several channels, that of the first mobile station
    /// or hop.
    pub(crate) fn script(&self, side: Side) -> Option<&ScriptedErrors> {
        let channel = match self {
            Stage::Radio(radio) => radio.channel(side),
            Stage::VariedRadio(radio) => radio.channel(side),
            Stage::Hop(hop) => hop.channel(side),
            Stage::Hops(hops) => hops.channel(side),
            Stage::Serial(serial) => return serial.script(side),
            _ => None,
        };
        channel?.script()
    }

    /// The same, to change it.
    pub(crate) fn script_mut(&mut self, side: Side) -> Option<&mut ScriptedErrors> {
        let channel = match self {
            Stage::Radio(radio) => radio.channel_mut(side),
            Stage::VariedRadio(radio) => radio.channel_mut(side),
            Stage::Hop(hop) => hop.channel_mut(side),
            Stage::Hops(hops) => hops.channel_mut(side),
            Stage::Serial(serial) => return serial.script_mut(side),
            _ => None,
        };
        channel?.script_mut()
    }

    /// Removes all channels, so that none prevents transmission.
    pub(crate) fn forget_channels(&mut self) {
        match self {
            Stage::Hop(hop) => hop.forget_channels(),
            Stage::Hops(hops) => hops.forget_channels(),
            _ => {}
        }
    }

    #[inline]
    pub(crate) fn is_host(&self, addr: Addr) -> bool {
        match self {
            Stage::Host(host) => host.addr() == addr,
            Stage::End(end) => end.addr() == addr,
            Stage::Witness(witness) => witness.serves(addr),
            _ => false,
        }
    }

    /// Transfers that this host opened and that are not over.
    #[inline]
    pub(crate) fn unfinished(&self) -> usize {
        match self {
            Stage::Host(host) => host.unfinished(),
            Stage::End(end) => end.unfinished(),
            _ => 0,
        }
    }

    /// The stage of this description, in the run with `seed`.
    pub fn of_path(stage: &model::Stage, seed: u64) -> Stage {
        let stream = |part: &str| Stream::new(seed, &format!("{}.{part}", stage.name));
        match &stage.kind {
            StageKind::Link(config) => Stage::Line(Line::seeded(config.clone(), stream)),
            StageKind::Serial(config) => {
                Stage::Serial(Box::new(Serial::new(config.clone(), stream)))
            }
            StageKind::Varied(config) => {
                Stage::Varied(Box::new(Varied::new((**config).clone(), stream)))
            }
            StageKind::Radio(radio) => {
                let pair = |i: usize| {
                    let channel = |errors: &Option<ErrorSpec>, side| {
                        errors.as_ref().map(|spec| channel(spec, side, i, stream))
                    };
                    [channel(&radio.errors_left, "left"), channel(&radio.errors_right, "right")]
                };
                match (&radio.hop, &radio.hops) {
                    (_, Some(hops)) => {
                        let pairs = (0..usize::from(hops.hops)).map(pair).collect();
                        Stage::Hops(Box::new(Hops::new(&radio.radio, hops, pairs, stream)))
                    }
                    (Some(hop), None) => {
                        let pairs = (0..hop.mobiles.len().max(1)).map(pair).collect();
                        let made = Hop::new(&radio.radio, hop, pairs, stream);
                        let sky = radio
                            .varying
                            .as_ref()
                            .map(|varying| Sky::new(&radio.radio, (**varying).clone(), &stream));
                        Stage::Hop(Box::new(match sky {
                            Some(sky) => made.varied(sky),
                            None => made,
                        }))
                    }
                    (None, None) => {
                        let [left, right] = pair(0);
                        let config = &radio.radio;
                        match &radio.varying {
                            None => {
                                let radio = Radio::seeded(config.clone(), left, right, stream);
                                Stage::Radio(Box::new(radio))
                            }
                            Some(varying) => Stage::VariedRadio(Box::new(Radio::varied(
                                config,
                                left,
                                right,
                                (**varying).clone(),
                                stream,
                            ))),
                        }
                    }
                }
            }
            StageKind::Agent(config) => Stage::Agent(Box::new(Agent::new(config))),
            StageKind::Cross(config) => Stage::Cross(Cross::new(config.clone(), stream("cross"))),
            StageKind::Netem(config) => Stage::Netem(Box::new(Emulator::new(config, stream))),
            StageKind::Tbf(config) => Stage::Tbf(Box::new(Tbf::new(config.clone()))),
            StageKind::Police(config) => Stage::Police(Box::new(Police::new(config.clone()))),
        }
    }
}

/// The channel towards `side` of a radio's mobile station number `mobile`, with draws from the radio's streams.
fn channel(
    spec: &ErrorSpec,
    side: &str,
    mobile: usize,
    stream: impl Fn(&str) -> Stream,
) -> Channel {
    // A script concerns the first mobile station.
    let unnamed = ErrorModel::Scripted(Scripted::default());
    let model = match &spec.model {
        ErrorModel::Scripted(_) if mobile > 0 => &unnamed,
        model => model,
    };
    // The first mobile station draws as that of a plain radio does.
    let stream = |part: String| match mobile {
        0 => stream(&part),
        _ => stream(&format!("{part}.{}", mobile + 1)),
    };
    let errors = stream(format!("errors.{side}"));
    let channel = if spec.reciprocal {
        Channel::with_states(model, errors, stream("states".to_owned()))
    } else if spec.tell_turns {
        Channel::with_states(model, errors, stream(format!("states.{side}")))
    } else {
        Channel::new(model, errors)
    };
    let channel = channel.only(spec.only);
    if spec.tell_turns { channel.reporting() } else { channel }
}
