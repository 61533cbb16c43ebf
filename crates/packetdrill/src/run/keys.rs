//! Settings below `net.ipv4` as configuration of lasthop's TCP.

use lasthop_proto::tcp::accurate::AccurateEcn;
use lasthop_proto::tcp::config::{IdleRestart, RtoRule};
use lasthop_proto::tcp::words::Keyword;
use lasthop_proto::tcp::{TcpConfig, words};
use lasthop_proto::units::Span;

/// The configuration of the host under test.
#[derive(Clone, Debug)]
pub struct Keys {
    /// TCP of connections without separate options.
    pub tcp: TcpConfig,
    /// The congestion control.
    pub word: &'static Keyword,
    /// `tcp_ecn`: 0 off, 1 offered and accepted, 2 accepted, 3 accurate ECN.
    pub ecn: u8,
    /// `tcp_ecn_option`: whether accurate ECN uses options.
    pub ecn_option: bool,
    /// `tcp_syn_retries`.
    pub syn_retries: u32,
    /// `tcp_fastopen`.
    pub fast_open: u32,
    /// `tcp_early_retrans`: 3 and 4 are tail loss probes.
    pub tail_probes: bool,
    /// `tcp_notsent_lowat`.
    pub notsent_lowat: u32,
    /// `tcp_fastopen_key`.
    pub cookie_key: [u64; 2],
    /// `tcp_keepalive_time`, `tcp_keepalive_intvl` in seconds, `tcp_keepalive_probes`.
    pub keepalive: [u32; 3],
}

impl Default for Keys {
    /// The usual initial settings of scripts.
    fn default() -> Keys {
        let tcp = TcpConfig {
            mss: 1460,
            recv_buffer: 15_728_640,
            recv_memory: Some([540_000, 15_728_640]),
            send_buffer: 4_194_304,
            dsack: true,
            slow_start_after_idle: IdleRestart::Off,
            ..TcpConfig::linux()
        };
        let word = words::of_linux("cubic").expect("the default of Linux");
        let cookie_key = [0xb2b2_b2b2_a1a1_a1a1, 0xd4d4_d4d4_c3c3_c3c3];
        let keepalive = [7200, 75, 9];
        let (ecn, syn_retries, fast_open, tail_probes) = (0, 5, 0x403, true);
        Keys {
            tcp,
            word,
            ecn,
            ecn_option: true,
            syn_retries,
            fast_open,
            tail_probes,
            notsent_lowat: u32::MAX,
            cookie_key,
            keepalive,
        }
    }
}

/// A number in decimal or hexadecimal digits.
fn number(value: &str) -> Option<u64> {
    match value.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => value.parse().ok(),
    }
}

/// A key of Fast Open cookies, as the two numbers of a SipHash key: four groups of hexadecimal digits.
pub fn cookie_key(value: &str) -> Option<[u64; 2]> {
    let groups: Vec<u64> = value
        .split('-')
        .map(|group| u32::from_str_radix(group, 16).ok().map(u64::from))
        .collect::<Option<_>>()?;
    match groups[..] {
        [a, b, c, d] => Some([a | b << 32, c | d << 32]),
        _ => None,
    }
}

impl Keys {
    /// The TCP of the host.
    pub fn config(&self) -> TcpConfig {
        let mut tcp = self.tcp.clone();
        let (timestamps, sack, scale) = (tcp.timestamps, tcp.sack, tcp.window_scale);
        let (dsack, recv, send) = (tcp.dsack, tcp.recv_buffer, tcp.send_buffer);
        (self.word.apply)(&mut tcp);
        (tcp.timestamps, tcp.sack, tcp.window_scale) = (timestamps, sack, scale);
        (tcp.recv_buffer, tcp.send_buffer) = (recv, send);
        tcp.dsack = dsack;
        tcp.rto_rule = RtoRule::Linux;
        tcp.ecn = self.ecn != 0;
        tcp.accurate_ecn = match (self.ecn == 3, self.ecn_option) {
            (true, true) => AccurateEcn::Option,
            (true, false) => AccurateEcn::Ace,
            _ => AccurateEcn::Off,
        };
        // Each socket decides whether it opens with data.
        tcp.fast_open = true;
        tcp
    }

    /// Applies a setting. False if it has no effect on this TCP.
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        let Some(on) = self.flag(name, value) else { return self.other(name, value) };
        on
    }

    /// A setting that is one number.
    fn flag(&mut self, name: &str, value: &str) -> Option<bool> {
        let n = number(value)?;
        let small = u32::try_from(n).unwrap_or(u32::MAX);
        let tcp = &mut self.tcp;
        match name {
            "tcp_timestamps" => tcp.timestamps = n > 0,
            "tcp_sack" => tcp.sack = n > 0,
            "tcp_dsack" => tcp.dsack = n > 0,
            "tcp_window_scaling" => tcp.window_scale = n > 0,
            // Accurate ECN is offered and accepted with 3 (Linux 7.0).
            "tcp_ecn" if n <= 3 => self.ecn = n as u8,
            "tcp_ecn_option" if n <= 2 => self.ecn_option = n > 0,
            "tcp_syn_retries" => self.syn_retries = small.min(127),
            "tcp_synack_retries" => tcp.syn_ack_retries = Some(small.min(255)),
            "tcp_syn_linear_timeouts" => tcp.syn_linear = small.min(255),
            "tcp_retries2" => tcp.max_retries = small.min(255),
            "tcp_reordering" => tcp.dupthresh = small.clamp(1, 300),
            "tcp_fastopen" => self.fast_open = small,
            "tcp_rto_min_us" => tcp.rto_min = Span::micros(n.min(120_000_000)),
            "tcp_rto_max_ms" => tcp.rto_max = Span::millis(n.clamp(1000, 120_000)),
            "tcp_keepalive_time" => self.keepalive[0] = small,
            "tcp_keepalive_intvl" => self.keepalive[1] = small,
            "tcp_keepalive_probes" => self.keepalive[2] = small,
            "tcp_slow_start_after_idle" => {
                tcp.slow_start_after_idle =
                    if n > 0 { IdleRestart::Decay } else { IdleRestart::Off };
            }
            // Fixed behaviour of this TCP.
            "tcp_recovery" => return Some(n == 1),
            "tcp_early_retrans" if n == 0 || n == 3 || n == 4 => self.tail_probes = n != 0,
            "tcp_frto" => return Some(n > 0),
            "tcp_fack" => return Some(n == 0),
            "tcp_syncookies" | "tcp_no_metrics_save" => return Some(true),
            "tcp_tso_win_divisor" => return Some(n == 3),
            "tcp_min_tso_segs" => return Some(n == 2),
            "tcp_pacing_ss_ratio" => return Some(n == 200),
            "tcp_pacing_ca_ratio" => return Some(n == 120),
            "tcp_notsent_lowat" => self.notsent_lowat = small,
            "tcp_mtu_probing" => return Some(n == 0),
            _ => return Some(false),
        }
        Some(true)
    }

    fn other(&mut self, name: &str, value: &str) -> bool {
        let numbers: Vec<u64> = value.split_whitespace().filter_map(number).collect();
        match name {
            "tcp_congestion_control" => match words::of_linux(value) {
                Some(word) => self.word = word,
                None => return false,
            },
            "tcp_rmem" | "tcp_wmem" => {
                let [_, first, most] = numbers[..] else { return false };
                let bytes = most.clamp(4096, 1 << 30) as u32;
                match name {
                    "tcp_rmem" => {
                        self.tcp.recv_buffer = bytes;
                        let first = first.clamp(2304, bytes.into()) as u32;
                        self.tcp.recv_memory = Some([first, bytes]);
                    }
                    // Not modelled: in Linux the buffer starts with the first size.
                    _ => {
                        self.tcp.send_buffer = bytes;
                        return first >= most.min(262_144);
                    }
                }
            }
            "tcp_fastopen_key" => match cookie_key(value) {
                Some(key) => self.cookie_key = key,
                None => return false,
            },
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_change_the_configuration() {
        let mut keys = Keys::default();
        for (name, value) in [
            ("tcp_timestamps", "0"),
            ("tcp_ecn", "1"),
            ("tcp_rmem", "4096 540000 1000000"),
            ("tcp_fastopen", "0x70403"),
            ("tcp_congestion_control", "reno"),
        ] {
            assert!(keys.set(name, value), "{name}");
        }
        let config = keys.config();
        assert_eq!((config.timestamps, config.ecn, config.recv_buffer), (false, true, 1_000_000));
        assert_eq!(keys.word.key, "rack");
    }

    #[test]
    fn a_key_of_cookies_has_four_groups() {
        let key = cookie_key("a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4");
        assert_eq!(key, Some(Keys::default().cookie_key));
        for wrong in ["", "1-2-3", "1-2-3-4-5", "1-2-3-x", "100000000-2-3-4"] {
            assert_eq!(cookie_key(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_setting_without_effect_is_reported() {
        let mut keys = Keys::default();
        for (name, value) in [
            ("tcp_mtu_probing", "2"),
            ("ip_forward", "1"),
            ("tcp_congestion_control", "dctcp"),
            ("tcp_wmem", "4096 50000 4194304"),
        ] {
            assert!(!keys.set(name, value), "{name}");
        }
        assert!(crate::script::shell::DEFAULTS.iter().all(|(name, value)| keys.set(name, value)));
    }
}
