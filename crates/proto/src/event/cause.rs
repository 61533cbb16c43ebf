//! Causes of the origination, marking and dropping of packets.

use serde::Serialize;

/// Generates [`Cause`] from the list of causes with their names, which serde uses too. The docstring of each
/// is part of the user documentation.
macro_rules! causes {
    ($($(#[doc = $doc:literal])* $Cause:ident = $name:literal,)*) => {
        /// Cause of the origination, marking or dropping of a packet. Every cause is visible to users.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Cause {
            $($(#[doc = $doc])* $Cause,)*
        }

        impl Cause {
            /// Every cause, in a fixed order.
            pub const ALL: [Cause; [$($name),*].len()] = [$(Cause::$Cause),*];

            /// The name used in traces, captures and tables.
            pub fn name(self) -> &'static str {
                match self {
                    $(Cause::$Cause => $name,)*
                }
            }

            /// Its meaning, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Cause::$Cause => concat!($($doc),*).trim_ascii_start(),)*
                }
            }
        }
    };
}

causes! {
    // ---- why a packet exists
    /// A host sends bytes for the first time.
    Data = "data",
    /// A host acknowledges data or updates its window.
    Ack = "ack",
    /// A host sends a SYN, FIN or RST without data.
    Control = "control",
    /// A source sends a datagram.
    Datagram = "datagram",
    /// A host retransmits because of duplicate ACKs, partial ACKs or SACK blocks.
    FastRetransmit = "fast-retransmit",
    /// A host retransmits because its timer expired.
    TimeoutRetransmit = "timeout-retransmit",
    /// A host retransmits because it was notified of a wireless loss (ELN).
    ElnRetransmit = "eln-retransmit",
    /// A host repeats its last segment because no ACK arrived for two round trips (RFC 8985).
    TailLossProbe = "tail-loss-probe",
    /// A host probes a closed window.
    WindowProbe = "window-probe",
    /// The base station retransmits because of duplicate ACKs.
    LocalDupAck = "local-dup-ack",
    /// The base station retransmits because its local timer expired.
    LocalTimeout = "local-timeout",
    /// The base station retransmits because its persist timer expired.
    LocalPersist = "local-persist",
    /// The base station retransmits because a new ACK shows that the packet after a repaired one is missing too.
    LocalBurstCheck = "local-burst-check",
    /// The base station sends a partial acknowledgement in the receiver's name.
    PartialAck = "partial-ack",
    /// An agent recreates an ACK that was removed before a slow return link.
    ReconstructedAck = "reconstructed-ack",
    /// The base station or the receiver notifies the sender of a wireless loss.
    LossNotification = "loss-notification",
    /// The base station notifies the source of a bad state of the wireless link (EBSN).
    BadStateNotification = "bad-state-notification",
    /// The base station requests a lower rate from the source because the wireless link is in a bad state.
    SourceQuench = "source-quench",
    /// The base station splits the connection and forwards data of one end on its own connection to the other.
    SplitData = "split-data",
    /// The base station splits the connection and acknowledges data or updates its window.
    SplitAck = "split-ack",
    /// The base station splits the connection and sends a SYN, FIN or RST without data.
    SplitControl = "split-control",
    /// The base station splits the connection and probes a closed window.
    SplitProbe = "split-probe",
    /// A link layer retransmits because its peer reported the packet as missing.
    LinkNack = "link-nack",
    /// A link layer retransmits because no acknowledgement arrived in time.
    LinkTimeout = "link-timeout",
    /// A link layer retransmits its oldest packet because its window is full.
    LinkWindowFull = "link-window-full",
    /// Medium access repeats a block with the packet, because it failed (HARQ).
    BlockRepeated = "block-repeated",
    /// Medium access repeats the frame in its next aggregate, because the block acknowledgement does not have it.
    FrameRepeated = "frame-repeated",
    /// The packet has arrived, and waits for an earlier one.
    ReorderWait = "reorder-wait",
    /// A copy of the packet arrives after the link layer has discarded the original.
    LateCopy = "late-copy",
    /// A line duplicates a packet: this is the second copy.
    LineDuplicate = "line-duplicate",
    /// A router with `fates` forges the packet, like an attacker who observes the connection.
    Forged = "forged",
    /// A line reorders packets: this one overtakes earlier ones.
    Reordered = "reordered",
    /// The wired side sends a copy to a cell that the host may enter.
    HandoffCopy = "handoff-copy",
    /// A base station buffers the packet for a host that is not in its cell.
    HandoffKept = "handoff-kept",
    /// A base station forwards the packet to a host that has left its cell.
    HandoffForwarded = "handoff-forwarded",
    /// The new base station repeats a packet that the old one sent over the radio that the host has left.
    HandoffRepeated = "handoff-repeated",
    // ---- why a packet ended
    /// The queue is full.
    QueueFull = "queue-full",
    /// Active queue management selects the packet and cannot mark it.
    EarlyDrop = "early-drop",
    /// A policer has no tokens left for the packet, or the packet is larger than the token bucket.
    Policed = "policed",
    /// The IP header checksum is wrong.
    IpChecksum = "ip-checksum",
    /// The TCP checksum is wrong.
    TcpChecksum = "tcp-checksum",
    /// The base station hides a duplicate ACK from the sender because it reports a wireless loss.
    SuppressedDupAck = "suppressed-dup-ack",
    /// The base station drops an ACK that is older than one it has received.
    SpuriousAck = "spurious-ack",
    /// A queue removes an ACK because a newer one of its connection acknowledges more.
    SupersededAck = "superseded-ack",
    /// The base station splits the connection and consumes the packet; its data continues in packets with the
    /// cause `split-data`.
    SplitTaken = "split-taken",
    /// No connection or host has this address.
    NoSuchConnection = "no-such-connection",
    /// A base station's notification quotes a segment that is not in flight: it is late or forged.
    StaleNotice = "stale-notice",
    /// A host receives a base station's notification of a kind that its configuration ignores.
    UnheededNotice = "unheeded-notice",
    /// The scenario requires this loss, which represents competing traffic.
    CrossTraffic = "cross-traffic",
    /// The frame is damaged, collides, or is lost by the line, and no link layer retransmits it.
    FrameLost = "frame-lost",
    /// The link layer discards the packet after its maximum number of transmissions.
    LinkGaveUp = "link-gave-up",
    /// Medium access discards the frame after its maximum number of unacknowledged attempts.
    RetryLimit = "retry-limit",
    /// The packet arrives after the receiver has given it up and released later ones.
    ReorderLost = "reorder-lost",
    /// A fragment is lost, so the packet cannot be reassembled.
    PieceLost = "piece-lost",
    /// The access point's buffer for a station whose radio sleeps is full.
    PowerSaveFull = "power-save-full",
    /// Its compressed header cannot be restored because an earlier frame was lost.
    Desynchronised = "desynchronised",
    /// The destination is not in the cell, or has left it.
    LeftCell = "left-cell",
    /// The mobile host that sends the packet is in no cell.
    NoCell = "no-cell",
    /// A base station's buffer for hosts outside its cell is full.
    HandoffFull = "handoff-full",
    /// A packet buffered for a hand-off is obsolete: the host has it or is elsewhere, or the next base station
    /// received its content with the agent's state.
    HandoffStale = "handoff-stale",
    /// The line is in an outage.
    Outage = "outage",
    /// A queue with several classes selects the packet by the classic probability and cannot mark it.
    ClassicDrop = "classic-drop",
    /// The queue is overloaded, so it drops packets instead of marking them.
    OverloadDrop = "overload-drop",
    // ---- why a packet was marked
    /// The packet waited longer in the low-latency queue than its threshold.
    StepMark = "step-mark",
    /// A low-latency packet is selected by the coupled probability, which grows with the delay of classic traffic.
    CoupledMark = "coupled-mark",
    /// A packet is selected by the probability of classic traffic.
    ClassicMark = "classic-mark",
    /// The low-latency queue is overloaded, so all its packets are marked.
    OverloadMark = "overload-mark",
}

impl Cause {
    /// Whether a host retransmits these bytes.
    pub fn is_host_retransmission(self) -> bool {
        use Cause::*;
        matches!(self, FastRetransmit | TimeoutRetransmit | ElnRetransmit | TailLossProbe)
    }

    /// The corresponding cause at a base station's end of a split connection.
    pub fn at_base_station(self) -> Cause {
        match self {
            Cause::Data => Cause::SplitData,
            Cause::Ack => Cause::SplitAck,
            Cause::Control => Cause::SplitControl,
            Cause::WindowProbe => Cause::SplitProbe,
            Cause::FastRetransmit | Cause::ElnRetransmit => Cause::LocalDupAck,
            Cause::TimeoutRetransmit | Cause::TailLossProbe => Cause::LocalTimeout,
            other => other,
        }
    }

    /// Whether a packet dropped for this cause is lost to the connection, so that its bytes must be sent
    /// again.
    pub fn is_loss(self) -> bool {
        !matches!(self, Cause::SplitTaken | Cause::HandoffStale)
    }

    /// Whether the base station retransmits these bytes.
    pub fn is_local_retransmission(self) -> bool {
        use Cause::*;
        matches!(
            self,
            LocalDupAck | LocalTimeout | LocalPersist | LocalBurstCheck | HandoffRepeated
        )
    }
}
