//! Bulk connections of a phase.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;

use lasthop_proto::units::{Span, Time};
use nix::poll::{PollFd, PollFlags};

use super::{Bulk, ProbeSample, StreamReport};
use crate::endpoint::role::marks::{BLOCK, MARK, MarkReader, stamp};
use crate::endpoint::role::{REPORT, Report};
use crate::endpoint::send::is_later;
use crate::endpoint::socket::{self, LOOK};
use crate::endpoint::unsent::UnsentLimit;
use crate::endpoint::{CHUNK, EndpointError, Pattern, Session, TcpInfo};
use crate::sys::outq::unacknowledged;

/// Reads or writes of a connection before the next one has its turn.
const TURN: usize = 4;

/// Interval of the series of rates.
const SAMPLE: Span = Span::millis(100);

/// Time limit of the reports of downloads after a phase.
const PATIENCE: Span = Span::secs(10);

/// Maximum number of probes of a connection without an answer; further ones are skipped.
const OUTSTANDING: usize = 64;

/// Direction of a bulk connection, from the client's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Up,
    Down,
}

/// A bulk connection.
#[derive(Debug)]
pub(super) struct Stream {
    direction: Direction,
    /// `None` after its end.
    stream: Option<TcpStream>,
    /// Bytes that the kernel accepted or delivered.
    moved: u64,
    /// Payload bytes at the start of the steady part.
    before: Option<u64>,
    /// Payload bytes at the last count.
    counted: u64,
    /// Last received bytes of a download, at most the length of a report.
    tail: Vec<u8>,
    /// Limit of unsent bytes of an upload.
    unsent: UnsentLimit,
    /// Number of probes, which is the mark of an upload.
    probed: u64,
    /// The last mark that the kernel has accepted, at least in part.
    stamped: u64,
    reader: MarkReader,
    /// Departures of the probes without an answer; the last one is that of `probed`.
    outstanding: VecDeque<Time>,
    /// Answered probes: departure and round trip.
    round_trips: Vec<(Time, Span)>,
    congestion: Option<String>,
    sender: Option<Report>,
    failed: Option<String>,
}

impl Stream {
    /// A connection whose role is granted. `congestion` is the requested one of a download.
    pub(super) fn new(
        direction: Direction,
        stream: TcpStream,
        congestion: Option<String>,
        now: Time,
    ) -> Stream {
        let congestion = congestion.or_else(|| match direction {
            Direction::Up => socket::congestion(&stream),
            Direction::Down => None,
        });
        Stream {
            direction,
            unsent: UnsentLimit::new(&stream, now),
            stream: Some(stream),
            moved: 0,
            before: None,
            counted: 0,
            tail: Vec::new(),
            probed: 0,
            stamped: 0,
            reader: MarkReader::new(match direction {
                Direction::Up => MARK,
                Direction::Down => BLOCK,
            }),
            outstanding: VecDeque::new(),
            round_trips: Vec::new(),
            congestion,
            sender: None,
            failed: None,
        }
    }

    /// Ends the connection by RST.
    pub(super) fn abort(self) {
        if let Some(stream) = self.stream {
            socket::abort(stream);
        }
    }

    fn watched(&self) -> Option<PollFd<'_>> {
        let interest = match self.direction {
            Direction::Up => PollFlags::POLLOUT | PollFlags::POLLIN,
            Direction::Down => PollFlags::POLLIN,
        };
        self.stream.as_ref().map(|stream| PollFd::new(stream.as_fd(), interest))
    }

    /// Reads and writes without blocking. Returns whether the peer has closed. `data` has [`BLOCK`] bytes more than a
    /// write, and is not changed apart from marks.
    fn act(
        &mut self,
        events: PollFlags,
        data: &mut [u8],
        scratch: &mut [u8],
        session: &Session<'_>,
    ) -> bool {
        let result = match self.direction {
            Direction::Up => self.upload(events, data, scratch, session),
            Direction::Down => self.download(scratch, session),
        };
        result.unwrap_or_else(|error| {
            self.failed = Some(error.to_string());
            self.count();
            self.stream = None;
            false
        })
    }

    fn download(&mut self, scratch: &mut [u8], session: &Session<'_>) -> io::Result<bool> {
        for _ in 0..TURN {
            match self.read(scratch, session)? {
                Some(0) => return Ok(true),
                Some(_) => {}
                None => break,
            }
        }
        Ok(false)
    }

    fn upload(
        &mut self,
        events: PollFlags,
        data: &mut [u8],
        scratch: &mut [u8],
        session: &Session<'_>,
    ) -> io::Result<bool> {
        if self.read(scratch, session)? == Some(0) {
            return Ok(true);
        }
        if events.contains(PollFlags::POLLOUT) {
            for _ in 0..self.unsent.writes(TURN) {
                if self.write(data, session)?.is_none() {
                    break;
                }
            }
        }
        Ok(false)
    }

    /// Reads once. Returns the number of bytes, zero at the end, and `None` if nothing was read.
    fn read(&mut self, scratch: &mut [u8], session: &Session<'_>) -> io::Result<Option<usize>> {
        let Some(mut stream) = self.stream.as_ref() else { return Ok(None) };
        let count = match stream.read(scratch) {
            Ok(count) => count,
            Err(error) if is_later(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let received = &scratch[..count];
        if self.direction == Direction::Down {
            self.moved += count as u64;
            keep_tail(&mut self.tail, received);
        }
        if let Some(mark) = self.reader.read(received) {
            self.answer(mark, session.clock.now());
        }
        Ok(Some(count))
    }

    /// Writes once. Returns the number of bytes, and `None` if nothing was written.
    fn write(&mut self, data: &mut [u8], session: &Session<'_>) -> io::Result<Option<usize>> {
        let Some(mut stream) = self.stream.as_ref() else { return Ok(None) };
        let offset = (self.moved % BLOCK as u64) as usize;
        // The rest of a mark that is sent in part.
        data[..MARK].copy_from_slice(&self.stamped.to_be_bytes());
        let piece = &mut data[offset..offset + self.unsent.bytes().min(CHUNK)];
        stamp(self.moved, piece, self.probed);
        match stream.write(piece) {
            Ok(0) => Err(ErrorKind::WriteZero.into()),
            Ok(count) => {
                if offset == 0 || offset + count > BLOCK {
                    self.stamped = self.probed;
                }
                self.moved += count as u64;
                self.unsent.update(stream, session.clock.now(), self.moved);
                Ok(Some(count))
            }
            Err(error) if is_later(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a probe in the data. Errors appear in the next read or write.
    fn probe(&mut self, now: Time) {
        let Some(mut stream) = self.stream.as_ref() else { return };
        if self.outstanding.len() >= OUTSTANDING {
            return;
        }
        if self.direction == Direction::Up || matches!(stream.write(&[0]), Ok(1)) {
            self.probed += 1;
            self.outstanding.push_back(now);
        }
    }

    /// Counts the probes up to `mark` as answered. A higher mark than that of the last probe is not an answer.
    fn answer(&mut self, mark: u64, now: Time) {
        let Some(newer) = self.probed.checked_sub(mark) else { return };
        while self.outstanding.len() as u64 > newer {
            let Some(sent) = self.outstanding.pop_front() else { return };
            self.round_trips.push((sent, now.since(sent)));
        }
    }

    /// Updates the number of payload bytes. For an upload it counts the bytes acknowledged by the peer's kernel.
    fn count(&mut self) {
        let waiting = match (self.direction, &self.stream) {
            (Direction::Up, Some(stream)) => unacknowledged(stream.as_fd()).ok(),
            (Direction::Up, None) => None,
            (Direction::Down, _) => Some(0),
        };
        let counted = waiting.map_or(self.counted, |waiting| self.moved.saturating_sub(waiting));
        self.counted = self.counted.max(counted);
    }

    fn report(self) -> StreamReport {
        StreamReport {
            bytes: self.counted,
            steady_bytes: self.before.map_or(0, |before| self.counted.saturating_sub(before)),
            failed: self.failed,
            congestion: self.congestion,
            sender: self.sender,
        }
    }
}

/// Stores the last bytes of a stream, at most the length of a report.
fn keep_tail(tail: &mut Vec<u8>, piece: &[u8]) {
    let piece = &piece[piece.len().saturating_sub(REPORT)..];
    let surplus = (tail.len() + piece.len()).saturating_sub(REPORT);
    tail.drain(..surplus.min(tail.len()));
    tail.extend_from_slice(piece);
}

/// The bulk connections of a phase.
#[derive(Debug)]
pub(super) struct Streams {
    all: Vec<Stream>,
    began: Time,
    steady: Time,
    /// Time since the start, and payload bytes up and down.
    series: Vec<(Span, [u64; 2])>,
    /// Interval of probes on all connections together.
    interval: Span,
    /// Number of probes.
    probed: usize,
}

impl Streams {
    /// Connections with one probe for each `interval`, on the next connection each time.
    pub(super) fn new(all: Vec<Stream>, interval: Span, began: Time, steady: Time) -> Streams {
        Streams { all, began, steady, series: Vec::new(), interval, probed: 0 }
    }

    /// Transfers until `until`, or until the session is stopped.
    ///
    /// # Errors
    ///
    /// Errors of the system. Errors of a connection appear in its report.
    pub(super) fn run(
        &mut self,
        until: Time,
        session: &Session<'_>,
        notify: &dyn Fn(Span, u64, u64),
    ) -> Result<(), EndpointError> {
        let mut data = Vec::new();
        Pattern { stream: 0 }.fill(0, CHUNK + BLOCK, &mut data);
        let mut scratch = vec![0; CHUNK];
        let mut next = self.began;
        let mut probe = self.began;
        loop {
            let now = session.clock.now();
            let over = now >= until || session.stopped();
            if now >= next || over {
                next = now + SAMPLE;
                if now < self.steady {
                    // The steady part begins with a sample.
                    next = next.min(self.steady);
                }
                let [up, down] = self.sample(now);
                notify(now.since(self.began), up, down);
            }
            if over {
                return Ok(());
            }
            if now >= probe {
                probe = (probe + self.interval).max(now);
                self.probe(now);
            }
            let due = next.min(probe).min(until);
            let left = due.since(now).min(LOOK);
            for (index, events) in self.ready(left)? {
                let stream = &mut self.all[index];
                if stream.act(events, &mut data, &mut scratch, session) {
                    stream.failed.get_or_insert_with(|| "the receiver closed early".to_owned());
                    stream.count();
                    stream.stream = None;
                }
            }
        }
    }

    /// Sends a probe on the next connection.
    fn probe(&mut self, now: Time) {
        let index = self.probed % self.all.len().max(1);
        self.probed += 1;
        if let Some(stream) = self.all.get_mut(index) {
            stream.probe(now);
        }
    }

    /// Indices and events of the connections that are ready, after at most `span`.
    fn ready(&self, span: Span) -> Result<Vec<(usize, PollFlags)>, EndpointError> {
        let open = self.all.iter().enumerate();
        let (indices, mut watched): (Vec<usize>, Vec<PollFd<'_>>) = open
            .filter_map(|(index, stream)| stream.watched().map(|watched| (index, watched)))
            .unzip();
        socket::wait(&mut watched, span)?;
        let events = watched.iter().map(|one| one.revents().unwrap_or(PollFlags::empty()));
        Ok(indices.into_iter().zip(events).filter(|(_, events)| !events.is_empty()).collect())
    }

    /// Counts all connections, and returns the bytes up and down.
    fn sample(&mut self, now: Time) -> [u64; 2] {
        let mut sums = [0; 2];
        for stream in &mut self.all {
            stream.count();
            if now >= self.steady {
                stream.before.get_or_insert(stream.counted);
            }
            sums[usize::from(stream.direction == Direction::Down)] += stream.counted;
        }
        self.series.push((now.since(self.began), sums));
        sums
    }

    /// Ends all connections and returns the reports, up and down.
    pub(super) fn finish(mut self, session: &Session<'_>) -> [Bulk; 2] {
        for stream in &mut self.all {
            let Some(open) = &stream.stream else { continue };
            match stream.direction {
                Direction::Up => {
                    if let Ok(info) = TcpInfo::of(open) {
                        let time = session.clock.now().since(self.began);
                        stream.sender = Some(Report::of(stream.counted, time, Some(&info)));
                    }
                    // Data in the send buffer would prolong the load.
                    if let Some(open) = stream.stream.take() {
                        socket::abort(open);
                    }
                }
                Direction::Down => {
                    // The receiver reports after this end has closed its direction.
                    let _ = open.shutdown(Shutdown::Write);
                }
            }
        }
        self.collect_reports(session);
        let mut bulks = [Bulk::default(), Bulk::default()];
        for (direction, bulk) in bulks.iter_mut().enumerate() {
            bulk.series = self.series.iter().map(|(at, sums)| (*at, sums[direction])).collect();
        }
        for mut stream in self.all {
            let bulk = &mut bulks[usize::from(stream.direction == Direction::Down)];
            let answered = std::mem::take(&mut stream.round_trips).into_iter();
            bulk.probes.extend(
                answered
                    .map(|(sent, rtt)| ProbeSample { at: sent.since(self.began), rtt: Some(rtt) }),
            );
            bulk.streams.push(stream.report());
        }
        bulks.iter_mut().for_each(|bulk| bulk.probes.sort_by_key(|sample| sample.at));
        bulks
    }

    /// Reads downloads to their end, and parses the reports of the receiver.
    fn collect_reports(&mut self, session: &Session<'_>) {
        let give_up = session.clock.now() + PATIENCE;
        let mut scratch = vec![0; CHUNK];
        while self.all.iter().any(|stream| stream.stream.is_some())
            && session.clock.now() < give_up
            && !session.stopped()
        {
            let Ok(ready) = self.ready(LOOK) else { break };
            for (index, _) in ready {
                let stream = &mut self.all[index];
                let Some(mut open) = stream.stream.as_ref() else { continue };
                match open.read(&mut scratch) {
                    Ok(0) => {
                        stream.sender = Report::parse(&stream.tail);
                        stream.stream = None;
                    }
                    Ok(count) => keep_tail(&mut stream.tail, &scratch[..count]),
                    Err(error) if is_later(&error) => {}
                    Err(_) => stream.stream = None,
                }
            }
        }
        for stream in &mut self.all {
            if let Some(open) = stream.stream.take() {
                socket::abort(open);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_end_of_the_stream() {
        let bytes: Vec<u8> = (0..1000_u32).map(|n| n as u8).collect();
        for size in [1, 7, REPORT - 1, REPORT, REPORT + 1, 1000] {
            let mut tail = Vec::new();
            bytes.chunks(size).for_each(|piece| keep_tail(&mut tail, piece));
            assert_eq!(tail, bytes[1000 - REPORT..], "{size}");
        }
    }
}
