use super::*;

const MSS: u64 = 1000;
const RTT: Span = Span::millis(50);

/// A sender with a window from the view of a base station, one round trip at a time.
struct Sender {
    reaction: Reaction,
    now: Time,
    sent: u64,
    stamp: u32,
}

impl Sender {
    fn new(stamp: u32) -> Sender {
        Sender { reaction: Reaction::new(true), now: Time(1), sent: 0, stamp }
    }

    /// The sender sends `window` segments in answer to an ACK of everything before.
    fn round(&mut self, window: u64) -> Option<Change> {
        self.stamp = self.stamp.wrapping_add(50);
        self.reaction.acked(self.now, self.stamp, self.sent);
        self.now += RTT;
        let mut change = None;
        for _ in 0..window {
            self.sent += MSS;
            change = change.or(self.reaction.data(self.now, self.stamp, self.sent, MSS));
        }
        change
    }

    fn rounds(&mut self, count: u32, window: u64) -> Vec<Change> {
        (0..count).filter_map(|_| self.round(window)).collect()
    }

    /// A sender under suspicion, after its flight has halved without a loss.
    fn suspected(stamp: u32) -> Sender {
        let mut sender = Sender::new(stamp);
        for window in [10, 20, 40, 80, 80] {
            assert_eq!(sender.round(window), None);
        }
        assert_eq!(sender.rounds(4, 40), []);
        sender
    }
}

#[test]
fn repairs_stop_while_losses_do_not_slow_a_sender() {
    for stamp in [0, u32::MAX - 300, i32::MAX as u32 - 100] {
        let mut sender = Sender::suspected(stamp);
        assert_eq!(sender.rounds(12, 40), [Change::Tests]);
        assert!(sender.reaction.leaves() && !sender.reaction.is_alone());
        // However late the loss is.
        assert_eq!(sender.rounds(50, 40), []);
        sender.reaction.retransmitted(sender.now);
        assert!(!sender.reaction.leaves(), "what follows is repaired");
        assert_eq!(sender.rounds(16, 39), [Change::LeavesAlone]);
        assert!(sender.reaction.is_alone());
        // A dip of a few rounds does not change the level.
        assert_eq!(sender.rounds(30, 40), []);
        assert_eq!(sender.rounds(5, 4), []);
        assert_eq!(sender.rounds(30, 40), []);
        // It slows down after visible losses, so it is helped again.
        assert_eq!(sender.rounds(40, 20), [Change::Repairs]);
        assert!(!sender.reaction.leaves());
    }
}

#[test]
fn a_slowing_sender_is_repaired_and_seldom_tested() {
    let mut sender = Sender::suspected(7);
    assert_eq!(sender.rounds(12, 40), [Change::Tests]);
    sender.reaction.retransmitted(sender.now);
    assert_eq!(sender.rounds(16, 28), [Change::Repairs], "CUBIC keeps 0.7");
    let mut tests = 0;
    let until = sender.now + Span::secs(60);
    while sender.now < until {
        for (count, window) in [(2, 80), (20, 40)] {
            let changes = sender.rounds(count, window);
            if changes.contains(&Change::Tests) {
                tests += 1;
                sender.reaction.retransmitted(sender.now);
                sender.rounds(16, 20);
            }
        }
    }
    assert!((2..=3).contains(&tests), "after 10 s, 20 s and 40 s: {tests}");
}

/// A window that only losses reduce, and other reductions of a flight.
#[test]
fn a_flight_that_grows_or_falls_after_a_loss_is_not_suspected() {
    let mut sender = Sender::new(1);
    for window in 10..200 {
        assert_eq!(sender.round(window), None);
    }
    sender.reaction.retransmitted(sender.now);
    assert_eq!(sender.rounds(100, 50), [], "the loss explains it");
    // The application pauses.
    sender.now += Span::secs(1);
    assert_eq!(sender.rounds(100, 20), []);
    // Too few segments for a conclusion.
    let mut few = Sender::new(1);
    assert_eq!((few.rounds(20, 10), few.rounds(50, 3)), (vec![], vec![]));
}

/// Losses at a full queue test a sender without cost.
#[test]
fn repairs_stop_if_the_flight_recovers_after_congestion() {
    for (after, back, alone) in
        [(100, 100, true), (80, 100, true), (70, 83, false), (50, 60, false)]
    {
        let mut sender = Sender::new(3);
        sender.rounds(5, 100);
        let mut changes = Vec::new();
        for _ in 0..6 {
            sender.reaction.congested(sender.sent);
            changes.extend(sender.rounds(7, after));
            changes.extend(sender.rounds(3, back));
            // CUBIC recovers later.
            changes.extend(sender.rounds(20, back));
            changes.extend(sender.rounds(3, 100));
        }
        let expected = if alone { vec![Change::LeavesAlone] } else { vec![] };
        assert_eq!(changes, expected, "{after} {back}");
    }
    // Too few segments for a conclusion.
    let mut few = Sender::new(3);
    few.rounds(5, 30);
    for _ in 0..8 {
        few.reaction.congested(few.sent);
        assert_eq!(few.rounds(15, 30), []);
    }
}

#[test]
fn stored_ack_marks_are_bounded_for_any_timestamps() {
    let mut reaction = Reaction::new(true);
    for i in 0..10_000u32 {
        reaction.acked(Time(u64::from(i) * 1_000_000), i.wrapping_mul(0x9e37_79b9), u64::from(i));
        assert!(reaction.marks.len() <= MARKS);
    }
}
