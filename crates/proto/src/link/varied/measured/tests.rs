use super::*;
use crate::units::Time;

fn table(text: &str) -> Measured {
    Measured::read(text, &Hints::default()).unwrap_or_else(|error| panic!("{error:?}: {text}"))
}

/// Times in milliseconds, and rates in kbit/s.
fn rates(found: &Measured) -> Vec<(u64, u64)> {
    let rate = found.rate.as_ref().expect("rates");
    rate.points()
        .map(|(at, rate, _)| (at.0 / 1_000_000, rate.map_or(0, Rate::bps) / 1000))
        .collect()
}

/// Times and delays in milliseconds.
fn delays(found: &Measured) -> Vec<(u64, f64)> {
    let delays = found.delays.as_ref().expect("delays");
    delays.points().map(|(at, delay, _)| (at.0 / 1_000_000, delay.0 as f64 / 1e6)).collect()
}

#[track_caller]
fn refused(text: &str, hints: &Hints, line: Option<usize>, expected: &[&str]) {
    let Err(error) = Measured::read(text, hints) else { panic!("{text}") };
    assert_eq!(error.line, line, "{error:?}");
    for expected in expected {
        let text = format!("{} | {}", error.message, error.help);
        assert!(text.contains(expected), "`{expected}` is not in {text}");
    }
}

/// A phone application: named columns, wall-clock times, repeated seconds, `-` for missing values.
#[test]
fn a_drive_test_is_read() {
    let text = "Timestamp,Longitude,Speed,RSRP,DL_bitrate,UL_bitrate,State\n\
                2024.03.04_23.59.58,0,41,-94,8000,500,D\n\
                2024.03.04_23.59.58,0,41,-94,4000,500,D\n\
                2024.03.04_23.59.59,0,41,-94,2000,600,D\n\
                2024.03.05_00.00.00,0,42,-,-,600,D\n\
                2024.03.05_00.00.01,0,42,-90,1000,700,D\n";
    let found = table(text);
    assert_eq!(rates(&found), [(0, 8000), (500, 4000), (1000, 2000), (3000, 1000)]);
    assert_eq!(found.end, Span::secs(4));
    let all = found.understood.join("\n");
    for expected in
        ["`DL_bitrate` in kbit/s", "rates back: `UL_bitrate`", "1 rows share", "wall clock"]
    {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    let up = Hints { down: Some(false), ..Hints::default() };
    assert_eq!(rates(&Measured::read(text, &up).unwrap())[0].1, 500);
    let (column, unit) = (Some("ul_bitrate".to_owned()), Some("bit".to_owned()));
    let named = Hints { column, unit, ..Hints::default() };
    let found = Measured::read(text, &named).unwrap();
    assert_eq!(found.rate.unwrap().at(Time::ZERO), Rate::from_bps(500));
}

#[test]
fn blanks_semicolons_and_decimal_commas_are_read() {
    // Without names and units the values may be rates, delays or losses.
    let text = "0.0 31.5\n0.5 33.0\n1.0 20.5\n";
    let refused = Measured::read(text, &Hints::default()).unwrap_err();
    assert!(refused.help.contains("--unit") && refused.help.contains("--quantity"));
    let role = Some(Role::Delay);
    let of = |round_trip| {
        let hints = Hints { role, round_trip, ..Hints::default() };
        Measured::read(text, &hints).unwrap().delays.unwrap().at(Time::ZERO)
    };
    assert_eq!((of(false), of(true)), (Span::micros(31_500), Span::micros(15_750)));
    let mbit = Hints { unit: Some("mbit".to_owned()), ..Hints::default() };
    let found = Measured::read(text, &mbit).unwrap();
    assert_eq!(rates(&found), [(0, 31_500), (500, 33_000), (1000, 20_500)]);
    assert_eq!(found.end, Span::millis(1500));
    let found = table(
        "time_ms;throughput_Mbps\n1700000000000;31,5\n1700000000200;33,0\n1700000000400;1,25\n",
    );
    assert_eq!(rates(&found), [(0, 31_500), (200, 33_000), (400, 1250)]);
    let found = table(
        "\u{feff}# a comment\n\"date\",\"note, long\",\"rate (kbit/s)\"\n\"2024-03-04T10:00:00.250Z\",\"a, b\",5\n\"2024-03-04T10:00:01.250Z\",c,7\n",
    );
    assert_eq!(rates(&found), [(0, 5), (1000, 7)]);
}

#[test]
fn cells_with_units_ramps_and_a_period_are_read() {
    let found = table("time (s),rate (kbit)\n100.5,0\n# none\n101,2500\n102,again\n");
    assert_eq!((rates(&found), found.end), (vec![(0, 0), (500, 2500)], Span::millis(1500)));
    let found = table("0s,1mbit\n2s,to 3mbit\n");
    let rate = found.rate.unwrap();
    assert_eq!(rate.at(Time(1_000_000_000)), Rate::from_bps(2_000_000));
    assert_eq!(rate.period(), None);
}

#[test]
fn bytes_of_each_row_become_rates() {
    for text in [
        "time_s,rx_bytes\n0.0,25000\n0.1,25000\n0.2,25000\n",
        "time_s,transfer_MBytes\n0,0.25\n1,0.25\n",
        "time_s,rx_bytes,throughput_mbps\n0.0,1,2\n0.1,2,2\n",
    ] {
        assert_eq!(rates(&table(text))[0].1, 2000, "{text}");
    }
    let counter: String = (0..10).map(|i| format!("{i},{}\n", 1_000_000 + i * 250_000)).collect();
    let found = table(&format!("time_s,rx_bytes\n{counter}"));
    assert!(rates(&found).iter().all(|(_, kbit)| *kbit == 2000), "{found:?}");
    assert!(found.understood.join(" ").contains("a counter"), "{found:?}");
    for text in [
        "time_s,total_bytes\n0,1000\n1,251000\n2,501000\n",
        "time_s,bytes\n0,1000\n1,251000\n2,501000\n3,751000\n4,1001000\n",
    ] {
        assert!(rates(&table(text)).iter().all(|(_, kbit)| *kbit == 2000), "{text}");
    }
}

#[test]
fn reports_of_iperf_2_are_read() {
    let row = |id: i32, from: u32, to: u32, bits: u64| {
        let bytes = bits / 8 * u64::from(to - from);
        format!("20240527112328,10.0.0.2,5001,10.0.0.1,5001,{id},{from}.0-{to}.0,{bytes},{bits}\n")
    };
    let one = row(3, 0, 1, 8_000_000) + &row(3, 1, 2, 4_000_000) + &row(3, 0, 2, 6_000_000);
    assert_eq!(rates(&table(&one)), [(0, 8000), (1000, 4000)]);
    let two = [(3, 2), (4, 3), (-1, 5)].map(|(id, mbit)| row(id, 0, 1, mbit * 1_000_000));
    let more = [(3, 1), (4, 1), (-1, 2)].map(|(id, mbit)| row(id, 1, 2, mbit * 1_000_000));
    let all = two.concat() + &more.concat();
    assert_eq!(rates(&table(&all)), [(0, 5000), (1000, 2000)]);
    // Dates of 14 digits are no milliseconds.
    let found = table("time,kbps\n20240527235959,5\n20240528000001,7\n");
    assert_eq!(rates(&found), [(0, 5), (2000, 7)]);
}

#[test]
fn round_trip_times_count_half() {
    let found =
        table("time,rtt_ms,operator\n2024-05-27T10:54:55.8,45,a\n2024-05-27T10:54:56.3,61,a\n");
    assert_eq!(delays(&found), [(0, 22.5), (500, 30.5)]);
    assert!(found.rate.is_none());
    let text = "PING 1.1.1.1 (1.1.1.1) 56(84) bytes of data.\n\
                [1716810000.0] 64 bytes from 1.1.1.1: icmp_seq=1 ttl=57 time=27.3 ms\n\
                [1716810000.2] 64 bytes from 1.1.1.1: icmp_seq=2 ttl=57 time=41 ms\n";
    assert_eq!(delays(&table(text)), [(0, 13.65), (200, 20.5)]);
    let plain = "64 bytes from h: icmp_seq=1 ttl=57 time=20 ms\n64 bytes from h: icmp_seq=3 ttl=57 time=30 ms\n";
    assert_eq!(delays(&table(plain)), [(0, 10.0), (2000, 15.0)]);
}

/// Answers of ping on several systems and in several languages, and of fping.
#[test]
fn answers_of_ping_are_read_in_all_languages() {
    for text in [
        "Reply from 1.1.1.1: bytes=32 time=23ms TTL=57\nReply from 1.1.1.1: bytes=32 time<1ms TTL=57\n",
        "64 bytes from 1.1.1.1: seq=0 ttl=57 time=23 ms\n64 bytes from 1.1.1.1: seq=1 ttl=57 time=1 ms\n",
        "64 octets de h : icmp_seq=1 ttl=57 temps=23,0 ms\n64 octets de h : icmp_seq=2 ttl=57 temps=1 ms\n\
         rtt min/avg/max/mdev = 1,0/12,0/23,0/11,0 ms\n",
        "1.1.1.1 : [0], 64 bytes, 23.0 ms (23 avg, 0% loss)\n1.1.1.1 : [1], 64 bytes, 1.0 ms (12 avg, 0% loss)\n",
    ] {
        assert_eq!(delays(&table(text)), [(0, 11.5), (1000, 0.5)], "{text}");
    }
}

#[test]
fn a_delay_has_the_direction_and_the_unit_that_are_given() {
    let text = "seqno,rtt_ns,send_delay_ns,receive_delay_ns,timestamp\n\
                0,31234567,15000000,16000000,1716810000000000000\n\
                1,32234567,15500000,17000000,1716810000200000000\n";
    assert_eq!(delays(&table(text)), [(0, 16.0), (200, 17.0)]);
    let up = Hints { down: Some(false), ..Hints::default() };
    assert_eq!(delays(&Measured::read(text, &up).unwrap()), [(0, 15.0), (200, 15.5)]);
    let seconds = Hints { unit: Some("s".to_owned()), ..Hints::default() };
    let text = "time,rtt\n2024-05-27T10:54:55Z,0.03\n2024-05-27T10:54:56Z,0.04\n";
    assert_eq!(delays(&Measured::read(text, &seconds).unwrap()), [(0, 15.0), (1000, 20.0)]);
}

/// A table of speed tests without times.
#[test]
fn a_table_whose_first_column_has_no_times_needs_a_step() {
    let text = "\"server name\",\"idle latency\",\"download\",\"upload\",\"download bytes\"\n\
                \"x, y\",\"12\",\"1000000\",\"125000\",\"104000000\"\n\"x\",\"14\",\"2000000\",\"125000\",\"9\"\n";
    refused(text, &Hints::default(), Some(2), &["no times", "--step"]);
    let found = Measured::read(text, &Hints { step: Some(Span::secs(60)), ..Hints::default() });
    let found = found.unwrap();
    assert_eq!(rates(&found), [(0, 8000), (60_000, 16_000)]);
    assert_eq!(delays(&found), [(0, 6.0), (60_000, 7.0)]);
}

#[test]
fn one_value_per_line_needs_a_step() {
    let step = Some(Span::millis(10));
    let course: Course<Span> = course("12\n14\n7\n", Role::Delay, step).unwrap();
    let at = |ms: u64| course.at(Time(ms * 1_000_000)).0 / 1_000_000;
    assert_eq!([at(0), at(10), at(29), at(30), at(45)], [12, 14, 7, 12, 14]);
    let error = super::course::<Span>("12\n14\n", Role::Delay, None).unwrap_err();
    assert!(error.help.contains("delays-step"), "{error:?}");
    let hints = Hints { step, unit: Some("kbit".to_owned()), ..Hints::default() };
    assert_eq!(rates(&Measured::read("100\n200\n", &hints).unwrap()), [(0, 100), (10, 200)]);
}

#[test]
fn delays_without_a_unit_have_that_of_their_size() {
    let delay =
        |text: &str| course::<Span>(text, Role::Delay, None).map(|c| c.at(Time(200_000_000)));
    assert_eq!(delay("0,40000000\n100000000,80000000\n").unwrap(), Span::millis(80));
    assert_eq!(delay("0,40\n0.1,80\n").unwrap(), Span::millis(80));
    assert!(delay("0,0.04\n0.1,0.08\n").unwrap_err().message.contains("not known"));
}

#[test]
fn trains_of_cellreplay_have_delays() {
    let text = "0 30 0 1 1 2 4\n500 32 0 0 1 3\n1000 31 0 1 2\n";
    let course: Course<Span> = course(text, Role::Delay, None).unwrap();
    let at = |ms: u64| course.at(Time(ms * 1_000_000)).0 / 1_000_000;
    assert_eq!([at(0), at(250), at(500), at(1000)], [30, 31, 32, 30]);
}

#[test]
fn several_columns_are_one_measurement_and_come_back() {
    let text = "time (s),rate (mbit),rate-back (mbit),delay (ms),loss (%)\n0,10,2,20,0\n1,12,,25,1\n3,again,,,\n";
    let found = table(text);
    assert_eq!(rates(&found), [(0, 10_000), (1000, 12_000)]);
    assert_eq!(found.back.as_ref().unwrap().at(Time(2_000_000_000)), Rate::from_bps(2_000_000));
    assert_eq!(delays(&found), [(0, 20.0), (1000, 25.0)]);
    assert_eq!(found.losses.as_ref().unwrap().at(Time(1_000_000_000)).get(), 0.01);
    let again = table(&found.csv());
    assert_eq!(
        Measured { understood: Vec::new(), ..again },
        Measured { understood: Vec::new(), ..found }
    );
}

#[test]
fn gaps_are_named_with_their_line() {
    let mut text = "t,rate_kbps\n".to_owned();
    for i in 0..20 {
        text += &format!("{},{}\n", if i < 10 { i } else { i + 30 }, 100);
    }
    let all = table(&text).understood.join("\n");
    assert!(all.contains("gaps: 1, the longest of 31.000 s behind line 11"), "{all}");
}

#[test]
fn wrong_tables_are_refused_with_line_and_remedy() {
    let plain = Hints::default();
    refused("t,rate_kbps\n0,5\n1,x\n", &plain, Some(3), &["`x` in `rate_kbps`", "--column"]);
    refused("t,rate_kbps\n0,5\n1,-5\n2,6\n", &plain, Some(3), &["`-5`"]);
    refused("t,rate_kbps\n0,5\nsoon,6\n", &plain, Some(3), &["`soon` in `t`", "--time-column"]);
    refused("t,rate_kbps\n0,5\n1\n", &plain, Some(3), &["has 1 columns, not 2"]);
    refused("t,rate_kbps\n5,5\n4,5\n", &plain, Some(3), &["before", "sort"]);
    refused("t,rate\n0,5\n1,6\n", &plain, Some(2), &["`5` in `rate` has no unit", "--unit"]);
    refused("t,a,b\n0,5,6\n1,6,7\n", &plain, Some(1), &["no column", "--column", "t, a, b"]);
    refused("t,rate_kbps\n0,5\n0,6\n", &plain, None, &["same time"]);
    refused("t,rate_kbps\n", &plain, None, &["no numbers"]);
    refused("", &plain, None, &["no lines"]);
    refused("{\"uplink\":{}}", &plain, None, &["JSON", "trace convert"]);
    refused("0s,1mbit\n1s,2mbps\n", &plain, Some(2), &["2mbit"]);
    refused("0s,1mbit\n3s,1mbit\n2s,1mbit\n", &plain, Some(3), &["before"]);
    refused("t,loss\n0,5\n1,200\n", &plain, Some(3), &["no probability"]);
    let column = Hints { column: Some("snr".to_owned()), ..Hints::default() };
    refused("t,rate_kbps\n0,5\n1,6\n", &column, None, &["no column `snr`", "t, rate_kbps"]);
    let unit = Hints { unit: Some("fast".to_owned()), ..Hints::default() };
    refused("t,rate_kbps\n0,5\n1,6\n", &unit, None, &["`fast` is no unit"]);
}
