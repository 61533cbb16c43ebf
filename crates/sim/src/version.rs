//! The version of lasthop and the commit that it is built from.
//!
//! Names of runs depend on the version only: two builds of one version have the same stores and digests.

/// The version, such as `0.2.0`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, shortened; with `-changed` where files differed from it. `None` for debug builds and for sources without git.
pub const COMMIT: Option<&str> = option_env!("LASTHOP_VERSION_COMMIT");

/// Version and commit: `0.2.0 (0123456789ab)`.
pub const LINE: &str = env!("LASTHOP_VERSION_LINE");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_both() {
        assert!(LINE.starts_with(VERSION), "{LINE}");
        match COMMIT {
            Some(commit) => assert_eq!(LINE, format!("{VERSION} ({commit})")),
            None => assert_eq!(LINE, VERSION),
        }
    }
}
