//! Reader of a capture of which only a part is in memory.

use super::{CaptureError, Dropped, Format, Frame, Step};

/// Bytes that suffice for the header of a file, and for the detection of other formats.
const HEADER: usize = 4096;

/// Reads a capture in pieces, for example from a pipe or a file larger than memory.
///
/// The caller has a buffer: it retains the unused bytes and appends the next ones. A record is at most
/// [`super::MAX_RECORD`] and its header, so a buffer of [`Pieces::BUFFER`] bytes always holds a complete one.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    format: Option<Format>,
    /// Offset of the next record in the file.
    at: usize,
    packets: u64,
    truncated: bool,
}

impl Pieces {
    /// Buffer size in bytes for a record of any length.
    pub const BUFFER: usize = super::MAX_RECORD as usize + 64;

    /// Calls `each` for the complete packets in `bytes`: the unused bytes of the previous call, and new ones after
    /// them. `last` is whether there are no more bytes. Returns the number of used bytes.
    ///
    /// # Errors
    /// If the file is not a capture, or is invalid from some byte on. `each` was called for the packets before.
    /// [`Pieces::is_capture`] distinguishes the two.
    pub fn read(
        &mut self,
        bytes: &[u8],
        last: bool,
        mut each: impl FnMut(Frame<'_>),
    ) -> Result<usize, CaptureError> {
        let began = self.at;
        if self.format.is_none() {
            if bytes.len() < HEADER && !last {
                return Ok(0);
            }
            let (format, header) = Format::open(bytes)?;
            self.format = Some(format);
            self.at = header;
        }
        let Some(format) = &mut self.format else { return Ok(0) };
        loop {
            let rest = bytes.get(self.at - began..).unwrap_or(&[]);
            match format.step(rest, &mut self.at)? {
                Step::Frame(mut frame) => {
                    self.packets += 1;
                    frame.number = self.packets;
                    each(frame);
                }
                Step::End => break,
                Step::Truncated => {
                    self.truncated = last;
                    break;
                }
            }
        }
        Ok(self.at - began)
    }

    /// Packets that the capture itself has missed, by interface.
    pub fn dropped(&self) -> Vec<Dropped> {
        self.format.as_ref().map_or(Vec::new(), Format::dropped)
    }

    /// Whether the file began as a capture does.
    pub fn is_capture(&self) -> bool {
        self.format.is_some()
    }

    /// Whether the file ended within a record.
    pub fn truncated(&self) -> bool {
        self.truncated
    }
}

#[cfg(test)]
mod tests {
    use lasthop_proto::machine::Side;
    use lasthop_proto::units::Time;
    use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};
    use proptest::prelude::*;

    use super::*;
    use crate::capture::open;
    use crate::pcapng::{Interface, Writer};

    /// Two sections, each with its own interface.
    fn pcapng() -> Vec<u8> {
        let mut file = Vec::new();
        for name in ["radio", "wire"] {
            let mut writer = Writer::new(Vec::new()).unwrap();
            let interface = Interface { name, epoch: 1_700_000_000, ..Interface::default() };
            let interface = writer.interface(&interface).unwrap();
            for i in 0..20 {
                let segment = Segment::new(4000, 80, Seq(i * 100), Seq(1), Flags::ACK);
                let body = Body::Pattern { stream: 0, len: 100 * i, offset: 0 };
                let packet =
                    Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, body);
                let at = Time(u64::from(i) * 1_000_000);
                writer.packet(interface, at, Side::Right, &packet, 60, "why").unwrap();
            }
            file.extend(writer.into_inner());
        }
        file
    }

    fn pcap() -> Vec<u8> {
        let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 101];
        let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        for i in 0..30_u32 {
            file.extend([i, 7, 3 * i, 1500].into_iter().flat_map(u32::to_le_bytes));
            file.extend((0..3 * i).map(|byte| byte as u8));
        }
        file
    }

    /// An owned copy of a frame.
    type OwnedFrame = (u64, Time, u32, Vec<u8>, u32, Option<Side>, Option<String>);

    fn owned(frame: &Frame<'_>) -> OwnedFrame {
        let comment = frame.comment.map(str::to_owned);
        let Frame { number, at, interface, bytes, wire_len, direction, .. } = *frame;
        (number, at, interface, bytes.to_vec(), wire_len, direction, comment)
    }

    fn whole(file: &[u8]) -> (Vec<OwnedFrame>, Option<CaptureError>, bool) {
        let mut capture = match open(file) {
            Ok(capture) => capture,
            Err(error) => return (Vec::new(), Some(error), false),
        };
        let (mut frames, mut failed) = (Vec::new(), None);
        for frame in &mut capture {
            match frame {
                Ok(frame) => frames.push(owned(&frame)),
                Err(error) => failed = Some(error),
            }
        }
        (frames, failed, capture.truncated())
    }

    /// Reads with a buffer, in pieces of these sizes, cyclically.
    fn in_pieces(file: &[u8], sizes: &[usize]) -> (Vec<OwnedFrame>, Option<CaptureError>, bool) {
        let mut pieces = Pieces::default();
        let (mut frames, mut buffer, mut taken) = (Vec::new(), Vec::new(), 0);
        for size in sizes.iter().cycle() {
            let next = (taken + size).min(file.len());
            buffer.extend_from_slice(&file[taken..next]);
            taken = next;
            let last = taken == file.len();
            match pieces.read(&buffer, last, |frame| frames.push(owned(&frame))) {
                Ok(used) => drop(buffer.drain(..used)),
                Err(error) => return (frames, Some(error), false),
            }
            if last {
                break;
            }
        }
        (frames, None, pieces.truncated())
    }

    proptest! {
        #[test]
        fn reading_in_pieces_equals_reading_the_whole_capture(
            old in any::<bool>(),
            sizes in prop::collection::vec(1_usize..200, 1..8),
            cut in 0_usize..5000,
            damage in prop::option::of((0_usize..5000, any::<u8>())),
        ) {
            let mut file = if old { pcap() } else { pcapng() };
            file.truncate(file.len().saturating_sub(cut));
            if let Some((at, byte)) = damage && at < file.len() {
                file[at] = byte;
            }
            prop_assert_eq!(in_pieces(&file, &sizes), whole(&file));
        }
    }

    #[test]
    fn a_whole_file_is_read_at_once() {
        for file in [pcap(), pcapng()] {
            let mut count = 0;
            let mut pieces = Pieces::default();
            assert_eq!(pieces.read(&file, true, |_| count += 1), Ok(file.len()));
            assert_eq!(
                (count, pieces.truncated()),
                (if file.len() < 3000 { 30 } else { 40 }, false)
            );
        }
    }
}
