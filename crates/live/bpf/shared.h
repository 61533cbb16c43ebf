/* Definitions that the program in the kernel and the station share; plane/shared.rs has the same in Rust. */

/* What happened to the packet of a record. */
#define ACT_DATA 1     /* from the left; the kernel has forwarded it */
#define ACT_SEEN 2     /* an acknowledgement from the right; the kernel has forwarded it */
#define ACT_DIVERTED 3 /* this is the only copy: the station decides */
#define ACT_PASSED 4   /* was to be diverted, but the station did not keep up: the kernel has forwarded it */

#define MODE_FORWARD 0 /* the kernel forwards, nothing else */
#define MODE_JUDGE 1   /* data is copied and forwarded, duplicate ACKs are diverted */
#define MODE_HOLD 2    /* packet sockets get all packets */
#define MODE_END 3     /* the same, and connections are split at the station */

/* When to wake a sleeping station. */
#define AWAKE 0
#define WAKE_ANY 1    /* at any record */
#define WAKE_URGENT 2 /* at a diverted packet, or when much is unread */

/* Before the bytes of each packet in the ring. */
struct record {
  __u64 at;        /* CLOCK_MONOTONIC */
  __u32 len;       /* of the frame, without a VLAN tag that is stored separately */
  __u32 captured;  /* number of these bytes that follow */
  __u16 gso_size;  /* payload of each segment of a super-packet, or 0 */
  __u16 vlan_tci;  /* VLAN tag that is stored separately ... */
  __u16 vlan_tpid; /* ... in network order, or 0 */
  __u8 side, act;
  __u32 verified;  /* whether the card has verified the checksum */
  __u32 pad;
};

/* The state of the program, which the station maps into its memory. */
struct control {
  /* written by the station */
  __u32 mode, heads, peer[2];
  __u32 sleeping, stale; /* `stale` in MODE_HOLD and MODE_END: the program forwards until the station has cleared it */
  __u64 limit;           /* ns without progress until the program forwards by itself */
  __u64 wake_at;         /* unread bytes that wake the station */
  __u64 read;            /* position up to which it has read the ring */
  __u64 done;            /* diverted packets that it has processed */
  __u64 beat;            /* changes with any progress */
  /* written by the program */
  __u64 announced, revoked; /* diverted packets; announced before `sleeping` is read */
  __u64 held[2];            /* frames left to the packet sockets */
  __u64 seen_beat, seen_at;
  /* MODE_END. Written by the station: */
  __u64 alive;           /* CLOCK_MONOTONIC, time of its last loop */
  __u64 patience[2];     /* maximum silence in ns: for packets of other connections, and of split ones */
  /* and by the program: */
  __u64 passed[2];       /* frames that were forwarded because of `stale`: the packet sockets have them as well */
  __u64 mark[2];         /* value of `held` when `stale` was set */
  __u64 lost;            /* entries of `endings` that were marked as lost, or removed */
};

/* A split connection, by its flow from right to left. The station adds it before it sends its first packet of it, and
 * removes it when the connection is closed. */
struct ending {
  __u32 next[2];         /* the last acknowledgement number of each end */
  __u32 opening;         /* one past a SYN that arrived when the connection was lost */
  __u8 known;            /* which of `next` are valid: 1 left, 2 right */
  __u8 is_lost;          /* its ends are reset */
  __u8 opener;           /* the end that sent the SYN of `opening`: 1 left, 2 right, 0 none */
  __u8 resumes;          /* both ends can continue without the station (M-TCP): they are not reset */
  __u8 link[2][24];      /* for the next station: the link headers towards both ends, each after its length */
  __u8 asker;            /* end that waits for the other end, which was probed: 1 left, 2 right, 0 none yet, 3 the other end was reached */
  __u8 pad[7];
  __u64 asked;           /* time of that segment, CLOCK_MONOTONIC */
};

/* Per processor. */
struct stats {
  __u64 packets[2], bytes[2]; /* received */
  __u64 copied, diverted;
  __u64 no_room;    /* not copied: the ring was full */
  __u64 by_itself;  /* forwarded although meant for the station: it did not keep up */
  __u64 wakes;
  __u64 resets;     /* segments of lost connections that were answered by a reset */
};
_Static_assert(sizeof(struct record) == 32, "record");
_Static_assert(sizeof(struct control) == 176, "control");
_Static_assert(sizeof(struct ending) == 80, "ending");
_Static_assert(sizeof(struct stats) == 80, "stats");
