//! The walk over any options ends, and what was read can be written and read again.
#![no_main]

use lasthop_proto::wire::options::{read, walk, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let total: usize = walk(bytes).filter_map(Result::ok).map(|option| option.bytes.len()).sum();
    assert!(total <= bytes.len());
    let first = read(bytes);
    let options = first.options.unwrap_or_default();
    if let Ok(written) = write(first.timestamps, &options) {
        let again = read(written.as_slice());
        assert_eq!(again.timestamps, first.timestamps);
        assert!(options.sack.as_slice().starts_with(again.options.unwrap_or_default().sack.as_slice()));
    }
});
