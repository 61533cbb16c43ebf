//! The keywords of TCPs: changes of `tcp = "..."` to a host's configuration. The file of each sender defines
//! its keyword.

pub use super::keyword::{Deployment, Keyword, Linux};
use super::sender::registry::senders;

/// The keywords of [`senders`].
macro_rules! keywords {
    ($($file:ident($($word:ident),+) $($part:ident $Name:ident $kind:tt)?;)*) => {
        /// Every TCP, in the order of the manual.
        pub const TCPS: &[Keyword] = &[$($(super::sender::systems::$file::$word,)+)*];
    };
}
senders!(keywords);

/// The TCP with the keyword `key`.
pub fn find(key: &str) -> Option<&'static Keyword> {
    TCPS.iter().find(|word| word.key == key)
}

/// The TCP that Linux has as the congestion control `name`. If several have it, the current one: Linux always detects
/// losses by RACK if the peer reports them.
pub fn of_linux(name: &str) -> Option<&'static Keyword> {
    let all = TCPS.iter().filter(|word| word.linux.is_some_and(|linux| linux.control == name));
    all.min_by_key(|word| word.deployment != Deployment::Current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_has_a_name_of_its_own_a_sentence_and_a_source() {
        for (i, word) in TCPS.iter().enumerate() {
            assert!(TCPS[..i].iter().all(|other| other.key != word.key), "{}", word.key);
            assert!(!word.summary.is_empty() && !word.source.is_empty(), "{}", word.key);
        }
    }

    #[test]
    fn a_congestion_control_of_linux_is_a_current_sender() {
        let key = |name| of_linux(name).map(|word| word.key);
        assert_eq!(key("reno"), Some("rack"));
        assert_eq!(
            (key("cubic"), key("vegas"), key("bbr3")),
            (Some("cubic"), Some("vegas"), Some("bbr3"))
        );
        assert_eq!((key("rack"), key("tahoe")), (None, None));
    }

    /// `TCP_CONGESTION` may replace any other.
    #[test]
    fn a_current_sender_replaces_any_growth() {
        for word in TCPS.iter().filter(|word| word.deployment == Deployment::Current) {
            let (mut fresh, mut changed) =
                (crate::tcp::TcpConfig::linux(), crate::tcp::TcpConfig::linux());
            find("cubic").iter().for_each(|cubic| (cubic.apply)(&mut changed));
            [&mut fresh, &mut changed].into_iter().for_each(|config| (word.apply)(config));
            assert_eq!(fresh.congestion, changed.congestion, "{}", word.key);
        }
    }

    /// The preset `linux` and the superseded senders depend on it.
    #[test]
    fn current_senders_detect_losses_by_time() {
        for word in TCPS {
            let mut config = crate::tcp::TcpConfig::rfc();
            (word.apply)(&mut config);
            let by_time = config.variant == crate::tcp::Variant::Rack;
            assert_eq!(word.deployment == Deployment::Current, by_time, "{}", word.key);
        }
    }
}
