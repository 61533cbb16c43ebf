//! One self-contained page: no network access, light and dark colours, readable on a phone and on paper. Every text is
//! escaped; only the SVG of a figure is inserted unchanged. One script makes plots with many marks interactive; its
//! hash is in the content security policy of the page. Without the script, and on paper, the page shows their SVG.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::data::{self, Data, EmbeddedData, MOST_EMBEDDED};
use crate::model::{
    Again, Assumption, ClaimResult, Column, Events, Figure, Page, Section, Table, Verdict,
};
use crate::number::plural;
use crate::plot::{Theme, escape, page_css, variables as plot_variables};
use crate::script;
use crate::table::{claim_conditions, claim_figures};
use crate::wrap::columns;

const CSS: &str = include_str!("page.css");

/// Page colours that plots do not use: light, dark.
const GROUND: [(&str, &str, &str); 2] =
    [("ground", "#f6f7f9", "#0d1014"), ("code", "#f0f2f5", "#1d232a")];

/// The page as HTML that is well-formed XML too.
pub fn render(page: &Page) -> String {
    let mut out = String::with_capacity(1 << 16);
    let title = escape(&page.title);
    out += "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>";
    out += "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>";
    out += "<meta name=\"color-scheme\" content=\"light dark\"/>";
    let figures = || page.sections.iter().flat_map(|section| &section.figures);
    let data: Vec<&Data> = figures().filter_map(|figure| figure.data.as_ref()).collect();
    let data: Vec<&Data> = data.into_iter().filter(|data| data.is_live()).collect();
    let policy = script::policy(!data.is_empty());
    out += &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\"/>");
    let mut live = data::fitted(&data, MOST_EMBEDDED).into_iter();
    out += &format!("<title>{title} · lasthop</title><style>{}</style></head><body>\n", css());
    header(&mut out, page);
    out += "<main>";
    let mut index = 0..;
    let mut write = |out: &mut String, sections: &[Section]| {
        sections.iter().zip(&mut index).for_each(|(s, i)| section(out, i, s, &mut live));
    };
    // A section without a claim is a heading for the claims below it; each such group has its own tally.
    for group in page.sections.chunk_by(|_, next| next.claim.is_some()) {
        let (heading, rest) = group.split_at(usize::from(group[0].claim.is_none()));
        write(&mut out, heading);
        let claims: Vec<&ClaimResult> = rest.iter().filter_map(|s| s.claim.as_ref()).collect();
        if !claims.is_empty() {
            tally(&mut out, &claims);
        }
        write(&mut out, rest);
    }
    assumptions(&mut out, &page.assumptions);
    again(&mut out, &page.again);
    out += "</main>\n<footer>Made by lasthop";
    if !page.again.version.is_empty() {
        out += &format!(" {}", escape(&page.again.version));
    }
    out +=
        ". Intervals are 95 % confidence intervals of the mean over runs (Student’s t).</footer>\n";
    if !data.is_empty() {
        out += &script::element();
    }
    out += "</body></html>\n";
    out
}

fn css() -> String {
    let variables = |theme: Theme| {
        let ground: String = GROUND
            .iter()
            .map(|(name, light, dark)| {
                format!("--lh-{name}:{};", if theme == Theme::Light { light } else { dark })
            })
            .collect();
        plot_variables(theme) + &ground
    };
    format!(
        ":root{{color-scheme:light dark;{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}{}{CSS}",
        variables(Theme::Light),
        variables(Theme::Dark),
        page_css()
    )
}

fn header(out: &mut String, page: &Page) {
    *out += "<header><div class=\"in\"><p class=\"over\">lasthop report</p>";
    *out += &format!("<h1>{}</h1>", escape(&page.title));
    if !page.subtitle.is_empty() {
        *out += &format!("<p class=\"sub\">{}</p>", prose(&page.subtitle));
    }
    if !page.facts.is_empty() {
        *out += "<dl class=\"facts\">";
        for (name, value) in &page.facts {
            *out += &format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
        }
        *out += "</dl>";
    }
    *out += "</div></header>\n";
}

fn badge(verdict: Verdict) -> String {
    let words = match verdict {
        Verdict::Holds => "✓ holds",
        Verdict::Fails => "✗ fails",
        Verdict::Undecided => "? undecided",
        Verdict::NotRun => "– not run",
    };
    format!("<span class=\"badge {}\">{words}</span>", verdict.word())
}

/// The number of claims that hold, and for each claim a row with a link to its section.
fn tally(out: &mut String, claims: &[&ClaimResult]) {
    *out += "<div class=\"tally\">";
    for (verdict, words) in [
        (Verdict::Holds, "found again"),
        (Verdict::Fails, "not found again"),
        (Verdict::Undecided, "undecided: it depends on the seeds"),
        (Verdict::NotRun, "not run"),
    ] {
        let count = claims.iter().filter(|c| c.verdict == verdict).count();
        *out +=
            &format!("<div class=\"{}\"><b>{count}</b><span>{words}</span></div>", verdict.word());
    }
    *out += "</div>";
    *out += &scroll("Table: claims and verdicts");
    *out += "<table><thead><tr><th>claim</th><th>where</th><th>verdict</th>\
             <th>reason</th></tr></thead><tbody>";
    for claim in claims {
        *out += &format!(
            "<tr><td><a href=\"#{}\">{}</a></td><td>{} {}</td><td>{}</td><td>{}</td></tr>",
            anchor(&claim.id),
            escape(&claim.id),
            escape(&claim.paper),
            escape(&claim.place),
            badge(claim.verdict),
            prose(&claim.reason)
        );
    }
    *out += "</tbody></table></div>\n";
}

/// The anchor of a claim.
fn anchor(id: &str) -> String {
    format!("claim-{}", fragment(id))
}

/// A text in which words between backticks are code. An unpaired backtick stays.
fn prose(text: &str) -> String {
    let escaped = escape(text);
    let mut parts = escaped.split('`');
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(after) => out += &format!("<code>{code}</code>{after}"),
            None => out += &format!("`{code}"),
        }
    }
    out
}

/// A name as a URL fragment: anything but letters, digits, `-`, `_` and `.` becomes `-`.
fn fragment(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    name.chars().map(safe).collect()
}

fn section(
    out: &mut String,
    index: usize,
    section: &Section,
    live: &mut impl Iterator<Item = EmbeddedData>,
) {
    let id = match &section.claim {
        Some(claim) => anchor(&claim.id),
        None => format!("section-{}", index + 1),
    };
    if section.claim.is_none() && !section.title.is_empty() {
        *out += &format!("<h2>{}</h2>", escape(&section.title));
    }
    *out += &format!("<section class=\"card\" id=\"{id}\">");
    if let Some(claim) = &section.claim {
        claim_head(out, &section.title, claim);
    }
    for paragraph in &section.text {
        *out += &format!("<p>{}</p>", prose(paragraph));
    }
    section.events.iter().for_each(|list| events(out, list));
    if let Some(claim) = section.claim.as_ref().filter(|c| !c.measured.is_empty()) {
        table(out, &claim_figures(claim));
    }
    if let Some(claim) = section.claim.as_ref().filter(|c| !c.conditions.is_empty()) {
        table(out, &claim_conditions(claim));
    }
    section.tables.iter().for_each(|t| table(out, t));
    section.figures.iter().for_each(|f| figure(out, index, f, live));
    *out += "</section>\n";
}

/// Links to events; without a script they lead to the figure.
fn events(out: &mut String, events: &Events) {
    let links = events.links.iter().map(|link| {
        format!(
            "<a href=\"#{}\" data-from=\"{}\" data-to=\"{}\">{}</a>",
            fragment(&link.figure),
            link.from_s,
            link.to_s,
            escape(&link.text)
        )
    });
    let links: Vec<String> = links.collect();
    *out += &format!("<p>{}: {}.</p>", escape(&events.lead), links.join(", "));
}

fn claim_head(out: &mut String, title: &str, claim: &ClaimResult) {
    let heading =
        if title.is_empty() { claim.id.clone() } else { format!("{}: {title}", claim.id) };
    *out +=
        &format!("<div class=\"head\"><h2>{}</h2>{}</div>", escape(&heading), badge(claim.verdict));
    *out += &format!("<p class=\"where\">{} {}", escape(&claim.paper), escape(&claim.place));
    if claim.runs > 0 {
        *out += &format!(" · {}", plural(claim.runs.into(), "run"));
    }
    *out += "</p><dl class=\"pair\">";
    for (name, value) in
        [("Setup", &claim.setup), ("Published", &claim.published), ("Verdict", &claim.reason)]
    {
        if !value.is_empty() {
            *out += &format!("<dt>{name}</dt><dd>{}</dd>", prose(value));
        }
    }
    *out += "</dl>";
}

/// A scrollable box for wide content; it has a name because the keyboard can reach it.
fn scroll(name: &str) -> String {
    format!("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">", escape(name))
}

/// Text columns that fit side by side on a phone, and on a page of 800 pixels.
const PHONE: usize = 38;
const TABLET: usize = 92;
/// Gap between two columns, in text columns.
const BETWEEN: usize = 2;

/// The class of a table that is too wide for a small screen even with every word on its own line. It is shown there as
/// records below each other, as on a narrow terminal.
fn records(table: &Table) -> &'static str {
    let longest = |text: &str| text.split(' ').map(columns).max().unwrap_or(0);
    let width = |(i, column): (usize, &Column)| {
        let cells = table.rows.iter().filter_map(|row| row.get(i));
        // Numbers are not wrapped.
        let widest = cells.map(|cell| if column.numeric { columns(cell) } else { longest(cell) });
        widest.max().unwrap_or(0).max(longest(&column.title)) + BETWEEN
    };
    let needed: usize = table.columns.iter().enumerate().map(width).sum();
    if needed <= PHONE {
        ""
    } else if needed <= TABLET {
        " class=\"phone\""
    } else {
        " class=\"phone tablet\""
    }
}

fn table(out: &mut String, table: &Table) {
    let title =
        if table.title.is_empty() { "Table".to_owned() } else { format!("Table: {}", table.title) };
    *out += &scroll(&title);
    *out += &format!("<table{}>", records(table));
    if !table.title.is_empty() {
        *out += &format!("<caption>{}</caption>", prose(&table.title));
    }
    let class = |i: usize| {
        if table.columns.get(i).is_some_and(|c| c.numeric) { " class=\"num\"" } else { "" }
    };
    *out += "<thead><tr>";
    for (i, column) in table.columns.iter().enumerate() {
        // An empty cell is no heading.
        let tag = if column.title.is_empty() { "td" } else { "th" };
        *out += &format!("<{tag}{}>{}</{tag}>", class(i), escape(&column.title));
    }
    *out += "</tr></thead><tbody>";
    for row in &table.rows {
        *out += "<tr>";
        for (i, cell) in row.iter().enumerate() {
            let heading = table.columns.get(i).map_or("", |column| &column.title);
            let name = if records(table).is_empty() || heading.is_empty() || cell.is_empty() {
                String::new()
            } else {
                format!(" data-name=\"{}\"", escape(heading))
            };
            *out += &format!("<td{}{name}>{}</td>", class(i), prose(cell));
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div>";
}

fn figure(
    out: &mut String,
    section: usize,
    figure: &Figure,
    live: &mut impl Iterator<Item = EmbeddedData>,
) {
    let anchor = match figure.anchor.as_str() {
        "" => String::new(),
        name => format!(" id=\"{}\"", fragment(name)),
    };
    *out += &format!("<figure{anchor}>{}{}</div><figcaption>", scroll("Picture"), figure.svg);
    if !figure.title.is_empty() {
        *out += &format!("<strong>{}.</strong> ", escape(&figure.title));
    }
    *out += &prose(&figure.caption);
    if let Some(data) = &figure.data {
        numbers(out, data);
    }
    *out += "</figcaption>";
    if let Some(embedded) =
        figure.data.as_ref().filter(|data| data.is_live()).and_then(|_| live.next())
    {
        let group = escape(&format!("{section} {}", figure.group));
        // The text of a script is not escaped: an HTML parser would not unescape it, but an XML parser would.
        let json = serde_json::to_string(&embedded).expect("a page's data is JSON");
        let json = json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
        *out +=
            &format!("<script type=\"application/json\" data-group=\"{group}\">{json}</script>");
    }
    *out += "</figure>";
}

/// Limit of a CSV link, in bytes. Above it, only the interactive plot exports CSV.
const MOST_LINKED: usize = 1 << 16;

/// The numbers behind a plot as a link that needs no script.
fn numbers(out: &mut String, data: &Data) {
    let csv = data.csv();
    if csv.len() <= MOST_LINKED {
        let (name, title) = (data.file_name(), escape(data.title()));
        let data = BASE64_STANDARD.encode(csv);
        *out += &format!(
            " <a class=\"csv\" download=\"{name}.csv\" aria-label=\"CSV: {title}\" \
             href=\"data:text/csv;base64,{data}\">CSV</a>"
        );
    }
}

fn assumptions(out: &mut String, assumptions: &[Assumption]) {
    if assumptions.is_empty() {
        return;
    }
    *out += "<h2>Assumptions</h2><section class=\"card\"><ol class=\"assume\">";
    for a in assumptions {
        *out += &format!("<li>{}<span class=\"why\">{}</span></li>", prose(&a.what), prose(&a.why));
    }
    *out += "</ol></section>\n";
}

fn again(out: &mut String, again: &Again) {
    if again.commands.iter().all(String::is_empty) {
        return;
    }
    *out += &format!(
        "<h2>Run it again</h2><section class=\"card\">\
         <pre tabindex=\"0\" role=\"group\" aria-label=\"Commands\">{}</pre>",
        escape(&again.commands.join("\n"))
    );
    let facts = [("Seeds", &again.seeds), ("Version", &again.version)];
    let facts: Vec<_> = facts.iter().filter(|(_, value)| !value.is_empty()).collect();
    if !facts.is_empty() {
        *out += "<dl class=\"pair\" style=\"margin-top:14px;margin-bottom:0\">";
        for (name, value) in facts {
            *out += &format!("<dt>{name}</dt><dd>{}</dd>", escape(value));
        }
        *out += "</dl>";
    }
    *out += "</section>\n";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_between_backticks_are_code() {
        assert_eq!(prose("set `a<b` and `c`."), "set <code>a&lt;b</code> and <code>c</code>.");
        assert_eq!(prose("`x` or `y"), "<code>x</code> or `y");
        assert_eq!(prose("plain"), "plain");
    }
}
