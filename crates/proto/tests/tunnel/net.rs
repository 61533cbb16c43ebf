//! Characterization tests of two ends in many settings: figures of all their messages, stored in
//! `tests/net/tunnels.txt`. `make figures` regenerates them.

#[path = "../../../checks/shared/golden.rs"]
mod golden;

use std::fmt::Write as _;

use golden::{Block, Digest, check};

use super::tests::{Harm, NONE, World, at, config, udp};
use super::*;
use crate::link::tulip::Reliable;

/// Figures of `world` under `name`.
fn figures(name: &str, world: &World) -> Block {
    let mut block = Block::new(name);
    let mut digest = Digest::default();
    let mut bytes = 0;
    for datagram in &world.log {
        bytes += datagram.len();
        digest.bytes(datagram);
        digest.bytes(&datagram.len().to_be_bytes());
    }
    block.put("time", format!("{:?}", world.now));
    block.put("datagrams", world.log.len());
    block.put("bytes", bytes);
    for i in [0, 1] {
        let end = world.end(i);
        let mut rest = Digest::default();
        let _ = write!(rest, "{:?} {:?}", world.got[i], world.notices[i]);
        let _ = write!(rest, "{:?} {:?} {:?}", end.repeated(), end.notes(), end.session().agreed());
        let counts = format!("{:?}", end.counts()).replace("TunnelCounts ", "");
        let session = format!("{:?}", end.session().counts()).replace("SessionCounts ", "");
        block.put(&format!("end {i} got"), world.got[i].len());
        block.put(&format!("end {i} counts"), counts);
        block.put(&format!("end {i} session"), session);
        block.put(&format!("end {i} state"), format!("{:?}", end.session().state()));
        block.put(&format!("end {i} digest"), rest.text());
    }
    block.put("digest of datagrams", digest.text());
    block
}

/// Sends packets of many lengths in both directions for some seconds, and invalid packets.
fn talk(world: &mut World, packets: u32) {
    world.run_for(Span::millis(60));
    for n in 0..packets {
        world.put(0, &udp(n, 40 + (n as usize * 131) % 1400));
        if n % 3 == 0 {
            world.put(1, &udp(n, 900));
        }
        if n % 50 == 7 {
            world.put(0, &[0x45, 0, 0, 9]);
            world.put(1, &udp(n, 3000));
        }
        world.run_for(Span::millis(if n % 20 == 19 { 150 } else { 3 }));
    }
    world.run_for(Span::secs(4));
}

/// Change to a configuration.
type Set = fn(&mut TunnelConfig);

#[test]
fn tunnel_figures_match_the_stored_file() {
    let harms = [
        ("no harm", NONE),
        ("losses", Harm { lose: 0.1, ..NONE }),
        ("everything", Harm { lose: 0.05, repeat: 0.1, reorder: 0.2, forge: 0.03 }),
    ];
    let settings: [(&str, Set); 9] = [
        ("as usual", |_| {}),
        ("repeats nothing", |c| c.rule = None),
        ("slow", |c| c.rate = Rate::from_bps(2_000_000)),
        ("short queue", |c| {
            c.rate = Rate::from_bps(700_000);
            c.queue = 4;
        }),
        ("known delay", |c| c.delay = Some(Span::millis(80))),
        ("small window", |c| c.session.window = 8),
        ("worn soon", |c| c.session.worn_after = 60),
        ("does not follow", |c| {
            c.follows = false;
            c.framing = 48;
        }),
        ("small packets alone", |c| {
            c.rule = Some(Rule { reliable: Reliable::Tcp, ack_size: 400, ..Rule::default() });
        }),
    ];
    let mut blocks = Vec::new();
    for (harm_name, harm) in harms {
        for (name, set) in settings {
            let mut configs = [config(Some(at(1))), config(None)];
            configs.iter_mut().for_each(set);
            let mut world = World::new(configs, harm, 5);
            talk(&mut world, 120);
            blocks.push(figures(&format!("{name}, {harm_name}"), &world));
        }
    }
    // A narrow path that widens, a peer that moves, one that restarts, one that leaves, two callers.
    let mut world = World::pair(NONE, 6);
    world.width = 900;
    talk(&mut world, 60);
    world.width = 1500;
    world.run_for(Span::secs(40));
    talk(&mut world, 60);
    blocks.push(figures("a narrow way", &world));
    let mut world = World::pair(NONE, 7);
    talk(&mut world, 30);
    world.places[0] = at(9);
    talk(&mut world, 60);
    world.start(0, config(Some(at(1))));
    talk(&mut world, 30);
    world.start(1, config(None));
    world.run_for(Span::secs(9));
    talk(&mut world, 30);
    blocks.push(figures("moves and restarts", &world));
    let mut world = World::new([config(Some(at(1))), config(Some(at(0)))], NONE, 8);
    talk(&mut world, 30);
    world.harm = Harm { lose: 1.0, ..NONE };
    world.run_for(Span::secs(12));
    world.harm = NONE;
    talk(&mut world, 30);
    let now = world.now;
    if let Some(end) = &mut world.ends[0] {
        end.close(now);
    }
    world.run_for(Span::secs(9));
    blocks.push(figures("both call, silence, goodbye", &world));
    check("tunnels.txt", &blocks);
}

/// Changes each byte of each message of a session: on arrival, and once more when the message is old.
#[test]
fn corrupted_message_figures_match_the_stored_file() {
    let mut world = World::pair(NONE, 9);
    talk(&mut world, 6);
    let log = world.log.clone();
    let mut blocks = Vec::new();
    for before in [0, 15, 45, 200] {
        let mut world = World::pair(NONE, 9);
        world.run_for(Span::millis(before));
        for (n, message) in log.iter().enumerate().take(12) {
            for index in (0..message.len().min(90)).chain([message.len() - 1]) {
                for change in [1, 0x80] {
                    let mut message = message.clone();
                    message[index] ^= change;
                    world.inject(1, at(0), &message);
                    world.inject(0, at(1), &message);
                }
                if n % 4 == 0 {
                    world.inject(1, at(5), &message[..index]);
                }
            }
            world.inject(n % 2, at(1), message);
            world.run_for(Span::millis(1));
        }
        talk(&mut world, 10);
        blocks.push(figures(&format!("after {before} ms"), &world));
    }
    check("changed-messages.txt", &blocks);
}
