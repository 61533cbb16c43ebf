//! The classic pcap format (draft-ietf-opsawg-pcap).

use super::{CaptureError, Frame, LinkType, MAX_RECORD, Order, Step, time};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// A classic capture.
#[derive(Clone, Debug)]
pub(super) struct Pcap {
    order: Order,
    /// Nanoseconds in one unit of the sub-second field.
    unit: u32,
    link: LinkType,
}

impl Pcap {
    /// Reads the file header, and answers how long it is; `None` if the magic number is not that of pcap.
    pub(super) fn open(file: &[u8]) -> Result<Option<(Pcap, usize)>, CaptureError> {
        let Some(magic) = file.first_chunk::<4>() else { return Err(CaptureError::Empty) };
        let (order, unit) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1000),
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1),
            _ => return Ok(None),
        };
        if file.len() < FILE_HEADER {
            return Err(CaptureError::Empty);
        }
        let (major, minor) = (order.u16(file, 4).unwrap_or(0), order.u16(file, 6).unwrap_or(0));
        // 2.3 and before had the two lengths of a record in the other order; nobody has written it since 1998.
        if (major, minor) != (2, 4) {
            return Err(CaptureError::Version { major, minor });
        }
        // The upper bits tell whether frames carry their check sequence.
        let link = LinkType((order.u32(file, 20).unwrap_or(0) & 0xffff) as u16);
        Ok(Some((Pcap { order, unit, link }, FILE_HEADER)))
    }

    /// The next record of `rest`, which begins at byte `at` of the file; `at` moves past it.
    pub(super) fn step<'a>(
        &self,
        rest: &'a [u8],
        at: &mut usize,
    ) -> Result<Step<'a>, CaptureError> {
        if rest.is_empty() {
            return Ok(Step::End);
        }
        let field = |index: usize| self.order.u32(rest, 4 * index);
        let (Some(secs), Some(fraction), Some(captured), Some(wire_len)) =
            (field(0), field(1), field(2), field(3))
        else {
            return Ok(Step::Truncated);
        };
        if captured > MAX_RECORD {
            let (offset, what) = (*at, "packet");
            return Err(CaptureError::Length { offset, what, len: captured });
        }
        let end = RECORD_HEADER + captured as usize;
        let Some(bytes) = rest.get(RECORD_HEADER..end) else { return Ok(Step::Truncated) };
        *at += end;
        let nanos = i128::from(secs) * 1_000_000_000 + i128::from(fraction) * i128::from(self.unit);
        Ok(Step::Frame(Frame {
            number: 0,
            at: time(nanos),
            interface: 0,
            link: self.link,
            bytes,
            wire_len,
            direction: None,
            comment: None,
        }))
    }
}
