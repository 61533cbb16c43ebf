//! Detects a shortage of memory or threads, which has the same remedy for all calls.

use std::io::{self, ErrorKind};

/// The remedy, if `error` is a shortage of memory or threads (`ENOMEM`, `EAGAIN`).
pub(crate) fn remedy(error: &io::Error) -> Option<&'static str> {
    matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::WouldBlock).then_some(
        "there is too little memory, or there are too many threads: raise the limits of the service (`MemoryMax=`, `TasksMax=`) or \
         of the shell (`ulimit -v`, `ulimit -u`)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_memory_shortage_gets_the_memory_remedy() {
        for (code, expected) in [(libc::ENOMEM, true), (libc::EAGAIN, true), (libc::EACCES, false)]
        {
            let remedy = remedy(&io::Error::from_raw_os_error(code));
            assert_eq!(
                remedy.is_some_and(|remedy| remedy.contains("MemoryMax")),
                expected,
                "{code}"
            );
        }
    }
}
