//! Warnings about settings that are probably unintended. All such scenarios can be run.

use lasthop_proto::agent::{AgentConfig, Ends, Idle, Router, SplitConfig};
use lasthop_proto::hop::HopConfig;
use lasthop_proto::link::LinkLayerConfig;
use lasthop_proto::link::fec::Coding;
use lasthop_proto::mac::MacConfig;
use lasthop_proto::queue::Discipline;
use lasthop_proto::queue::csdp::Knowledge;
use lasthop_proto::tcp::config::Variant;
use lasthop_proto::tcp::{ElnMode, ElnReaction};

use super::host::HostSpec;
use crate::document::Node;
use crate::error::{Code, Diagnostic, Location, Noted};
use crate::model::{HostSide, Scenario, Stage, StageKind};
use crate::read::Reader;

/// Checks the finished scenario for surprising settings.
pub(super) fn run(
    scenario: &Scenario,
    file: &Reader<'_>,
    specs: &[HostSpec],
    notes: &mut Vec<Noted>,
) {
    for line in 0..scenario.lines() {
        let view = View { scenario, path: scenario.line(line).collect(), line, file, specs };
        view.agents_without_use(notes);
        view.sack_needs_both(notes);
        view.reports_need_both(notes);
        view.split_connections(notes);
        if line == 0 {
            view.windows(notes);
        }
        view.agents_without_radio(notes);
        view.agents_without_data(notes);
        view.agents_that_see_nothing(notes);
        if line == 0 {
            view.idle_hosts(notes);
            view.tcp_without_use(notes);
            view.late_transfers(notes);
        }
        view.schedulers_without_news(notes);
        view.codes_without_errors(notes);
        view.rates_without_standard(notes);
    }
}

/// Rates of IEEE 802.11b, in bits per second.
const DSSS: [u64; 4] = [1_000_000, 2_000_000, 5_500_000, 11_000_000];

/// The scenario from the view of one of its cells; without cells there is one view.
struct View<'a> {
    scenario: &'a Scenario,
    /// From the left hosts to those in the cell.
    path: Vec<&'a Stage>,
    /// The number of the cell.
    line: usize,
    file: &'a Reader<'a>,
    specs: &'a [HostSpec],
}

/// Adds a warning, once for the same fault of several cells or transfers of a host.
fn note(notes: &mut Vec<Noted>, warning: Diagnostic) {
    if notes.iter().all(|other| other.warning != warning) {
        notes.push(Noted { warning, in_every_cell: false });
    }
}

impl View<'_> {
    fn host_key(&self, host: usize, key: &str) -> (String, Location) {
        let spec = &self.specs[host];
        let written = self
            .file
            .node("host")
            .and_then(Node::as_table)
            .and_then(|hosts| hosts.get(&spec.name))
            .and_then(Node::as_table)
            .and_then(|host| host.get(key));
        let place = written.map_or_else(|| spec.at.clone(), |node| node.at.clone());
        (format!("host.{}.{key}", spec.name), place)
    }

    /// The dotted key of a stage's `key`.
    fn stage_key(&self, stage: usize, key: &str) -> String {
        match stage.checked_sub(self.scenario.path.len()) {
            None => format!("path.{}.{key}", stage + 1),
            Some(i) => format!("cell.{}.path.{}.{key}", self.line + 1, i + 1),
        }
    }

    fn agent_key(&self, stage: usize) -> String {
        self.stage_key(stage, "agent")
    }

    fn agent_place(&self, stage: usize) -> Location {
        self.stage_place(stage, Some("agent"))
    }

    /// The source location of a stage, or of its `key`.
    fn stage_place(&self, stage: usize, key: Option<&str>) -> Location {
        let (items, stage) = match stage.checked_sub(self.scenario.path.len()) {
            None => (self.file.items("path"), stage),
            Some(i) => {
                let cell = self.file.items("cell").get(self.line).and_then(Node::as_table);
                (cell.map_or(&[][..], |cell| cell.items("path")), i)
            }
        };
        let item = items.get(stage);
        let inner = key.and_then(|key| item.and_then(Node::as_table)?.get(key));
        inner
            .or(item.filter(|_| key.is_none()))
            .map_or_else(|| self.file.at().clone(), |node| node.at.clone())
    }

    /// The hosts that send towards the wireless side, each once.
    fn senders(&self) -> Vec<usize> {
        let mut senders: Vec<usize> = self.scenario.transfers.iter().map(|t| t.from).collect();
        senders.sort_unstable();
        senders.dedup();
        senders
    }

    /// Warns of host options that an agent needs and hosts lack.
    fn agents_without_use(&self, notes: &mut Vec<Noted>) {
        for (i, stage) in self.path.iter().enumerate() {
            let StageKind::Agent(agent) = &stage.kind else { continue };
            for transfer in &self.scenario.transfers {
                let (from, to) =
                    (&self.scenario.hosts[transfer.from], &self.scenario.hosts[transfer.to]);
                let ends = Ends {
                    from: (&from.name, &from.tcp),
                    to: (&to.name, &to.tcp),
                    rightwards: from.side == HostSide::Left,
                };
                let Some(Idle { message, label, help }) = agent.idle(&ends) else { continue };
                let key = self.agent_key(i);
                let warning = Diagnostic::new(Code::NoEffect, key, &self.agent_place(i));
                let warning = warning.message(message).label(label).help(help);
                note(notes, warning);
            }
        }
    }

    /// Warns of a SACK sender whose receiver sends no blocks.
    fn sack_needs_both(&self, notes: &mut Vec<Noted>) {
        for transfer in &self.scenario.transfers {
            let (from, to) =
                (&self.scenario.hosts[transfer.from], &self.scenario.hosts[transfer.to]);
            if from.tcp.variant != Variant::Sack {
                continue;
            }
            let (key, at) = self.host_key(transfer.from, "tcp");
            // The nearest base station that splits the connection is the peer.
            if let Some((i, split)) = self.splits(from.side).next() {
                let end = match from.side {
                    HostSide::Left => &split.wired,
                    HostSide::Right => &split.wireless,
                };
                if !end.sack {
                    let stage = &self.path[i].name;
                    note(
                        notes,
                        Diagnostic::new(Code::NoEffect, key, &at)
                            .message(format!(
                                "`{}` uses SACK, but `{stage}` splits its connections and sends no SACK blocks",
                                from.name
                            ))
                            .label("needs the base station's help")
                            .help("write `split-preset = \"linux\"` next to the agent, or `tcp = \"newreno\"` here"),
                    );
                }
                continue;
            }
            if to.tcp.sack {
                continue;
            }
            note(
                notes,
                Diagnostic::new(Code::NoEffect, key, &at)
                    .message(format!(
                        "`{}` uses SACK, but `{}` sends no SACK blocks",
                        from.name, to.name
                    ))
                    .label("needs the receiver's help")
                    .help(format!("write `sack = true` in `[host.{}]`", to.name)),
            );
        }
    }

    /// The base stations that split connections, the nearest to hosts on `side` first.
    fn splits(&self, side: HostSide) -> impl Iterator<Item = (usize, &SplitConfig)> {
        let count = self.path.len();
        let place = move |i: usize| if side == HostSide::Left { i } else { count - 1 - i };
        (0..count).map(place).filter_map(|i| match &self.path[i].kind {
            StageKind::Agent(AgentConfig::Split(split)) => Some((i, split)),
            _ => None,
        })
    }

    /// Warns of missing options of a base station's own TCP, and of its peers.
    fn split_connections(&self, notes: &mut Vec<Noted>) {
        for (i, split) in self.splits(HostSide::Left) {
            let key = self.agent_key(i);
            let scales = split.wired.window_scale && split.wireless.window_scale;
            // 64 KiB, one byte more than the largest window without scaling, usually means this window.
            let fixed = split.largest.is_none();
            if fixed && split.buffer.0 > 1 + u64::from(u16::MAX) && !scales {
                note(
                    notes,
                    Diagnostic::new(Code::NoEffect, key.clone(), &self.agent_place(i))
                        .message(format!(
                            "the base station cannot advertise its buffer of {} bytes",
                            split.buffer.0
                        ))
                        .label("only 65535 bytes can be advertised")
                        .help("write `split-preset = \"linux\"`, which scales windows"),
                );
            }
            // With several consecutive base stations the next one is the peer, and supports SACK like this
            // one.
            let last = self.splits(HostSide::Right).next().is_some_and(|(last, _)| last == i);
            let mobile = self.scenario.transfers.iter().flat_map(|t| [t.from, t.to]);
            let mut deaf: Vec<usize> = mobile
                .filter(|host| {
                    let host = &self.scenario.hosts[*host];
                    let smart = host.tcp.smart && split.wireless.smart;
                    host.side == HostSide::Right && !host.tcp.sack && !smart
                })
                .collect();
            deaf.sort_unstable();
            deaf.dedup();
            for host in deaf.into_iter().filter(|_| last && split.is_selective()) {
                let name = &self.scenario.hosts[host].name;
                note(
                    notes,
                    Diagnostic::new(Code::NoEffect, key.clone(), &self.agent_place(i))
                        .message(format!(
                            "`split-sack` gains nothing from `{name}`, which sends only cumulative ACKs"
                        ))
                        .label("hardly better than `split` for this host")
                        .help(format!("write `sack = true` in `[host.{name}]`")),
                );
            }
        }
    }

    /// Warns of senders that need information in ACKs which the peer does not send.
    fn reports_need_both(&self, notes: &mut Vec<Noted>) {
        for transfer in &self.scenario.transfers {
            let (from, to) =
                (&self.scenario.hosts[transfer.from], &self.scenario.hosts[transfer.to]);
            // The nearest base station that splits the connection is the peer.
            let peer =
                self.splits(from.side).next().map_or(&to.tcp, |(_, split)| match from.side {
                    HostSide::Left => &split.wired,
                    HostSide::Right => &split.wireless,
                });
            let marks = from.tcp.eln != ElnMode::Off && from.tcp.eln_reaction != ElnReaction::Named;
            let needs = [
                (
                    from.tcp.variant == Variant::Smart && !peer.smart,
                    "which segments cause its ACKs",
                    "smart = true",
                ),
                (
                    from.tcp.variant == Variant::Snack && !peer.snack,
                    "which segments it misses",
                    "snack = true",
                ),
                (marks && peer.eln == ElnMode::Off, "damaged segments", "eln = \"checksum\""),
            ];
            for (_, information, key_of_peer) in needs.into_iter().filter(|(missing, ..)| *missing)
            {
                let (key, at) = self.host_key(transfer.from, "tcp");
                note(
                    notes,
                    Diagnostic::new(Code::NoEffect, key, &at)
                        .message(format!(
                            "the peer of `{}` does not report {information}",
                            from.name
                        ))
                        .label("needs its peer's help")
                        .help(format!("write `{key_of_peer}` in `[host.{}]`", to.name)),
                );
            }
        }
    }

    /// Warns of buffers above 64 KiB without window scaling.
    fn windows(&self, notes: &mut Vec<Noted>) {
        for (i, host) in self.scenario.hosts.iter().enumerate() {
            if host.tcp.recv_buffer <= u32::from(u16::MAX) || host.tcp.window_scale {
                continue;
            }
            let (key, at) = self.host_key(i, "recv-buffer");
            note(
                notes,
                Diagnostic::new(Code::NoEffect, key, &at)
                    .message(format!(
                        "`{}` cannot advertise its receive buffer of {} bytes",
                        host.name, host.tcp.recv_buffer
                    ))
                    .label("only 65535 bytes can be advertised")
                    .help("write `window-scale = true` for all hosts concerned"),
            );
        }
    }

    /// Warns of an agent without a radio on its right.
    fn agents_without_radio(&self, notes: &mut Vec<Noted>) {
        for (i, stage) in self.path.iter().enumerate() {
            let idle = match &stage.kind {
                StageKind::Agent(agent) => !agent.needs_radio(),
                _ => true,
            };
            let radio = self.path[i..]
                .iter()
                .any(|stage| matches!(stage.kind, StageKind::Radio(_) | StageKind::Cross(_)));
            if idle || radio {
                continue;
            }
            note(
                notes,
                Diagnostic::new(Code::NoEffect, self.agent_key(i), &self.agent_place(i))
                    .message(format!("the agent `{}` has no radio on its right", stage.name))
                    .label("nothing to repair")
                    .help("a path runs from the wired side to the wireless: put the agent before the radio"),
            );
        }
    }

    /// Warns of agents without data to the right. Only agents with an end on each side help data in
    /// both directions.
    fn agents_without_data(&self, notes: &mut Vec<Noted>) {
        let right = |sender: usize| self.scenario.hosts[sender].side == HostSide::Left;
        if self.senders().into_iter().any(right) {
            return;
        }
        for (i, stage) in self.path.iter().enumerate() {
            let StageKind::Agent(agent) = &stage.kind else { continue };
            if agent.helps_both_ways() {
                continue;
            }
            let key = self.agent_key(i);
            note(
                notes,
                Diagnostic::new(Code::NoEffect, key, &self.agent_place(i))
                    .message(format!("the agent `{}` has no data to help", stage.name))
                    .label("all data flows to the left")
                    .help("agents help data from the left end of the path to the right, not back"),
            );
        }
    }

    /// Warns of agents without TCP to read. In a sweep, other cells may need the agent.
    fn agents_that_see_nothing(&self, notes: &mut Vec<Noted>) {
        if self.scenario.transfers.iter().any(|transfer| transfer.quic.is_none()) {
            return;
        }
        for (i, stage) in self.path.iter().enumerate() {
            let StageKind::Agent(agent) = &stage.kind else { continue };
            if *agent == AgentConfig::None(Router) {
                continue;
            }
            let warning = Diagnostic::new(Code::NoEffect, self.agent_key(i), &self.agent_place(i))
                .message(format!("the agent `{}` cannot read QUIC", stage.name))
                .label("only forwards")
                .help("QUIC is encrypted; use link layers and queues, which help all packets, or transfer by TCP");
            notes.push(Noted { warning, in_every_cell: true });
        }
    }

    /// Warns of a scheduler that needs reports of channels and does not receive them.
    fn schedulers_without_news(&self, notes: &mut Vec<Noted>) {
        for (i, stage) in self.path.iter().enumerate() {
            let (kind, discipline) = match &stage.kind {
                StageKind::Radio(stage) => ("radio", stage.radio.discipline_right),
                kind => match kind.line() {
                    Some(line) => ("link", line.discipline_right),
                    None => continue,
                },
            };
            let Discipline::Csdp(csdp) = discipline else { continue };
            let radio = if let StageKind::Radio(radio) = &stage.kind { Some(radio) } else { None };
            let hop = radio.and_then(|radio| radio.hop.as_deref());
            let missing = match csdp.channel {
                Knowledge::None => continue,
                Knowledge::Failures => {
                    let silent = |hop: &HopConfig| {
                        !matches!(hop.mac, MacConfig::Dcf(_)) && hop.link == LinkLayerConfig::None
                    };
                    hop.is_none_or(silent).then_some((
                        "no station reports failed frames",
                        "write `mac = \"dcf\"`, or a `link-layer`",
                    ))
                }
                Knowledge::Oracle => {
                    let errors = hop.and(radio).and_then(|radio| radio.errors_right.as_ref());
                    let by_time = errors.is_some_and(|errors| errors.model.goes_by_time());
                    (!by_time).then_some((
                        "no station has a channel whose state follows the time",
                        "write `mac = \"dcf\"` and `errors = { model = \"two-state\", ... }`",
                    ))
                }
            };
            let Some((why, help)) = missing else { continue };
            let key = self.stage_key(i, &format!("{kind}.discipline"));
            let warning = Diagnostic::new(Code::NoEffect, key, &self.stage_place(i, None))
                .message(format!("`csdp` at `{}` gets no channel state: {why}", stage.name))
                .label("only its policy has an effect")
                .help(format!("{help}, or `csdp = {{ channel = \"none\" }}`"));
            note(notes, warning);
        }
    }

    /// Warns of a block code without byte errors: it cannot correct packets that are lost as a whole.
    fn codes_without_errors(&self, notes: &mut Vec<Noted>) {
        for (i, stage) in self.path.iter().enumerate() {
            let StageKind::Radio(radio) = &stage.kind else { continue };
            let coding = radio.hop.as_ref().map_or(Coding::NONE, |hop| hop.coding);
            let mut errors = [&radio.errors_right, &radio.errors_left].into_iter().flatten();
            let whole = errors.clone().next().is_some()
                && errors.all(|errors| errors.model.loses_whole_packets());
            if !matches!(coding, Coding::Block(_)) || !whole {
                continue;
            }
            let key = self.stage_key(i, "coding");
            let warning = Diagnostic::new(Code::NoEffect, key, &self.stage_place(i, Some("coding")))
                .message(format!("the block code of `{}` corrects nothing", stage.name))
                .label("only its check bytes are sent")
                .help(
                    "this error model loses whole packets; write one of bits or bytes, for example `errors = { model = \
                     \"bit-errors\", ber = \"1e-5\" }`",
                );
            note(notes, warning);
        }
    }

    /// Warns of 802.11 at a rate that DSSS does not have.
    fn rates_without_standard(&self, notes: &mut Vec<Noted>) {
        for (i, stage) in self.path.iter().enumerate() {
            let StageKind::Radio(radio) = &stage.kind else { continue };
            let Some(MacConfig::Dcf(dcf)) = radio.hop.as_ref().map(|hop| &hop.mac) else {
                continue;
            };
            let own = dcf.stations.iter().filter_map(|station| station.rate);
            let mut rates = own.chain([radio.radio.rate]).filter(|_| dcf.ofdm.is_none());
            let Some(rate) = rates.find(|rate| !DSSS.contains(&rate.bps())) else { continue };
            let key = self.stage_key(i, "radio.rate");
            let warning = Diagnostic::new(Code::Differs, key, &self.stage_place(i, Some("radio")))
                .message(format!("`{}` sends at {rate} with the times of DSSS", stage.name))
                .label("802.11b has 1, 2, 5.5 and 11 Mbit/s")
                .help("write one of these rates, or `dcf = { phy = \"ax\" }`: preambles of 192 us take most of the time of faster frames");
            notes.push(Noted { warning, in_every_cell: true });
        }
    }

    /// Warns of transfers that start after the end.
    fn late_transfers(&self, notes: &mut Vec<Noted>) {
        let late = |start| start >= self.scenario.horizon;
        if !self.scenario.transfers.iter().any(|transfer| late(transfer.start)) {
            return;
        }
        note(
            notes,
            Diagnostic::new(Code::NoEffect, "horizon", &self.file.location("transfer"))
                .message("a transfer starts after the end of the run")
                .label("starts too late")
                .help(format!(
                    "a run ends at `horizon`, which is {}; raise it or lower `start`",
                    self.scenario.horizon
                )),
        );
    }

    /// Warns of TCP keys of hosts that use QUIC only. A preset has other keys too.
    fn tcp_without_use(&self, notes: &mut Vec<Noted>) {
        const OTHERS: [&str; 7] =
            ["side", "addr", "preset", "kernel", "stack", "access", "battery"];
        let hosts = self.file.node("host").and_then(Node::as_table);
        for (i, spec) in self.specs.iter().enumerate() {
            let table = hosts.and_then(|hosts| hosts.get(&spec.name)).and_then(Node::as_table);
            let Some(table) = table.filter(|_| self.scenario.speaks_quic(i)) else { continue };
            let keys = table.entries.iter().map(|entry| entry.key.as_str());
            for key in keys.filter(|key| !OTHERS.contains(key)) {
                // The warning has no location of the value, because each point of an axis has another one.
                let warning =
                    Diagnostic::new(Code::NoEffect, format!("host.{}.{key}", spec.name), &spec.at)
                        .message(format!("`{key}` has no effect"))
                        .label(format!("QUIC carries what `{}` sends and receives", spec.name))
                        .help(format!(
                            "leave out `{key}`, or compare with `protocol = \"tcp\"`; QUIC's own window is `quic = {{ \
                             congestion = ... }}` of the transfer"
                        ));
                notes.push(Noted { warning, in_every_cell: true });
            }
        }
    }

    /// Warns of a host that neither sends nor receives, usually because of a wrong name.
    fn idle_hosts(&self, notes: &mut Vec<Noted>) {
        for (i, spec) in self.specs.iter().enumerate() {
            if self.scenario.transfers.iter().any(|t| t.from == i || t.to == i) {
                continue;
            }
            note(
                notes,
                Diagnostic::new(Code::NoEffect, format!("host.{}", spec.name), &spec.at)
                    .message(format!("`{}` neither sends nor receives", spec.name))
                    .label("no transfer names it")
                    .help(format!(
                        "add a `[[transfer]]` with it, or leave out `[host.{}]`",
                        spec.name
                    )),
            );
        }
    }
}
