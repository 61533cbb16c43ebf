use super::*;

const TS: Timestamps = Timestamps { value: 0x0102_0304, echo: 0x0506_0708 };

fn sack(n: u32) -> Options {
    let mut options = Options::default();
    (0..n).for_each(|i| assert!(options.sack.push(Seq(10 * i), Seq(10 * i + 5))));
    options
}

#[test]
fn unknown_options_do_not_stop_the_walk() {
    let bytes = [19, 4, 7, 7, 1, 253, 2, 2, 4, 5, 180, 0, 99, 99];
    let read = read(&bytes);
    let options = read.options.unwrap();
    assert_eq!(options.mss, Some(1460));
    assert_eq!(options.unknown, [19, 4, 7, 7, 253, 2]);
    assert_eq!(read.error, None, "bytes after the end of the list are ignored");
}

#[test]
fn impossible_lengths_are_errors_unlike_the_list_end() {
    for (bytes, at) in [
        (&[8u8, 0][..], 0),
        (&[8, 1], 0),
        (&[1, 5, 10, 0, 0], 1),
        (&[2, 4, 5, 180, 7], 4),
        (&[30, 255], 0),
    ] {
        let error = read(bytes).error.unwrap();
        assert_eq!(error.at, at, "{bytes:?}");
    }
    assert_eq!(read(&[0, 5]).error, None);
    assert_eq!(read(&[1, 1, 1]).error, None);
}

#[test]
fn options_before_a_malformed_one_are_still_read() {
    let read = read(&[2, 4, 5, 180, 3, 9]);
    assert_eq!(read.options.unwrap().mss, Some(1460));
    assert!(read.error.is_some());
}

#[test]
fn wrong_lengths_and_repetitions_are_stored_unchanged() {
    let bytes = [2, 3, 5, 2, 4, 5, 180, 2, 4, 9, 9, 5, 2, 254, 3, 76, 254, 5, 0x4c, 0x50, 7];
    let options = read(&bytes).options.unwrap();
    assert_eq!(options.mss, Some(1460));
    assert_eq!(options.unknown, [2, 3, 5, 2, 4, 9, 9, 5, 2, 254, 3, 76, 254, 5, 0x4c, 0x50, 7]);
}

#[test]
fn timestamps_leave_room_for_three_blocks() {
    let all = write(None, &sack(4)).unwrap();
    assert_eq!(all.as_slice().len(), 36);
    assert_eq!(all.as_slice()[..4], [1, 1, 5, 34]);
    let three = write(Some(TS), &sack(4)).unwrap();
    assert_eq!(three.as_slice().len(), 40);
    let read = read(three.as_slice());
    assert_eq!(read.options.unwrap().sack, sack(3).sack, "the most recent blocks stay");
    assert_eq!(read.timestamps, Some(TS));
}

#[test]
fn padding_is_omitted_when_options_need_all_40_bytes() {
    // A Fast Open SYN of Linux with an 18-byte cookie needs every byte available.
    let options = Options {
        mss: Some(1460),
        sack_permitted: true,
        window_scale: Some(7),
        unknown: [&[34, 21][..], &[9; 19]].concat(),
        ..Options::default()
    };
    let written = write(Some(TS), &options).unwrap();
    assert_eq!(written.as_slice().len(), 40);
    let read = read(written.as_slice());
    assert_eq!((*read.options.unwrap(), read.timestamps), (options, Some(TS)));
}

#[test]
fn oversized_or_malformed_options_are_not_written() {
    let options = Options { unknown: [&[30, 41][..], &[0; 39]].concat(), ..Options::default() };
    assert!(matches!(write(None, &options), Err(WriteError::TooLong { len: 41 })));
    let options = Options { unknown: vec![30, 9], ..Options::default() };
    assert!(matches!(write(None, &options), Err(WriteError::Malformed(_))));
}

/// A SYN of Linux 6: its options in their order, without a byte of padding.
#[test]
fn syn_options_can_be_packed_as_in_linux() {
    let stamps = Timestamps { value: 1, echo: 2 };
    let options = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        packed: true,
        ..Options::default()
    };
    let bytes = |stamps, options: &Options| {
        let written = write(stamps, options).unwrap().as_slice().to_vec();
        assert_eq!(written.len() as u32, packed_len(stamps.is_some(), options));
        let read = read(&written);
        assert_eq!(read.timestamps, stamps);
        let there = *read.options.unwrap_or_default();
        assert_eq!(Options { packed: true, ..there }, *options);
        written
    };
    let full = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7];
    assert_eq!(bytes(Some(stamps), &options), full);
    assert_eq!(bytes(None, &options), [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7]);
    let plain = Options { sack_permitted: false, ..options.clone() };
    assert_eq!(bytes(Some(stamps), &plain)[4..8], [1, 1, 8, 10]);
    assert_eq!(bytes(None, &plain), [2, 4, 5, 180, 1, 3, 3, 7]);
    let cookie = crate::wire::opening::Cookie::new(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let opening = Opening { cookie, ..Opening::NONE };
    let quick = bytes(Some(stamps), &Options { opening, ..options.clone() });
    assert_eq!((quick.len(), &quick[..20]), (32, &full[..]));
    assert!(
        fits_packed(&options) && !fits_packed(&Options { acc: Some(Acc::Permitted), ..options })
    );
}
