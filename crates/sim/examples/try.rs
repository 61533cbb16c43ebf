//! scratch
use lasthop_proto::agent::AgentConfig;
use lasthop_proto::channel::ErrorModel;
use lasthop_proto::event::{What, TcpKind};
use lasthop_proto::link::*;
use lasthop_proto::queue::Limit;
use lasthop_proto::tcp::{TcpConfig, Variant};
use lasthop_proto::units::*;
use lasthop_proto::wire::Addr;
use lasthop_scenario::*;
use lasthop_trace::*;

fn west(tcp: TcpConfig, errors: Option<ErrorModel>, bytes: u64) -> Scenario {
    let e = errors.map(|model| ErrorSpec { model });
    Scenario {
        name: "x".into(), runs: 20, first_seed: 1, horizon: Span::secs(100_000),
        hosts: vec![
            Host { name: "fixed".into(), side: HostSide::Left, addr: Addr::v4(10,0,1,1), tcp: tcp.clone() },
            Host { name: "mobile".into(), side: HostSide::Right, addr: Addr::v4(10,0,2,1), tcp },
        ],
        transfers: vec![Transfer { from: 0, to: 1, bytes: Some(Bytes(bytes)), start: Span::ZERO, count: 1 }],
        path: vec![
            Stage { name: "ethernet".into(), kind: StageKind::Link(LineConfig { rate_right: "10mbit".parse().ok(), rate_left: "10mbit".parse().ok(), delay: Span::micros(200), framing: 18, queue: Limit::Packets(50), paced: false }) },
            Stage { name: "cpu".into(), kind: StageKind::Link(LineConfig { rate_right: if std::env::var("CPU").is_ok() { "119603bit".parse().ok() } else { None }, rate_left: None, delay: Span::ZERO, framing: 0, queue: Limit::Packets(50), paced: true }) },
            Stage { name: "bs".into(), kind: StageKind::Agent({ use lasthop_proto::agent::*; match std::env::var("AGENT").as_deref() { Ok("snoop") => AgentConfig::Snoop{snoop: SnoopConfig::west97(), ackp: None}, Ok("ackp") => AgentConfig::Snoop{snoop: SnoopConfig::west97(), ackp: Some(AckpMode::EveryPacket)}, Ok("ackpfull") => AgentConfig::Snoop{snoop: SnoopConfig::west97(), ackp: Some(AckpMode::Full)}, Ok("seq") => AgentConfig::SeqCache{flows: 100}, _ => AgentConfig::None } }) },
            Stage { name: "slow".into(), kind: StageKind::Link(LineConfig { rate_right: if std::env::var("SLOW").is_ok() { "119603bit".parse().ok() } else { None }, rate_left: None, delay: Span::ZERO, framing: 0, queue: Limit::Packets(50), paced: false }) },
            Stage { name: "wavelan".into(), kind: StageKind::Radio(RadioStage { radio: RadioConfig { rate: "2mbit".parse().unwrap(), delay: Span::millis(1), overhead: Span::micros(700), half_duplex: true, queue: Limit::Packets(50) }, errors_right: e.clone(), errors_left: e }) },
        ],
    }
}

fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    let mut tcp = TcpConfig::freebsd_2_1();
    if let Some(v) = std::env::args().nth(2) { tcp.variant = match v.as_str() { "tahoe" => Variant::Tahoe, "newreno" => Variant::NewReno, "sack" => { tcp.sack = true; Variant::Sack }, _ => Variant::Reno } }
    match std::env::var("AGENT").as_deref() { Ok("ackp") => tcp.ackp = lasthop_proto::tcp::AckpReaction::Constant, Ok("ackpfull") => tcp.ackp = lasthop_proto::tcp::AckpReaction::Rearm, Ok("seq")|Ok("eln") => tcp.eln = true, _ => {} }
    let exp = ErrorModel::Exponential { mean: Bytes(65536) };
    let burst = ErrorModel::PacketBursts { packets: 6, mean: Bytes(65536), uniform: false };
    let s = match which.as_str() { "exp" => west(tcp, Some(exp), 2_000_000), "burst" => west(tcp, Some(burst), 2_000_000), _ => west(tcp, None, 2_000_000) };
    if let Some(seed) = std::env::args().nth(3) {
        let mut r = Record::default();
        run(&s, seed.parse().unwrap(), &mut r);
        for e in &r.events { match &e.what {
            What::Packet{op,side,packet} => { let g = packet.segment().unwrap(); println!("{:.6} {} {op:?} {side:?} {} seq {} ack {} len {} {:?}", e.at.as_secs_f64(), e.stage.0, g.flags, g.seq.0, g.ack.0, packet.body.len(), packet.damage) }
            What::Tcp(t) => println!("{:.6} {} {:?} una {} nxt {} max {} cwnd {} ssth {} rto {} bo {} dup {}", e.at.as_secs_f64(), e.stage.0, t.kind, t.tcb.snd_una, t.tcb.snd_nxt, t.tcb.snd_max, t.tcb.cwnd, t.tcb.ssthresh, t.tcb.rto, t.tcb.backoff, t.tcb.dupacks),
            o => println!("{:?}", o) } }
        return;
    }
    let mut sum = 0.0; let mut to = 0; let mut fr = 0;
    for seed in 1..=20 {
        let mut r = Record::default();
        let end = run(&s, seed, &mut r);
        let done = r.events.iter().find_map(|e| matches!(&e.what, What::Tcp(t) if t.kind == TcpKind::Complete).then_some(e.at));
        let t = r.events.iter().filter(|e| matches!(&e.what, What::Tcp(t) if t.kind == TcpKind::Timeout)).count();
        fr += r.events.iter().filter(|e| matches!(&e.what, What::Tcp(t) if t.kind == TcpKind::FastRetransmit)).count();
        to += t;
        let secs = done.map_or(0.0, |d| d.as_secs_f64());
        sum += 2e6 / 1024.0 / secs;
        for (i, c) in &end.stages { if i.0 > 0 && i.0 < 6 && !c.is_conserved() { println!("NOT CONSERVED {i:?} {c:?}"); } }
        if seed < 2 || done.is_none() { println!("{seed}: {:?} at {} done {secs:.3}s timeouts {t} hops {} wakes {} {:?}", end.reason, end.at, end.hops, end.wakes, end.transfers); }
    }
    println!("mean {:.2} KB/s timeouts {:.2} fast {:.1}", sum / 20.0, to as f64 / 20.0, fr as f64/20.0);
    let _ = lasthop_sim::layout(&s);
    let t = std::time::Instant::now();
    let mut hops = 0;
    for seed in 0..100 { hops += run(&s, seed, &mut Nothing).hops; }
    println!("{:.1} M hops/s", hops as f64 / t.elapsed().as_secs_f64() / 1e6);
}
use lasthop_sim::run;
