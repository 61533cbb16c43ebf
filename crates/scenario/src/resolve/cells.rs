//! Cells, the visits of hosts, and hand-offs.

use lasthop_proto::units::Span;

use super::path::{self, Stretch};
use super::transfer::Directions;
use crate::document::{Node, Value};
use crate::error::{Code, Diagnostic, Error, Location, Noted, did_you_mean};
use crate::files;
use crate::model::{Host, HostSide, Stage, StageKind};
use crate::parts::cells::{VisitsValues, cell, visits};
use crate::parts::handoff;
use crate::read::{Reader, check_name};
use crate::reading::take;
use crate::roaming::{Handoff, RadioCell, Roaming, Stay, Stays, Tour};
use crate::schema;

/// Maximum number of cells.
const MAX_CELLS: usize = 250;

const EXAMPLE: &str = "for example `visits = { every = \"8s\" }` at the top of the file";

/// Parts of the scenario to which its cells refer.
pub(super) struct Around<'a> {
    pub hosts: &'a [Host],
    pub data: Directions,
    pub wired: &'a [Stage],
    pub horizon: Span,
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
            (take(&reader, handoff::handoff)?.0, reader.location("gap"))
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
        check_name(&name, &reader.key("name"), &at)?;
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
            let items = reader.items("list");
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
