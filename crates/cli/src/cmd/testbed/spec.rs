//! `lasthop testbed up`: the network of its arguments and scenario.

use std::net::{Ipv4Addr, Ipv6Addr};

use lasthop_live::testbed::keep::Request;
use lasthop_live::testbed::{HostSpec, NetSpec, Preset, Side};
use lasthop_scenario::{Argument, Scenario, Stack};

use super::DEFAULT_NAME;
use crate::failure::Failure;
use crate::scenario::Text;
use crate::style;
use crate::sweep::testbed::Order;

/// The default scenario, whose path lies between the hosts.
const DEFAULT_PATH: &str = "west97-lan";

/// What to start.
#[derive(clap::Args, Debug)]
pub struct TestbedSpecArgs {
    /// Scenario whose hosts and path to make: a file, `-` for stdin, or a built-in one (default: ravel and chopin
    /// at the ends of west97-lan)
    #[arg(value_name = "SCENARIO")]
    scenario: Option<String>,
    /// What to call the testbed
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    name: String,
    /// Change a value of the scenario, for example `agent=snoop`; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Settings of the kernel's TCP, on all hosts or on one (`lasthop list presets`); repeatable
    #[arg(long, value_name = "[HOST=]PRESET")]
    preset: Vec<String>,
    /// Let cables carry packets larger than the MTU with unfinished checksums: faster, less like a wire
    #[arg(long)]
    offloads: bool,
}

impl TestbedSpecArgs {
    /// The request for the background process.
    pub fn request(&self) -> Result<Request, Failure> {
        let (mut hosts, origin, payload) =
            self.scenario(self.scenario.as_deref().unwrap_or(DEFAULT_PATH))?;
        if self.scenario.is_none() {
            hosts = defaults();
        }
        for word in &self.preset {
            set_preset(&mut hosts, word)?;
        }
        // The base station is called verdi, as in west97, unless a host has this name.
        let taken = |name: &&str| hosts.iter().any(|host| host.name == *name);
        let station = ["verdi", "station", "base"].into_iter().find(|name| !taken(name));
        let station = station.unwrap_or("base-station").to_owned();
        let net = NetSpec { station, offloads: self.offloads, hosts };
        Ok(Request { name: self.name.clone(), net, origin, payload })
    }

    fn scenario(&self, word: &str) -> Result<(Vec<HostSpec>, String, String), Failure> {
        let arguments: Vec<_> = self.set.iter().cloned().map(Argument::Set).collect();
        let text = Text::load(word, &arguments)?;
        let (plan, warnings) = text.plan(&arguments)?;
        text.warn(&warnings, &arguments);
        let Some(cell) = plan.cells.first() else {
            return Err(Failure::input(format!("{} has no run", text.origin), ""));
        };
        if cell.scenario.roaming.is_some() {
            let why = format!(
                "{} has cells, but a running testbed has only one base station",
                text.origin
            );
            let help = "`lasthop run --world testbed` moves hosts; or write the stages of one cell into `[[path]]`";
            return Err(Failure::input(why, help));
        }
        if plan.cells.len() > 1 && self.scenario.is_some() {
            eprintln!(
                "{} of {} combinations this is the first: {} (choose with --set)",
                style::bold("note:"),
                plan.cells.len(),
                cell.title(&plan.axes)
            );
        }
        let order =
            Order { name: text.name, text: text.text, set: self.set.clone(), ..Order::default() };
        let payload =
            serde_json::to_string(&order).map_err(|error| Failure::input(error.to_string(), ""))?;
        Ok((of_scenario(&cell.scenario), text.origin, payload))
    }
}

/// Default hosts, as in west97: a fixed and a mobile one.
fn defaults() -> Vec<HostSpec> {
    vec![
        HostSpec::new("ravel", Side::Left, Ipv4Addr::new(10, 0, 0, 1).into()).v6(v6(Side::Left, 1)),
        HostSpec::new("chopin", Side::Right, Ipv4Addr::new(10, 1, 0, 1).into())
            .v6(v6(Side::Right, 1)),
    ]
}

/// The n-th IPv6 address of a side, in addition to the scenario's IPv4 address.
fn v6(side: Side, n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, u16::from(side == Side::Right), 0, 0, 0, 0, 0, n)
}

fn of_scenario(scenario: &Scenario) -> Vec<HostSpec> {
    let mut counts = [0u16; 2];
    let mut hosts = Vec::new();
    for host in &scenario.hosts {
        let side = Side::from(host.side);
        let count = &mut counts[usize::from(side == Side::Right)];
        *count = count.saturating_add(1);
        let mut spec = HostSpec::new(&host.name, side, host.addr.ip());
        if let Stack::Kernel { settings, .. } = &host.stack {
            spec = settings.iter().fold(spec, HostSpec::setting);
        }
        // A scenario with IPv6 gets only the addresses that it names.
        let also = scenario.hosts.iter().all(|host| host.addr.is_v4());
        hosts.push(if also { spec.v6(v6(side, *count)) } else { spec });
    }
    hosts
}

fn set_preset(hosts: &mut [HostSpec], word: &str) -> Result<(), Failure> {
    let (host, name) = match word.split_once('=') {
        Some((host, name)) => (Some(host), name),
        None => (None, word),
    };
    let Some(preset) = Preset::named(name) else {
        let names: Vec<_> = Preset::ALL.into_iter().map(Preset::name).collect();
        return Err(Failure::input(
            format!("there is no preset `{name}` of the kernel's TCP"),
            format!("there are {}", names.join(", ")),
        ));
    };
    let names: Vec<_> = hosts.iter().map(|host| host.name.clone()).collect();
    let mut matching =
        hosts.iter_mut().filter(|spec| host.is_none_or(|host| spec.name == host)).peekable();
    if matching.peek().is_none() {
        return Err(Failure::input(
            format!("there is no host `{}` to set to {name}", host.unwrap_or_default()),
            format!("there are {}, for example `--preset {}={name}`", names.join(", "), names[0]),
        ));
    }
    for spec in matching {
        spec.preset = Some(preset);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_for_all_or_for_one() {
        let mut hosts = defaults();
        set_preset(&mut hosts, "linux-1997").unwrap();
        set_preset(&mut hosts, "chopin=linux-bbr").unwrap();
        let presets: Vec<_> = hosts.iter().map(|host| host.preset).collect();
        assert_eq!(presets, [Some(Preset::Linux1997), Some(Preset::LinuxBbr)]);
        assert!(set_preset(&mut hosts, "linux").is_err());
        assert!(set_preset(&mut hosts, "liszt=linux-bbr").is_err());
    }

    #[test]
    fn hosts_of_a_scenario_keep_names_sides_and_addresses() {
        let text = lasthop_scenario::example("west97-lan").map(|example| example.text).unwrap();
        let (plan, _) = lasthop_scenario::parse(text, "west97-lan", &[]).unwrap();
        let hosts = of_scenario(&plan.cells[0].scenario);
        let shown: Vec<_> = hosts.iter().map(|host| (host.side, host.v4, host.v6)).collect();
        assert_eq!(
            shown,
            [
                (Side::Left, Some(Ipv4Addr::new(10, 0, 0, 1)), Some("fd00::1".parse().unwrap())),
                (Side::Right, Some(Ipv4Addr::new(10, 1, 0, 1)), Some("fd00:1::1".parse().unwrap())),
            ]
        );
    }
}
