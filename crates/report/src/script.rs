//! The script that makes the plots of a page live, and the policy that lets it run and nothing else.

use std::sync::OnceLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// Made of `web/src/plots` by `make web-plots`.
const PLOTS: &str = include_str!("plots.js");

/// What stands between the tags. A page is well-formed XML too, and a browser takes the marks for comments.
fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| format!("/*<![CDATA[*/{PLOTS}/*]]>*/"))
}

/// The element.
pub(crate) fn element() -> String {
    format!("<script>{}</script>\n", text())
}

/// The policy of a page: nothing may be fetched, whatever a text manages to say, and of scripts only ours runs, if the page
/// has it.
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
