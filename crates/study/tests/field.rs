//! Advice from field captures: no invented losses, and a hint what to capture where losses do not show.

use lasthop_analyze::{Config, analyze_capture};
use lasthop_study::advise::{Estimate, is_decided};
use lasthop_study::capture::Capture;

fn capture(name: &str) -> Capture {
    let path = format!("{}/../analyze/tests/data/field/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
    let analysis = analyze_capture(&std::fs::read(path).unwrap(), Config::default()).unwrap();
    Capture { file: name.to_owned(), analysis, left_out: 0 }
}

#[test]
fn no_loss_where_the_first_transmission_of_every_byte_arrived() {
    for name in ["ack-before-data", "rst-high", "rst-low", "half-open-a", "mirror-twice"] {
        let estimate = Estimate::of(&capture(name), "").unwrap();
        let loss = estimate.loss.map_or(0.0, |(loss, _)| loss.get());
        assert_eq!(loss, 0.0, "{name}");
        assert_eq!(estimate.captured.unwrap().loss, 0.0, "{name}");
    }
}

#[test]
fn missing_evidence_is_reported_with_the_needed_capture() {
    let error = Estimate::of(&capture("one-way-acks"), "").unwrap_err().to_string();
    assert!(error.contains("only the ACKs") && error.contains("144540 B"), "{error}");
    let notes = Estimate::of(&capture("repair-at-receiver"), "").unwrap().notes.join("\n");
    assert!(notes.contains("capture at the sender"), "{notes}");
}

#[test]
fn a_heading_warns_once_of_copies_and_of_the_order() {
    let of = |name: &str| capture(name).heading().join("\n");
    assert!(of("mirror-twice").contains("204 packets of TCP are here a second time"));
    assert!(of("ack-before-data").contains("the order in the file is not that on the wire"));
}

#[test]
fn a_black_hole_is_no_loss_of_the_link() {
    let estimate = Estimate::of(&capture("mtu-black-hole"), "").unwrap();
    let fault = &estimate.faults[0];
    assert!(fault.decides && is_decided(&estimate.faults), "{fault:?}");
    assert!(
        fault.diagnosis.evidence.contains("MTU black hole from segments of 1460 B on"),
        "{fault:?}"
    );
    assert!(fault.diagnosis.remedy.contains("clamp the MSS"), "{fault:?}");
    assert!(estimate.loss.is_none() && estimate.burst.is_none());
    assert_eq!(estimate.captured.unwrap().loss, 0.0);
}
