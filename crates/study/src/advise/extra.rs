//! Remedies whose settings follow from the link: schemes added by the advice.

use super::kinds::LinkKind;
use super::link::Link;

/// Connections per transfer.
const SHARE: u32 = 4;
/// Data packets and check packets in a group of an erasure code.
const CODES: [(u32, u32); 2] = [(20, 2), (20, 5)];

impl Link {
    /// The lines of `[schemes]`. `radio` is the position of the radio in the path, from 1; `queue` is the key of the
    /// data queue.
    pub(super) fn schemes(&self, radio: usize, queue: &str) -> String {
        let customers = self.customers.max(1);
        let count = customers * SHARE;
        let mut text = format!(
            "\n# Schemes for this link, in addition to those of the program.\n[schemes]\n\
             connections-{SHARE} = {{ family = \"end-to-end\", change = [\"sender\"], what = \"{SHARE} connections \
             share the transfer\", set = {{ transfer.count = {count}, transfer.bytes = {} }} }}\n",
            self.bytes() / u64::from(count)
        );
        text += "pep-hybla = { family = \"split\", change = [\"base station\"], run = \"station\", what = \"split, \
                 with Hybla\", set = { agent = \"split\", split-tcp = \"hybla\" } }\n";
        if self.discipline == super::FIFO {
            text += &format!(
                "fq-codel = {{ family = \"return-path\", change = [\"base station\"], \
                 run = \"tc qdisc replace dev wlan0 root fq_codel\", what = \"a queue for each flow, kept short\", \
                 set = {{ {queue}.discipline = \"fq-codel\" }} }}\n\
                 dualpi2 = {{ family = \"return-path\", change = [\"base station\"], \
                 run = \"tc qdisc replace dev wlan0 root dualpi2\", what = \"coupled queues for L4S and other senders\", \
                 set = {{ {queue}.discipline = \"dualpi2\" }} }}\n\
                 prague = {{ family = \"end-to-end\", change = [\"sender\", \"receiver\", \"base station\"], \
                 what = \"Prague, a sender of L4S, and dualpi2\", set = {{ sender.tcp = \"prague\", \
                 receiver.accurate-ecn = \"ace\", {queue}.discipline = \"dualpi2\" }} }}\n"
            );
        }
        if self.discipline == super::FIFO && self.kind == Some(LinkKind::Wifi6) {
            text += &format!(
                "airtime = {{ family = \"return-path\", change = [\"base station\"], what = \"a queue for each station, \
                 served by airtime\", set = {{ {queue}.discipline = \"airtime\" }} }}\n"
            );
        }
        if self.damage {
            text += "mss-536 = { family = \"end-to-end\", change = [\"sender\"], what = \"short segments, of which \
                     fewer meet an error\", run = \"ip route change default via GATEWAY advmss 536\", \
                     set = { sender.mss = 536 } }\n";
        }
        if self.window.is_some() {
            text += "large-window = { family = \"end-to-end\", change = [\"receiver\"], what = \"a receive window \
                     of 4 MiB\", run = \"sysctl -w net.ipv4.tcp_rmem='4096 131072 8388608'\", \
                     set = { receiver.recv-buffer = \"4MiB\" } }\n";
        }
        text + &self.codes(radio)
    }

    /// Ideal erasure codes over groups of packets: a group repairs as many losses as it has check packets, which cost
    /// their share of the rate. Only for single losses: with bursts the result depends on the interleaving depth.
    fn codes(&self, radio: usize) -> String {
        let p = self.loss.get();
        if p <= 0.0 || self.burst >= 1.5 || self.damage || self.rate < self.rate_back {
            return String::new();
        }
        let code = |(data, check): (u32, u32)| {
            let overhead = check * 100 / data;
            let rate = self.rate.bps() * u64::from(data) / u64::from(data + check);
            let left = residual(p, data, check);
            format!(
                "fec-{overhead} = {{ family = \"link-layer\", change = [\"link\"], what = \"an ideal code over \
                 packets, {check} check packets for {data}; how long a group takes is not modelled\", \
                 set = {{ path.{radio}.radio.rate = \"{rate}bit\", path.{radio}.errors = {{ model = \"packet-loss\", p = {left:e}, \
                 on = [\"data\"] }} }} }}\n"
            )
        };
        CODES.into_iter().map(code).collect()
    }
}

/// The residual loss rate of a group of `data + check` packets: the packet is lost, and at least `check` of the others
/// as well.
fn residual(p: f64, data: u32, check: u32) -> f64 {
    let others = f64::from(data + check - 1);
    let (mut term, mut few) = (libm::pow(1.0 - p, others), 0.0);
    for k in 0..check {
        few += term;
        term *= (others - f64::from(k)) / f64::from(k + 1) * p / (1.0 - p);
    }
    p * (1.0 - few).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_loses_packets_only_beyond_its_check_count() {
        // One check packet for one: both must be lost.
        assert!((residual(0.1, 1, 1) - 0.01).abs() < 1e-12);
        // Two others, of which at least one is lost: 1 - 0.9 * 0.9.
        assert!((residual(0.1, 2, 1) - 0.1 * 0.19).abs() < 1e-12);
        assert!(residual(0.01, 20, 2) < 0.01 / 40.0);
    }
}
