//! Random scenarios of requests and responses.

use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::traffic::Exchange;
use lasthop_proto::units::{Bytes, Span};
use lasthop_scenario::{Scenario, Traffic};

use super::Dice;

/// The scenario of `case` with requests and responses as its transfers; its hosts may open with data.
pub fn asking(case: u64) -> Scenario {
    let mut scenario = Dice::new(case).scenario();
    let mut dice = Dice(Stream::new(case, "requests and responses"));
    let way = dice.below(4);
    for host in &mut scenario.hosts {
        // Usually both ends support it.
        let has = !dice.one_in(4);
        host.tcp.t_tcp = has && way < 2;
        host.tcp.fast_open = has && way == 2;
    }
    for i in 0..scenario.transfers.len() {
        let hosts =
            [scenario.transfers[i].from, scenario.transfers[i].to].map(|h| &scenario.hosts[h].tcp);
        // Segments of one byte take their time.
        let sizes = hosts.iter().flat_map(|tcp| [tcp.mss, tcp.send_buffer, tcp.recv_buffer]);
        let most = u64::from(sizes.min().unwrap_or(1)) * 100;
        let mut size = |sizes: &[u64]| Bytes(dice.pick(sizes).min(most));
        let (request, response) = (size(&[1, 300, 1_460, 4_000]), size(&[1, 500, 10_000, 60_000]));
        let transfer = &mut scenario.transfers[i];
        transfer.bytes = None;
        transfer.traffic = Traffic::Exchange(Exchange {
            request,
            response,
            every: dice.one_in(3).then(|| Span::millis(dice.pick(&[1, 50, 2_000]))),
            think: Span::millis(dice.pick(&[0, 10, 3_000])),
            persistent: dice.one_in(3),
            exchanges: Some(dice.pick(&[1, 3, 20])),
        });
        if dice.one_in(4) {
            transfer.stop = Some(transfer.start + Span::millis(dice.pick(&[1, 5_000])));
        }
    }
    scenario
}
