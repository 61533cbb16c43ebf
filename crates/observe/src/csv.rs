//! Traces as text: one row per event, fixed columns, identical bytes on every machine.
//!
//! Both sinks write to the caller's writer. The first error stops the output for the rest of the run, and
//! `finish` returns it.

use std::io::{self, Write};

use lasthop_proto::air::Station;
use lasthop_proto::event::{AgentNote, ClientEvent, ClientNews, Event, EventKind, Op, TcpKind};
use lasthop_proto::flows::FlowMap;
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Damage, Flags, FlowKey, Packet};

use crate::Sink;
use crate::layout::{Layout, flow_name};

/// Columns of the event trace.
///
/// | column | meaning |
/// |---|---|
/// | `time_s` | seconds since the run began, nine decimals |
/// | `stage` | name of the stage |
/// | `event` | `originated`, `transmitted`, `damaged`, `received`, `dropped`; `tcp-...`, `agent-...`, `channel-...` |
/// | `cause` | why a packet was originated or dropped |
/// | `side` | direction of travel: `left` or `right` |
/// | `id` | identity of this transmission |
/// | `flow` | `source:port>destination:port`; for `tcp-...` from that end point to its peer |
/// | `seq`, `ack` | numbers as in the TCP header |
/// | `flags` | tcpdump's letters |
/// | `window` | window field of the header |
/// | `payload` | TCP payload in bytes |
/// | `length` | the whole IP packet in bytes |
/// | `damage` | `ip` or `tcp` when that checksum is wrong |
/// | `value` | `tcp-delivered`: bytes; `agent-local-rtt`: nanoseconds; `video-segment`: its rate in bits per second |
///
/// A change of the channel's state is `channel-good` or `channel-bad`. A client's event is `page-...` or
/// `video-...`; its `flow` has the client's number in place of a port.
pub const EVENT_COLUMNS: &str =
    "time_s,stage,event,cause,side,id,flow,seq,ack,flags,window,payload,length,damage,value\n";

/// Columns of the control-block trace (output of `trpt`, west97 4.4): one row per event of a TCP end point,
/// with its control block right after the event. Positions count from the SYN (0); the first byte is 1.
/// `cwnd` and `ssthresh` are bytes; `srtt_s`, `rttvar_s` and `rto_s` seconds, `rto_s` with backoff.
pub const TCB_COLUMNS: &str = "time_s,flow,kind,snd_una,snd_nxt,snd_max,rcv_nxt,cwnd,ssthresh,snd_wnd,srtt_s,\
rttvar_s,rto_s,backoff,dupacks,in_recovery\n";

const FLUSH_AT: usize = 1 << 16;

/// Buffer of a row and its writer.
struct Rows<W> {
    row: Vec<u8>,
    to: W,
    error: Option<io::Error>,
    flows: FlowMap<Box<str>>,
}

impl<W: Write> Rows<W> {
    fn new(to: W, header: &str) -> Rows<W> {
        let mut row = Vec::with_capacity(FLUSH_AT + 512);
        row.extend_from_slice(header.as_bytes());
        Rows { row, to, error: None, flows: FlowMap::default() }
    }

    fn text(&mut self, text: &str) {
        self.row.extend_from_slice(text.as_bytes());
    }

    fn comma(&mut self) {
        self.row.push(b',');
    }

    fn int(&mut self, n: impl itoa::Integer) {
        self.text(itoa::Buffer::new().format(n));
    }

    /// Seconds with nine decimals: exact, with the resolution of all clocks in use.
    fn seconds(&mut self, nanos: u64) {
        self.int(nanos / 1_000_000_000);
        let mut digits = *b".000000000";
        let mut rest = nanos % 1_000_000_000;
        for digit in digits[1..].iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        self.row.extend_from_slice(&digits);
    }

    fn flow(&mut self, flow: FlowKey) {
        let name = self.flows.entry(flow).or_insert_with(|| flow_name(&flow).into());
        self.row.extend_from_slice(name.as_bytes());
    }

    fn end(&mut self) {
        self.row.push(b'\n');
        if self.row.len() >= FLUSH_AT {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.to.write_all(&self.row).err();
        }
        self.row.clear();
    }

    fn finish(mut self) -> io::Result<W> {
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => self.to.flush().map(|()| self.to),
        }
    }
}

/// Quotes a field if needed (RFC 4180 section 2).
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// The sink that writes every event as a row with the columns of [`EVENT_COLUMNS`].
pub struct EventCsv<W> {
    rows: Rows<W>,
    stages: Vec<String>,
}

impl<W: Write> EventCsv<W> {
    /// Writes to `to` with the stage names of `layout`.
    pub fn new(layout: &Layout, to: W) -> EventCsv<W> {
        let stages = layout.stages.iter().map(|stage| quoted(&stage.name)).collect();
        EventCsv { rows: Rows::new(to, EVENT_COLUMNS), stages }
    }

    /// Flushes the output.
    ///
    /// # Errors
    ///
    /// The first error of the writer.
    pub fn finish(self) -> io::Result<W> {
        self.rows.finish()
    }

    fn begin(&mut self, at: Time, stage: StageId) {
        self.rows.seconds(at.0);
        self.rows.comma();
        match self.stages.get(usize::from(stage.0)) {
            Some(name) => self.rows.row.extend_from_slice(name.as_bytes()),
            None => self.rows.int(stage.0),
        }
        self.rows.comma();
    }

    fn packet_row(&mut self, op: Op, side: Side, packet: &Packet) {
        let rows = &mut self.rows;
        let (event, cause) = match op {
            Op::Originated(cause) => ("originated", cause.name()),
            Op::Transmitted => ("transmitted", ""),
            Op::Marked => ("marked", ""),
            Op::MarkedBy(cause) => ("marked", cause.name()),
            Op::Damaged => ("damaged", ""),
            Op::Repeated(cause) => ("repeated", cause.name()),
            Op::Received => ("received", ""),
            Op::Dropped(cause) => ("dropped", cause.name()),
            Op::Redirected(cause) => ("redirected", cause.name()),
        };
        rows.text(event);
        rows.comma();
        rows.text(cause);
        rows.comma();
        rows.text(side.word());
        rows.comma();
        rows.int(packet.id.0);
        rows.comma();
        if let (Some(segment), Some(flow)) = (packet.segment(), packet.flow()) {
            rows.flow(flow);
            rows.comma();
            rows.int(segment.seq.0);
            rows.comma();
            rows.int(segment.ack.0);
            rows.comma();
            flags(&mut rows.row, segment.flags);
            rows.comma();
            rows.int(segment.window);
            rows.comma();
        } else if let Some((notice, quote)) = packet.quote() {
            // The quoted segment's flow and sequence number.
            rows.flow(quote.flow);
            rows.comma();
            rows.int(quote.seq.0);
            rows.text(",,");
            rows.text(notice.name());
            rows.text(",,");
        } else {
            rows.text(",,,,,");
        }
        rows.int(packet.body.len());
        rows.comma();
        rows.int(packet.wire_len());
        rows.text(match packet.damage {
            Damage::None => ",,",
            Damage::Ip => ",ip,",
            Damage::Tcp => ",tcp,",
        });
        rows.end();
    }

    /// Writes a row about stations of a radio hop, which replace the flow.
    fn link(
        &mut self,
        event: [&str; 2],
        fate: &str,
        from: Station,
        to: Station,
        value: Option<u64>,
    ) {
        let rows = &mut self.rows;
        event.into_iter().for_each(|part| rows.text(part));
        rows.comma();
        rows.text(fate);
        rows.comma();
        let side = if from == Station::BASE { Side::Right } else { Side::Left };
        rows.text(side.word());
        rows.text(",,");
        rows.text("station");
        rows.int(from.0);
        rows.text(">station");
        rows.int(to.0);
        rows.text(",,,,,,,,");
        if let Some(value) = value {
            rows.int(value);
        }
        rows.end();
    }

    /// Writes a row about a mobile host in the cell of this stage; its address replaces the flow.
    fn handoff(&mut self, event: [&str; 2], host: Addr, value: Option<u64>) {
        let rows = &mut self.rows;
        event.into_iter().for_each(|part| rows.text(part));
        rows.text(",,,,");
        rows.text(&host.to_string());
        rows.text(",,,,,,,,");
        if let Some(value) = value {
            rows.text(&value.to_string());
        }
        rows.end();
    }

    /// Writes a row without a packet, about a flow or a channel. Most columns are empty.
    fn other(&mut self, event: [&str; 2], side: &str, flow: Option<FlowKey>, value: Option<u64>) {
        let rows = &mut self.rows;
        event.into_iter().for_each(|part| rows.text(part));
        rows.text(",,");
        rows.text(side);
        rows.text(",,");
        if let Some(flow) = flow {
            rows.flow(flow);
        }
        rows.text(",,,,,,,,");
        if let Some(value) = value {
            rows.int(value);
        }
        rows.end();
    }
}

impl<W: Write> Sink for EventCsv<W> {
    fn event(&mut self, event: &Event) {
        // The packet of a datagram has its own event.
        if matches!(event.kind, EventKind::Work(_) | EventKind::Datagram { .. }) {
            return;
        }
        self.begin(event.at, event.stage);
        match &event.kind {
            EventKind::Packet { op, side, packet } => self.packet_row(*op, *side, packet),
            // `Split` is the base station's end of a split connection, with the host's address.
            kind @ (EventKind::Tcp(tcp) | EventKind::Split(tcp)) => {
                let value = match tcp.kind {
                    TcpKind::Delivered { bytes } => Some(bytes.into()),
                    _ => None,
                };
                let family = if matches!(kind, EventKind::Tcp(_)) { "tcp-" } else { "split-" };
                self.other([family, tcp.kind.name()], "", Some(tcp.flow), value);
            }
            EventKind::Agent { flow, note } => {
                let value = match *note {
                    AgentNote::SegmentClamped { mss } => Some(mss.into()),
                    AgentNote::LocalRtt { rtt: Span(nanos) } => Some(nanos),
                    _ => None,
                };
                self.other(["agent-", note.name()], "", Some(*flow), value);
            }
            EventKind::Channel { side, good } => {
                let name = if *good { "good" } else { "bad" };
                self.other(["channel-", name], side.word(), None, None);
            }
            EventKind::Air(air) => {
                let (name, fate) = (["air-", air.kind.name()], air.fate.name());
                self.link(name, fate, air.station, air.to, Some(air.airtime.0));
            }
            EventKind::Link { station, peer, note } => {
                self.link(["link-", note.name()], "", *station, *peer, None);
            }
            EventKind::Doze { station, asleep } => {
                let name = if *asleep { "asleep" } else { "awake" };
                self.link(["radio-", name], "", *station, *station, None);
            }
            EventKind::Handoff { host, arrived } => {
                let name = if *arrived { "arrived" } else { "left" };
                self.handoff(["handoff-", name], *host, None);
            }
            EventKind::State { host, bytes, arrived } => {
                let name = if *arrived { "arrived" } else { "sent" };
                self.handoff(["handoff-state-", name], *host, Some(*bytes));
            }
            EventKind::Client(ClientEvent { client, news }) => {
                let rate = match news {
                    ClientNews::VideoSegment(rate) => Some(rate.bps()),
                    _ => None,
                };
                self.other(["", news.name()], "", Some(*client), rate);
            }
            EventKind::Work(_) | EventKind::Datagram { .. } => {}
        }
    }

    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        self.begin(at, stage);
        self.packet_row(op, side, packet);
    }
}

/// The sink that writes the control block at each event of a TCP end point, with the columns of
/// [`TCB_COLUMNS`].
pub struct TcbCsv<W> {
    rows: Rows<W>,
}

impl<W: Write> TcbCsv<W> {
    /// Writes to `to`.
    pub fn new(to: W) -> TcbCsv<W> {
        TcbCsv { rows: Rows::new(to, TCB_COLUMNS) }
    }

    /// Flushes the output.
    ///
    /// # Errors
    ///
    /// The first error of the writer.
    pub fn finish(self) -> io::Result<W> {
        self.rows.finish()
    }
}

impl<W: Write> Sink for TcbCsv<W> {
    fn packet(&mut self, _: Time, _: StageId, _: Op, _: Side, _: &Packet) {}

    fn event(&mut self, event: &Event) {
        let EventKind::Tcp(tcp) = &event.kind else { return };
        let (rows, tcb) = (&mut self.rows, &tcp.tcb);
        rows.seconds(event.at.0);
        rows.comma();
        rows.flow(tcp.flow);
        rows.comma();
        rows.text(tcp.kind.name());
        for n in [tcb.snd_una, tcb.snd_nxt, tcb.snd_max, tcb.rcv_nxt] {
            rows.comma();
            rows.int(n);
        }
        for n in [tcb.cwnd, tcb.ssthresh, tcb.snd_wnd] {
            rows.comma();
            rows.int(n);
        }
        for span in [tcb.srtt, tcb.rttvar, tcb.rto] {
            rows.comma();
            rows.seconds(span.0);
        }
        for n in [tcb.backoff, tcb.dupacks, u32::from(tcb.in_recovery)] {
            rows.comma();
            rows.int(n);
        }
        rows.end();
    }
}

fn flags(row: &mut Vec<u8>, flags: Flags) {
    // The display of flags writes single letters, and a vector never fails.
    let _ = write!(row, "{flags}");
}

#[cfg(test)]
mod tests;
