//! Wireshark reads the captures with the intended meaning.
//!
//! Needs tshark.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;

use crate::can_run::can_run;
use lasthop_observe::pcapng::{Interface, Writer};
use lasthop_proto::machine::Side;
use lasthop_proto::units::Time;
use lasthop_proto::wire::{
    Ackp, Addr, Body, Damage, Eln, Flags, Packet, PacketId, Segment, Seq, Timestamps,
};

#[test]
fn wireshark_agrees_about_every_field() {
    let version = Command::new("tshark").arg("--version").output();
    if !can_run(version.is_ok_and(|out| out.status.success()), "tshark") {
        return;
    }
    let mut syn = Segment::new(4000, 80, Seq(7), Seq(0), Flags::SYN);
    syn.window = 8192;
    syn.timestamps = Some(Timestamps { value: 11, echo: 12 });
    let options = syn.options_mut();
    (options.mss, options.window_scale, options.sack_permitted) = (Some(1460), Some(3), true);
    (options.ackp, options.eln) = (Some(Ackp::Permitted), Some(Eln::Permitted));
    let mut ack = Segment::new(4000, 80, Seq(8), Seq(99), Flags::ACK);
    ack.options_mut().sack.push(Seq(200), Seq(300));
    let v4 = [Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2)];
    let v6 = ["fd00::1", "fd00::2"].map(|ip| Addr::from(ip.parse::<IpAddr>().unwrap()));
    let body = Body::Pattern { stream: 3, offset: 5, len: 333 };
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.interface(&Interface { name: "line", ..Interface::default() }).unwrap();
    let radio = Interface { name: "radio", epoch: 100, ..Interface::default() };
    let radio = writer.interface(&radio).unwrap();
    let mut at = 0;
    for ends in [v4, v6] {
        for (segment, damage) in
            [(&syn, Damage::None), (&ack, Damage::None), (&ack, Damage::Tcp), (&ack, Damage::Ip)]
        {
            let mut packet = Packet::tcp(ends[0], ends[1], segment.clone(), body.clone());
            at += 1_500_000_001;
            (packet.id, packet.damage) = (PacketId(at), damage);
            let comment = if damage == Damage::None { "" } else { "damaged" };
            writer.packet(radio, Time(at), Side::Left, &packet, u32::MAX, comment).unwrap();
        }
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fields.pcapng");
    std::fs::write(&file, writer.into_inner()).unwrap();
    let mut command = Command::new("tshark");
    command.env("WIRESHARK_CONFIG_DIR", env!("CARGO_TARGET_TMPDIR")).arg("-r").arg(&file);
    command.args(["-n", "-T", "fields", "-E", "separator=,", "-E", "occurrence=f"]);
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    command.args(["-o", "tcp.relative_sequence_numbers:FALSE"]);
    for field in [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.packet_flags_direction",
        "ip.checksum.status",
        "tcp.checksum.status",
        "tcp.len",
        "tcp.options.mss_val",
        "tcp.options.wscale.shift",
        "tcp.options.timestamp.tsval",
        "tcp.options.sack_le",
        "frame.comment",
    ] {
        command.args(["-e", field]);
    }
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // Checksum status: 1 is good, 0 is bad; IPv6 has none.
    let expected = [
        "101.500000001,radio,0x00000001,1,1,333,1460,3,11,,",
        "103.000000002,radio,0x00000001,1,1,333,,,,200,",
        "104.500000003,radio,0x00000001,1,0,333,,,,200,damaged",
        "106.000000004,radio,0x00000001,0,1,333,,,,200,damaged",
        "107.500000005,radio,0x00000001,,1,333,1460,3,11,,",
        "109.000000006,radio,0x00000001,,1,333,,,,200,",
        "110.500000007,radio,0x00000001,,0,333,,,,200,damaged",
        "112.000000008,radio,0x00000001,,0,333,,,,200,damaged",
    ];
    assert_eq!(lines, expected);
}
