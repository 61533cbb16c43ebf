// The data plane of the station in the kernel: forwards between two interfaces, and copies to the station the packets that
// its agent needs. `make bpf` builds station.bpf.o, which is checked in. Without subprograms and BTF its loader is small.
//
// No packet pointers, only bpf_skb_load_bytes: a program with variable pointers would need CAP_PERFMON.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "shared.h"

#ifndef TCX_NEXT
#define TCX_NEXT -1
#endif

// plane/program.rs defines how the loader creates them, in this order.
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); } ring SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __type(key, __u32); __type(value, struct control); } control SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __type(key, __u32); __type(value, struct stats); } counts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __type(key, __u32); __type(value, __u32); } peers SEC(".maps");

struct flow { __u32 from[4], to[4]; __u16 from_port, to_port; };

// The known state of one end. crates/proto/src/agent/guard.rs has the same in Rust, with the reasons.
struct end {
  __u32 iss;    // the number of its SYN
  __u32 next;   // one past the highest number that it has sent
  __u32 acked;  // highest acknowledgement of its peer
  __u32 edge;   // the right edge of the windows that its peer has offered
  __u32 widest; // the largest of these windows
  __u8 known, shift, pad[2];
};
#define KNOWN_ISS 1
#define KNOWN_NEXT 2
#define KNOWN_ACKED 4
#define KNOWN_SHIFT 8

// A connection, by the flow from right to left.
struct track {
  struct end ends[2];
  __u32 ack, window;    // of the last acknowledgement from the right with new information
  __u32 opening;        // one past the SYN that waits for its answer
  __u8 waits, from, shift, pad;
  __u64 good;           // time of the last acceptable segment
};
_Static_assert(sizeof(struct track) == 72, "track");
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __type(key, struct flow); __type(value, struct track); } flows SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __type(key, struct flow); __type(value, struct ending); } endings SEC(".maps");

// No acknowledgement has arrived from the right yet.
#define NO_WINDOW 0xffffffff
// The value of `asker` in `struct ending` once the other end was reached, and the maximum wait for that, in ns.
#define REACHED 3
#define ASKS 100000000ULL
// The window assumed of an end whose SYN was not seen.
#define UNSCALED (4 << 20)
#define SHIFT_MAX 14
// ns without an acceptable segment until the state of a connection is dropped.
#define SILENT 3000000000ULL

#define ETH_8021Q 0x8100
#define ETH_8021AD 0x88a8
#define OPTION_NOP 1
#define OPTION_SCALE 3
#define OPTION_SACK 5
#define MOST_OPTIONS 10
#define CHECKSUM_AT 16
#define FLAG_FIN 1
#define FLAG_SYN 2
#define FLAG_RST 4
#define FLAG_ACK 16

// Maximum sizes of records: acknowledgements and heads, Ethernet frames, jumbo frames, super-packets.
#define HEAD_RECORD 224
#define WIRE_RECORD 1600
#define JUMBO_RECORD 16384
#define SUPER_RECORD 65824

struct seen {
  struct flow flow;
  __u32 seq, ack, payload;
  __u32 ip_at, options_at, options_end;
  __u16 window, checksum;
  __u8 flags, protocol, is_v6;
  __u16 port;
};

// Parses the headers of a packet; 0 unless it is a complete TCP segment. `protocol` and `port` are set for other packets too.
static __always_inline int look(struct __sk_buff *skb, struct seen *s, int side)
{
  __u16 type;
  __u32 at = ETH_HLEN, end;
  struct tcphdr tcp;
  if (bpf_skb_load_bytes(skb, 12, &type, 2)) return 0;
  if (type == bpf_htons(ETH_8021Q) || type == bpf_htons(ETH_8021AD)) {
    if (bpf_skb_load_bytes(skb, 16, &type, 2)) return 0;
    at = ETH_HLEN + 4;
  }
  s->ip_at = at;
  if (type == bpf_htons(ETH_P_IP)) {
    struct iphdr ip;
    if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)) || ip.ihl < 5) return 0;
    s->protocol = ip.protocol;
    if (ip.frag_off & bpf_htons(0x3fff)) { s->protocol = 0; return 0; }
    end = ip.tot_len ? at + bpf_ntohs(ip.tot_len) : skb->len;
    s->flow.from[0] = ip.saddr;
    s->flow.to[0] = ip.daddr;
    at += ip.ihl * 4;
  } else if (type == bpf_htons(ETH_P_IPV6)) {
    struct ipv6hdr ip;
    if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip))) return 0;
    s->protocol = ip.nexthdr;
    s->is_v6 = 1;
    end = ip.payload_len ? at + sizeof(ip) + bpf_ntohs(ip.payload_len) : skb->len;
    __builtin_memcpy(s->flow.from, &ip.saddr, 16);
    __builtin_memcpy(s->flow.to, &ip.daddr, 16);
    at += sizeof(ip);
  } else {
    return 0;
  }
  if (s->protocol == IPPROTO_UDP) bpf_skb_load_bytes(skb, at + 2, &s->port, 2);
  if (s->protocol != IPPROTO_TCP || bpf_skb_load_bytes(skb, at, &tcp, sizeof(tcp))) return 0;
  s->options_at = at + sizeof(tcp);
  at += tcp.doff * 4;
  if (tcp.doff < 5 || at > end) return 0;
  s->options_end = at;
  s->payload = end - at;
  s->seq = bpf_ntohl(tcp.seq);
  s->ack = bpf_ntohl(tcp.ack_seq);
  s->window = bpf_ntohs(tcp.window);
  s->checksum = tcp.check;
  s->flags = ((__u8 *)&tcp)[13];
  s->flow.from_port = tcp.source;
  s->flow.to_port = tcp.dest;
  if (side == 0) {
    struct flow f = s->flow;
    __builtin_memcpy(s->flow.from, f.to, 16);
    __builtin_memcpy(s->flow.to, f.from, 16);
    s->flow.from_port = f.to_port;
    s->flow.to_port = f.from_port;
  }
  return 1;
}

// Increments a counter. clang must not merge the increments of two branches into one at an offset in a register: a pointer
// with such an offset would need CAP_PERFMON.
#define COUNT(FIELD) do { \
    __u64 *field = &(FIELD); \
    asm volatile("" : "+r"(field)); \
    ++*field; \
  } while (0)

#define TAKE(SIZE) do { \
    __u64 count = cap; \
    struct record *r = bpf_ringbuf_reserve(&ring, SIZE, 0); \
    if (!r) return -1; \
    /* The verifier must see the bounds in the register that is used. */ \
    asm volatile("" : "+r"(count)); \
    if (count < ETH_HLEN || count > (SIZE) - sizeof(*r)) { bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP); return -1; } \
    r->at = bpf_ktime_get_ns(); \
    r->len = skb->len; \
    r->captured = cap; \
    r->gso_size = skb->gso_size; \
    r->side = side; \
    r->act = act; \
    r->vlan_tci = skb->vlan_tci; \
    r->vlan_tpid = skb->vlan_present ? skb->vlan_proto : 0; \
    r->verified = bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) >= 0; \
    if (bpf_skb_load_bytes(skb, 0, r + 1, count)) { bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP); return -1; } \
    bpf_ringbuf_submit(r, flags); \
    return 0; \
  } while (0)

static __always_inline int take_head(struct __sk_buff *skb, __u32 cap, __u8 side, __u8 act, __u64 flags) { TAKE(HEAD_RECORD); }
static __always_inline int take_wire(struct __sk_buff *skb, __u32 cap, __u8 side, __u8 act, __u64 flags) { TAKE(WIRE_RECORD); }
static __always_inline int take_jumbo(struct __sk_buff *skb, __u32 cap, __u8 side, __u8 act, __u64 flags) { TAKE(JUMBO_RECORD); }
static __always_inline int take_super(struct __sk_buff *skb, __u32 cap, __u8 side, __u8 act, __u64 flags) { TAKE(SUPER_RECORD); }

// Puts a packet or its head into the ring; 0 on success.
static __always_inline int take(struct __sk_buff *skb, int whole, __u8 side, __u8 act, __u64 flags)
{
  __u32 cap = skb->len;
  if (cap <= HEAD_RECORD - sizeof(struct record)) return take_head(skb, cap, side, act, flags);
  if (!whole) return take_head(skb, HEAD_RECORD - sizeof(struct record), side, act, flags);
  if (cap <= WIRE_RECORD - sizeof(struct record)) return take_wire(skb, cap, side, act, flags);
  if (cap <= JUMBO_RECORD - sizeof(struct record)) return take_jumbo(skb, cap, side, act, flags);
  return take_super(skb, cap, side, act, flags);
}

// Whether the station keeps up: it has processed all its packets, or made progress within the limit.
static __always_inline int keeps_up(struct control *c, __u64 waiting)
{
  __u64 now = bpf_ktime_get_ns(), beat = c->beat;
  if (c->done == waiting || beat != c->seen_beat) {
    c->seen_beat = beat;
    c->seen_at = now;
    return 1;
  }
  return now - c->seen_at < c->limit;
}

static __always_inline __u64 wake(struct control *c, struct stats *n, int urgent)
{
  __u32 sleeping = c->sleeping;
  if (sleeping == AWAKE) return BPF_RB_NO_WAKEUP;
  if (sleeping == WAKE_URGENT && !urgent && bpf_ringbuf_query(&ring, BPF_RB_PROD_POS) - c->read < c->wake_at)
    return BPF_RB_NO_WAKEUP;
  c->sleeping = AWAKE;
  COUNT(n->wakes);
  return BPF_RB_FORCE_WAKEUP;
}

// Diverts a packet to the station; 1 if the kernel must not forward it.
static __always_inline int divert(struct __sk_buff *skb, struct control *c, struct stats *n, int side)
{
  if (keeps_up(c, c->announced - c->revoked)) {
    __sync_fetch_and_add(&c->announced, 1);
    if (take(skb, 1, side, ACT_DIVERTED, wake(c, n, 1)) == 0) {
      COUNT(n->diverted);
      return 1;
    }
    __sync_fetch_and_add(&c->revoked, 1);
    COUNT(n->no_room);
  } else {
    // The record still shows the agent for which packet the receiver waits.
    take(skb, 0, side, ACT_PASSED, BPF_RB_NO_WAKEUP);
  }
  COUNT(n->by_itself);
  return 0;
}

// A super-packet inside of a tunnel, which the header of a packet socket cannot describe.
static __always_inline int is_wrapped(struct __sk_buff *skb, struct seen *s)
{
  if (!skb->gso_size || s->protocol == IPPROTO_TCP) return 0;
  if (s->protocol != IPPROTO_UDP) return 1;
  return s->port == bpf_htons(4789) || s->port == bpf_htons(8472) || s->port == bpf_htons(6081);
}

// Leaves a packet to the packet sockets, which have their copy already. 1 if the kernel must not forward it.
static __always_inline int hold(struct __sk_buff *skb, struct control *c, struct stats *n, int side)
{
  if (!c->stale && keeps_up(c, c->held[0] + c->held[1])) {
    __sync_fetch_and_add(&c->held[side], 1);
    return 1;
  }
  c->stale = 1;
  COUNT(n->by_itself);
  return 0;
}

// Whether the segment has an option of at least `least` bytes; the byte after its length goes to `value`.
static __always_inline int has_option(struct __sk_buff *skb, struct seen *s, __u8 kind, __u32 least, __u8 *value)
{
  __u32 at = s->options_at;
#pragma unroll
  for (int i = 0; i < MOST_OPTIONS; i++) {
    __u8 option[3];
    if (at + least > s->options_end || bpf_skb_load_bytes(skb, at, option, 3)) return 0;
    if (option[0] == kind) { *value = option[2]; return 1; }
    if (option[0] == OPTION_NOP) at += 1;
    else if (option[0] == 0 || option[1] < 2) return 0;
    else at += option[1];
  }
  return 0;
}

// Whether an acknowledgement has SACK blocks, so information besides its number. The shortest option has ten bytes.
static __always_inline int has_blocks(struct __sk_buff *skb, struct seen *s)
{
  __u8 value;
  return has_option(skb, s, OPTION_SACK, 10, &value);
}

static __always_inline int after(__u32 a, __u32 b) { return (__s32)(a - b) > 0; }

static __always_inline __u32 takes(struct seen *s)
{
  return s->payload + !!(s->flags & FLAG_SYN) + !!(s->flags & FLAG_FIN);
}

// Whether the acknowledgement lies in SND.UNA - MAX.SND.WND .. SND.NXT of the other end (RFC 5961 5.2).
static __always_inline int acknowledges(struct track *t, struct seen *s, int side)
{
  struct end *peer = &t->ends[!side];
  if (!(s->flags & FLAG_ACK)) return 1;
  if ((peer->known & KNOWN_NEXT) && after(s->ack, peer->next)) {
    // If the connection existed before the station, data within the window may have been missed.
    if (peer->known & KNOWN_ISS) return 0;
    if (after(s->ack, peer->known & KNOWN_ACKED ? peer->edge : peer->next + UNSCALED)) return 0;
  }
  return !(peer->known & KNOWN_ACKED) || !after(peer->acked - peer->widest, s->ack);
}

// Whether the segment is in the window of the other end (RFC 9293 3.4), or is a retransmission that it would acknowledge.
static __always_inline int placed(struct track *t, struct seen *s, int side)
{
  struct end *own = &t->ends[side];
  if (!(own->known & KNOWN_ACKED)) {
    __s32 off = s->seq - own->next;
    return !(own->known & KNOWN_NEXT) || (off <= UNSCALED && off >= -UNSCALED);
  }
  if (after(s->seq, own->edge)) return 0;
  if (takes(s) == 0) return !after(own->acked, s->seq);
  return !after(own->acked - own->widest, s->seq + takes(s));
}

// Updates the known state with an acceptable segment.
static __always_inline void learn(struct track *t, struct seen *s, int side)
{
  struct end *own = &t->ends[side], *peer = &t->ends[!side];
  __u32 next = s->seq + takes(s), window = s->window, edge;
  if (!(own->known & KNOWN_NEXT) || after(next, own->next)) own->next = next;
  own->known |= KNOWN_NEXT;
  if (!(s->flags & FLAG_ACK)) return;
  if (!(s->flags & FLAG_SYN)) {
    if (own->known & KNOWN_SHIFT) window <<= own->shift & 15;
    else if ((window << SHIFT_MAX) < UNSCALED) window <<= SHIFT_MAX;
    else if (window < UNSCALED) window = UNSCALED;
  }
  edge = s->ack + window;
  if (!(peer->known & KNOWN_ACKED) || after(edge, peer->edge)) peer->edge = edge;
  if (!(peer->known & KNOWN_ACKED) || after(s->ack, peer->acked)) peer->acked = s->ack;
  if (window > peer->widest) peer->widest = window;
  peer->known |= KNOWN_ACKED;
}

static __always_inline __u8 scale(struct __sk_buff *skb, struct seen *s)
{
  __u8 value;
  if (!has_option(skb, s, OPTION_SCALE, 3, &value)) return 0xff;
  return value > SHIFT_MAX ? SHIFT_MAX : value;
}

static __always_inline void begin(struct end *own, struct seen *s, __u8 shift)
{
  if ((own->known & KNOWN_ISS) && own->iss != s->seq) {
    struct end none = {};
    *own = none;
  }
  own->iss = s->seq;
  own->next = s->seq + takes(s);
  own->shift = shift == 0xff ? 0 : shift;
  own->known |= KNOWN_ISS | KNOWN_NEXT | KNOWN_SHIFT;
}

// A SYN for a known connection takes effect only when it is answered (RFC 5961 4.2).
static __always_inline int judge_syn(struct __sk_buff *skb, struct track *t, struct seen *s, int side)
{
  struct end *own = &t->ends[side], *peer = &t->ends[!side];
  int again = (own->known & KNOWN_ISS) && own->iss == s->seq;
  // The peer has not answered an earlier SYN of this end.
  int fresh = !(own->known & KNOWN_ACKED) ||
              (!(own->known & KNOWN_NEXT) && (own->acked == s->seq || own->acked == s->seq + 1));
  int answer = s->flags & FLAG_ACK;
  __u8 shift;
  again = again && acknowledges(t, s, side);
  if (again && (fresh || answer)) return 1;
  shift = scale(skb, s);
  if (!answer) {
    if (fresh) {
      begin(own, s, shift);
      return 1;
    }
    t->waits = 1;
    t->from = side;
    t->opening = s->seq + 1;
    t->shift = shift;
    // Its number may open another connection: a SYN-ACK with another number would show that.
    return again;
  }
  if (fresh && acknowledges(t, s, side) && (!(peer->known & KNOWN_ISS) || after(s->ack, peer->iss))) {
    begin(own, s, shift);
  } else if (t->waits && t->from != side && s->ack == t->opening) {
    struct end none = {};
    t->ends[0] = none;
    t->ends[1] = none;
    peer->iss = t->opening - 1;
    peer->next = t->opening;
    peer->shift = t->shift == 0xff ? 0 : t->shift;
    peer->known = KNOWN_ISS | KNOWN_NEXT | KNOWN_SHIFT;
    t->waits = 0;
    begin(own, s, shift);
  } else {
    return 0;
  }
  // If its SYN was not seen, the acknowledgement number cannot be checked.
  if (peer->known & KNOWN_NEXT) {
    if (shift == 0xff) {
      peer->shift = 0;
      peer->known |= KNOWN_SHIFT;
    }
    learn(t, s, side);
  }
  t->ack = s->ack;
  t->window = side ? s->window : NO_WINDOW;
  return 1;
}

#define DOUBTFUL 0 /* a host would not accept it: the agent does not need it, unless it opens or ends a connection */
#define OLD 1      /* its receiver has all its data and ignores its acknowledgement */
#define GOOD 2

// Finds or creates the record of the connection.
static __always_inline struct track *track(struct seen *s)
{
  struct track *t = bpf_map_lookup_elem(&flows, &s->flow);
  if (t) return t;
  struct track fresh = { .window = NO_WINDOW, .good = bpf_ktime_get_ns() };
  bpf_map_update_elem(&flows, &s->flow, &fresh, BPF_ANY);
  return bpf_map_lookup_elem(&flows, &s->flow);
}

static __always_inline int judge(struct __sk_buff *skb, struct track *t, struct seen *s, int side)
{
  __u64 now = bpf_ktime_get_ns();
  struct end *own = &t->ends[side], *peer = &t->ends[!side];
  if (s->flags & FLAG_RST) {
    __s32 off = s->seq - own->next;
    int exact = ((own->known & KNOWN_NEXT) && own->next == s->seq) || ((own->known & KNOWN_ACKED) && own->acked == s->seq);
    // It was not answered yet, or the start of the connection was not seen.
    int unsure = (own->known & (KNOWN_ACKED | KNOWN_ISS)) != (KNOWN_ACKED | KNOWN_ISS);
    if (unsure && (own->known & KNOWN_NEXT) && off <= UNSCALED && off >= -UNSCALED) exact = 1;
    // The reset refuses the SYN of the other end.
    if (!(own->known & KNOWN_NEXT) && (peer->known & KNOWN_NEXT) && (s->flags & FLAG_ACK) && s->ack == peer->next) exact = 1;
    if (exact) bpf_map_delete_elem(&flows, &s->flow);
    return exact ? GOOD : DOUBTFUL;
  }
  if (s->flags & FLAG_SYN) {
    if (!judge_syn(skb, t, s, side)) return DOUBTFUL;
    t->good = now;
    return GOOD;
  }
  if (placed(t, s, side) && acknowledges(t, s, side)) {
    int old = takes(s) > 0 && (own->known & KNOWN_ACKED) && !after(s->seq + takes(s), own->acked);
    t->good = now;
    if (old) return OLD;
    learn(t, s, side);
    return GOOD;
  }
  if (now - t->good > SILENT) bpf_map_delete_elem(&flows, &s->flow);
  return DOUBTFUL;
}

static __always_inline int from_left(struct __sk_buff *skb, struct control *c, struct stats *n, struct seen *s)
{
  struct track *t = track(s);
  __u8 control = s->flags & (FLAG_SYN | FLAG_FIN | FLAG_RST);
  __u32 acked, edge;
  int standing;
  if (!t) return 0;
  acked = t->ends[1].acked;
  edge = t->ends[1].edge;
  standing = judge(skb, t, s, 0);
  if (standing == DOUBTFUL && !control) return 0;
  // A pure acknowledgement is only copied if it lets the other end send more, by its number or by its window.
  if (s->payload == 0 && !control && t->ends[1].acked == acked && t->ends[1].edge == edge) return 0;
  if (take(skb, s->payload && !c->heads, 0, ACT_DATA, wake(c, n, 0)) == 0) COUNT(n->copied);
  else COUNT(n->no_room);
  return 0;
}

static __always_inline int from_right(struct __sk_buff *skb, struct control *c, struct stats *n, struct seen *s)
{
  struct track *t = track(s);
  __u8 control = s->flags & (FLAG_SYN | FLAG_FIN | FLAG_RST);
  int standing;
  if (!t) return 0;
  // Without the ACK flag the number is meaningless (RFC 9293 3.1).
  if (!(s->flags & FLAG_ACK) && !control) return 0;
  standing = judge(skb, t, s, 1);
  if (standing != GOOD && !control) return 0;
  if (!control) {
    __s32 ahead = s->ack - t->ack;
    int first = t->window == NO_WINDOW;
    // A smaller window with the same number was overtaken by the larger one. A closed window is always new information.
    int pure = s->payload == 0, same = s->window == t->window || (s->window && s->window < t->window);
    if (ahead > 0 || first) t->ack = s->ack;
    if (ahead > 0 || first || (ahead == 0 && !same)) t->window = s->window;
    // SACK blocks are more than the number, for any window, and the agent may hide them.
    if (!first && pure && (ahead < 0 || (ahead == 0 && same) || has_blocks(skb, s))) return divert(skb, c, n, 1);
    if (!first && ahead <= 0 && same) return 0;  // data in the other direction without new information
  }
  if (take(skb, 0, 1, ACT_SEEN, wake(c, n, 0)) == 0) COUNT(n->copied);
  else COUNT(n->no_room);
  return 0;
}

// Split connections when the station dies or hangs. Their ends cannot continue with each other: each has acknowledged bytes of
// the station, and treats the other's timestamps as old ones (RFC 7323 5). So each segment is answered by a reset in the name of
// the other end. The base filter does this as well, as it holds the map when the station is dead.

static __always_inline __u16 fold(__u64 sum)
{
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16);
}

// The sum of the pseudo-header of a segment of `len` bytes between the hosts of `s`.
static __always_inline __u64 pseudo_header(struct seen *s, __u32 len)
{
  __u64 sum = bpf_htons(IPPROTO_TCP) + bpf_htons(len & 0xffff) + bpf_htons(len >> 16);
#pragma unroll
  for (int i = 0; i < 4; i++) sum += (__u64)s->flow.from[i] + s->flow.to[i];
  return sum;
}

#define STORE(AT, FROM, LEN) \
  do { if (bpf_skb_store_bytes(skb, AT, FROM, LEN, BPF_F_RECOMPUTE_CSUM)) return 0; } while (0)

// Converts a segment of the connection, or an earlier result of this function, to a segment for the end at `side`. The link
// header is unchanged. A probe has a byte before `seq`, which the end has received; otherwise it is a reset. If `partial` is
// set, the network card completes the checksum. 0 on failure.
static __always_inline int make(struct __sk_buff *skb, struct seen *s, __u32 seq, int probe, int side, int partial)
{
  struct tcphdr tcp = { .seq = bpf_htonl(seq - !!probe), .doff = 5, .rst = !probe, .ack = !!probe };
  // The flow is from right to left.
  tcp.source = side ? s->flow.to_port : s->flow.from_port;
  tcp.dest = side ? s->flow.from_port : s->flow.to_port;
  if (probe) tcp.ack_seq = bpf_htonl(s->ack);
  __u32 *from = side ? s->flow.to : s->flow.from, *to = side ? s->flow.from : s->flow.to;
  __u32 at = s->ip_at, len = sizeof(tcp) + !!probe;
  __u64 sum = pseudo_header(s, len);
  __u8 nothing = 0;
  if (s->is_v6) {
    struct ipv6hdr ip = { .version = 6, .payload_len = bpf_htons(len), .nexthdr = IPPROTO_TCP, .hop_limit = 64 };
    __builtin_memcpy(&ip.saddr, from, 16);
    __builtin_memcpy(&ip.daddr, to, 16);
    if (bpf_skb_change_tail(skb, at + sizeof(ip) + len, 0)) return 0;
    STORE(at, &ip, sizeof(ip));
    at += sizeof(ip);
  } else {
    struct iphdr ip = {
      .version = 4, .ihl = 5, .tot_len = bpf_htons(sizeof(ip) + len), .frag_off = bpf_htons(0x4000), .ttl = 64,
      .protocol = IPPROTO_TCP, .saddr = from[0], .daddr = to[0],
    };
    ip.check = ~fold(bpf_csum_diff(0, 0, (__be32 *)&ip, sizeof(ip), 0));
    if (bpf_skb_change_tail(skb, at + sizeof(ip) + len, 0)) return 0;
    STORE(at, &ip, sizeof(ip));
    at += sizeof(ip);
  }
  tcp.check = partial ? fold(sum) : ~fold(sum + (__u32)bpf_csum_diff(0, 0, (__be32 *)&tcp, sizeof(tcp), 0));
  STORE(at, &tcp, sizeof(tcp));
  if (probe) STORE(at + sizeof(tcp), &nothing, 1);
  return 1;
}

// Answers a segment from `side` of a lost connection; `peer` is the interface of the other end.
static __always_inline int answer(struct __sk_buff *skb, struct ending *e, struct seen *s, struct stats *n, int side, __u32 peer)
{
  __u8 macs[12], swapped[12];
  __u32 len = s->options_end + s->payload - s->options_at + sizeof(struct tcphdr), ip_len = s->is_v6 ? 40 : 20;
  int partial = skb->gso_size || s->checksum == fold(pseudo_header(s, len));
  // An end that resets needs no answer. A segment without ACK gives no exact number for a reset.
  if (e->resumes || (s->flags & FLAG_RST)) return bpf_redirect(peer, 0);
  if (!(s->flags & FLAG_ACK)) {
    if (s->flags & FLAG_SYN) {
      e->opening = s->seq + 1;
      e->opener = side + 1;
    }
    return bpf_redirect(peer, 0);
  }
  if ((s->flags & FLAG_SYN) && e->opener == !side + 1 && e->opening == s->ack) {
    // A new connection between the same ports opens, which is not split.
    bpf_map_delete_elem(&endings, &s->flow);
    return bpf_redirect(peer, 0);
  }
  // Only segments without IP options are answered.
  if (s->options_at != s->ip_at + ip_len + sizeof(struct tcphdr)) return TC_ACT_SHOT;
  if (n) COUNT(n->resets);
  // The other end may wait for data without sending, so it is reset as well. If its number changed or was forged, it ignores the
  // reset, but it acknowledges the probe, and that ACK is answered. Packets to it may be lost, so an end that will retransmit is
  // answered only after the other end was reached, or after a maximum wait. A pure ACK is not repeated, so it is answered now.
  if (e->known & (1 << !side)) {
    __u64 now = bpf_ktime_get_ns();
    int repeats = s->payload || (s->flags & FLAG_FIN), first = repeats && !e->asker, waits;
    if (first) {
      e->asker = side + 1;
      e->asked = now;
    } else if (e->asker == !side + 1) {
      e->asker = REACHED;
    }
    waits = e->asker == side + 1 && now - e->asked < ASKS;
    if (waits && !first) return TC_ACT_SHOT;
    if (!make(skb, s, e->next[!side], 1, !side, partial)) return TC_ACT_SHOT;
    bpf_clone_redirect(skb, peer, 0);
    if (!make(skb, s, e->next[!side], 0, !side, partial)) return TC_ACT_SHOT;
    bpf_clone_redirect(skb, peer, 0);
    if (waits) return TC_ACT_SHOT;
  }
  if (!make(skb, s, s->ack, 0, side, partial) || bpf_skb_load_bytes(skb, 0, macs, 12)) return TC_ACT_SHOT;
  __builtin_memcpy(swapped, macs + 6, 6);
  __builtin_memcpy(swapped + 6, macs, 6);
  if (bpf_skb_store_bytes(skb, 0, swapped, 12, 0)) return TC_ACT_SHOT;
  return bpf_redirect(skb->ifindex, 0);
}

// The entry of a split connection; stores the acknowledgement number of the segment in it.
static __always_inline struct ending *ending_of(struct seen *s, int side)
{
  struct ending *e = bpf_map_lookup_elem(&endings, &s->flow);
  if (e && (s->flags & (FLAG_ACK | FLAG_RST)) == FLAG_ACK) {
    e->next[side] = s->ack;
    e->known |= 1 << side;
  }
  return e;
}

// Decides what the kernel does with a packet, of which packet sockets have their copy already.
static __always_inline int end(struct __sk_buff *skb, struct control *c, struct stats *n, struct seen *s, int side, int tcp)
{
  __u64 now = bpf_ktime_get_ns(), alive = c->alive, silent = now > alive ? now - alive : 0;
  struct ending *e = tcp ? ending_of(s, side) : 0;
  __u32 peer = c->peer[side];
  if (e) {
    if (!e->is_lost && silent < c->patience[1]) {
      __sync_fetch_and_add(&c->held[side], 1);
      return TC_ACT_SHOT;
    }
    if (!e->is_lost) {
      e->is_lost = 1;
      __sync_fetch_and_add(&c->lost, 1);
    }
    COUNT(n->by_itself);
    return answer(skb, e, s, n, side, peer);
  }
  if (!c->stale && silent < c->patience[0]) {
    __sync_fetch_and_add(&c->held[side], 1);
    return TC_ACT_SHOT;
  }
  if (!c->stale) {
    c->mark[0] = c->held[0];
    c->mark[1] = c->held[1];
    c->stale = 1;
  }
  __sync_fetch_and_add(&c->passed[side], 1);
  COUNT(n->by_itself);
  return bpf_redirect(peer, 0);
}

static __always_inline int port(struct __sk_buff *skb, int side)
{
  __u32 zero = 0;
  struct control *c = bpf_map_lookup_elem(&control, &zero);
  struct stats *n = bpf_map_lookup_elem(&counts, &zero);
  struct seen s = {};
  int done = 0;
  if (!c || !n) return TCX_NEXT;
  n->packets[side]++;
  n->bytes[side] += skb->len;
  if (c->mode != MODE_FORWARD) {
    int tcp = look(skb, &s, side);
    if (c->mode == MODE_END && !is_wrapped(skb, &s)) return end(skb, c, n, &s, side, tcp);
    if (c->mode == MODE_HOLD) done = is_wrapped(skb, &s) ? 0 : hold(skb, c, n, side);
    else if (tcp && c->mode == MODE_JUDGE) done = side ? from_right(skb, c, n, &s) : from_left(skb, c, n, &s);
  }
  return done ? TC_ACT_SHOT : bpf_redirect(c->peer[side], 0);
}

SEC("tc") int left_in(struct __sk_buff *skb) { return port(skb, 0); }
SEC("tc") int right_in(struct __sk_buff *skb) { return port(skb, 1); }

// The base filter: below the programs of the station, and remains when they are removed.
static __always_inline int base(struct __sk_buff *skb, int side)
{
  __u32 key = side, *peer = bpf_map_lookup_elem(&peers, &key);
  struct seen s = {};
  struct ending *e;
  if (!peer) return TC_ACT_OK;
  if (!look(skb, &s, side)) return bpf_redirect(*peer, 0);
  e = ending_of(&s, side);
  return e ? answer(skb, e, &s, 0, side, *peer) : bpf_redirect(*peer, 0);
}
SEC("tc") int base_left(struct __sk_buff *skb) { return base(skb, 0); }
SEC("tc") int base_right(struct __sk_buff *skb) { return base(skb, 1); }

char LICENSE[] SEC("license") = "MIT OR Apache-2.0";
