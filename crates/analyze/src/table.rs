//! From packets to connections.

use std::collections::BTreeMap;

use lasthop_proto::units::Time;
use lasthop_proto::wire::parse::View;
use lasthop_proto::wire::{Damage, FlowKey, Transport};
use lasthop_trace::capture::{CaptureError, Content, Decoder, Pieces};

use crate::config::Config;
use crate::connection::Conn;
use crate::contents::Contents;
use crate::reading::Analysis;

/// Takes packets in the order of the capture.
#[derive(Clone, Debug, Default)]
pub struct Analyzer {
    config: Config,
    /// The latest connection between each pair of ends, by the flow whose source is the lesser end.
    open: BTreeMap<FlowKey, usize>,
    connections: Vec<Conn>,
    contents: Contents,
    analysis: Analysis,
}

impl Analyzer {
    /// An analyzer that has seen nothing.
    pub fn new(config: Config) -> Analyzer {
        Analyzer { config, ..Analyzer::default() }
    }

    /// What a [`Decoder`] found in a frame that was captured at `at`.
    #[inline]
    pub fn content(&mut self, at: Time, content: Content) {
        match content {
            Content::Packet(view) => return self.packet(at, &view),
            Content::Other(protocol) => self.contents.other(protocol),
            Content::Unread(reason) => self.contents.unread(reason),
            Content::Fragment => self.contents.fragment(),
        }
        self.analysis.packets += 1;
    }

    /// The next packet, captured at `at`.
    pub fn packet(&mut self, at: Time, packet: &View) {
        self.analysis.packets += 1;
        let Transport::Tcp(segment) = &packet.transport else {
            self.contents.not_tcp(packet);
            return;
        };
        if self.config.verify && packet.damage != Damage::None {
            self.analysis.damaged_packets += 1;
            return;
        }
        let (src, dst) = (packet.src, packet.dst);
        let flow = FlowKey { src, dst, src_port: segment.src_port, dst_port: segment.dst_port };
        let key = flow.min(flow.reversed());
        let known = self.open.get(&key).copied();
        let index = known.filter(|&i| !self.connections[i].is_replaced_by(flow, segment));
        let index = match index {
            Some(index) => index,
            None if self.connections.len() < self.config.connections => {
                let index = self.connections.len();
                self.connections.push(Conn::new(index as u32, flow, at, segment));
                self.open.insert(key, index);
                index
            }
            None => {
                self.analysis.ignored_packets += 1;
                return;
            }
        };
        self.analysis.tcp_packets += 1;
        self.connections[index].packet(&self.config, at, flow, segment, packet.body_len);
    }

    /// The result.
    pub fn finish(mut self) -> Analysis {
        self.contents.report(&mut self.analysis);
        self.analysis.connections = self.connections.into_iter().map(Conn::finish).collect();
        self.analysis
    }
}

/// Analyses a capture that comes in pieces, of which only one is in memory at a time.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    analyzer: Analyzer,
    decoder: Decoder,
    pieces: Pieces,
}

impl Reader {
    /// Bytes that hold a record of any length: see [`Pieces`].
    pub const BUFFER: usize = Pieces::BUFFER;

    /// A reader that has seen nothing.
    pub fn new(config: Config) -> Reader {
        let decoder = Decoder::new(config.verify);
        Reader { analyzer: Analyzer::new(config), decoder, pieces: Pieces::default() }
    }

    /// Takes in what is whole of `bytes`: what was not used of the former piece, and what came behind it. `last` says that
    /// nothing more will come. Answers how many bytes were used; `None` if the file has turned to nonsense, and what
    /// follows is of no use.
    ///
    /// # Errors
    /// When the file is not a capture at all.
    pub fn read(&mut self, bytes: &[u8], last: bool) -> Result<Option<usize>, CaptureError> {
        let (analyzer, decoder) = (&mut self.analyzer, &mut self.decoder);
        let read = self.pieces.read(bytes, last, |frame| {
            decoder.frame(&frame, |content| analyzer.content(frame.at, content));
        });
        match read {
            Ok(used) => Ok(Some(used)),
            Err(error) if self.pieces.is_capture() => {
                self.analyzer.analysis.error = Some(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the file began as a capture does.
    pub fn is_capture(&self) -> bool {
        self.pieces.is_capture()
    }

    /// The result. A file that broke off or turned to nonsense is analysed up to there; [`Analysis::truncated`] and
    /// [`Analysis::error`] say so.
    pub fn finish(mut self) -> Analysis {
        self.analyzer.analysis.truncated = self.pieces.truncated();
        self.decoder.finish(|content| self.analyzer.content(Time::ZERO, content));
        self.analyzer.finish()
    }
}

/// Analyses the capture in `file`, as a [`Reader`] does.
///
/// # Errors
/// When `file` is not a capture at all.
pub fn analyze_capture(file: &[u8], config: Config) -> Result<Analysis, CaptureError> {
    let mut reader = Reader::new(config);
    reader.read(file, true)?;
    Ok(reader.finish())
}
