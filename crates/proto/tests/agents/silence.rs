//! Hosts that fall silent: the base station's packets and memory stay bounded, for every sender.

use lasthop_proto::agent::{AgentConfig, BaseStation as _, Router, SplitConfig};
use lasthop_proto::machine::Side;
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::Body;

use crate::path::{MOBILE, Path, Wire};

/// Wire of the mobile host.
const AIR: usize = 1;

/// A split connection as stations configure it: lost full segments may be too large for the path.
fn station(apply: impl Fn(&mut TcpConfig)) -> SplitConfig {
    let mut tcp = TcpConfig::linux();
    apply(&mut tcp);
    let largest = Some(Bytes(4 << 20));
    SplitConfig { largest, suspects_size: true, ..SplitConfig::new(tcp) }
}

/// Packets towards a mobile host that is silent from `silent` on, until `until`. The fixed host writes `first` bytes at
/// the start, and `then` bytes at the time of the silence.
fn packets(agent: &AgentConfig, bulk: bool, (first, then): (u32, u32), silent: Time) -> u64 {
    let wire = Wire { byte: Span(80), delay: Span::millis(5), losses: 0 };
    let tcp = TcpConfig::linux();
    let mut path = Path::new([&tcp, &tcp], agent, [wire, wire], 1);
    if bulk {
        path.in_bulk();
    }
    path.hosts[0].connect(MOBILE, 80, Time::ZERO, 8 << 20);
    path.hosts[1].serve(1 << 20);
    path.run_until(Time::ZERO + Span::millis(100));
    let mut offset = 0;
    let mut write = |path: &mut Path, len| {
        let body = Body::Pattern { stream: 1, offset, len };
        let taken = path.act(0, 0, |connection, now, out| connection.write(now, body, out));
        offset += u64::from(taken);
    };
    write(&mut path, first);
    path.run_until(silent);
    path.silence(AIR, true);
    write(&mut path, then);
    let before = path.carried[AIR][Side::Right.index()];
    let state = path.agent.peak_state_bytes();
    path.run_until(silent + Span::secs(120));
    assert!(path.agent.peak_state_bytes() <= state.max(9 << 20), "memory stays flat");
    path.carried[AIR][Side::Right.index()] - before
}

/// A host that is silent right after the handshake, after some data, and in mid-download: at most the packets of a host
/// behind a bridge, and a window that the base station had buffered.
#[test]
fn few_packets_are_sent_to_a_silent_host() {
    let at = |millis| Time::ZERO + Span::millis(millis);
    let cases = [((0, 1448), at(200)), ((0, 300_000), at(200)), ((6_000_000, 0), at(500))];
    for (writes, silent) in cases {
        let bridge = packets(&AgentConfig::None(Router), false, writes, silent);
        assert!((5..3000).contains(&bridge), "{bridge}");
        for word in TCPS {
            for bulk in [false, true] {
                let agent = AgentConfig::Split(station(word.apply));
                let split = packets(&agent, bulk, writes, silent);
                assert!(split <= 2 * bridge + 50, "{} {writes:?}: {split}, {bridge}", word.key);
            }
        }
    }
}
