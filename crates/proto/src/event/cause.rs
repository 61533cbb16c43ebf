//! Causes of the origination, marking and dropping of packets.

use serde::Serialize;

/// Generates [`Cause`] from the list of causes with their names, which serde uses too. The docstring of each
/// is shown to users.
macro_rules! causes {
    ($($(#[doc = $what:literal])* $Cause:ident = $name:literal,)*) => {
        /// Cause of the origination, marking or dropping of a packet. Every cause is visible to users.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Cause {
            $($(#[doc = $what])* $Cause,)*
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
            pub fn what(self) -> &'static str {
                match self {
                    $(Cause::$Cause => concat!($($what),*).trim_ascii_start(),)*
                }
            }
        }
    };
}

causes! {
    // ---- why a packet exists
    /// A host sends bytes for the first time.
    Data = "data",
    /// A host acknowledges, or updates its window.
    Ack = "ack",
    /// SYN, FIN or RST without data.
    Control = "control",
    /// A source sends a datagram.
    Datagram = "datagram",
    /// A host retransmits because of duplicate ACKs, partial ACKs or SACK blocks.
    FastRetransmit = "fast-retransmit",
    /// A host retransmits because its timer expired.
    TimeoutRetransmit = "timeout-retransmit",
    /// A host retransmits because it was told of a wireless loss.
    ElnRetransmit = "eln-retransmit",
    /// A host sends its last segment again because no ACK came for two round trips (RFC 8985).
    TailLossProbe = "tail-loss-probe",
    /// A host probes a closed window.
    WindowProbe = "window-probe",
    /// The base station retransmits because of duplicate ACKs.
    LocalDupAck = "local-dup-ack",
    /// The base station retransmits because its local timer expired.
    LocalTimeout = "local-timeout",
    /// The base station retransmits because its persist timer expired.
    LocalPersist = "local-persist",
    /// The base station forged a partial acknowledgement.
    PartialAck = "partial-ack",
    /// An agent filled in an ACK that is missing behind a slow return link.
    ReconstructedAck = "reconstructed-ack",
    /// The base station or receiver tells the sender of a wireless loss.
    LossNotification = "loss-notification",
    /// The base station tells the source that the wireless link is in a bad state (EBSN).
    BadStateNotification = "bad-state-notification",
    /// The base station tells the source to slow down, because the wireless link is in a bad state.
    SourceQuench = "source-quench",
    /// The base station sends on, as an end point of its own, what it took in from the other end.
    SplitData = "split-data",
    /// The base station acknowledges, or updates a window, as an end point of its own.
    SplitAck = "split-ack",
    /// SYN, FIN or RST of the base station's own end.
    SplitControl = "split-control",
    /// The base station probes a closed window.
    SplitProbe = "split-probe",
    /// A link layer retransmits because its peer reported the packet missing.
    LinkNack = "link-nack",
    /// A link layer retransmits because no acknowledgement came in time.
    LinkTimeout = "link-timeout",
    /// A link layer retransmits its oldest packet because its window is used up.
    LinkWindowFull = "link-window-full",
    /// A link layer had given it up, and a copy that was still on its way has arrived all the same.
    LateCopy = "late-copy",
    /// A line carries a packet twice: this is the second one.
    LineDuplicate = "line-duplicate",
    /// A router with fates forges it, as a third party does that sees the connection.
    Forged = "forged",
    /// A line lets it overtake packets that were sent before it.
    Reordered = "reordered",
    /// The wired side sends a copy to a cell that the host may come to.
    HandoffCopy = "handoff-copy",
    /// A base station keeps it for a host that is not in its cell.
    HandoffKept = "handoff-kept",
    /// A base station sends it after a host that has left its cell.
    HandoffForwarded = "handoff-forwarded",
    /// A base station sends it again because it went out over the radio that the host has left.
    HandoffRepeated = "handoff-repeated",
    // ---- why a packet ended
    /// The queue was full.
    QueueFull = "queue-full",
    /// Random early detection chose it, and it could not be marked.
    EarlyDrop = "early-drop",
    /// A policer had no tokens for it, or it is longer than a token bucket is deep.
    Policed = "policed",
    /// The IP header checksum was wrong.
    IpChecksum = "ip-checksum",
    /// The TCP checksum was wrong.
    TcpChecksum = "tcp-checksum",
    /// The base station hid a duplicate ACK of a wireless loss from the sender.
    SuppressedDupAck = "suppressed-dup-ack",
    /// The base station dropped an ACK older than one it has seen.
    SpuriousAck = "spurious-ack",
    /// A queue removed an ACK because a newer one of its connection says the same and more.
    SupersededAck = "superseded-ack",
    /// The base station took it in as the end of a connection that it has split: its data goes on in packets
    /// of the base station's own.
    SplitTaken = "split-taken",
    /// No connection or host has this address.
    NoSuchConnection = "no-such-connection",
    /// A message of a base station quotes a segment of ours that is not in flight: a forgery, or too late.
    StaleNotice = "stale-notice",
    /// A message of a base station that this host is not set up to obey.
    UnheededNotice = "unheeded-notice",
    /// The scenario asked for this loss (competing traffic).
    CrossTraffic = "cross-traffic",
    /// The frame that carried it was damaged, collided, or was lost by its line, and no link layer retransmits.
    FrameLost = "frame-lost",
    /// The link layer gave it up after as many tries as it may make.
    LinkGaveUp = "link-gave-up",
    /// Medium access gave it up: no answer after as many tries as it may make.
    RetryLimit = "retry-limit",
    /// A piece of it was lost, so that it cannot be put together.
    PieceLost = "piece-lost",
    /// The access point has no room to keep it for a station whose radio sleeps.
    PowerSaveFull = "power-save-full",
    /// Its compressed header could not be restored, because of a frame that was lost before it.
    Desynchronised = "desynchronised",
    /// Its host is not in the cell (any more).
    LeftCell = "left-cell",
    /// The mobile host that sends it is in no cell.
    NoCell = "no-cell",
    /// A base station has no room to keep it for a host that is not in its cell.
    HandoffFull = "handoff-full",
    /// A packet for a host that left or may come is not needed: the host has it or went elsewhere, or the next base
    /// station has its contents in the state that moved.
    HandoffStale = "handoff-stale",
    /// The line was out.
    Outage = "outage",
    /// A queue of several classes chose it by the probability of classic traffic, and it could not be marked.
    ClassicDrop = "classic-drop",
    /// So much has come that marks do not help any more.
    OverloadDrop = "overload-drop",
    // ---- why a packet was marked
    /// It waited longer in the low-latency queue than such packets may.
    StepMark = "step-mark",
    /// The delay of classic traffic demands it, by the coupled probability.
    CoupledMark = "coupled-mark",
    /// It was chosen by the probability of classic traffic.
    ClassicMark = "classic-mark",
    /// Every packet of the low-latency queue is, since so much has come.
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
        matches!(self, LocalDupAck | LocalTimeout | LocalPersist | HandoffRepeated)
    }
}
