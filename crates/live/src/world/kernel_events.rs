//! Events of kernel senders, from the best source of this machine.

use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::mpsc::Sender;

use lasthop_proto::event::Event;
use lasthop_proto::side::StageId;
use lasthop_proto::units::Time;

use super::TcpEvents;
use super::host_report::HostReport;
use crate::clock::Clock;
use crate::endpoint::{SendObserver, flow};
use crate::tracepoints::{Tracer, Watched, Watcher};

/// The source of events: the kernel's tracepoints, or the reason why they are unavailable.
pub(super) enum Tracing {
    /// There is no kernel sender.
    Needless,
    Tracepoints(Tracer),
    TcpInfo(String),
}

impl Tracing {
    /// Follows senders with these ports.
    pub(super) fn start(ports: Range<u16>, clock: Clock, news: &Sender<HostReport>) -> Tracing {
        if ports.is_empty() {
            return Tracing::Needless;
        }
        let news = news.clone();
        let forward = move |event| {
            // After the end of the run the channel has no receiver.
            let _ = news.send(HostReport::Event(event));
        };
        Tracer::start(&ports, clock, forward).map_or_else(Tracing::TcpInfo, Tracing::Tracepoints)
    }

    pub(super) fn watcher(&self) -> Option<Watcher> {
        match self {
            Tracing::Tracepoints(tracer) => Some(tracer.watcher()),
            _ => None,
        }
    }

    /// All events before this time were emitted.
    pub(super) fn complete_until(&self) -> Time {
        match self {
            Tracing::Tracepoints(tracer) => tracer.complete_until(),
            Tracing::Needless | Tracing::TcpInfo(_) => Time(u64::MAX),
        }
    }

    /// Emits the remaining events.
    pub(super) fn finish(self) -> Option<TcpEvents> {
        let (source, why, lost) = match self {
            Tracing::Needless => return None,
            Tracing::Tracepoints(tracer) => ("tracepoints", None, tracer.finish()),
            Tracing::TcpInfo(why) => ("tcp-info", Some(why), 0),
        };
        Some(TcpEvents { source: source.to_owned(), why, lost })
    }
}

/// Forwards the events of a sender.
pub(super) struct Sending {
    pub(super) news: Sender<HostReport>,
    pub(super) to: SocketAddr,
    pub(super) stage: StageId,
    pub(super) watcher: Option<Watcher>,
    pub(super) watched: Option<Watched>,
}

impl SendObserver for Sending {
    fn opened(&mut self, stream: &TcpStream) -> bool {
        if let (Some(watcher), Ok(from)) = (&self.watcher, stream.local_addr()) {
            self.watched = watcher.watch(stream, flow(from, self.to), self.stage);
        }
        self.watched.is_some()
    }

    fn closing(&mut self) {
        self.watched = None;
    }

    fn event(&mut self, event: &Event) {
        // After the end of the run the channel has no receiver.
        let _ = self.news.send(HostReport::Event(event.clone()));
    }
}
