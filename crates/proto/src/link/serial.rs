//! A serial line with optional header compression and frame losses.
//!
//! In all other respects it is a [`Line`](super::Line). Headers are compressed when the transmission starts, so a
//! packet that the queue drops or reorders cannot desynchronise the two ends. The queue therefore counts uncompressed
//! packets. Captures contain uncompressed packets too, like a packet filter above the compression.

use std::collections::VecDeque;

use serde::Serialize;

use crate::channel::{Errors as _, ScriptedErrors};
use crate::event::{Cause, Op};
use crate::machine::{Machine, Out, Side};
use crate::queue::is_pure_ack;
use crate::rng::Stream;
use crate::units::{Probability, Time};
use crate::wire::{Damage, Packet};

use super::LineConfig;
use super::header_compression::{
    Compressed, CompressionConfig, Compressor, Coverage, Decompressor, Kind, REQUEST_LEN,
};
use super::transmitter::Transmitter;
use crate::fates::Script;

/// A line with header compression or frame losses.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SerialConfig {
    /// The settings of every line.
    pub line: LineConfig,
    /// Header compression of both directions.
    pub compression: Option<CompressionConfig>,
    /// Fixed length of a pure ACK on the line in bytes, as in the simulators of papers; `None` means its real length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_size: Option<u32>,
    /// Probability that a frame is lost, whatever its length.
    pub frame_loss: Probability,
    /// Fates of frames towards the right, by their number in that direction. Only [`Fate::Dropped`](super::Fate::Dropped) has
    /// an effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_fates_right: Option<Script>,
    /// The same towards the left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_fates_left: Option<Script>,
    /// Whether the receiver detects lost frames, as with a frame check sequence, and notifies the decompressor.
    pub loss_noticed: bool,
}

/// Content of a frame in flight.
#[derive(Clone, Debug)]
enum Frame {
    /// A packet with its form on the line.
    Packet { packet: Packet, form: Compressed },
    /// A decompressor's request for an uncompressed header.
    Request([u8; REQUEST_LEN as usize]),
}

#[derive(Clone, Debug)]
struct UnderWay {
    lost: bool,
    frame: Frame,
}

/// Compressor and decompressor of a direction.
#[derive(Clone, Debug)]
struct Ends {
    compressor: Compressor,
    decompressor: Decompressor,
}

#[derive(Clone, Debug)]
struct Direction {
    transmitter: Transmitter<UnderWay>,
    framing: u32,
    ack_size: Option<u32>,
    loss: f64,
    rng: Stream,
    script: Option<ScriptedErrors>,
    /// Requests to send; they have priority over packets.
    requests: VecDeque<[u8; REQUEST_LEN as usize]>,
    ends: Option<Box<Ends>>,
}

/// A serial line.
#[derive(Clone, Debug)]
pub struct Serial {
    loss_noticed: bool,
    /// Indexed by the side to which packets travel.
    directions: [Direction; 2],
}

impl Serial {
    /// An idle line; `stream` returns the random streams of its parts: losses and queues of each direction.
    pub fn new(config: SerialConfig, stream: impl Fn(&str) -> Stream) -> Serial {
        let ends = || {
            config.compression.map(|compression| {
                // Both ends have the same payload here, so its part of the sums cancels out.
                let config = CompressionConfig { coverage: Coverage::Headers, ..compression };
                Box::new(Ends {
                    compressor: Compressor::new(config),
                    decompressor: Decompressor::new(config),
                })
            })
        };
        let script = |side: Side| match side {
            Side::Left => config.frame_fates_left.clone(),
            Side::Right => config.frame_fates_right.clone(),
        };
        let directions = Side::BOTH.map(|side| Direction {
            script: script(side).map(ScriptedErrors::new),
            transmitter: config.line.transmitter(side, &stream),
            framing: config.line.framing,
            ack_size: config.ack_size,
            loss: config.frame_loss.get(),
            rng: stream(&format!("frames.{}", side.word())),
            requests: VecDeque::new(),
            ends: ends(),
        });
        Serial { loss_noticed: config.loss_noticed, directions }
    }

    /// The script of frames towards `side`.
    pub fn script(&self, side: Side) -> Option<&ScriptedErrors> {
        self.directions[side.index()].script.as_ref()
    }

    /// Mutable access to [`Serial::script`].
    pub fn script_mut(&mut self, side: Side) -> Option<&mut ScriptedErrors> {
        self.directions[side.index()].script.as_mut()
    }

    /// Forwards frames that arrived at `side` by `now`. Returns false if there were none.
    fn arrive(&mut self, now: Time, side: Side, out: &mut Out) -> bool {
        let direction = &mut self.directions[side.index()];
        direction.catch_up(now, side, out);
        let Some(UnderWay { lost, frame }) = direction.transmitter.pipe.take(now) else {
            return false;
        };
        match frame {
            Frame::Packet { packet, .. } if lost => {
                if let Some(ends) = direction.ends.as_mut().filter(|_| self.loss_noticed) {
                    ends.decompressor.lost();
                }
                out.discard(side, packet, Cause::FrameLost);
            }
            Frame::Packet { packet, form } => {
                match direction.restore(packet, form) {
                    Ok(packet) => {
                        if packet.damage == Damage::Tcp && form.kind != Kind::Ip {
                            out.packet_event(Op::Damaged, side, &packet);
                        }
                        out.packet_event(Op::Transmitted, side, &packet);
                        out.send(side, packet);
                    }
                    Err(packet) => out.discard(side, packet, Cause::Desynchronised),
                }
                self.send_request(now, side, out);
            }
            Frame::Request(_) if lost => {}
            Frame::Request(bytes) => {
                let sender = &mut self.directions[side.other().index()];
                sender.catch_up(now, side.other(), out);
                if let Some(ends) = &mut sender.ends {
                    ends.compressor.on_request(&bytes);
                }
            }
        }
        true
    }

    /// Sends a pending request of the decompressor for packets towards `side`.
    fn send_request(&mut self, now: Time, side: Side, out: &mut Out) {
        let decompressor =
            self.directions[side.index()].ends.as_mut().map(|ends| &mut ends.decompressor);
        let Some(request) = decompressor.and_then(Decompressor::request) else { return };
        let back = &mut self.directions[side.other().index()];
        back.catch_up(now, side.other(), out);
        if back.transmitter.free_at > now {
            back.requests.push_back(request);
        } else {
            back.transmit(now, Frame::Request(request), REQUEST_LEN);
        }
    }
}

impl Direction {
    /// Starts a transmission of `bytes` bytes without framing at `start`.
    fn transmit(&mut self, start: Time, frame: Frame, bytes: u32) {
        let mut lost = self.loss > 0.0 && self.rng.chance(self.loss);
        let airtime = self.transmitter.airtime(bytes + self.framing);
        if let Some(script) = &mut self.script {
            lost |= script.pass(start, airtime, bytes) == Some(0);
        }
        self.transmitter.transmit(start, airtime, UnderWay { lost, frame });
    }

    fn transmit_packet(&mut self, start: Time, packet: Packet) {
        let form = match &mut self.ends {
            Some(ends) => ends.compressor.compress(&packet),
            None => Compressed::IP,
        };
        let given = self.ack_size.filter(|_| is_pure_ack(&packet));
        let bytes = given.unwrap_or_else(|| form.on_air(&packet));
        self.transmit(start, Frame::Packet { packet, form }, bytes);
    }

    /// Starts the transmissions towards `side` that should have begun by `now`.
    fn catch_up(&mut self, now: Time, side: Side, out: &mut Out) {
        while self.transmitter.free_at <= now {
            if let Some(request) = self.requests.pop_front() {
                self.transmit(self.transmitter.free_at, Frame::Request(request), REQUEST_LEN);
            } else if let Some((start, waiting)) = self.transmitter.due(now, side, out) {
                self.transmit_packet(start, waiting.packet);
            } else {
                return;
            }
        }
    }

    /// The packet after decompression, or the original packet if decompression fails.
    fn restore(&mut self, packet: Packet, form: Compressed) -> Result<Packet, Packet> {
        let Some(ends) = self.ends.as_mut().filter(|_| form.kind != Kind::Ip) else {
            return Ok(packet);
        };
        match ends.decompressor.decompress(form.kind, &form.header, packet.body.clone()) {
            Ok(mut restored) => {
                restored.id = packet.id;
                Ok(restored)
            }
            Err(_) => Err(packet),
        }
    }
}

impl Machine for Serial {
    fn check(&self) {
        for direction in &self.directions {
            direction.transmitter.check();
            debug_assert!(
                (0.0..=1.0).contains(&direction.loss),
                "probability of a loss: {}",
                direction.loss
            );
            debug_assert!(
                direction.transmitter.queue.is_empty() || direction.transmitter.pipe.len() > 0,
                "packets wait for an idle line"
            );
            debug_assert!(
                direction.requests.len() <= 256,
                "a connection requests one whole header at a time"
            );
            if let Some(ends) = &direction.ends {
                ends.compressor.check();
                ends.decompressor.check();
            }
        }
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let to = from.other();
        let direction = &mut self.directions[to.index()];
        direction.catch_up(now, to, out);
        let bytes = packet.wire_len() + direction.framing;
        if let Some(packet) = direction.transmitter.arrive(now, to, packet, bytes, out) {
            direction.transmit_packet(now, packet);
        }
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        // A request that arrives immediately may be sent in the other direction before this returns.
        while self.arrive(now, Side::Left, out) || self.arrive(now, Side::Right, out) {}
    }

    fn next_wake(&self) -> Option<Time> {
        let next = |d: &Direction| d.transmitter.pipe.next().min(d.transmitter.turn());
        let [left, right] = &self.directions;
        next(left).min(next(right)).or_none()
    }

    fn holds(&self) -> usize {
        let packets = |Direction { transmitter, .. }: &Direction| {
            let is_packet = |u: &&UnderWay| matches!(u.frame, Frame::Packet { .. });
            transmitter.pipe.iter().filter(is_packet).count() + transmitter.queue.len()
        };
        self.directions.iter().map(packets).sum()
    }
}
