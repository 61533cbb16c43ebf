//! Assigns packets to connections.

use std::collections::BTreeMap;

use lasthop_observe::capture::{self, CaptureError, Content, Decoder, Frame, Pieces, Protocol};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::parse::{Mode, View, view};
use lasthop_proto::wire::{Addr, Damage, FlowKey, Segment, Transport};

use crate::config::Config;
use crate::connection::{Conn, Packet};
use crate::contents::Contents;
use crate::copies::Copies;
use crate::frames::Frames;
use crate::handshake::Unreachable;
use crate::matched::first_bytes;
use crate::memory::Memory;
use crate::reading::{Analysis, Connection};
use crate::translated::{FirstBytes, Translations};

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Bytes of an ICMP header before the quoted packet.
const ICMP_HEADER: usize = 8;
/// Bytes of the longest IP header and a TCP header.
const QUOTED: usize = 80;
/// Destination unreachable, source quench, redirect, time exceeded, parameter problem (RFC 792).
const ICMP_ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
/// Destination unreachable, packet too big, time exceeded, parameter problem (RFC 4443).
const ICMPV6_ERRORS: [u8; 4] = [1, 2, 3, 4];

/// Number of entries in the cache of connections, indexed by a hash of their ends.
const RECENT: usize = 1024;

/// Analyses packets in the order of the capture.
#[derive(Clone, Debug, Default)]
pub struct Analyzer {
    config: Config,
    /// The latest connection between each pair of ends, by the flow whose source is the lesser end.
    open: BTreeMap<FlowKey, usize>,
    /// Indices of connections by [`place`]; each is the latest between its ends.
    recent: Vec<u32>,
    connections: Vec<Conn>,
    /// The smallest round trip of a handshake between two hosts, the lesser address first.
    round_trips: BTreeMap<(Addr, Addr), Span>,
    copies: Copies,
    memory: Memory,
    contents: Contents,
    /// The link of the present frame, and whether the frame is a repeat of 802.11.
    link: u32,
    retry: bool,
    /// Connection and flow of the present packet, if it has the first bytes of its direction.
    first: Option<(usize, FlowKey)>,
    analysis: Analysis,
}

impl Analyzer {
    /// An analyzer before its first packet.
    pub fn new(config: Config) -> Analyzer {
        Analyzer { config, ..Analyzer::default() }
    }

    /// Sets the link of the next packets, a number by [`Frame::link_id`].
    #[inline]
    pub fn on_link(&mut self, link: u32) {
        self.link = link;
    }

    /// Processes the result of a [`Decoder`] for a frame captured at `at`.
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

    /// Processes the next packet, captured at `at`.
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
        let Some(index) = self.connection(flow, segment, packet.body_len) else {
            self.analysis.ignored_packets += 1;
            return;
        };
        let connection = &mut self.connections[index];
        let known = connection.handshake_rtt();
        let ip_id = src.is_v4().then_some(packet.ip_id);
        let len = packet.body_len;
        let (ttl, tos, link) = (packet.ttl, packet.tos, self.link);
        let cut = packet.bad_option.is_some();
        let retry = self.retry;
        let packet = Packet { at, flow, segment, cut, len, ip_id, ttl, tos, link, retry };
        if !connection.packet(&self.config, &mut self.copies, &packet) {
            let counts = &mut self.analysis;
            *(if self.retry { &mut counts.wifi_copies } else { &mut counts.copied_packets }) += 1;
            return;
        }
        self.analysis.tcp_packets += 1;
        self.first = connection.lacks_first_bytes(&packet).then_some((index, flow));
        if let Some(rtt) = connection.handshake_rtt().filter(|_| known.is_none()) {
            let least = self.round_trips.entry(hosts(flow)).or_insert(rtt);
            *least = rtt.min(*least);
        }
        self.memory.packet(&mut self.config, &mut self.connections);
    }

    /// The connection of a segment; `None` if there are too many.
    fn connection(&mut self, flow: FlowKey, segment: &Segment, len: u32) -> Option<usize> {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, 0);
        }
        let recent = &mut self.recent[place(&flow)];
        let key = || flow.min(flow.reversed());
        let known = match self.connections.get(*recent as usize) {
            Some(connection) if connection.has_ends(flow) => Some(*recent as usize),
            _ => self.open.get(&key()).copied(),
        };
        *recent = known.map_or(*recent, |index| index as u32);
        let half = known.and_then(|index| Some((index, self.connections[index].half?)));
        if let Some((index, half)) = half {
            let (before, rest) = self.connections.split_at_mut(index);
            let half = half as usize;
            if rest[0].is_of_half(&before[half], flow, segment, len) {
                return Some(half);
            }
        }
        if let Some(index) = known.filter(|&i| !self.connections[i].is_replaced_by(flow, segment)) {
            return Some(index);
        }
        let index = self.connections.len();
        if index >= self.config.connections {
            return None;
        }
        let elsewhere = self.round_trips.get(&hosts(flow)).copied();
        let mut new = Conn::new(index as u32, flow, elsewhere);
        if let Some(former) = known {
            self.connections[former].replaced();
            new.half = Some(former as u32).filter(|_| !self.connections[former].is_closed());
        }
        self.connections.push(new);
        self.open.insert(key(), index);
        *recent = index as u32;
        Some(index)
    }

    /// Processes the headers that an ICMP error quotes. As in Wireshark, they use up a connection number.
    fn quoted(&mut self, quoted: &View, error: Unreachable) {
        if let Transport::Tcp(segment) = &quoted.transport {
            let (src, dst) = (quoted.src, quoted.dst);
            let flow = FlowKey { src, dst, src_port: segment.src_port, dst_port: segment.dst_port };
            if let Some(index) = self.connection(flow, segment, 0) {
                self.connections[index].unreachable(error);
            }
        }
    }

    /// The result.
    pub fn finish(mut self) -> Analysis {
        self.contents.report(&mut self.analysis);
        for connection in &mut self.connections {
            let repeated = connection.count_repeated_syns(&self.copies);
            self.analysis.copied_packets -= repeated;
            self.analysis.tcp_packets += repeated;
        }
        let mut translations = Translations::default();
        let mut tokens = BTreeMap::new();
        let until =
            self.connections.iter().map(|connection| connection.ended).max().unwrap_or_default();
        for connection in self.connections.iter().filter(|connection| connection.is_seen()) {
            translations.add(connection);
            for token in connection.multipath.tokens() {
                tokens.entry(token).or_insert(connection.number);
            }
        }
        // Collecting reuses the memory of the connections.
        let finish = |connection: Conn| {
            let multipath = connection.multipath;
            let first = multipath.tokens().filter_map(|token| tokens.get(&token).copied()).min();
            Connection { multipath: first, ..connection.finish(&self.config, until) }
        };
        let seen = self.connections.into_iter().filter(Conn::is_seen);
        self.analysis.connections = seen.map(finish).collect();
        for index in 0..self.analysis.connections.len() {
            translations.report(index, &mut self.analysis.connections);
        }
        self.analysis
    }
}

fn is_tcp(content: &Content) -> bool {
    matches!(content, Content::Packet(view) if matches!(view.transport, Transport::Tcp(_)))
}

fn holds_icmp(content: &Content) -> bool {
    match content {
        Content::Packet(view) => matches!(view.transport, Transport::Icmp(_)),
        Content::Other(Protocol::Ip(protocol)) => matches!(*protocol, ICMP | ICMPV6),
        _ => false,
    }
}

/// The headers that an ICMP error quotes, with its kind; `ip` begins with the IP header of the error.
fn quoted(error: &View, ip: &[u8]) -> Option<(View, Unreachable)> {
    if !matches!(error.transport, Transport::Other(ICMP | ICMPV6) | Transport::Icmp(_)) {
        return None;
    }
    let icmp = ip.get(if error.src.is_v4() { usize::from(ip.first()? & 15) * 4 } else { 40 }..)?;
    let kinds = if error.src.is_v4() { &ICMP_ERRORS[..] } else { &ICMPV6_ERRORS };
    let quote = icmp.get(ICMP_HEADER..).filter(|_| kinds.contains(&icmp[0]))?;
    let kind = Unreachable { v6: !error.src.is_v4(), kind: icmp[0], code: icmp[1] };
    let mode = Mode { verify: false, wire_len: Some(quote.len()) };
    if let Ok(quoted) = view(quote, mode) {
        return Some((quoted, kind));
    }
    // Wireshark needs only the first 16 bytes of a TCP header.
    let mut padded = [0; QUOTED];
    padded.get_mut(..quote.len())?.copy_from_slice(quote);
    let header = if quote.first()? >> 4 == 4 { usize::from(quote[0] & 15) * 4 } else { 40 };
    let enough = quote.len() >= header + 16;
    view(&padded, mode).ok().filter(|_| enough).map(|quoted| (quoted, kind))
}

/// The index of a connection among the recent ones, the same for both directions.
fn place(flow: &FlowKey) -> usize {
    let ([a, b], [c, d]) = (flow.src.words(), flow.dst.words());
    let ports = u64::from(flow.src_port ^ flow.dst_port);
    let hash = (a ^ b ^ c ^ d ^ ports << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 32) as usize % RECENT
}

fn hosts(flow: FlowKey) -> (Addr, Addr) {
    (flow.src.min(flow.dst), flow.src.max(flow.dst))
}

/// Analyses a capture in pieces, of which only one is in memory.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    analyzer: Analyzer,
    decoder: Decoder,
    frames: Frames,
    pieces: Pieces,
}

impl Reader {
    /// Buffer size in bytes for a record of any length: see [`Pieces`].
    pub const BUFFER: usize = Pieces::BUFFER;

    /// A reader before the first byte.
    pub fn new(config: Config) -> Reader {
        let decoder = Decoder::new(config.verify);
        Reader { analyzer: Analyzer::new(config), decoder, ..Reader::default() }
    }

    /// Processes the complete records of `bytes`: the unused bytes of the previous call, and new ones after them.
    /// `last` is whether there are no more bytes. Returns the number of used bytes, or `None` if the file is invalid
    /// from here on.
    ///
    /// # Errors
    /// If the file is not a capture.
    pub fn read(&mut self, bytes: &[u8], last: bool) -> Result<Option<usize>, CaptureError> {
        let mut pieces = core::mem::take(&mut self.pieces);
        let read = pieces.read(bytes, last, |frame| self.frame(&frame));
        self.pieces = pieces;
        match read {
            Ok(used) => Ok(Some(used)),
            Err(error) if self.pieces.is_capture() => {
                self.analyzer.analysis.error = Some(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn frame(&mut self, frame: &Frame<'_>) {
        let Reader { analyzer, decoder, frames, .. } = self;
        let mut is_icmp = false;
        analyzer.on_link(frame.link_id());
        let (at, wifi) = (frames.at(frame), frame.wifi());
        analyzer.retry = wifi.is_some_and(|header| header.retry);
        decoder.frame(frame, |content| {
            is_icmp |= holds_icmp(&content);
            if let Some(header) = wifi.filter(|_| is_tcp(&content)) {
                frames.wifi(header);
            }
            analyzer.content(at, content);
        });
        if let Some((index, flow)) = analyzer.first.take()
            && let Some(hash) = first_bytes(frame, flow)
        {
            analyzer.connections[index].set_first_bytes(flow, FirstBytes { hash, at });
        }
        if is_icmp
            && let Some(Ok(error)) = frame.view(analyzer.config.verify)
            && let Some((quoted, kind)) = frame.ip().and_then(|(ip, _)| quoted(&error, ip))
        {
            analyzer.quoted(&quoted, kind);
        }
    }

    /// Continues with the next file of the same capture, as of a ring buffer.
    pub fn next_file(&mut self) {
        let before = core::mem::take(&mut self.pieces);
        let analysis = &mut self.analyzer.analysis;
        analysis.dropped.append(&mut before.dropped());
        analysis.truncated |= before.truncated();
        self.frames.next_file();
    }

    /// Whether the file has the header of a capture.
    pub fn is_capture(&self) -> bool {
        self.pieces.is_capture()
    }

    /// The result. A truncated or invalid file is analysed up to its first incomplete record; see
    /// [`Analysis::truncated`] and [`Analysis::error`].
    pub fn finish(mut self) -> Analysis {
        self.analyzer.analysis.truncated |= self.pieces.truncated();
        self.decoder.finish(|content| self.analyzer.content(Time::ZERO, content));
        let mut analysis = self.analyzer.finish();
        analysis.dropped.append(&mut self.pieces.dropped());
        self.frames.report(&mut analysis);
        analysis
    }
}

/// Analyses captures at several interfaces of a host as one, in the order of time.
///
/// # Errors
/// If one of `files` is not a capture.
pub fn analyze_together(files: &[&[u8]], config: Config) -> Result<Analysis, CaptureError> {
    let captures = files.iter().map(|file| capture::open(file));
    let mut captures: Vec<_> =
        captures.map(|capture| capture.map(Iterator::peekable)).collect::<Result<_, _>>()?;
    let mut reader = Reader::new(config);
    loop {
        let times = captures.iter_mut().enumerate();
        let next = times.filter_map(|(i, capture)| match capture.peek() {
            Some(Ok(frame)) => Some((frame.at, i)),
            _ => None,
        });
        let Some((_, first)) = next.min() else { break };
        let Some(Ok(frame)) = captures[first].next() else { break };
        // Interfaces of different files are different links.
        reader.frame(&Frame { interface: frame.interface + ((first as u32) << 16), ..frame });
    }
    Ok(reader.finish())
}

/// Analyses the capture in `file`, as a [`Reader`] does.
///
/// # Errors
/// If `file` is not a capture.
pub fn analyze_capture(file: &[u8], config: Config) -> Result<Analysis, CaptureError> {
    let mut reader = Reader::new(config);
    reader.read(file, true)?;
    Ok(reader.finish())
}
