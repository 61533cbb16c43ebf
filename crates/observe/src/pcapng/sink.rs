//! Captures at every link of a run.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

use lasthop_proto::event::{Cause, Interest, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::emit::{Prefix, emit_prefix};
use lasthop_proto::wire::{Damage, Packet, PacketId};

use super::{Interface, InterfaceId, Writer};
use crate::Sink;

/// A stage of the path with its name in the capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturePoint {
    /// The stage.
    pub stage: StageId,
    /// Name of its interface: `radio`, `2:link`.
    pub name: String,
    /// Whether it transmits and so has a separate capture: links and radios.
    pub is_link: bool,
}

/// Counters of captured and missing packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CaptureStats {
    /// Packets written to all captures.
    pub packets: u64,
    /// Packets without an encoding.
    pub unwritable: u64,
    /// Events at stages without a [`CapturePoint`].
    pub elsewhere: u64,
    /// Damage that is missing in the comments: it was reported too late after the transmission, or for a
    /// packet without one.
    pub lost_damage: u64,
}

/// The finished captures.
#[derive(Debug)]
pub struct Captures<W> {
    /// One capture per link, in the order of the capture points: each transmitted packet once.
    pub links: Vec<(StageId, W)>,
    /// Every dropped packet, with the reason as a comment and the stage as the interface.
    pub drops: W,
    /// Counters of missing packets.
    pub stats: CaptureStats,
}

/// Captures each link of a run in a separate file, and all drops in another one.
///
/// A link's capture contains each transmitted packet exactly once, at the start of its transmission. So
/// Wireshark's sequence analysis works as for a sniffer at the near end. Comments name the cause of every
/// packet that is not a plain first transmission or ACK, and damage by the channel. Packets that a queue or
/// an agent dropped never reach a wire: they are in [`Captures::drops`].
///
/// Damage may be reported before the transmission, which makes the packet's checksum wrong in the capture
/// too. If it is reported after, it appears only in the comment: the latest `HELD` packets of a link are
/// buffered for that.
///
/// [`CaptureSink::finish`] returns the first error of writing.
#[derive(Debug)]
pub struct CaptureSink<W> {
    links: Vec<Link<W>>,
    drops: Writer<W>,
    /// Destination of each stage's events; indexed by stage.
    routes: Vec<Option<Route>>,
    causes: Causes,
    payload: u32,
    stats: CaptureStats,
    failed: Option<io::Error>,
    comment: String,
}

#[derive(Clone, Copy, Debug)]
struct Route {
    link: Option<usize>,
    drops: InterfaceId,
}

/// Buffered packets per link that wait for a report of damage: more than a last hop's bandwidth-delay
/// product.
pub const HELD: usize = 1024;

/// Limit of stored causes: those of packets in flight that are neither first transmissions nor ACKs.
const CAUSES: usize = 1 << 16;

#[derive(Debug)]
struct Link<W> {
    stage: StageId,
    writer: Writer<W>,
    interface: InterfaceId,
    held: VecDeque<Held>,
    /// Damage of packets whose transmission follows.
    announced: BTreeMap<PacketId, Damage>,
    /// Empty buffers for reuse.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Held {
    id: PacketId,
    at: Time,
    side: Side,
    bytes: Vec<u8>,
    original: u32,
    cause: Option<Cause>,
    damage: Damage,
}

impl<W: Write> CaptureSink<W> {
    /// A sink for the stages in `places` that stores `payload` bytes of each packet's body. `open` opens the
    /// outputs: it is called once per link, then once with `None` for the drops.
    ///
    /// # Errors
    /// Errors of `open`, and of writing the heads of the captures.
    pub fn new(
        points: &[CapturePoint],
        payload: u32,
        mut open: impl FnMut(Option<&CapturePoint>) -> io::Result<W>,
    ) -> io::Result<CaptureSink<W>> {
        let mut links = Vec::new();
        for point in points.iter().filter(|point| point.is_link) {
            let mut writer = Writer::new(open(Some(point))?)?;
            let description = format!("stage {}: packets it began to send", point.stage.0);
            let interface = writer.interface(&Interface {
                name: &point.name,
                description: &description,
                ..Interface::default()
            })?;
            links.push(Link {
                stage: point.stage,
                writer,
                interface,
                held: VecDeque::with_capacity(HELD),
                announced: BTreeMap::new(),
                spare: Vec::new(),
            });
        }
        let mut drops = Writer::new(open(None)?)?;
        let mut routes = Vec::new();
        for point in points {
            let description = format!("stage {}: packets that ended here", point.stage.0);
            let id = drops.interface(&Interface {
                name: &point.name,
                description: &description,
                ..Interface::default()
            })?;
            let index = usize::from(point.stage.0);
            if routes.len() <= index {
                routes.resize(index + 1, None);
            }
            let link = links.iter().position(|link| point.is_link && link.stage == point.stage);
            routes[index] = Some(Route { link, drops: id });
        }
        Ok(CaptureSink {
            links,
            drops,
            routes,
            causes: Causes::default(),
            payload,
            stats: CaptureStats::default(),
            failed: None,
            comment: String::new(),
        })
    }

    /// Writes the buffered packets and returns the captures.
    ///
    /// # Errors
    /// The first error of writing; then the outputs are not returned.
    pub fn finish(mut self) -> io::Result<Captures<W>> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        for link in &mut self.links {
            while let Some(held) = link.held.pop_front() {
                link.write(&held, &mut self.comment)?;
            }
            self.stats.lost_damage += link.announced.len() as u64;
        }
        let links = self.links.into_iter().map(|l| (l.stage, l.writer.into_inner())).collect();
        Ok(Captures { links, drops: self.drops.into_inner(), stats: self.stats })
    }

    fn route(&mut self, stage: StageId) -> Option<Route> {
        let route = self.routes.get(usize::from(stage.0)).copied().flatten();
        self.stats.elsewhere += u64::from(route.is_none());
        route
    }

    fn transmitted(
        &mut self,
        at: Time,
        route: Route,
        side: Side,
        packet: &Packet,
    ) -> io::Result<()> {
        let Some(link) = route.link.and_then(|i| self.links.get_mut(i)) else {
            self.stats.elsewhere += 1;
            return Ok(());
        };
        let mut bytes = if link.held.len() < HELD {
            link.spare.pop().unwrap_or_default()
        } else {
            match link.held.pop_front() {
                Some(oldest) => {
                    link.write(&oldest, &mut self.comment)?;
                    oldest.bytes
                }
                None => Vec::new(),
            }
        };
        bytes.clear();
        match emit_prefix(packet, self.payload, &mut bytes) {
            Ok(Prefix { original, .. }) => {
                let cause = self.causes.get(packet.id);
                let id = packet.id;
                let announced = link.announced.remove(&id);
                let damage = announced.unwrap_or(packet.damage);
                link.held.push_back(Held { id, at, side, bytes, original, cause, damage });
                self.stats.packets += 1;
            }
            Err(_) => {
                link.spare.push(bytes);
                self.stats.unwritable += 1;
            }
        }
        Ok(())
    }

    fn damaged(&mut self, route: Route, packet: &Packet) {
        let Some(link) = route.link.and_then(|i| self.links.get_mut(i)) else {
            self.stats.lost_damage += 1;
            return;
        };
        if let Some(held) = link.held.iter_mut().rev().find(|held| held.id == packet.id) {
            held.damage = packet.damage;
            return;
        }
        link.announced.insert(packet.id, packet.damage);
        if link.announced.len() > HELD && link.announced.pop_first().is_some() {
            self.stats.lost_damage += 1;
        }
    }

    fn dropped(
        &mut self,
        at: Time,
        route: Route,
        side: Side,
        packet: &Packet,
        why: Cause,
    ) -> io::Result<()> {
        self.comment.clear();
        self.comment.push_str("dropped: ");
        self.comment.push_str(why.name());
        if let Some(cause) = self.causes.remove(packet.id) {
            self.comment.push_str("; sent as ");
            self.comment.push_str(cause.name());
        }
        match self.drops.packet(route.drops, at, side, packet, self.payload, &self.comment) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.stats.unwritable += 1,
            result => {
                result?;
                self.stats.packets += 1;
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        at: Time,
        stage: StageId,
        op: Op,
        side: Side,
        packet: &Packet,
    ) -> io::Result<()> {
        match op {
            Op::Originated(
                Cause::Data | Cause::Ack | Cause::Control | Cause::SplitData | Cause::SplitAck,
            )
            | Op::Received
            // The captured header contains the mark.
            | Op::Marked
            | Op::MarkedBy(_) => {}
            Op::Repeated(cause) | Op::Redirected(cause) | Op::Originated(cause) => {
                self.causes.insert(packet.id, cause)
            }
            Op::Transmitted => {
                if let Some(route) = self.route(stage) {
                    self.transmitted(at, route, side, packet)?;
                }
            }
            Op::Damaged => {
                if let Some(route) = self.route(stage) {
                    self.damaged(route, packet);
                }
            }
            // A packet that a base station consumed as an end point counts as received.
            Op::Dropped(cause) if !cause.is_loss() => {}
            Op::Dropped(cause) => {
                if let Some(route) = self.route(stage) {
                    self.dropped(at, route, side, packet, cause)?;
                }
            }
        }
        Ok(())
    }
}

impl<W: Write> Link<W> {
    fn write(&mut self, held: &Held, comment: &mut String) -> io::Result<()> {
        comment.clear();
        if let Some(cause) = held.cause {
            comment.push_str(cause.name());
        }
        let damage = match held.damage {
            Damage::None => "",
            Damage::Ip => "damaged: ip-checksum",
            Damage::Tcp => "damaged: tcp-checksum",
        };
        if !comment.is_empty() && !damage.is_empty() {
            comment.push_str("; ");
        }
        comment.push_str(damage);
        self.writer.bytes(self.interface, held.at, held.side, &held.bytes, held.original, comment)
    }
}

impl<W: Write> Sink for CaptureSink<W> {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        if self.failed.is_none()
            && let Err(error) = self.take(at, stage, op, side, packet)
        {
            self.failed = Some(error);
        }
    }
}

/// Causes of packets, for the latest [`CAUSES`] with a cause worth a comment.
#[derive(Debug, Default)]
struct Causes {
    by_id: BTreeMap<PacketId, Cause>,
    oldest: VecDeque<PacketId>,
}

impl Causes {
    fn insert(&mut self, id: PacketId, cause: Cause) {
        if self.oldest.len() >= CAUSES
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.by_id.remove(&oldest);
        }
        self.by_id.insert(id, cause);
        self.oldest.push_back(id);
    }

    fn get(&self, id: PacketId) -> Option<Cause> {
        self.by_id.get(&id).copied()
    }

    fn remove(&mut self, id: PacketId) -> Option<Cause> {
        self.by_id.remove(&id)
    }
}
