//! QUIC in scenarios: accepted and refused files.

use lasthop_scenario::{Error, QuicCongestion, Scenario, parse};

fn scenario(transfers: &str, world: &str) -> Result<Scenario, Error> {
    let text = format!(
        "world = \"{world}\"\nhorizon = \"60s\"\n{transfers}\n[host.fixed]\n[host.mobile]\n[host.other]\nside = \"left\"\n\
         [[path]]\nlink = {{ rate = \"10mbit\", delay = \"10ms\" }}\n"
    );
    parse(&text, "test", &[]).map(|(plan, _)| plan.cells[0].scenario.clone())
}

fn transfer(keys: &str) -> String {
    format!("[[transfer]]\nfrom = \"fixed\"\nto = \"mobile\"\n{keys}\n")
}

#[test]
fn a_quic_table_or_protocol_key_enables_quic() {
    let quic = |keys: &str| {
        let read = scenario(&transfer(&format!("bytes = \"1MB\"\n{keys}")), "sim");
        read.expect("a scenario").transfers[0].quic
    };
    assert_eq!(quic(""), None);
    assert_eq!(quic("protocol = \"quic\""), Some(Default::default()));
    assert_eq!(quic("quic = {}"), Some(Default::default()));
    let config = quic("quic = { streams = 4, congestion = \"newreno\" }").expect("QUIC");
    assert_eq!((config.streams, config.congestion), (4, QuicCongestion::NewReno));
    assert_eq!(quic("protocol = \"tcp\"\nquic = { streams = 4 }"), None);
}

#[test]
fn unsupported_quic_transfers_are_refused_with_a_remedy() {
    let quic = transfer("bytes = \"1MB\"\nprotocol = \"quic\"");
    let other = quic.replace("fixed", "other");
    assert!(scenario(&format!("{quic}{other}"), "sim").is_ok());
    assert!(scenario(&quic, "testbed").is_ok());
    let mixed = other.replace("\"quic\"", "\"tcp\"");
    let cases = [
        (format!("{quic}{mixed}"), "sim", "`mobile` has transfers by TCP and by QUIC"),
        (
            quic.replace("fixed", "ours") + "[host.ours]\nside = \"left\"\nstack = \"lasthop\"\n",
            "testbed",
            "`ours` speaks QUIC, which needs its kernel's sockets in the testbed",
        ),
        (transfer("web = {}\nquic = {}"), "sim", "QUIC carries transfers of `bytes` only"),
    ];
    for (transfers, world, message) in cases {
        let error = scenario(&transfers, world).expect_err(message);
        assert_eq!(error.message, message);
        assert!(!error.help.is_empty());
    }
}

#[test]
fn agents_that_cannot_read_quic_cause_a_warning() {
    let warned = |protocol: &str, agent: &str| {
        let text = format!(
            "transfer = {{ from = \"fixed\", to = \"mobile\", bytes = \"1MB\", protocol = \"{protocol}\" }}\n\
             [host.fixed]\n[host.mobile]\n[[path]]\nagent = \"{agent}\"\n\
             [[path]]\nradio = {{ rate = \"10mbit\", delay = \"10ms\" }}\n"
        );
        let (_, warnings) = parse(&text, "test", &[]).expect("a scenario");
        warnings.iter().any(|warning| warning.message.contains("cannot read QUIC"))
    };
    assert!(warned("quic", "snoop"));
    assert!(!warned("quic", "none") && !warned("tcp", "snoop"));
}
