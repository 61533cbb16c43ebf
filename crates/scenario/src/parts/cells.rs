//! The keys of cells and of visits.

use lasthop_proto::describe::{Form, Keys, Need, Value as Given};
use lasthop_proto::units::Span;

/// Maximum time in visits and hand-offs: the maximum duration of a run.
pub(crate) const MONTH: Span = Span::secs(30 * 86_400);

/// Visits the keys of a cell, without those of its path.
pub(crate) fn cell(k: &mut Keys<'_>) -> String {
    let form = Form::Text("\"west\"");
    let description = "the name of the cell in visits, and of its base station in traces";
    match k.value("name", form, Need::Required("\"west\""), Given::Absent, description) {
        Given::Text(name) => name,
        _ => String::new(),
    }
}

/// Values of the keys of a table of visits.
#[derive(Debug)]
pub(crate) struct VisitsValues {
    pub host: Option<String>,
    pub cells: Option<Vec<String>>,
    pub every: Option<Span>,
    pub dwell: Option<Span>,
    pub list: Vec<Visit>,
}

/// A visit of a list, or of a line.
#[derive(Debug)]
pub(crate) struct Visit {
    pub cell: String,
    pub from: Span,
    pub until: Option<Span>,
    /// Its line in a `table` or `file`, counted from one.
    pub line: Option<usize>,
}

/// Visits the keys of `visits`.
pub(crate) fn visits(k: &mut Keys<'_>) -> VisitsValues {
    let form = Form::Text("\"mobile\"");
    let need = Need::Else("all hosts without their own table");
    let host = match k.value("host", form, need, Given::Absent, "the host that moves") {
        Given::Text(host) => Some(host),
        _ => None,
    };
    let form = Form::Texts("[\"west\", \"east\"]");
    let description = "its cells, in the order along its way";
    let cells = match k.value("cells", form, Need::Else("all cells"), Given::Absent, description) {
        Given::Texts(cells) => Some(cells),
        _ => None,
    };
    let (mut every, mut dwell) = (None, None);
    let description = "the time that it stays in each cell, one after the other";
    k.maybe("every", &mut every, Span::millis(1)..=MONTH, description);
    let description =
        "the mean of the random time that it stays in a cell; the next cell is a neighbour";
    k.maybe("dwell", &mut dwell, Span::millis(1)..=MONTH, description);
    let mut list = Vec::new();
    k.tables("list", "the list of its visits", |k| {
        let (form, need) = (Form::Text("\"west\""), Need::Required("\"west\""));
        let cell = match k.value("cell", form, need, Given::Absent, "the cell") {
            Given::Text(cell) => cell,
            _ => String::new(),
        };
        let description = "when it moves to the cell";
        let from = k.needed("from", (Span::ZERO, "\"8s\""), Span::ZERO..=MONTH, description);
        let mut until = None;
        let description = "when it leaves; by default, when it moves to the next cell";
        k.maybe("until", &mut until, Span::ZERO..=MONTH, description);
        if until.is_some_and(|until| until <= from) {
            k.out_of_range("until", format!("it must be later than `from`, which is {from}"));
        }
        // A visitor that lists keys has no visit.
        if k.has("cell") {
            list.push(Visit { cell, from, until, line: None });
        }
    });
    let form = Form::Text("\"0s west\"");
    let description =
        "the same as lines of `FROM CELL` or `FROM CELL UNTIL`; text after `#` is a comment";
    if let Given::Text(text) = k.value("table", form, Need::Else(""), Given::Absent, description) {
        match lines(&text) {
            Ok(lines) => list.extend(lines),
            Err(line) => {
                let message = format!("`{}`: line {line} is no visit", k.path("table"));
                k.refuse("table", message, "expected visits", LINE);
            }
        }
    }
    let form = Form::File("\"walk.txt\"");
    let description = "a file with such lines, in the folder of the scenario";
    match k.value("file", form, Need::Else(""), Given::Absent, description) {
        Given::File { name, text } => match lines(&text) {
            Ok(lines) => list.extend(lines),
            Err(line) => {
                let message = format!("{name}, line {line}: this is no visit");
                k.refuse_line("file", line, message, "expected a visit", LINE);
            }
        },
        Given::Absent => {}
        _ => {
            let help = "`lasthop` reads it where the scenario is a file; elsewhere write its lines as a `table`";
            k.refuse("file", format!("`{}` has not been read", k.path("file")), "a file", help);
        }
    }
    let ways = ["every", "dwell", "list", "table", "file"];
    if let Some(first) = k.first(&ways)
        && let Some(other) = ways.into_iter().find(|way| *way != first && k.has(way))
    {
        let message = format!("`{}` and `{first}` exclude each other", k.path(other));
        let help = "write one of them: `every` for equal times in cells, `dwell` for random times, or a `list` of visits";
        k.refuse(other, message, "which of them?", help);
    }
    VisitsValues { host, cells, every, dwell, list }
}

/// Remedy for a line that is no visit.
const LINE: &str =
    "a line says when and where, for example `8s east`, or also until when: `8s east 20s`";

/// Parses visits in lines; returns the number of the first invalid line.
fn lines(text: &str) -> Result<Vec<Visit>, usize> {
    let visit = |i: usize, line: &str| -> Option<Visit> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let time = |word: &str| word.parse::<Span>().ok().filter(|time| *time <= MONTH);
        let (from, cell, until) = match words.as_slice() {
            [from, cell] => (time(from)?, cell, None),
            [from, cell, until] => (time(from)?, cell, Some(time(until)?)),
            _ => return None,
        };
        let is_valid = until.is_none_or(|until| until > from);
        is_valid.then(|| Visit { cell: (*cell).to_owned(), from, until, line: Some(i + 1) })
    };
    let values = text.lines().enumerate().filter_map(|(i, line)| {
        let line = line.split('#').next().unwrap_or_default().trim();
        (!line.is_empty()).then_some((i, line))
    });
    values.map(|(i, line)| visit(i, line).ok_or(i + 1)).collect()
}
