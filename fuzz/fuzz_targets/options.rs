//! The walk over any options ends, and what was read can be written and read again.
#![no_main]

use lasthop_proto::wire::options::{MAX_LEN, read, walk, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // A header has room for no more.
    let bytes = &bytes[..bytes.len().min(MAX_LEN)];
    let total: usize = walk(bytes).filter_map(Result::ok).map(|option| option.bytes.len()).sum();
    assert!(total <= bytes.len());
    let first = read(bytes);
    let options = first.options.unwrap_or_default();
    let written = write(first.timestamps, &options).expect("what came in one header fits one");
    let again = read(written.as_slice());
    assert_eq!(again.timestamps, first.timestamps);
    assert_eq!(again.options.unwrap_or_default(), options);
    assert_eq!(again.error, None);
});
