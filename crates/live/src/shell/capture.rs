//! One capture of all that happened to the packets of a shell: what links carried, and what was lost, with the cause.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use lasthop_proto::event::{Cause, Event, Op, Wants, What};
use lasthop_proto::units::Time;
use lasthop_scenario::Stage;
use lasthop_trace::Sink;
use lasthop_trace::pcapng::{Interface, InterfaceId, Writer};

/// The sink that writes it. The first error ends it, and comes out at the end.
pub(super) struct Capture {
    writer: Writer<BufWriter<File>>,
    /// Of each stage of the path, hosts included.
    interfaces: Vec<InterfaceId>,
    /// The wall clock at time zero, in nanoseconds since 1970.
    epoch: u64,
    failed: Option<io::Error>,
}

impl Capture {
    /// A new file at `path` for the `stages` between two hosts.
    pub(super) fn create(path: &Path, stages: &[Stage], epoch: u64) -> io::Result<Capture> {
        let mut writer = Writer::new(BufWriter::new(File::create(path)?))?;
        let inner =
            stages.iter().map(|stage| (stage.name.as_str(), "what came out, and what was lost"));
        let ends = [("far", "what was lost"), ("near", "what was lost")];
        let all = ends[..1].iter().copied().chain(inner).chain(ends[1..].iter().copied());
        let interfaces = all.map(|(name, description)| {
            writer.interface(&Interface { name, description, ..Interface::default() })
        });
        let interfaces = interfaces.collect::<io::Result<_>>()?;
        Ok(Capture { writer, interfaces, epoch, failed: None })
    }

    fn take(&mut self, event: &Event) -> io::Result<()> {
        let What::Packet { op, side, packet } = &event.what else { return Ok(()) };
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
        let Some(on) = self.interfaces.get(usize::from(event.stage.0)) else { return Ok(()) };
        let at = Time(event.at.0.saturating_add(self.epoch));
        match self.writer.packet(*on, at, *side, packet, u32::MAX, &comment) {
            // What cannot be put into bytes was none.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }

    /// Writes what is left.
    pub(super) fn finish(self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.into_inner().flush(),
        }
    }
}

impl Sink for Capture {
    fn wants(&self) -> Wants {
        Wants::METRICS
    }

    fn event(&mut self, event: &Event) {
        if self.failed.is_none()
            && let Err(error) = self.take(event)
        {
            self.failed = Some(error);
        }
    }
}
