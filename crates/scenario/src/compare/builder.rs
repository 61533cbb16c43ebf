//! Builds the scenarios of a scheme: translates its keys to those of this scenario, and checks whether the scheme
//! applies.

use lasthop_proto::machine::Side;
use lasthop_proto::units::Rate;

use super::handoffs::Handoffs;
use super::losses::Losses;
use super::stages::{last_hop, path_of, put_agent, stages};
use crate::address::{Dotted, set};
use crate::document::{Node, Table, Value};
use crate::error::{Error, Location};
use crate::model::{HostSide, Scenario, Stack, StageKind};
use crate::plan::Cell;
use crate::resolve;
use crate::schema;
use crate::schemes::{DATA_FROM_RADIO, DATA_TO_RADIO, EXCHANGES, HAND_OFFS, SEVERAL, Scheme};
use crate::vary::Point;

/// The key of an agent on the sender's side of the slowest stage on the way of the ACKs.
const RETURN_AGENT: &str = "return.agent";

/// Builds the cells of schemes.
pub(super) struct Builder<'a> {
    /// The name of the scenario.
    pub name: &'a str,
    /// The scenario as it is.
    pub base: &'a Table,
    /// The same without the first point of its labelled axis.
    pub bare: &'a Table,
    pub losses: &'a Losses<'a>,
    /// Hand-offs under all schemes.
    pub handoffs: Option<&'a Handoffs>,
    /// The unchanged scenario with the first loss rate, without additional hand-offs.
    pub scenario: &'a Scenario,
}

impl Builder<'_> {
    pub fn cells(&self, label: &str, document: &Table) -> Result<Vec<Cell>, Error> {
        (0..self.losses.count())
            .map(|i| {
                let mut document = self.losses.apply(i, document.clone())?;
                self.handoffs.map_or(Ok(()), |handoffs| handoffs.apply(&mut document))?;
                let (scenario, _) = resolve::scenario(&document, self.name)?;
                let labels =
                    std::iter::once(label.to_owned()).chain(self.losses.label(i)).collect();
                Ok(Cell { labels, scenario })
            })
            .collect()
    }

    /// The cells of a scheme, or the reason why it does not apply.
    pub fn cells_of(&self, scheme: &Scheme, point: Option<&Point>) -> Result<Vec<Cell>, String> {
        let document = match point {
            Some(point) => {
                let mut document = self.bare.clone();
                point.apply(&mut document).map_err(|error| error.message.clone())?;
                document
            }
            None => self.changed(scheme)?,
        };
        self.cells(&scheme.name, &document).map_err(|error| error.message.clone())
    }

    /// `scheme` without the host settings that the scenario already has.
    pub fn trimmed(&self, mut scheme: Scheme, cells: &[Cell]) -> Scheme {
        for party in ["sender", "receiver"] {
            let of_party = |key: &str| key.split_once('.').is_some_and(|(first, _)| first == party);
            if !scheme.set.iter().any(|(key, _)| of_party(key)) {
                continue;
            }
            let mut without = scheme.clone();
            without.set.retain(|(key, _)| !of_party(key));
            let same = self
                .cells_of(&without, None)
                .is_ok_and(|other| other.iter().map(simulated).eq(cells.iter().map(simulated)));
            if same {
                scheme.change.retain(|word| word != party);
            }
        }
        scheme
    }

    fn changed(&self, scheme: &Scheme) -> Result<Table, String> {
        let from_left = |host: usize| self.scenario.hosts[host].side == HostSide::Left;
        let transfers = &self.scenario.transfers;
        let needs = |need: &str| scheme.needs.iter().any(|word| word == need);
        if needs(DATA_TO_RADIO) && !transfers.iter().any(|transfer| from_left(transfer.from)) {
            return Err(
                "it helps data that travels towards the radio, and there is none".to_owned()
            );
        }
        if needs(DATA_FROM_RADIO) && transfers.iter().all(|transfer| from_left(transfer.from)) {
            return Err("it helps data that comes from the radio, and there is none".to_owned());
        }
        if needs(SEVERAL) && !self.several_to_one() {
            return Err("it helps several connections from one host to another".to_owned());
        }
        if needs(EXCHANGES) && self.scenario.exchanges().next().is_none() {
            return Err("it helps requests and answers, and there are none".to_owned());
        }
        if needs(HAND_OFFS) && self.handoffs.is_none() && self.scenario.roaming.is_none() {
            return Err("it helps hosts that move, and none does".to_owned());
        }
        let mut document = self.base.clone();
        for (key, node) in scheme.set.iter().filter(|(key, _)| key != RETURN_AGENT) {
            for (key, node) in self.resolved(key, node)? {
                let dotted = Dotted::split(&key, &Location::file(0..0), 0);
                let routes = dotted.routes(&document).map_err(|error| error.message.clone())?;
                for route in routes {
                    set(&mut document, &route, &node, &key)
                        .map_err(|error| error.message.clone())?;
                }
            }
        }
        // The return agent is inserted last, since it shifts the stages behind it.
        if let Some((_, node)) = scheme.set.iter().find(|(key, _)| key == RETURN_AGENT) {
            self.put_return_agent(&mut document, node.as_str().unwrap_or_default())?;
        }
        Ok(document)
    }

    /// Whether there are several connections with the same ends.
    fn several_to_one(&self) -> bool {
        let transfers = &self.scenario.transfers;
        transfers.iter().enumerate().any(|(i, one)| {
            let same =
                |other: &&crate::model::Transfer| (other.from, other.to) == (one.from, one.to);
            one.count > 1 || transfers[..i].iter().any(|other| same(&other))
        })
    }

    /// Inserts an agent on the sender's side of the slowest stage with queued ACKs. It replaces a base
    /// station's agent without function.
    fn put_return_agent(&self, document: &mut Table, agent: &str) -> Result<(), String> {
        let mut at = self.slowest_return()? + usize::from(!self.data_right());
        if let Some((_, Some(idle))) = last_hop(document)
            && stages(document)[idle].get("agent").and_then(Node::as_str) == Some("none")
        {
            path_of(document).map(|items| items.remove(idle));
            at -= usize::from(idle < at);
        }
        put_agent(document, at, agent);
        Ok(())
    }

    /// Whether the data of the first transfer travels to the right.
    fn data_right(&self) -> bool {
        let from = self.scenario.transfers.first().map(|transfer| transfer.from);
        from.is_none_or(|host| self.scenario.hosts[host].side == HostSide::Left)
    }

    /// The keys of this scenario that correspond to a scheme's key.
    fn resolved(&self, key: &str, node: &Node) -> Result<Vec<(String, Node)>, String> {
        let (first, rest) = key.split_once('.').unwrap_or((key, ""));
        let hosts = |of: fn(&crate::model::Transfer) -> usize| {
            let mut hosts: Vec<usize> = self.scenario.transfers.iter().map(of).collect();
            hosts.sort_unstable();
            hosts.dedup();
            let name = |i: &usize| &self.scenario.hosts[*i].name;
            Ok(hosts.iter().map(|i| (format!("host.{}.{rest}", name(i)), node.clone())).collect())
        };
        let cells = self.scenario.roaming.is_some();
        let why = if cells { "the radios are in cells" } else { "the path has no radio" };
        let no_radio = || why.to_owned();
        match first {
            "sender" => hosts(|transfer| transfer.from),
            "receiver" => hosts(|transfer| transfer.to),
            "agent" => {
                self.at(last_hop(self.base).and_then(|(_, agent)| agent), key, node, no_radio)
            }
            _ if schema::stage_keys("agent").contains(&first) => {
                self.at(last_hop(self.base).and_then(|(_, agent)| agent), key, node, no_radio)
            }
            _ if schema::stage_keys("radio").contains(&first) => {
                let at = last_hop(self.base).map(|(radio, _)| radio);
                match (at, self.computed(at, first, node)) {
                    (Some(_), None) => Ok(Vec::new()),
                    (_, node) => self.at(
                        at,
                        key,
                        node.as_ref().unwrap_or(&Node::new(Value::Bool(false))),
                        no_radio,
                    ),
                }
            }
            "return" => self.on_the_way_back(rest, node),
            _ => Ok(vec![(key.to_owned(), node.clone())]),
        }
    }

    fn at(
        &self,
        stage: Option<usize>,
        key: &str,
        node: &Node,
        missing: impl Fn() -> String,
    ) -> Result<Vec<(String, Node)>, String> {
        let stage = stage.ok_or_else(missing)?;
        Ok(vec![(format!("path.{}.{key}", stage + 1), node.clone())])
    }

    /// A value of `$window>N` or `$pacing` for this radio; `None` if the default or the file's own value is
    /// right.
    fn computed(&self, radio: Option<usize>, key: &str, node: &Node) -> Option<Node> {
        let Some(word) = node.as_str().and_then(|word| word.strip_prefix('$')) else {
            return Some(node.clone());
        };
        let StageKind::Radio(radio_stage) = &self.scenario.path.get(radio?)?.kind else {
            return None;
        };
        if stages(self.base)[radio?].has(key) {
            return None;
        }
        let value = match word.split_once('>') {
            Some((_, floor)) => {
                // Two round trips of packets of a usual size, so that one loss does not empty the hop.
                let bytes = 2.0
                    * 2.0
                    * radio_stage.radio.delay.as_secs_f64()
                    * radio_stage.radio.rate.bps() as f64
                    / 8.0;
                let packets = (bytes / 1500.0).ceil() as i64 + 8;
                let packets = packets.min(1024);
                let needed = floor.parse().is_ok_and(|floor: i64| packets > floor);
                needed.then(|| Value::Integer(Some(packets), packets.to_string()))?
            }
            None if radio_stage.radio.half_duplex => return None,
            None => Value::String("full-duplex".to_owned()),
        };
        Some(Node::new(value))
    }

    /// The slowest stage with queued ACKs.
    fn slowest_return(&self) -> Result<usize, String> {
        let data_right = self.data_right();
        let of_line = |line: &lasthop_proto::link::LineConfig| {
            if data_right { line.rate_left } else { line.rate_right }
        };
        let rates = self.scenario.path.iter().enumerate().filter_map(|(i, stage)| {
            let rate: Option<Rate> = match &stage.kind {
                StageKind::Link(line) => of_line(line),
                StageKind::Serial(serial) => of_line(&serial.line),
                StageKind::Varied(varied) => {
                    varied.mean_rate(if data_right { Side::Left } else { Side::Right })
                }
                StageKind::Netem(netem) => of_line(&netem.line),
                StageKind::Tbf(tbf) => Some(tbf.rate),
                StageKind::Radio(radio) => Some(radio.radio.rate),
                _ => None,
            };
            Some((rate?, i))
        });
        let slowest = rates.min().map(|(_, at)| at);
        slowest.ok_or_else(|| "no stage on the way of the ACKs has a rate".to_owned())
    }

    /// A key of that stage.
    fn on_the_way_back(&self, key: &str, node: &Node) -> Result<Vec<(String, Node)>, String> {
        let (data_right, at) = (self.data_right(), self.slowest_return()?);
        let stage = stages(self.base)[at];
        let kind = if stage.has("radio") { "radio" } else { "link" };
        if key == "header-compression" && kind == "radio" {
            return Err(
                "the slowest stage on the way of the ACKs is a radio, which compresses no headers"
                    .to_owned(),
            );
        }
        let both = |key: &str| {
            stage.get(kind).and_then(Node::as_table).is_some_and(|table| table.has(key))
        };
        let key = match key {
            "discipline" if !both("discipline") => {
                format!("discipline-{}", if data_right { "left" } else { "right" })
            }
            key => key.to_owned(),
        };
        Ok(vec![(format!("path.{}.{kind}.{key}", at + 1), node.clone())])
    }
}

/// The scenario of a cell without kernel settings of the testbed, which only repeat those of the hosts' TCP.
fn simulated(cell: &Cell) -> Scenario {
    let mut scenario = cell.scenario.clone();
    for host in &mut scenario.hosts {
        if let Stack::Kernel { settings, .. } = &mut host.stack {
            settings.clear();
        }
    }
    scenario
}
