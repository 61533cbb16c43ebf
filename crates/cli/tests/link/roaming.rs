//! Ends that change their address, strangers with other keys, replays, and false ICMP messages.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lasthop_proto::wire::checksum::checksum;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn};
use nix::sys::socket::{sendto, socket};

use super::there_and_back;
use super::world::{LASTHOP, count, inside, link, on, sh, station, status, until, world};

#[test]
fn an_end_that_moves_is_followed() {
    inside("roaming::an_end_that_moves_is_followed", || {
        world();
        let _station = station();
        let b = link("b");
        let a = link("a");
        a.wait_for_line("up");
        b.wait_for_line("up");
        for address in ["10.9.0.11", "10.9.0.12"] {
            sh(&format!(
                "ip -n a address flush dev eth0; ip -n a address add {address}/24 dev eth0"
            ));
            assert!(b.wait_for_line("moved").contains(address));
            there_and_back("10.8.0.2", None, 50_000, 1);
        }
        until("b has it", || count(&status("b"), "session", "moved") == 2);
        // The called end may change its address too, while the caller uses the new one.
        sh("ip -n b address flush dev eth0; ip -n b address add 10.9.0.22/24 dev eth0");
        assert!(a.wait_for_line("moved").contains("10.9.0.22"));
        there_and_back("10.8.0.2", None, 50_000, 2);
        for host in ["a", "b"] {
            assert_eq!(count(&status(host), "session", "sessions"), 1);
        }
    });
}

/// A child process that ends with its test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_key_mismatch_is_logged_once_at_both_ends() {
    inside("roaming::a_key_mismatch_is_logged_once_at_both_ends", || {
        world();
        let _station = station();
        sh(&format!(
            "{LASTHOP} link --keygen /run/other; sed -i s:/run/key:/run/other: /run/a.toml"
        ));
        let says = [
            ("b", "has another key and was refused"),
            ("a", "reports that its key differs from ours"),
        ];
        let ends = says.map(|(host, _)| {
            let file = File::create(format!("/run/{host}.log")).unwrap();
            let mut command = Command::new("ip");
            command.args(["netns", "exec", host, LASTHOP, "link", &format!("/run/{host}.toml")]);
            command.args(["--socket", &format!("/run/{host}.sock")]).stdin(Stdio::null());
            command.stdout(file.try_clone().unwrap()).stderr(file);
            Ending(command.spawn().expect("it starts"))
        });
        let log = |host: &str| fs::read_to_string(format!("/run/{host}.log")).unwrap();
        for (host, words) in says {
            until(words, || {
                sh("sleep 0.05");
                log(host).contains(words)
            });
        }
        // Further calls are not logged.
        let calls = || count(&status("b"), "session", "bad-tag");
        let before = calls();
        until("more calls", || calls() > before + 1);
        for (host, words) in says {
            assert_eq!(log(host).matches(words).count(), 1, "{}", log(host));
        }
        drop(ends);
    });
}

#[test]
fn an_echo_is_not_a_peer() {
    inside("roaming::an_echo_is_not_a_peer", || {
        world();
        let _station = station();
        let over = Arc::new(AtomicBool::new(false));
        let ended = over.clone();
        let echo = on("b", move || {
            let socket = UdpSocket::bind("10.9.0.2:4747").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            let mut buffer = [0; 2000];
            while !ended.load(Ordering::Relaxed) {
                if let Ok((len, from)) = socket.recv_from(&mut buffer) {
                    socket.send_to(&buffer[..len], from).unwrap();
                }
            }
        });
        let _a = link("a");
        until("it comes back", || count(&status("a"), "session", "reflected") > 4);
        assert_eq!(count(&status("a"), "session", "sessions"), 0);
        over.store(true, Ordering::Relaxed);
        echo.join().unwrap();
    });
}

/// "Fragmentation needed": the path from `a` to `b` has this MTU.
fn too_big(mtu: u16) -> Vec<u8> {
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    let mut ip = vec![0x45, 0, 5, 220, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
    let sum = checksum(&ip).to_be_bytes();
    ip[10..12].copy_from_slice(&sum);
    message.extend(ip);
    message.extend([4748_u16, 4747, 1480, 0].map(u16::to_be_bytes).concat());
    let sum = checksum(&message).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    message
}

#[test]
fn a_false_icmp_message_does_not_change_the_mtu() {
    inside("roaming::a_false_icmp_message_does_not_change_the_mtu", || {
        world();
        let _station = station();
        sh("sed -i '1i listen = \"0.0.0.0:4748\"' /run/a.toml");
        let _b = link("b");
        let a = link("a");
        a.wait_for_line("up");
        until("the path is as wide as Ethernet", || status("a")["mtu"] == 1395);
        let forger = on("b", || {
            let raw =
                socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Icmp)
                    .expect("we are root");
            let to = SockaddrIn::new(10, 9, 0, 1, 0);
            sendto(raw.as_raw_fd(), &too_big(600), &to, MsgFlags::empty()).expect("it is sent");
        });
        forger.join().unwrap();
        until("the kernel believes it", || sh("ip -n a route get 10.9.0.2").contains("mtu 600"));
        // Twice the interval at which the kernel's value is read.
        let before = status("a")["uptime_ns"].as_u64().unwrap();
        until("time has passed", || {
            let now = status("a");
            assert_eq!(now["mtu"], 1395);
            now["uptime_ns"].as_u64().unwrap() > before + 3_000_000_000
        });
        there_and_back("10.8.0.2", None, 200_000, 1);
        let counters = status("a");
        assert_eq!(counters["mtu"], 1395);
        assert_eq!(count(&counters, "refused", "sent-in-pieces"), 0, "{counters}");
    });
}
