//! The capture of a shell: packets that links carried, and lost packets with their causes.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use lasthop_observe::Sink;
use lasthop_observe::pcapng::{Interface, InterfaceId, Writer};
use lasthop_proto::event::{Cause, Interest, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::Packet;
use lasthop_scenario::Stage;

/// The sink that writes the capture. After the first error it writes nothing more; `finish` returns that
/// error.
pub(super) struct Capture {
    writer: Writer<BufWriter<File>>,
    /// One interface per stage of the path, hosts included.
    interfaces: Vec<InterfaceId>,
    /// The wall clock at time zero, in nanoseconds since 1970.
    epoch: u64,
    failed: Option<io::Error>,
}

impl Capture {
    /// Creates the file `path` for the `stages` between two hosts.
    pub(super) fn create(path: &Path, stages: &[Stage], epoch: u64) -> io::Result<Capture> {
        let mut writer = Writer::new(BufWriter::new(File::create(path)?))?;
        let inner =
            stages.iter().map(|stage| (stage.name.as_str(), "transmitted and lost packets"));
        let ends = [("far", "lost packets"), ("near", "lost packets")];
        let all = ends[..1].iter().copied().chain(inner).chain(ends[1..].iter().copied());
        let interfaces = all.map(|(name, description)| {
            writer.interface(&Interface { name, description, ..Interface::default() })
        });
        let interfaces = interfaces.collect::<io::Result<_>>()?;
        Ok(Capture { writer, interfaces, epoch, failed: None })
    }

    fn take(
        &mut self,
        at: Time,
        stage: StageId,
        op: Op,
        side: Side,
        packet: &Packet,
    ) -> io::Result<()> {
        let comment = match op {
            Op::Transmitted => String::new(),
            Op::Dropped(cause) if cause.is_loss() => format!("dropped: {}", cause.name()),
            Op::Repeated(cause) | Op::Redirected(cause) => cause.name().to_owned(),
            Op::Originated(cause) if cause.is_local_retransmission() => cause.name().to_owned(),
            Op::Originated(cause @ (Cause::PartialAck | Cause::ReconstructedAck)) => {
                cause.name().to_owned()
            }
            _ => return Ok(()),
        };
        let Some(on) = self.interfaces.get(usize::from(stage.0)) else { return Ok(()) };
        let at = Time(at.0.saturating_add(self.epoch));
        match self.writer.packet(*on, at, side, packet, u32::MAX, &comment) {
            // A packet without an encoding is left out.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }

    /// Flushes the file. Returns the first error of any write.
    pub(super) fn finish(self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.into_inner().flush(),
        }
    }
}

impl Sink for Capture {
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

#[cfg(test)]
mod tests {
    use lasthop_observe::capture;
    use lasthop_proto::event::{Event, EventKind};
    use lasthop_proto::wire::{Addr, Body, Flags, Segment, Seq};

    use super::*;

    /// The fate of a packet is written at the interface of the stage where it happened. A forwarded packet is
    /// written once.
    #[test]
    fn forwarded_and_lost_packets_are_written_with_their_cause() {
        let segment = Segment::new(1000, 80, Seq(1), Seq(2), Flags::ACK);
        let addrs = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
        let packet = Packet::tcp(addrs.0, addrs.1, segment, Body::copy_of(b"hello"));
        let loss = Cause::ALL.into_iter().find(|cause| cause.is_loss()).unwrap();
        let dropped = format!("dropped: {}", loss.name());
        let name = |cause: Cause| Some(cause.name());
        let cases = [
            (Op::Transmitted, Some("")),
            (Op::Dropped(loss), Some(dropped.as_str())),
            (Op::Dropped(Cause::SplitTaken), None),
            (Op::Repeated(Cause::LocalTimeout), name(Cause::LocalTimeout)),
            (Op::Redirected(Cause::Data), name(Cause::Data)),
            (Op::Originated(Cause::LocalDupAck), name(Cause::LocalDupAck)),
            (Op::Originated(Cause::PartialAck), name(Cause::PartialAck)),
            (Op::Originated(Cause::ReconstructedAck), name(Cause::ReconstructedAck)),
            (Op::Originated(Cause::Data), None),
            (Op::Received, None),
            (Op::Damaged, None),
        ];
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shell.pcapng");
        let epoch = 1_700_000_000_000_000_000;
        let mut sink = Capture::create(&path, &[], epoch).unwrap();
        assert_eq!(sink.interest(), Interest::METRICS);
        let happens = |op, at, stage| {
            let kind = EventKind::Packet { op, side: Side::Right, packet: packet.clone() };
            Event { at: Time(at), stage: StageId(stage), kind }
        };
        for (i, (op, _)) in cases.iter().enumerate() {
            sink.event(&happens(*op, i as u64, (i % 2) as u16));
        }
        sink.event(&happens(Op::Transmitted, 99, 2));
        sink.event(&Event {
            at: Time(99),
            stage: StageId(0),
            kind: EventKind::Channel { side: Side::Left, good: true },
        });
        sink.finish().unwrap();

        let bytes = std::fs::read(&path).unwrap();
        let mut read = capture::open(&bytes).unwrap();
        let frames: Vec<_> = read.by_ref().map(|frame| frame.unwrap()).collect();
        assert_eq!(read.interfaces(), ["far", "near"]);
        let found = frames.iter().map(|frame| {
            let seen = frame.view(true).unwrap().unwrap();
            assert_eq!((seen.src, seen.dst, seen.body_len), (packet.src, packet.dst, 5));
            (frame.at.0, frame.interface, frame.comment.unwrap_or(""))
        });
        let expected = (0..).zip(cases).filter_map(|(i, (_, comment))| {
            comment.map(|comment| (epoch + i, i as u32 % 2, comment))
        });
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}
