//! TCP options between their bytes and their parsed form.
//!
//! The walker reads every option, known or not, and stops only at the end of the list or at an impossible
//! length. Unknown options are stored unchanged, so a packet that is parsed and emitted again carries the
//! options of later protocols.

use super::ecn::{KIND_ACCECN0, KIND_ACCECN1};
use super::opening::{EXID_FAST_OPEN, KIND_CC, KIND_CC_ECHO, KIND_CC_NEW, KIND_FAST_OPEN, Opening};
use super::segment::{
    ACC_PERMITTED_LEN, ACC_WINDOW_LEN, ACKP_LEN, ELN_LOST_LEN, ELN_MARK_LEN, ELN_PERMITTED_LEN,
    NACK_LEN, SCPS_LEN, SMART_CAUSED_LEN, SMART_PERMITTED_LEN,
};
use super::{
    Acc, Ackp, EcnCounts, Eln, Nack, Options, SackBlocks, Scps, Seq, Smart, Snack, Timestamps,
};

/// End of the option list (RFC 9293 section 3.2).
pub const KIND_END: u8 = 0;
/// Padding (RFC 9293 section 3.2).
pub const KIND_NOP: u8 = 1;
/// Maximum segment size (RFC 9293 section 3.2).
pub const KIND_MSS: u8 = 2;
/// Window scale (RFC 7323 section 2.2).
pub const KIND_WINDOW_SCALE: u8 = 3;
/// SACK permitted (RFC 2018 section 2).
pub const KIND_SACK_PERMITTED: u8 = 4;
/// SACK blocks (RFC 2018 section 3).
pub const KIND_SACK: u8 = 5;
/// Timestamps (RFC 7323 section 3.2).
pub const KIND_TIMESTAMPS: u8 = 8;
/// MD5 signature (RFC 2385).
pub const KIND_MD5: u8 = 19;
/// Authentication option, TCP-AO (RFC 5925 section 2.2).
pub const KIND_AUTHENTICATION: u8 = 29;
/// Capabilities of SCPS-TP (CCSDS 714.0-B).
pub const KIND_SCPS: u8 = 20;
/// Selective negative acknowledgement (CCSDS 714.0-B).
pub const KIND_SNACK: u8 = 21;
/// Second kind for experiments (RFC 4727), shared by experiments through identifiers (RFC 6994).
pub const KIND_EXPERIMENT: u8 = 254;

/// Experiment identifier of [`Ackp`]: "LP". Not registered with IANA; chosen to collide with none that is.
//= rfc6994#section-3: an experimental option begins with a 16-bit identifier of the experiment
pub const EXID_ACKP: u16 = 0x4c50;
/// Experiment identifier of [`Eln`]: "LE". Not registered with IANA; chosen to collide with none that is.
pub const EXID_ELN: u16 = 0x4c45;
/// Experiment identifier of [`Nack`]: "LN". Not registered with IANA; chosen to collide with none that is.
pub const EXID_NACK: u16 = 0x4c4e;
/// Experiment identifier of [`Smart`]: "LM". Not registered with IANA; chosen to collide with none that is.
pub const EXID_SMART: u16 = 0x4c4d;
/// Experiment identifier of [`Acc`]: "LA". Not registered with IANA; chosen to collide with none that is.
pub const EXID_ACC: u16 = 0x4c41;

/// Room for options in a TCP header in bytes: fifteen 32-bit words less the fixed five.
pub const MAX_LEN: usize = 40;

const ACKP_PERMITTED: u8 = 0;
const ACKP_PARTIAL: u8 = 1;
const ELN_MARKS_PERMITTED: u8 = 0;
const ELN_MARKED: u8 = 1;

/// One option in its wire form, padding left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawOption<'a> {
    /// The option kind.
    pub kind: u8,
    /// The whole option: kind, length, value.
    pub bytes: &'a [u8],
}

impl<'a> RawOption<'a> {
    /// The bytes after kind and length.
    pub fn value(&self) -> &'a [u8] {
        self.bytes.get(2..).unwrap_or(&[])
    }
}

/// An option whose length is below two or reaches beyond the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("TCP option of kind {kind} at byte {at} of the options has an impossible length")]
pub struct OptionError {
    /// Index of the kind byte within the options.
    pub at: usize,
    /// The option kind.
    pub kind: u8,
}

/// Iterates over the options of a TCP header; ends at the end-of-list option, or after the first error.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// An iterator over `bytes`, the part of a TCP header after its first twenty bytes.
pub fn walk(bytes: &[u8]) -> Walk<'_> {
    Walk { bytes, at: 0 }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<RawOption<'a>, OptionError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let (&kind, tail) = rest.split_first()?;
            match kind {
                KIND_END => {
                    self.at = self.bytes.len();
                    return None;
                }
                KIND_NOP => self.at += 1,
                _ => {
                    let len = tail.first().map_or(0, |&len| usize::from(len));
                    let bytes = if len < 2 { None } else { rest.get(..len) };
                    let Some(bytes) = bytes else {
                        //= rfc9293#section-3.1: an illegal option length must not do harm
                        let error = OptionError { at: self.at, kind };
                        self.at = self.bytes.len();
                        return Some(Err(error));
                    };
                    self.at += len;
                    return Some(Ok(RawOption { kind, bytes }));
                }
            }
        }
    }
}

/// The parsed options of one header.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// Timestamps, if present.
    pub timestamps: Option<Timestamps>,
    /// All other options; `None` if there are none, so that the common segment allocates nothing.
    pub options: Option<Box<Options>>,
    /// The error at which the walk stopped before the end of the list.
    pub error: Option<OptionError>,
}

/// Reads the options in `bytes`. An option after a malformed one is not read.
///
/// A known option with an invalid length, or a duplicate, is stored among the unknown ones: the first one is
/// effective, and no option is lost.
pub fn read(bytes: &[u8]) -> ReadOptions {
    let mut read = ReadOptions::default();
    // Nearly every segment has exactly this layout (RFC 7323 appendix A).
    if let [1, 1, 8, 10, value @ ..] = bytes
        && let Some((value, echo)) = two_words(value)
    {
        read.timestamps = Some(Timestamps { value, echo });
        return read;
    }
    for option in walk(bytes) {
        let option = match option {
            Ok(option) => option,
            Err(error) => {
                read.error = Some(error);
                break;
            }
        };
        if !read.known(option) {
            read.others().unknown.extend_from_slice(option.bytes);
        }
    }
    read
}

fn two_words(bytes: &[u8]) -> Option<(u32, u32)> {
    let [a, b, c, d, e, f, g, h] = *bytes else { return None };
    Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
}

/// One to four ranges of sequence numbers; `None` if the value is invalid.
fn blocks(value: &[u8]) -> Option<SackBlocks> {
    let count = value.len() / 8;
    if !value.len().is_multiple_of(8) || !(1..=4).contains(&count) {
        return None;
    }
    let mut blocks = SackBlocks::default();
    value.chunks_exact(8).filter_map(two_words).for_each(|(left, right)| {
        blocks.push(Seq(left), Seq(right));
    });
    Some(blocks)
}

impl ReadOptions {
    fn others(&mut self) -> &mut Options {
        self.options.get_or_insert_default()
    }

    /// Stores a known option; returns false if it is unknown or a duplicate.
    fn known(&mut self, option: RawOption<'_>) -> bool {
        match (option.kind, option.value()) {
            (KIND_TIMESTAMPS, value) if self.timestamps.is_none() => {
                self.timestamps = two_words(value).map(|(value, echo)| Timestamps { value, echo });
                self.timestamps.is_some()
            }
            (KIND_MSS, &[a, b]) => self.others().mss.replace_none(u16::from_be_bytes([a, b])),
            (KIND_WINDOW_SCALE, &[shift]) => self.others().window_scale.replace_none(shift),
            (KIND_SACK_PERMITTED, []) => {
                !core::mem::replace(&mut self.others().sack_permitted, true)
            }
            (KIND_SACK, value) => self.sack(value),
            (KIND_SCPS, &[flags, connection]) => {
                self.others().scps.replace_none(Scps { flags, connection })
            }
            (KIND_SNACK, &[a, b, c, d, ref vector @ ..]) => {
                let (offset, size) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                self.others().snack.replace_none(Snack::new(offset, size, vector))
            }
            (KIND_EXPERIMENT, value) => self.experiment(value),
            (KIND_ACCECN0 | KIND_ACCECN1, value) => EcnCounts::read(option.kind, value)
                .is_some_and(|counts| self.others().ecn.replace_none(counts)),
            (KIND_CC | KIND_CC_NEW | KIND_CC_ECHO | KIND_FAST_OPEN, value) => {
                self.others().opening.read(option.kind, value)
            }
            _ => false,
        }
    }

    fn sack(&mut self, value: &[u8]) -> bool {
        match blocks(value) {
            Some(blocks) if self.others().sack.is_empty() => {
                self.others().sack = blocks;
                true
            }
            _ => false,
        }
    }

    fn experiment(&mut self, value: &[u8]) -> bool {
        let Some((&[high, low], rest)) = value.split_first_chunk() else { return false };
        match (u16::from_be_bytes([high, low]), rest) {
            (EXID_ACKP, &[ACKP_PERMITTED]) => self.others().ackp.replace_none(Ackp::Permitted),
            (EXID_ACKP, &[ACKP_PARTIAL]) => self.others().ackp.replace_none(Ackp::Partial),
            (EXID_NACK, []) => self.others().nack.replace_none(Nack::Permitted),
            (EXID_NACK, ranges) => match blocks(ranges) {
                Some(missing) => self.others().nack.replace_none(Nack::Missing(missing)),
                None => false,
            },
            (EXID_ELN, []) => self.others().eln.replace_none(Eln::Permitted),
            (EXID_ELN, &[a, b, c, d]) => {
                self.others().eln.replace_none(Eln::Lost(Seq(u32::from_be_bytes([a, b, c, d]))))
            }
            (EXID_ELN, &[ELN_MARKS_PERMITTED]) => {
                self.others().eln.replace_none(Eln::MarksPermitted)
            }
            (EXID_ELN, &[ELN_MARKED]) => self.others().eln.replace_none(Eln::Marked),
            (EXID_SMART, []) => self.others().smart.replace_none(Smart::Permitted),
            (EXID_SMART, &[a, b, c, d]) => {
                let seq = Seq(u32::from_be_bytes([a, b, c, d]));
                self.others().smart.replace_none(Smart::Caused(seq))
            }
            (EXID_FAST_OPEN, cookie) => self.others().opening.read_experiment(cookie),
            (EXID_ACC, []) => self.others().acc.replace_none(Acc::Permitted),
            (EXID_ACC, &[high, low, marks, a, b, c, d]) => {
                let segments = u16::from_be_bytes([high, low]);
                let acked = Seq(u32::from_be_bytes([a, b, c, d]));
                self.others().acc.replace_none(Acc::Window { segments, marks, acked })
            }
            _ => false,
        }
    }
}

/// Fills an empty field.
trait ReplaceNone<T> {
    /// Stores `value` and returns true, unless there is one already.
    fn replace_none(&mut self, value: T) -> bool;
}

impl<T> ReplaceNone<T> for Option<T> {
    fn replace_none(&mut self, value: T) -> bool {
        let empty = self.is_none();
        if empty {
            *self = Some(value);
        }
        empty
    }
}

/// Why options do not fit a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// More than forty bytes, even with all SACK blocks left out.
    #[error("TCP options take {len} bytes, a header has room for {MAX_LEN}")]
    TooLong {
        /// Bytes needed without SACK blocks.
        len: usize,
    },
    /// [`Options::unknown`] is not a sequence of whole options.
    #[error(transparent)]
    Malformed(#[from] OptionError),
}

/// Options as bytes, padded to 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Written {
    /// The bytes of the header after its first twenty.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn put(&mut self, bytes: &[u8]) {
        // Callers have checked that everything fits; a mistake there must not cause a panic here.
        if let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }
}

/// Lays out options as [`super::Segment::header_len`] counts them: timestamps first, aligned by two NOPs,
/// then the others, padded together by NOPs.
///
/// Options that do not fit are packed without alignment. If they are still too long, SACK blocks are removed
/// from the last one on, since the first one is the most recent.
///
/// # Errors
/// When the options are too long without any SACK block, or the unknown ones are malformed.
pub fn write(timestamps: Option<Timestamps>, options: &Options) -> Result<Written, WriteError> {
    if options.packed {
        return Ok(packed(timestamps, options));
    }
    let mut out = Written { bytes: [KIND_NOP; MAX_LEN], len: 0 };
    if let Some(Timestamps { value, echo }) = timestamps {
        out.put(&[KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10]);
        out.put(&value.to_be_bytes());
        out.put(&echo.to_be_bytes());
    }
    let fixed = options.wire_len() as usize;
    if fixed == 0 {
        return Ok(out);
    }
    for option in walk(&options.unknown) {
        option?;
    }
    let blocks = options.sack.as_slice();
    let sack_len = |count: usize| if count > 0 { 2 + 8 * count } else { 0 };
    let fixed = fixed - sack_len(blocks.len());
    let fitting = |used: usize| {
        (0..=blocks.len()).rev().find(|&count| used + fixed + sack_len(count) <= MAX_LEN)
    };
    //= rfc2018#section-3: with timestamps there is room for three blocks only
    let mut count = fitting(out.len);
    if out.len > 0 && count != Some(blocks.len()) && fitting(10) > count {
        // The two alignment bytes of the timestamps are missing.
        out.bytes.copy_within(2..12, 0);
        out.bytes[10..].fill(KIND_NOP);
        out.len = 10;
        count = fitting(10);
    }
    let Some(count) = count else { return Err(WriteError::TooLong { len: out.len + fixed }) };
    put_others(&mut out, options, count);
    out.len = out.len.next_multiple_of(4).min(MAX_LEN);
    Ok(out)
}

/// Lays out the options of a SYN as Linux does: MSS, timestamps, window scale, and a cookie. SACK-permitted
/// replaces the two NOPs that would align the timestamps. Other options are left out.
pub fn packed(timestamps: Option<Timestamps>, options: &Options) -> Written {
    let mut out = Written { bytes: [KIND_NOP; MAX_LEN], len: 0 };
    if let Some(mss) = options.mss {
        out.put(&[KIND_MSS, 4]);
        out.put(&mss.to_be_bytes());
    }
    let sack = [KIND_SACK_PERMITTED, 2];
    if let Some(Timestamps { value, echo }) = timestamps {
        out.put(if options.sack_permitted { &sack } else { &[KIND_NOP, KIND_NOP] });
        out.put(&[KIND_TIMESTAMPS, 10]);
        out.put(&value.to_be_bytes());
        out.put(&echo.to_be_bytes());
    } else if options.sack_permitted {
        out.put(&[KIND_NOP, KIND_NOP]);
        out.put(&sack);
    }
    if let Some(shift) = options.window_scale {
        out.put(&[KIND_NOP, KIND_WINDOW_SCALE, 3, shift]);
    }
    options.opening.write(|bytes| out.put(bytes));
    out.len = out.len.next_multiple_of(4).min(MAX_LEN);
    out
}

/// Length of the options that [`packed`] lays out, in bytes.
pub fn packed_len(timestamps: bool, options: &Options) -> u32 {
    let aligned = timestamps || options.sack_permitted;
    let parts = [
        (options.mss.is_some(), 4),
        (aligned, if timestamps { 12 } else { 4 }),
        (options.window_scale.is_some(), 4),
        (true, options.opening.wire_len()),
    ];
    let len: u32 = parts.iter().filter(|(there, _)| *there).map(|(_, len)| len).sum();
    len.next_multiple_of(4)
}

/// Whether [`packed`] writes all present options.
pub fn fits_packed(options: &Options) -> bool {
    let opening = Opening::NONE;
    only_sack(&Options { opening, ..options.clone() }) && options.sack.is_empty()
}

fn put_others(out: &mut Written, options: &Options, sack_blocks: usize) {
    if let Some(mss) = options.mss {
        out.put(&[KIND_MSS, 4]);
        out.put(&mss.to_be_bytes());
    }
    if options.sack_permitted {
        out.put(&[KIND_SACK_PERMITTED, 2]);
    }
    if let Some(shift) = options.window_scale {
        out.put(&[KIND_WINDOW_SCALE, 3, shift]);
    }
    if sack_blocks > 0 {
        if out.len.is_multiple_of(4)
            && out.len + 4 + 8 * sack_blocks <= MAX_LEN
            && only_sack(options)
        {
            // The layout of RFC 2018's authors and of every stack; receivers have fast paths for it.
            out.put(&[KIND_NOP, KIND_NOP]);
        }
        out.put(&[KIND_SACK, 2 + 8 * sack_blocks as u8]);
        for (left, right) in &options.sack.as_slice()[..sack_blocks] {
            out.put(&left.0.to_be_bytes());
            out.put(&right.0.to_be_bytes());
        }
    }
    let exid = |out: &mut Written, len: u32, exid: u16| {
        out.put(&[KIND_EXPERIMENT, len as u8]);
        out.put(&exid.to_be_bytes());
    };
    if let Some(ackp) = options.ackp {
        exid(out, ACKP_LEN, EXID_ACKP);
        out.put(&[match ackp {
            Ackp::Permitted => ACKP_PERMITTED,
            Ackp::Partial => ACKP_PARTIAL,
        }]);
    }
    match options.eln {
        None => {}
        Some(Eln::Permitted) => exid(out, ELN_PERMITTED_LEN, EXID_ELN),
        Some(Eln::Lost(seq)) => {
            exid(out, ELN_LOST_LEN, EXID_ELN);
            out.put(&seq.0.to_be_bytes());
        }
        Some(mark) => {
            exid(out, ELN_MARK_LEN, EXID_ELN);
            out.put(&[if mark == Eln::Marked { ELN_MARKED } else { ELN_MARKS_PERMITTED }]);
        }
    }
    match options.smart {
        None => {}
        Some(Smart::Permitted) => exid(out, SMART_PERMITTED_LEN, EXID_SMART),
        Some(Smart::Caused(seq)) => {
            exid(out, SMART_CAUSED_LEN, EXID_SMART);
            out.put(&seq.0.to_be_bytes());
        }
    }
    match &options.nack {
        None => {}
        Some(Nack::Permitted) => exid(out, NACK_LEN, EXID_NACK),
        Some(Nack::Missing(blocks)) => {
            exid(out, NACK_LEN + 8 * blocks.as_slice().len() as u32, EXID_NACK);
            for (left, right) in blocks.as_slice() {
                out.put(&left.0.to_be_bytes());
                out.put(&right.0.to_be_bytes());
            }
        }
    }
    match options.acc {
        None => {}
        Some(Acc::Permitted) => exid(out, ACC_PERMITTED_LEN, EXID_ACC),
        Some(Acc::Window { segments, marks, acked }) => {
            exid(out, ACC_WINDOW_LEN, EXID_ACC);
            out.put(&segments.to_be_bytes());
            out.put(&[marks]);
            out.put(&acked.0.to_be_bytes());
        }
    }
    if let Some(Scps { flags, connection }) = options.scps {
        out.put(&[KIND_SCPS, SCPS_LEN as u8, flags, connection]);
    }
    if let Some(snack) = &options.snack {
        out.put(&[KIND_SNACK, snack.wire_len() as u8]);
        out.put(&snack.offset.to_be_bytes());
        out.put(&snack.size.to_be_bytes());
        out.put(snack.vector());
    }
    if let Some(counts) = &options.ecn {
        counts.write(|bytes| out.put(bytes));
    }
    options.opening.write(|bytes| out.put(bytes));
    out.put(&options.unknown);
}

/// Whether SACK blocks are the last option, so that two bytes of padding may precede them.
fn only_sack(options: &Options) -> bool {
    let Options { ackp, eln, smart, nack, acc, scps, snack, ecn, opening, unknown, .. } = options;
    let experiments =
        [ackp.is_some(), eln.is_some(), smart.is_some(), nack.is_some(), acc.is_some()];
    let scps = scps.is_some() || snack.is_some() || ecn.is_some() || *opening != Opening::NONE;
    !experiments.contains(&true) && !scps && unknown.is_empty()
}

#[cfg(test)]
mod tests;
