/* What the program in the kernel and the station share; plane/shared.rs says the same in Rust. */

/* What becomes of a packet of which this is a record. */
#define ACT_DATA 1     /* from the left; the kernel has forwarded it */
#define ACT_SEEN 2     /* an acknowledgement from the right; the kernel has forwarded it */
#define ACT_DIVERTED 3 /* the only copy: the station decides */
#define ACT_PASSED 4   /* was to be diverted, but the station did not keep up: the kernel has forwarded it */

#define MODE_FORWARD 0 /* the kernel forwards, nothing else */
#define MODE_JUDGE 1   /* data is copied and forwarded, duplicate ACKs are diverted */
#define MODE_HOLD 2    /* packet sockets take everything */

/* Wakes of a station that sleeps. */
#define AWAKE 0
#define WAKE_ANY 1    /* at any record */
#define WAKE_URGENT 2 /* at a diverted packet, or when much is unread */

/* Before the bytes of each packet in the ring. */
struct record {
  __u64 at;        /* CLOCK_MONOTONIC */
  __u32 len;       /* of the frame, without a tag that stands beside it */
  __u32 captured;  /* of these so many follow */
  __u16 gso_size;  /* payload of each segment of a super-packet, or 0 */
  __u16 vlan_tci;  /* a tag beside the frame ... */
  __u16 vlan_tpid; /* ... in network order, or 0 */
  __u8 side, act;
  __u32 verified;  /* whether the card has verified the checksum */
  __u32 pad;
};

/* The state of the program, which the station maps into its memory. */
struct control {
  /* written by the station */
  __u32 mode, heads, peer[2];
  __u32 sleeping, stale; /* `stale` in MODE_HOLD: the program forwards until the station has cleared it */
  __u64 limit;           /* ns without progress until the program forwards by itself */
  __u64 wake_at;         /* unread bytes that wake the station */
  __u64 read;            /* how far it has read the ring */
  __u64 done;            /* diverted packets that it is through with */
  __u64 beat;            /* changes whenever it gets on */
  /* written by the program */
  __u64 announced, revoked; /* diverted packets; announced before `sleeping` is read */
  __u64 held[2];            /* frames left to the packet sockets */
  __u64 seen_beat, seen_at;
};

/* Per processor. */
struct stats {
  __u64 packets[2], bytes[2]; /* that arrived */
  __u64 copied, diverted;
  __u64 no_room;    /* not copied: the ring was full */
  __u64 by_itself;  /* forwarded although meant for the station: it did not keep up */
  __u64 wakes;
};
_Static_assert(sizeof(struct record) == 32, "record");
_Static_assert(sizeof(struct control) == 112, "control");
_Static_assert(sizeof(struct stats) == 72, "stats");
