//! The control block of a live connection over time, as rows of the simulator's trace.
//!
//! The kernel reports its state on request, but not its events. So the sampler polls the state and converts
//! differences to events. Two timeouts between two polls give two events, since the kernel counts them. A
//! fast recovery that begins and ends between two polls gives none.

use lasthop_proto::event::{Event, EventKind, Tcb, TcpEvent, TcpKind};
use lasthop_proto::side::StageId;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::FlowKey;

use super::{CaState, TcpInfo};

/// Converts snapshots of one connection to events.
#[derive(Clone, Debug)]
pub struct Sampler {
    flow: FlowKey,
    stage: StageId,
    every: Span,
    next: Time,
    last: Option<TcpInfo>,
}

impl Sampler {
    /// A sampler for the connection with the flow `flow`, as seen from this end, with a poll each `every`.
    pub fn new(flow: FlowKey, stage: StageId, every: Span) -> Sampler {
        Sampler { flow, stage, every, next: Time::ZERO, last: None }
    }

    /// Time of the next snapshot.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Emits the event of the SYN.
    pub fn opening(&self, now: Time, info: &TcpInfo, mut out: impl FnMut(Event)) {
        out(self.event(now, TcpKind::Opening, info.tcb()));
    }

    /// Compares a snapshot of time `now` with the last one, and emits an event for each difference, all with
    /// the new block.
    pub fn look(&mut self, now: Time, info: &TcpInfo, mut out: impl FnMut(Event)) {
        self.next = now + self.every;
        let tcb = info.tcb();
        let Some(last) = self.last.replace(*info) else {
            // The counter includes repeated SYNs.
            for _ in 0..info.total_rto.unwrap_or(0) {
                out(self.event(now, TcpKind::Timeout, tcb));
            }
            out(self.event(now, TcpKind::Established, tcb));
            return;
        };
        let mut kinds = vec![TcpKind::Timeout; timeouts(&last, info).into()];
        let recovery = |info: &TcpInfo| info.ca_state == CaState::Recovery;
        if recovery(info) && !recovery(&last) {
            kinds.push(TcpKind::FastRetransmit);
        }
        // A recovery that a timeout ends does not end as a fast recovery.
        if matches!(info.ca_state, CaState::Open | CaState::Disorder) {
            let repairs = recovery(&last) || last.ca_state == CaState::Loss;
            // Only an undo raises the threshold when a repair ends.
            if repairs && tcb.ssthresh > last.tcb().ssthresh {
                kinds.push(TcpKind::Undone);
            } else if recovery(&last) {
                kinds.push(TcpKind::RecoveryEnded);
            }
        }
        if info.probes > last.probes {
            kinds.push(TcpKind::WindowProbe);
        }
        if info.bytes_acked > last.bytes_acked {
            kinds.push(TcpKind::Acked);
        }
        if kinds.is_empty() && tcb != last.tcb() {
            kinds.push(TcpKind::Sampled);
        }
        for kind in kinds {
            out(self.event(now, kind, tcb));
        }
    }

    /// Emits an event of this end that the kernel does not report, with the latest block.
    pub fn emit(&self, now: Time, kind: TcpKind, mut out: impl FnMut(Event)) {
        if let Some(info) = &self.last {
            out(self.event(now, kind, info.tcb()));
        }
    }

    fn event(&self, at: Time, kind: TcpKind, tcb: Tcb) -> Event {
        let kind = EventKind::Tcp(TcpEvent { flow: self.flow, kind, tcb });
        Event { at, stage: self.stage, kind }
    }
}

/// Number of timeouts between two snapshots. Before Linux 6.7 there is no counter, and the result is 1 where
/// the count of timeouts without progress grew.
fn timeouts(last: &TcpInfo, info: &TcpInfo) -> u16 {
    match (last.total_rto, info.total_rto) {
        (Some(before), Some(after)) => after.wrapping_sub(before),
        _ => u16::from(info.retransmits.saturating_sub(last.retransmits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_proto::wire::Addr;

    fn info() -> TcpInfo {
        let mut bytes = vec![0; 248];
        bytes[0] = 1;
        bytes[120] = 1;
        TcpInfo::parse(&bytes).unwrap()
    }

    fn kinds(snapshots: &[TcpInfo]) -> Vec<TcpKind> {
        let address = Addr::v4(127, 0, 0, 1);
        let flow = FlowKey { src: address, dst: address, src_port: 1, dst_port: 2 };
        let mut sampler = Sampler::new(flow, StageId(0), Span::millis(2));
        let mut kinds = Vec::new();
        for (i, snapshot) in snapshots.iter().enumerate() {
            sampler.look(Time(i as u64), snapshot, |event| match event.kind {
                EventKind::Tcp(tcp) => kinds.push(tcp.kind),
                other => panic!("{other:?}"),
            });
        }
        kinds
    }

    #[test]
    fn tcp_info_changes_become_events() {
        let open = info();
        let recovery = TcpInfo { ca_state: CaState::Recovery, ..open };
        let acked = TcpInfo { bytes_acked: 1449, ..recovery };
        let ended = TcpInfo { bytes_acked: 2897, ca_state: CaState::Open, ..open };
        let wider = TcpInfo { cwnd: 5, snd_mss: 1448, ..ended };
        use TcpKind::*;
        assert_eq!(
            kinds(&[open, open, recovery, acked, ended, wider, wider]),
            [Established, FastRetransmit, Acked, RecoveryEnded, Acked, Sampled]
        );
    }

    #[test]
    fn timeouts_are_taken_from_the_kernel_counter() {
        let open = info();
        let twice = TcpInfo { total_rto: Some(2), ca_state: CaState::Loss, ..open };
        use TcpKind::*;
        assert_eq!(kinds(&[open, twice, twice]), [Established, Timeout, Timeout]);
        assert_eq!(kinds(&[twice, twice]), [Timeout, Timeout, Established], "of the SYN");
        let broken = TcpInfo { ca_state: CaState::Recovery, ..open };
        assert_eq!(kinds(&[broken, twice]), [Established, Timeout, Timeout]);
        // The kernel's counter has 16 bits.
        let many = TcpInfo { total_rto: Some(u16::MAX), ..open };
        let wrapped = TcpInfo { total_rto: Some(0), ..open };
        assert_eq!(kinds(&[many, wrapped]).last(), Some(&Timeout));
    }

    #[test]
    fn older_kernels_count_retransmits_as_timeouts() {
        let open = TcpInfo { total_rto: None, ..info() };
        let once = TcpInfo { retransmits: 1, ..open };
        use TcpKind::*;
        assert_eq!(kinds(&[open, once, open, once]), [Established, Timeout, Timeout]);
    }
}
