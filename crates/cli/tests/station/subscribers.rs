//! The view of subscribers of a station, by commands and by its metrics.

use serde_json::Value;

use super::world::{World, inside};

const VIEW: &str = "[[path]]\nagent = \"none\"\n[subscribers]\nmost = 10\nmetrics = 1\n\
                    [metrics]\nlisten = \"127.0.0.1:9464\"\n";

const BYTES: usize = 2_000_000;

#[test]
fn a_subscriber_has_a_row_and_series() {
    inside("subscribers::a_subscriber_has_a_row_and_series", || {
        let world = World::new(VIEW);
        let station = world.station(&[]);
        assert_eq!(world.transfer(BYTES).join().expect("the transfer is whole"), BYTES);
        assert!(world.wait(|status| status["subscribers"]["followed"] == 1));
        let list = |more: &[&str]| -> Value {
            let words = [&["subscribers", "--json"], more].concat();
            serde_json::from_str(&world.ctl(&words)).expect("JSON")
        };
        // The receiver may be ready before the station has read its last ACK.
        let whole = |all: &Value| {
            all["subscribers"][0]["total"]["delivered_down"].as_u64() >= Some(BYTES as u64)
        };
        let all = (0..8000).map(|_| list(&[])).find(whole).expect("the last ACK passes");
        assert_eq!((&all["format"], &all["most"]), (&"lasthop-ctl".into(), &10.into()));
        let row = &all["subscribers"][0];
        assert_eq!(row["subscriber"], "10.9.0.2", "{all:#}");
        assert_eq!(row["total"]["delivered_down"], BYTES, "{all:#}");
        assert_eq!(row["loss_up"], Value::Null, "it sent nothing");
        assert!(row["radio"]["min_s"].as_f64() < Some(0.1), "{all:#}");
        for (within, count) in [("10.9.0.0/24", 1), ("10.9.1.0/24", 0), ("fd00::/8", 0)] {
            let found = list(&["--within", within, "--by", "loss", "--top", "1"]);
            assert_eq!(found["subscribers"].as_array().unwrap().len(), count, "{within}");
        }
        let table = world.ctl(&["subscribers", "--interval", "100ms", "--times", "2"]);
        assert_eq!(table.matches("10.9.0.2").count(), 2, "{table}");
        assert!(table.starts_with("subscribers: 1 of at most 10"), "{table}");
        assert!(world.ctl(&["get"]).contains("subscribers: 1 of at most 10"));
        let page = world.scrape();
        for line in [
            "lasthop_subscribers 1",
            "lasthop_subscriber_delivered_bytes_total{subscriber=\"10.9.0.2\",direction=\"right\"} 2000000",
            "lasthop_subscriber_round_trip_seconds{subscriber=\"10.9.0.2\",side=\"radio\",what=\"min\"} ",
        ] {
            assert!(page.contains(line), "{line}:\n{page}");
        }
        assert!(!page.contains("radio-left"), "it was not measured:\n{page}");
        for (word, says) in [("--by=moths", "round-trip"), ("--within=moth", "10.5.0.0/24")] {
            let (code, output) = world.fails(&["ctl", "subscribers", word]);
            assert!(code == Some(2) && output.contains(says), "{output}");
        }
        assert_eq!(station.end("TERM"), Some(0));
    });
}

#[test]
fn a_station_without_the_view_names_the_table() {
    inside("subscribers::a_station_without_the_view_names_the_table", || {
        let world = World::new("[[path]]\nagent = \"none\"\n");
        let station = world.station(&[]);
        let (code, output) = world.fails(&["ctl", "subscribers"]);
        assert!(code == Some(2) && output.contains("[subscribers]"), "{output}");
        assert_eq!(world.status()["subscribers"], Value::Null);
        assert_eq!(station.end("TERM"), Some(0));
    });
}
