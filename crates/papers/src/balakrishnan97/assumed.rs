//! Assumptions where the paper is silent, by section; within a section common to all of its experiments.

/// Assumption and reason.
pub(super) const ASSUMED: &[(&str, &str)] = &[
    (
        "Hosts and base station run the TCP of the preset `freebsd-2.1`, with segments of 1400 bytes and socket \
         buffers of 65,535 bytes where the paper names no other size; the window opens by a segment a window.",
        "3.1: all machines ran BSD/OS 2.0, which descends from 4.4BSD as FreeBSD 2.1 does, so one preset represents \
         the BSD of both testbeds. Whether BSD/OS still added 4.4BSD's eighth of a segment for each ACK is not \
         known: `--set host.fixed.growth=bsd` shows the difference, which is a fifth of Reno's throughput on the LAN. \
         Without window scaling 65,535 bytes can be advertised.",
    ),
    (
        "Hosts acknowledge in bytes, as 4.4BSD: when the window has moved by two segments of 1460 bytes, so that every \
         third segment of 1400 bytes has an ACK. Changed after figures had been seen: with an ACK for every second \
         segment (`maxseg = \"none\"`, radio frames of 1.08 ms) seven of the fifteen claims held, and D-F1, D-F2-LAN, \
         D-F2-WAN, D-F3-LAN and D-F4 do not.",
        "4.4BSD's tcp_output decides by the window that it could offer, in units of t_maxseg, which options do not \
         shorten; why segments here are shorter than 1460 bytes the paper does not say (timestamps, or the way in \
         which \
         the sender writes). Three other traits of the same source are not assumed, and each makes Reno better: on the \
         LAN it has 0.65 Mb/s, with growth on the ACK that ends a recovery (`exit-growth`) 0.69, without deflation at \
         exactly three duplicates (`deflation = \"past-threshold\"`) 0.75, with both 0.81, with the eighth of a \
         segment \
         (`growth = \"bsd\"`) as well 0.92: 4.4BSD to the letter has a better Reno than an ACK for every second \
         segment \
         gives without them.",
    ),
    (
        "Each radio frame takes 1.226 ms in addition to its bits; the two stations take turns; 50 packets fit each queue.",
        "The one fitted constant: with it the error-free transfer reaches the published 1.5 Mb/s (2.2). 50 packets \
         was BSD's interface queue.",
    ),
    (
        "A transfer has 8,388,608 bytes, in section 2.2 as well, in segments of 1400 bytes; KB means 1024 bytes.",
        "3.1: 8 MByte and 1400 bytes. One error per 65,536 bytes is the caption of Figures 2 to 4.",
    ),
    (
        "Errors are exponential in the bytes sent, and damage the TCP checksum, so that IP carries a damaged packet \
         to the receiver. In section 3 they meet both directions, in section 2.2 only packets to the mobile host.",
        "3.1: the receiving entity changes the TCP checksum, in both directions. 2.2: the base station changed it \
         before forwarding the packet over the wireless link.",
    ),
    (
        "\"Every other packet\" means that each packet to the mobile host is lost with probability 1/2.",
        "Losing exactly every second one would lose every retransmission or none, by parity.",
    ),
    (
        "The 16 Internet hops are a link of 59 ms each way that carries 1.389 Mb/s and loses nothing: a round trip \
         of 135 ms and at most 1.35 Mb/s of data, 23 KB in flight.",
        "The paper gives neither; its footnote says that there was hardly congestion. The two figures are those that \
         we know of the comparison that section 3 sums up (its reference 4), and were not checked against it.",
    ),
    (
        "LL is the snoop agent with duplicate ACKs let through, and LL-SACK the selective one: the link layer takes \
         TCP's acknowledgements for its own and retransmits on the first duplicate ACK or when its timer expires. \
         The link layers `ll` and `ll-sack` with separate acknowledgements are shown next to them.",
        "Decided before any figure was seen: the comparison that section 3 sums up says that its LL used TCP's \
         acknowledgements, was the snoop agent without suppression, and kept its timers at 200 ms at least; 3.1.1 \
         says that what distinguishes LL-TCP-AWARE is that duplicate ACKs do not reach the sender.",
    ),
    (
        "The base station's timers are twice the smoothed local round trip, at least 200 ms, and local \
         retransmissions go before the packets in the queue. Both hold for all four agents.",
        "200 ms is known of the comparison; the rest is the description of snoop that section 2 sums up (its \
         reference 6), which this paper does not repeat. Without priority (`--set path.base.priority=false`) \
         LL-TCP-AWARE loses 4 % on the LAN to retransmissions that wait behind a full queue.",
    ),
    (
        "Selective acknowledgements are those of RFC 2018. The Reno sender offers them, so that the mobile host \
         sends them, and ignores them.",
        "The paper's were a part of SMART's. A base station learns the same from both over a link that keeps the \
         order.",
    ),
    (
        "D-ACKSPLIT runs on the LAN of west97, and the base station is killed when the receiver has half of the \
         2,000,000 bytes. Split connections have the TCP of the hosts there and a buffer of 64 KB.",
        "3.2 argues and names no experiment. Every base station can be tried there; what it acknowledges does not \
         depend on the testbed.",
    ),
    (
        "The mobile host obeys negative acknowledgements by sending the named ranges again at once, with its window \
         as it is; the base station names a hole when the first packet behind it has come.",
        "2.1 and west97 2.6 only say that there are negative acknowledgements for transfers from the mobile host.",
    ),
    (
        "The simulations have the Reno of ns-2 (preset `ns`): timers of 100 ms, and one ACK for each packet.",
        "4.3 names Reno and nothing else; the authors' simulator was ns. With one ACK for each packet of 1000 bytes, \
         k is 6.25 for 9.6 kb/s with \
         ACKs of 6 bytes, as 4.3 has it.",
    ),
    (
        "Packets of 1000 bytes carry 960 bytes, and windows hold 100 packets.",
        "4.3 gives the packet and buffers of 100 KB; ACKs of 40 bytes say how long headers are. The authors' script has \
         windows of 100 packets; 100 KB of payload would be 104.",
    ),
    (
        "Figure 6 was measured; it is simulated on the topology of Figure 5, with packets of 1000 bytes and buffers \
         of 10 packets, for 50 s.",
        "The text gives neither the rates nor the buffers of the Hybrid network. Figure 5 was chosen by the authors \
         to model it.",
    ),
    (
        "The dial-up line has 28.8 kb/s, and its modems delay each ACK by 50 ms; the Ethernet return has 10 Mb/s and \
         no delay of its own.",
        "28.8 kb/s is the faster of the return channels of Table 1. 4.1 says that the Ethernet has much lower delay \
         than the dial-up lines; 50 ms is what V.34 modems of the time took each way. A line delays both directions \
         here, so it is set to 25 ms: only the sum counts.",
    ),
    (
        "Packet radio has 100 kb/s, a turn-around of 13.25 ms for each packet, 10 ms to pass a packet on, headers \
         and polls of 16 bytes, backoffs in units of 20 ms that double and have a random part.",
        "4.4.2 gives no numbers. These are the defaults of the multi-hop medium access for ns, \"modeled after \
         Metricom's Ricochet\", by the same authors. What follows a failed poll is theirs as well, but for a bound \
         of the backoff.",
    ),
    (
        "ACKs are filtered in the queue of every station towards the sender, and the sender is plain Reno.",
        "4.2.2 has the filter where an ACK is about to be enqueued, at routers and hosts. 4.4.2 names filtering \
         alone; the sender adaptation is mentioned for the experiments of 4.3 only.",
    ),
    (
        "Several connections are four, from one server to one host, begun at the same time, for 50 s.",
        "4.4.2 says \"multiple connections are simultaneously active\"; 50 s are the transfers of 4.3.",
    ),
    (
        "Server, two routers, client: 10 Mb/s everywhere but on the way back between the routers, 1 ms on the outer \
         lines, 5 ms forward and 50 ms back between the routers.",
        "Figure 5 is not in the text. This is the topology of the scripts that the authors published with their \
         simulator (ns, tcl/ex/asym). A line here has one delay for both directions; what counts for TCP is the sum.",
    ),
    (
        "Buffers of 10 packets are those of the routers; 9 of them wait while one is sent, but where RED decides. The \
         hosts' own interfaces hold a whole window.",
        "4.3 says \"the buffer size at each router\". A DropTail queue of ns with a limit of 10 holds 9, and 4.3 \
         computes the delay of a full buffer from 10 ACKs, including the one that is sent.",
    ),
    (
        "Throughput of Table 1 counts packets of 1000 bytes.",
        "9.88 of 10 Mb/s cannot be payload if headers have 40 bytes; packets of the simulator had no headers of \
         their own.",
    ),
    (
        "The router marks from 4 packets on and all from 7 on, with a weight of 0.25 and a probability that rises to \
         1 in between. Idle time counts in ACKs of 40 bytes.",
        "4.2.1 names RED without numbers. 0.4 and 0.7 of the buffer, 0.25 and 1 are those of the published script \
         that has this topology and buffer.",
    ),
    (
        "There are no timestamps: the receiver recognizes round trips by the left edge in the option with the sender's \
         window.",
        "4.2.1 takes timestamps, but 12 bytes of them contradict the ACKs of 40 and 6 bytes of 4.3, and RFC 1144 \
         does not compress them. The option's 12 bytes go with the data.",
    ),
    (
        "C means ACKs of 6 bytes in Table 1, whatever is marked; in Figure 6, which was measured, it is RFC 1144.",
        "4.3 sets the size to 6 bytes. With RFC 1144, which knows nothing of marks, each change of marks sends two \
         whole \
         headers (`header-compression = \"vj\"`), and ACC has 9.10 Mb/s at 28.8 kb/s.",
    ),
    (
        "Sender adaptation: the window opens by bytes acknowledged; three segments leave at once, more at the rate \
         of a window in a round trip.",
        "4.3 names the techniques. Three is the burst of the published scripts.",
    ),
    (
        "In 4.4.1 the way back has 28.8 kb/s without compression, the reverse transfer starts after 5 s, and both \
         run to 50 s.",
        "The rate is the default of the published script, which starts the reverse transfer between 5 and 10 s.",
    ),
    (
        "5: access links of 10 Mb/s and 10 ms, a bottleneck of 1.5 Mb/s and 50 ms, 1000 B segments, windows of 20 \
         segments, a clock of 100 ms, every segment acknowledged.",
        "The paper names its simulator, not its parameters. These are the rates, sizes and windows of the tests that \
         came with ns in 1997; the delays give a round trip across a continent.",
    ),
    (
        "5.1.2 and 5.2.3: the router has a buffer of 6 packets, of which 5 wait; 5.2.2: of 3, of which 2 wait.",
        "5.2.2 says 3 for its own test and nothing for the others; 6 is what the tests of ns use most. What waits is a \
         packet less than the limit of a DropTail queue in ns.",
    ),
    (
        "5: packets do not wait at random before the router. Changed after figures had been seen: they waited up to 5 \
         ms.",
        "A sender of ns draws a random time only if `overhead_` is set, which is 0 by default. Where nothing is random, \
         the phases of the senders decide whose packets find the buffer full (Floyd and Jacobson 1992).",
    ),
    (
        "5.1.1: 40 users, half of them at each host, fetch over connections of their own for 60 s, and wait for 1 s in \
         between; sizes are Pareto with a mean of 10 kB, at most 1 MB, shape 1.2. Decided before any figure was seen. A \
         timeout of a segment that a timeout had repeated counts as one without duplicate ACKs.",
        "The traces are of a Web server with hundreds of thousands of clients, whose rates, sizes and losses the text does \
         not give. The router is that of 5.1.2, which recreates situations of the traces; 40 is the number of its cross \
         connections, and sizes and pauses are those of the built-in scenario `web`.",
    ),
    (
        "5.1.2: the cross traffic is 40 Reno connections from CT1 to CT2; 5.2.3: four. Each is on and off, 500 ms \
         each on average, exponentially.",
        "\"A significant amount\" to force \"frequent losses and small congestion windows\": with 40 a SACK sender \
         has fewer than four segments in flight on average. \"Several\" are four. 500 ms are the defaults of ns.",
    ),
    (
        "5.2: TCP-INT counts an ACK on another connection for a segment sent later like a duplicate ACK. If no \
         duplicate ACK indicates the loss of a segment, it is lost only if the next one of its connection is missed as \
         well, or a segment sent 400 ms later has arrived. One timer for all connections; partial ACKs in a recovery show the \
         next loss.",
        "The paper says that later packets on other connections indicate a loss, but not how many and when. The \
         rule is that of ns (`TCP/Int`), which the authors wrote.",
    ),
];
