//! Cells, the visits of hosts, and hand-offs.

use lasthop_proto::describe::{Form, Keys, Need, Value as Given};
use lasthop_proto::units::Span;

use super::path::{self, Stretch};
use super::transfer::Directions;
use super::{Noted, named};
use crate::document::{Node, Value};
use crate::error::{Code, Diagnostic, Error, Location, did_you_mean};
use crate::files;
use crate::keys::take;
use crate::model::{Host, HostSide, Stage, StageKind};
use crate::read::Reader;
use crate::roaming::{Handoff, RadioCell, Roaming, Stay, Stays, Tour};
use crate::schema;

/// Maximum number of cells.
const MAX_CELLS: usize = 250;
/// Maximum time in visits and hand-offs: the maximum duration of a run.
const MONTH: Span = Span::secs(30 * 86_400);

const EXAMPLE: &str = "for example `visits = { every = \"8s\" }` at the top of the file";

/// Parts of the scenario to which its cells refer.
pub(super) struct Around<'a> {
    pub hosts: &'a [Host],
    pub data: Directions,
    pub wired: &'a [Stage],
    pub horizon: Span,
}

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
    host: Option<String>,
    cells: Option<Vec<String>>,
    every: Option<Span>,
    dwell: Option<Span>,
    list: Vec<Visit>,
}

/// A visit of a list, or of a line.
#[derive(Debug)]
struct Visit {
    cell: String,
    from: Span,
    until: Option<Span>,
    /// Its line in a `table` or `file`, counted from one.
    line: Option<usize>,
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

/// The cells of a scenario, if it has any.
pub(super) fn read(
    file: &Reader<'_>,
    around: &Around<'_>,
    notes: &mut Vec<Noted>,
) -> Result<Option<Roaming>, Error> {
    let Some(node) = file.node("cell") else {
        return match ["visits", "handoff"].into_iter().find(|key| file.has(key)) {
            None => Ok(None),
            Some(key) => Err(trouble(key, &file.location(key))
                .message(format!("`{key}` without cells"))
                .label("there is no cell")
                .help("each base station with its radio is a `[[cell]]` with a name and its own `[[cell.path]]`")
                .into()),
        };
    };
    let cells = cells(file, node, around, notes)?;
    let (handoff, handoff_at) = match file.node("handoff") {
        None => (Handoff::default(), node.at.clone()),
        Some(node) => {
            let reader = Reader::open(node, "handoff", schema::keys("handoff"))?;
            (take(&reader, super::handoff::handoff)?.0, reader.location("gap"))
        }
    };
    let tours = tours(file, node, around, &cells, (&handoff, &handoff_at))?;
    unvisited(node, &cells, &tours, notes);
    Ok(Some(Roaming { cells, tours, handoff }))
}

/// The error for a change of a running path with cells.
pub(crate) fn not_standing(document: &crate::document::Table) -> Error {
    let at = document.get("cell").map_or(Location::file(0..0), |node| node.at.clone());
    trouble("cell", &at)
        .message("the testbed of `lasthop testbed up` has one base station")
        .label("cells are for runs")
        .help("`lasthop run --world testbed` moves hosts; or write the stages of one cell into `[[path]]`")
        .into()
}

fn trouble(key: impl Into<String>, at: &Location) -> Diagnostic {
    Diagnostic::new(Code::BadVisit, key, at)
}

fn cells(
    file: &Reader<'_>,
    node: &Node,
    around: &Around<'_>,
    notes: &mut Vec<Noted>,
) -> Result<Vec<RadioCell>, Error> {
    let Some(items) = node.as_array().filter(|items| !items.is_empty()) else {
        return Err(Diagnostic::new(Code::BadPath, "cell", &node.at)
            .message(format!("`cell` is {}, not a list of cells", node.kind()))
            .label("expected a list")
            .help("each cell begins with its own `[[cell]]`, in double brackets")
            .into());
    };
    if items.len() > MAX_CELLS {
        return Err(file.out_of_range("cell", &format!("a scenario has at most {MAX_CELLS} cells")));
    }
    let mut names: Vec<String> = around.wired.iter().map(|stage| stage.name.clone()).collect();
    let mut cells: Vec<RadioCell> = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let key = format!("cell.{}", i + 1);
        let reader = Reader::open(item, &key, &[schema::keys("cell"), &["path"]].concat())?;
        let (name, _) = take(&reader, cell)?;
        let at = reader.location("name");
        named(&name, &reader.key("name"), &at)?;
        let taken = names.contains(&name) || around.hosts.iter().any(|host| host.name == name);
        if taken || name.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Diagnostic::new(Code::BadName, reader.key("name"), &at)
                .message(format!("`{name}` cannot be the cell's name"))
                .label(if taken { "used twice" } else { "only digits" })
                .help("names of cells, stages and hosts must differ, for example `name = \"west\"`")
                .into());
        }
        names.push(name.clone());
        let stretch = Stretch { key: &reader.key("path"), cell: Some(&name), data: around.data };
        let mut path = path::stages(&reader, stretch, &mut names, notes)?;
        path::give_stations(&mut path, around.hosts, &reader.location("path"))?;
        let base = path
            .iter()
            .position(|stage| matches!(stage.kind, StageKind::Agent(_) | StageKind::Radio(_)))
            .unwrap_or(path.len() - 1);
        cells.push(RadioCell { name, path, base });
    }
    Ok(cells)
}

/// A table of visits and its reader.
struct Table<'t> {
    reader: Reader<'t>,
    values: VisitsValues,
    host: Option<usize>,
}

fn tours(
    file: &Reader<'_>,
    cell: &Node,
    around: &Around<'_>,
    cells: &[RadioCell],
    handoff: (&Handoff, &Location),
) -> Result<Vec<Tour>, Error> {
    let tables = match file.node("visits") {
        None => Vec::new(),
        Some(node) => match &node.value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items
                    .map(|(i, item)| table(item, &format!("visits.{}", i + 1), around.hosts))
                    .collect::<Result<_, _>>()?
            }
            _ => vec![table(node, "visits", around.hosts)?],
        },
    };
    for (i, second) in tables.iter().enumerate() {
        if tables[..i].iter().any(|first| first.host == second.host) {
            let who =
                second.values.host.as_ref().map_or("all others".to_owned(), |h| format!("`{h}`"));
            return Err(trouble(second.reader.key("host"), second.reader.at())
                .message(format!("visits of {who} are defined twice"))
                .label("the second time")
                .help("write one table of visits for each host, and at most one without `host`")
                .into());
        }
    }
    let mobile = around.hosts.iter().enumerate().filter(|(_, host)| host.side == HostSide::Right);
    mobile
        .map(|(i, host)| {
            let own = tables.iter().find(|table| table.host == Some(i));
            let Some(table) = own.or_else(|| tables.iter().find(|table| table.host.is_none()))
            else {
                let at = file.node("visits").map_or(&cell.at, |node| &node.at);
                return Err(trouble("visits", at)
                    .message(format!("`{}` never enters a cell", host.name))
                    .label("no visits of this host")
                    .help(format!("write its visits, {EXAMPLE}"))
                    .into());
            };
            tour(table, i, around, cells, handoff)
        })
        .collect()
}

fn table<'t>(node: &'t Node, key: &str, hosts: &[Host]) -> Result<Table<'t>, Error> {
    let reader = Reader::open(node, key, schema::keys("visits"))?;
    let (values, _) = take(&reader, visits)?;
    let fault = |message: String, label: &str, help: String| -> Error {
        let at = reader.location("host");
        trouble(reader.key("host"), &at).message(message).label(label).help(help).into()
    };
    let host = match &values.host {
        None => None,
        Some(name) => {
            let right = hosts.iter().filter(|host| host.side == HostSide::Right);
            let mobile: Vec<&str> = right.map(|host| host.name.as_str()).collect();
            let Some(i) = hosts.iter().position(|host| host.name == *name) else {
                let message = format!("there is no host `{name}`");
                return Err(fault(message, "no such host", did_you_mean(name, &mobile)));
            };
            if hosts[i].side == HostSide::Left {
                let message = format!("`{name}` is at the wired end and visits no cells");
                return Err(fault(message, "a left host", did_you_mean("", &mobile)));
            }
            Some(i)
        }
    };
    Ok(Table { reader, values, host })
}

fn tour(
    table: &Table<'_>,
    host: usize,
    around: &Around<'_>,
    cells: &[RadioCell],
    (handoff, handoff_at): (&Handoff, &Location),
) -> Result<Tour, Error> {
    let Table { reader, values, .. } = table;
    let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    let find = |name: &str, key: String, at: &Location| {
        names.iter().position(|other| *other == name).ok_or_else(|| -> Error {
            trouble(key, at)
                .message(format!("there is no cell `{name}`"))
                .label("no such cell")
                .help(format!("{}; or add a `[[cell]]` with this name", did_you_mean(name, &names)))
                .into()
        })
    };
    let own = match &values.cells {
        None => (0..cells.len()).collect(),
        Some(own) => {
            let at = reader.location("cells");
            own.iter()
                .map(|name| find(name, reader.key("cells"), &at))
                .collect::<Result<Vec<_>, _>>()?
        }
    };
    if own.is_empty() {
        return Err(reader.out_of_range("cells", "at least one cell must be there to be visited"));
    }
    let between = handoff.gap.max(handoff.overlap);
    let stays = match (values.every, values.dwell) {
        (Some(every), _) if every <= between => {
            let host = &around.hosts[host].name;
            return Err(trouble("handoff", handoff_at)
                .message(format!("`{host}` moves every {every}, and a hand-off takes {between}"))
                .label("as long as a visit")
                .help("make the visits longer, or the hand-offs shorter")
                .into());
        }
        (Some(every), _) => Stays::Every(every),
        (_, Some(mean)) => Stays::Dwell(mean),
        _ if values.list.is_empty() => {
            return Err(trouble(reader.key("every"), reader.at())
                .message(format!("`{}` never enters a cell", around.hosts[host].name))
                .label("no visits are given")
                .help(format!(
                    "write the time in each cell, {EXAMPLE}; or `dwell`, or a `list` of visits"
                ))
                .into());
        }
        _ => {
            let items = reader.node("list").and_then(Node::as_array).unwrap_or_default();
            let place = |i: usize, key: &str| -> Location {
                let item = items.get(i);
                let value = item.and_then(Node::as_table).and_then(|table| table.get(key));
                if let Some(node) = value.or(item) {
                    return node.at.clone();
                }
                match (reader.node("file"), values.list.get(i).and_then(|visit| visit.line)) {
                    (Some(file), Some(line)) => files::line_of(file, line),
                    _ => reader.location("table"),
                }
            };
            let key = |i: usize, key: &str| match reader.has("list") {
                true => format!("{}.{}.{key}", reader.key("list"), i + 1),
                false if reader.has("file") => reader.key("file"),
                false => reader.key("table"),
            };
            let list = values.list.iter().enumerate().map(|(i, visit)| {
                let cell = find(&visit.cell, key(i, "cell"), &place(i, "cell"))?;
                Ok(Stay { cell, from: visit.from, until: visit.until })
            });
            let list = list.collect::<Result<Vec<_>, Error>>()?;
            check_list(&list, (handoff, around), &around.hosts[host].name, key, place)?;
            Stays::List(list)
        }
    };
    let own = match &stays {
        // Candidates are the cells of the list.
        Stays::List(_) if values.cells.is_none() => (0..cells.len()).collect(),
        _ => own,
    };
    Ok(Tour { host, cells: own, stays })
}

/// Checks that visits follow each other, and overlap only by the overlap of a hand-off.
fn check_list(
    list: &[Stay],
    (handoff, around): (&Handoff, &Around<'_>),
    host: &str,
    key: impl Fn(usize, &str) -> String,
    place: impl Fn(usize, &str) -> Location,
) -> Result<(), Error> {
    let fault = |i: usize, of: &str, message: String, label: &str, help: &str| -> Error {
        trouble(key(i, of), &place(i, of)).message(message).label(label).help(help).into()
    };
    if list[0].from >= around.horizon {
        let message = format!(
            "`{host}` never enters a cell: its first visit begins after the end of the run"
        );
        return Err(fault(
            0,
            "from",
            message,
            "too late",
            "let the first visit begin earlier, or raise `horizon`",
        ));
    }
    for (i, pair) in list.windows(2).enumerate() {
        let (stay, next) = (pair[0], pair[1]);
        if next.from <= stay.from {
            let message = format!("this visit of `{host}` does not begin after the one before");
            return Err(fault(
                i + 1,
                "from",
                message,
                "out of order",
                "write the visits in their order",
            ));
        }
        let between = handoff.gap.max(handoff.overlap);
        if list.get(i + 2).is_some_and(|later| later.from <= next.from + between) {
            let message =
                format!("this visit of `{host}` ends before its hand-off, which takes {between}");
            return Err(fault(
                i + 1,
                "from",
                message,
                "too short",
                "make it longer, or the hand-offs shorter",
            ));
        }
        let Some(until) = stay.until.filter(|until| *until > next.from) else { continue };
        if handoff.overlap == Span::ZERO {
            let message = format!(
                "two visits of `{host}` overlap: it moves to the next cell at {}",
                next.from
            );
            let help = "end the first before the next begins, or set in `[handoff]` how long both cells are heard, for \
                        example `overlap = \"200ms\"`";
            return Err(fault(i, "until", message, "still in this cell", help));
        }
        if list.get(i + 2).is_some_and(|later| until > later.from) {
            let message = format!("`{host}` would be in three cells at once");
            return Err(fault(i, "until", message, "too long", "a host hears two cells at most"));
        }
    }
    Ok(())
}

/// Warns of cells without visits, which are usually a mistake.
fn unvisited(node: &Node, cells: &[RadioCell], tours: &[Tour], notes: &mut Vec<Noted>) {
    for (i, cell) in cells.iter().enumerate() {
        let visited = tours.iter().any(|tour| match &tour.stays {
            Stays::List(list) => list.iter().any(|stay| stay.cell == i),
            _ => tour.cells.contains(&i),
        });
        if visited {
            continue;
        }
        let at = node.as_array().and_then(|items| items.get(i)).map_or(&node.at, |item| &item.at);
        let warning = Diagnostic::new(Code::NoEffect, format!("cell.{}", i + 1), at)
            .message(format!("no host visits the cell `{}`", cell.name))
            .label("no visits")
            .help("add it to `cells` or to the `list` of visits, or leave it out");
        notes.push(Noted { warning, in_every_cell: false });
    }
}
