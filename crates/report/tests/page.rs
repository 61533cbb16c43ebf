//! The page is one well-formed file that fetches nothing and runs nothing, whatever it is fed.

use lasthop_report::html;
use lasthop_report::model::{
    Again, Assumption, ClaimResult, Column, Figure, Measured, Page, Section, Table, Verdict,
};
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries};

const EVIL: &str = "<script>alert(\"x\")</script>' onload='&\u{1b}[2J";

fn claim(text: &str) -> ClaimResult {
    ClaimResult {
        id: text.into(),
        paper: text.into(),
        place: text.into(),
        setup: text.into(),
        published: text.into(),
        measured: vec![Measured {
            label: text.into(),
            mean: f64::NAN,
            ci: 1.0,
            unit: text.into(),
            published: Some(2.0),
        }],
        runs: 20,
        verdict: Verdict::Fails,
        reason: text.into(),
    }
}

/// A page with `text` wherever text can stand.
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
        claim: Some(claim(text)),
        tables: vec![Table {
            title: text.into(),
            columns: vec![Column::text(text)],
            rows: vec![vec![text.into()]],
        }],
        figures: vec![Figure {
            svg: chart.plot().inline(),
            title: text.into(),
            caption: text.into(),
        }],
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

/// Element names in order of opening; panics unless every element is closed where it should be.
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
    // An evil name adds no element but the second line of a long label.
    let without_text = |html: &str| -> Vec<String> {
        elements(html).into_iter().filter(|name| name != "text").collect()
    };
    assert_eq!(without_text(&evil), without_text(&tame));
    assert!(!evil.contains('\u{1b}'), "control characters are not allowed in a page");
    assert!(!evil.contains("' onload"));
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
    assert!(html.contains("prefers-color-scheme:dark") && html.contains("@media print"));
}

#[test]
fn an_empty_page_is_a_page() {
    elements(&html::render(&Page::default()));
}
