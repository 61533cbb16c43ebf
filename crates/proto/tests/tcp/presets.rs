//! Every field of every preset: all fields of the first one, and the differences of the others.

use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::config::PRESETS;

use crate::record::lines;

const FIELDS: &str = "
    [freebsd-2.1]
    variant: Reno
    clock: Ticks { slow: 500ms, fast: 200ms }
    rto_rule: Rfc6298
    rtt_rounding: Up
    rtt_arithmetic: Exact
    stale_rtt: ToVariation
    stamps: false
    timer_order: Last
    fast_backoff: false
    handshake: true
    rtt_from_syn: true
    rto_min: 1s
    rto_max: 64s
    rto_initial: 6s
    backoff_max: 64
    max_retries: 12
    giving_up: Count
    syn_retries: None
    syn_ack_retries: None
    opening_limit: Some(75s)
    syn_linear: 0
    mss: 1460
    send_buffer: 16384
    recv_buffer: 16384
    recv_memory: None
    quick_acks: false
    initial_window: 1
    loss_window: 1
    initial_ssthresh: 4294967295
    halving: Window
    halves: Whole
    whole_segments: false
    ssthresh_min: 2
    slow_start: Up
    once_per_window: false
    congestion: Reno
    custom: None
    growth: Rfc5681
    byte_counting: 0
    window_validation: false
    slow_start_after_idle: OneSegment
    vegas: VegasRule { alpha: 1, beta: 3, gamma: 1 }
    pacing: false
    burst: 1
    dupthresh: 3
    delayed_ack: DelayedAck { every: 2, timeout: 200ms }
    maxseg: None
    deflation: Always
    exit_growth: false
    ecn: false
    accurate_ecn: Off
    acc: None
    timestamps: false
    window_scale: false
    prediction: Off
    sack: false
    smart: false
    smart_repeat: false
    snack: false
    loss_cause: Congestion
    dsack: false
    ackp: Off
    ackp_karn: false
    eln: Off
    nack: false
    eln_reaction: Named
    ebsn: false
    quench: false
    fast_rtx_handoff: false
    limited_transmit: false
    integrated: false
    t_tcp: false
    fast_open: false
    time_wait: 60s
    [ns]
    opening_limit: None
    clock: Fine { granularity: 100ms }
    rtt_rounding: Beats
    rtt_arithmetic: Integer
    rto_min: 200ms
    rto_max: 60s
    rto_initial: 3s
    mss: 1000
    send_buffer: 20000
    recv_buffer: 20000
    halves: Exact
    whole_segments: true
    slow_start: Below
    once_per_window: true
    slow_start_after_idle: Off
    delayed_ack: DelayedAck { every: 1, timeout: 0s }
    deflation: Ns
    exit_growth: true
    [ns-1996]
    opening_limit: None
    stale_rtt: Dropped
    rto_max: 2000s
    variant: Tahoe
    clock: Fine { granularity: 100ms }
    rtt_rounding: Nearest
    rtt_arithmetic: Integer
    stamps: true
    timer_order: First
    fast_backoff: true
    handshake: false
    rtt_from_syn: false
    rto_min: 200ms
    rto_initial: 3s
    max_retries: 255
    mss: 536
    send_buffer: 4096
    recv_buffer: 4096
    initial_ssthresh: 4096
    whole_segments: true
    ssthresh_min: 0
    slow_start: Below
    slow_start_after_idle: Off
    delayed_ack: DelayedAck { every: 1, timeout: 0s }
    [real]
    opening_limit: None
    clock: Fine { granularity: 500ms }
    rto_rule: Jacobson
    rto_min: 500ms
    rto_initial: 3s
    mss: 1400
    send_buffer: 65535
    recv_buffer: 65535
    slow_start_after_idle: Off
    delayed_ack: DelayedAck { every: 1, timeout: 0s }
    [bakshi96]
    opening_limit: None
    variant: Tahoe
    clock: Fine { granularity: 100ms }
    rtt_rounding: Nearest
    rtt_from_syn: false
    rto_min: 200ms
    max_retries: 255
    mss: 536
    send_buffer: 4096
    recv_buffer: 4096
    initial_ssthresh: 4096
    slow_start_after_idle: Off
    delayed_ack: DelayedAck { every: 1, timeout: 0s }
    [rfc]
    opening_limit: None
    clock: Fine { granularity: 1ms }
    rto_max: 60s
    rto_initial: 1s
    backoff_max: 0
    send_buffer: 65535
    recv_buffer: 65535
    initial_window: 3
    halving: Flight
    window_validation: true
    slow_start_after_idle: InitialWindow
    [linux]
    opening_limit: None
    variant: Sack
    clock: Fine { granularity: 1ms }
    rto_rule: Linux
    rto_min: 200ms
    rto_max: 120s
    rto_initial: 1s
    backoff_max: 0
    max_retries: 15
    giving_up: Time
    syn_retries: Some(10)
    syn_ack_retries: Some(5)
    syn_linear: 4
    send_buffer: 4194304
    recv_buffer: 6291456
    quick_acks: true
    initial_window: 10
    halving: Flight
    growth: Linux
    window_validation: true
    slow_start_after_idle: Decay
    delayed_ack: DelayedAck { every: 2, timeout: 40ms }
    timestamps: true
    window_scale: true
    sack: true
    dsack: true
    limited_transmit: true
    [linux-2.2]
    opening_limit: None
    variant: Sack
    clock: Fine { granularity: 10ms }
    rto_min: 200ms
    rto_max: 120s
    rto_initial: 3s
    backoff_max: 0
    max_retries: 15
    send_buffer: 65535
    recv_buffer: 32767
    initial_window: 2
    halving: Flight
    slow_start_after_idle: Off
    timestamps: true
    window_scale: true
    prediction: AfterPaws
    sack: true
";

/// The printed fields of a preset.
fn fields(name: &str) -> Vec<String> {
    let config = TcpConfig::preset(name).unwrap_or_else(|| panic!("{name}"));
    let text = format!("{config:?}");
    let inner = text.strip_prefix("TcpConfig { ").and_then(|text| text.strip_suffix(" }"));
    let (mut fields, mut depth) = (vec![String::new()], 0);
    for c in inner.expect("a structure").chars() {
        depth += i32::from("{([".contains(c)) - i32::from("})]".contains(c));
        match c {
            ',' if depth == 0 => fields.push(String::new()),
            _ => fields.last_mut().expect("one").push(c),
        }
    }
    fields.into_iter().map(|field| field.trim().to_owned()).collect()
}

#[test]
fn each_preset_matches_the_recorded_fields() {
    let first = fields(PRESETS[0].0);
    let mut is = Vec::new();
    for (name, _) in PRESETS {
        is.push(format!("[{name}]"));
        let differs = |field: &String| name == PRESETS[0].0 || !first.contains(field);
        is.extend(
            fields(name).into_iter().filter(differs).map(|field| format!("[{name}] {field}")),
        );
    }
    let mut section = "";
    let mut want = Vec::new();
    for line in lines(FIELDS) {
        if line.starts_with('[') {
            section = line;
            want.push(line.to_owned());
        } else {
            want.push(format!("{section} {line}"));
        }
    }
    for line in &is {
        assert!(want.contains(line), "{line}: not so in the table");
    }
    for line in &want {
        assert!(is.contains(line), "{line}: in the table, and not so");
    }
}
