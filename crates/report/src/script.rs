//! The script that makes the plots of a page interactive, and the content security policy that allows only this script.

use std::sync::OnceLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// Built from `web/src/plots` by `make web-plots`.
const PLOTS: &str = include_str!("plots.js");

/// The script between comment marks, so that the page is well-formed XML and browsers skip the marks.
fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| format!("/*<![CDATA[*/{PLOTS}/*]]>*/"))
}

pub(crate) fn element() -> String {
    format!("<script>{}</script>\n", text())
}

/// The content security policy of a page: it allows no requests, also with injected text. The only allowed script is
/// ours, if the page has it.
pub(crate) fn policy(with_script: bool) -> String {
    let mut policy = "default-src 'none'; style-src 'unsafe-inline'".to_owned();
    if with_script {
        let hash = BASE64_STANDARD.encode(Sha256::digest(text()));
        policy += &format!("; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'");
    }
    policy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_ends_where_it_should_and_names_whose_code_it_holds() {
        assert!(!PLOTS.contains("</script") && !PLOTS.contains("<!--") && !PLOTS.contains("]]>"));
        assert!(PLOTS.len() < 110_000, "{} bytes", PLOTS.len());
        for words in ["uPlot", "MIT"] {
            assert!(PLOTS.contains(words), "{words}");
        }
    }
}
