//! A bump in the wire between two interfaces: `bump LEFT RIGHT [snoop]`.
use lasthop_live::clock::Clock;
use lasthop_live::station::{Port, Station};
use lasthop_path::{Path, Stage, Witness};
use lasthop_proto::agent::{Agent, AgentConfig, SnoopConfig};
use lasthop_proto::event::Wants;
use lasthop_proto::machine::{Side, StageId};

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let index = |name: &str| nix::net::if_::if_nametoindex(name).unwrap();
    let agent = match args.get(3).map(String::as_str) {
        Some("snoop") => AgentConfig::Snoop { snoop: SnoopConfig::west97(), ackp: None },
        _ => AgentConfig::None,
    };
    let stages = vec![
        Stage::Witness(Box::new(Witness::of_all(Side::Right))),
        Stage::Agent(Box::new(Agent::new(&agent))),
        Stage::Witness(Box::new(Witness::of_all(Side::Left))),
    ];
    let path = Path::new(stages, 1..2, vec![0, 2], Wants::NOTHING);
    let ports = vec![
        Port::open(&args[1], index(&args[1]), StageId(0), Side::Left)?,
        Port::open(&args[2], index(&args[2]), StageId(2), Side::Right)?,
    ];
    let mut station = Station::new(path, ports, Clock::start())?;
    station.run(&mut lasthop_trace::Nothing, &mut |_, _, _| true)
}
