//! Files that are no pcap or pcapng: what they are, and which program makes a capture of them.

/// The format of a file with the first bytes `file`, as the end of an error message; empty if it is unknown.
pub(super) fn hint(file: &[u8]) -> &'static str {
    /// Beginnings of formats that Wireshark reads.
    const KNOWN: [(&[u8], &str); 15] = [
        (b"snoop\0", ": it is a snoop capture, convert it: editcap -F pcap FILE OUT.pcap"),
        (b"GMBU", ": it is a Network Monitor capture, convert it: editcap -F pcap FILE OUT.pcap"),
        (b"RTSS", ": it is a Network Monitor capture, convert it: editcap -F pcap FILE OUT.pcap"),
        (b"TRSNIFF data", ": it is a Sniffer capture, convert it: editcap -F pcap FILE OUT.pcap"),
        (b"XCP\0", ": it is a NetXRay capture, convert it: editcap -F pcap FILE OUT.pcap"),
        (b"iptrace ", ": it is an iptrace capture, convert it: editcap -F pcap FILE OUT.pcap"),
        (
            b"ObserverPktBuffe",
            ": it is an Observer capture, convert it: editcap -F pcap FILE OUT.pcap",
        ),
        (b"\x7fver", ": it is an OmniPeek capture, convert it: editcap -F pcap FILE OUT.pcap"),
        (
            b"\x05VNF",
            ": it is a Visual Networks capture, convert it: editcap -F pcap FILE OUT.pcap",
        ),
        (b"btsnoop\0", ": it is a capture of Bluetooth, which has no TCP that is read"),
        (b"\x1f\x8b", ": it is compressed by gzip, unpack it first"),
        (b"\x28\xb5\x2f\xfd", ": it is compressed by zstd, unpack it first"),
        (b"\x04\x22\x4d\x18", ": it is compressed by lz4, unpack it first: lz4 -d FILE"),
        (b"\xfd7zXZ\0", ": it is compressed by xz, unpack it first: xz -d FILE"),
        (b"BZh", ": it is compressed by bzip2, unpack it first: bzip2 -d FILE"),
    ];
    let known = KNOWN.iter().find(|(beginning, _)| file.starts_with(beginning));
    match known {
        Some((_, hint)) => hint,
        None if is_erf(file) => ": it is an ERF capture, convert it: editcap -F pcap FILE OUT.pcap",
        None => "",
    }
}

/// ERF has no magic number: two records must follow one another, or one end with the file.
fn is_erf(file: &[u8]) -> bool {
    let Some(len) = erf_record(file) else { return false };
    file.len() == len || file.get(len..).is_some_and(|next| erf_record(next).is_some())
}

/// The length of an ERF record, if its fixed fields can be those of one.
fn erf_record(bytes: &[u8]) -> Option<usize> {
    const HEADER: usize = 16;
    let header = bytes.first_chunk::<HEADER>()?;
    let len = usize::from(u16::from_be_bytes([header[10], header[11]]));
    let wire = u16::from_be_bytes([header[14], header[15]]);
    // The upper half of the time, little-endian, in seconds since 1970: from 1990 on.
    let seconds = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    let kind = header[8] & 0x7f;
    ((1..=48).contains(&kind) && len >= HEADER && wire > 0 && seconds > 631_152_000).then_some(len)
}
