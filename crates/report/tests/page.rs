//! The page is one well-formed file without requests and foreign scripts, whatever its text.

use lasthop_observe::sequence::{SendKind, SentPacket, Series};
use lasthop_report::estimate::Estimate;
use lasthop_report::html;
use lasthop_report::model::{
    Again, Assumption, ClaimResult, Column, ConditionFigure, EventLink, Events, Figure,
    MeasuredFigure, Page, Section, Table, Verdict,
};
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries, TimeSequence};

const EVIL: &str = "<script>alert(\"x\")</script>' onload='&\u{1b}[2J";

fn claim(text: &str) -> ClaimResult {
    ClaimResult {
        id: text.into(),
        paper: text.into(),
        place: text.into(),
        setup: text.into(),
        published: text.into(),
        measured: vec![MeasuredFigure {
            label: text.into(),
            mean: Estimate { value: f64::NAN, ci: Some(1.0) },
            unit: text.into(),
            published: Some(2.0),
        }],
        conditions: vec![ConditionFigure {
            what: text.into(),
            measured: Estimate::from(f64::NAN),
            wanted: text.into(),
            verdict: Verdict::Undecided,
        }],
        runs: 20,
        verdict: Verdict::Fails,
        reason: text.into(),
        notes: Vec::new(),
    }
}

/// A page with `text` in every text field.
fn page(text: &str) -> Page {
    let chart = BarChart {
        title: text.into(),
        y_label: text.into(),
        series: vec![BarSeries { name: text.into(), published: false }],
        groups: vec![BarGroup {
            label: text.into(),
            bars: vec![Some(Bar { value: 1.0, ci: 0.1 })],
        }],
    };
    let section = Section {
        title: text.into(),
        text: vec![text.into()],
        events: vec![Events {
            lead: text.into(),
            links: vec![EventLink {
                text: text.into(),
                figure: text.into(),
                from_s: 1.0,
                to_s: 2.5,
            }],
        }],
        claim: Some(claim(text)),
        tables: vec![Table {
            title: text.into(),
            columns: vec![Column::text(text)],
            rows: vec![vec![text.into()]],
        }],
        figures: vec![Figure { anchor: text.into(), ..Figure::new(&chart.plot(), text, text) }],
    };
    Page {
        title: text.into(),
        subtitle: text.into(),
        facts: vec![(text.into(), text.into())],
        sections: vec![section.clone(), Section { claim: None, ..section }],
        assumptions: vec![Assumption { what: text.into(), why: text.into() }],
        again: Again { commands: vec![text.into()], seeds: text.into(), version: text.into() },
    }
}

/// Element names in order of opening; panics if an element is not closed properly.
fn elements(html: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(html);
    reader.config_mut().check_end_names = true;
    let (mut names, mut depth) = (Vec::new(), 0);
    loop {
        use quick_xml::events::Event;
        let name =
            |name: quick_xml::name::QName| String::from_utf8_lossy(name.as_ref()).into_owned();
        match reader.read_event().expect("well-formed") {
            Event::Start(tag) => {
                depth += 1;
                names.push(name(tag.name()));
                tag.attributes().for_each(|a| drop(a.expect("attribute")));
            }
            Event::Empty(tag) => names.push(name(tag.name())),
            Event::End(_) => depth -= 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(depth, 0, "every element is closed");
    names
}

#[test]
fn no_text_becomes_markup() {
    let (evil, tame) = (html::render(&page(EVIL)), html::render(&page("a name")));
    assert!(!elements(&evil).iter().any(|name| name == "script"));
    // An evil name adds only the second line of a long label.
    let without_text = |html: &str| -> Vec<String> {
        elements(html).into_iter().filter(|name| name != "text").collect()
    };
    assert_eq!(without_text(&evil), without_text(&tame));
    assert!(!evil.contains('\u{1b}'), "control characters are not allowed in a page");
    assert!(!evil.contains("' onload"));
}

/// The same with an interactive figure.
fn live(text: &str) -> Page {
    let sent = |i: u64| SentPacket { at_s: i as f64, start: i, end: i + 1, kind: SendKind::First };
    let series = Series {
        flow: text.into(),
        sent: (0..9).map(sent).collect(),
        end_s: 9.0,
        ..Series::default()
    };
    let plot = TimeSequence { title: text, series: &series, part: None }.plot();
    let mut page = page(text);
    page.sections[0].figures.push(Figure::new(&plot, text, text));
    page
}

#[test]
fn a_live_page_runs_one_script_that_its_policy_names_and_no_other() {
    use base64::Engine;
    use sha2::Digest;
    let html = html::render(&live(EVIL));
    let scripts: Vec<_> = elements(&html).into_iter().filter(|name| name == "script").collect();
    assert_eq!(scripts.len(), 2, "the numbers of a figure, and the program");
    let (_, rest) = html.split_once("<script>").expect("the program");
    let (program, _) = rest.split_once("</script>").expect("its end");
    let digest = sha2::Sha256::digest(program);
    let hash = base64::prelude::BASE64_STANDARD.encode(digest);
    assert!(html.contains(&format!("script-src 'sha256-{hash}'")));
    assert!(html.contains("default-src 'none'") && !html.contains("unsafe-eval"));
    assert_eq!(html.matches("<script").count(), 2);
    for word in ["<link", "<img", "@import", " src=", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!html.contains(word), "{word}");
    }
    assert_eq!(html, html::render(&live(EVIL)), "the same page again");
}

#[test]
fn small_numbers_are_a_link_and_need_no_script() {
    let html = html::render(&page("a name"));
    assert_eq!(html.matches("href=\"data:text/csv;base64,").count(), 2);
    assert!(html.contains("download=\"a-name.csv\""), "{html}");
    assert!(!html.contains("script-src"));
}

#[test]
fn the_page_fetches_and_runs_nothing() {
    let html = html::render(&page("a name"));
    for word in ["<script", "<link", "<img", "@import", "url(", " src=", "javascript:"] {
        assert!(!html.contains(word), "{word}");
    }
    let addresses = html.match_indices("http").filter(|(i, _)| {
        !html[*i..].starts_with("http://www.w3.org/2000/svg")
            && !html[*i..].starts_with("http-equiv")
    });
    assert_eq!(addresses.count(), 0);
}

#[test]
fn a_page_shows_its_claims_its_assumptions_and_how_to_repeat_it() {
    let html = html::render(&page("lasthop run x.toml"));
    for words in ["not found again", "Assumptions", "Run it again", "✗ fails", "20 runs"] {
        assert!(html.contains(words), "{words}");
    }
    assert!(html.contains("id=\"claim-lasthop-run-x.toml\""), "an anchor holds no spaces");
    let link =
        "<a href=\"#lasthop-run-x.toml\" data-from=\"1\" data-to=\"2.5\">lasthop run x.toml</a>";
    assert!(html.contains(link) && html.contains("<figure id=\"lasthop-run-x.toml\">"));
    assert!(html.contains("prefers-color-scheme:dark") && html.contains("@media print"));
}

#[test]
fn an_empty_page_is_a_page() {
    elements(&html::render(&Page::default()));
}
