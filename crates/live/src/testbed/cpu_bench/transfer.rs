//! One transfer and its cost.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lasthop_observe::cpu_time::{Case, Change, Sample, Spent};
use lasthop_proto::units::Time;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::time::{TimeVal, TimeValLike as _};

use super::super::counters::Counters;
use super::super::error::{Error, Tried as _};
use super::super::preset;
use super::cable::Cable;
use super::{FLIGHT, Laboratory, PORT, RECEIVER, SENDER, threads};
use crate::clock::Clock;
use crate::endpoint::{self, SendOptions, Session, TcpInfo};

/// Bytes per system call.
const CHUNK: usize = 1 << 16;

/// Seconds without a byte after which the cable counts as faulty.
const PATIENCE: u64 = 30;

/// Bytes of the timestamps option in each segment (RFC 7323).
const TIMESTAMPS: u32 = 12;

/// Counters of the sender and the receiver.
pub(super) type EndCounters = [Counters; 2];

/// Result of the writing thread.
struct WriterResult {
    spent: u64,
    info: TcpInfo,
}

impl Laboratory {
    /// Makes one transfer of a case. Position and round of the sample are zero.
    ///
    /// # Errors
    ///
    /// If it fails, or the kernel does not behave as the case requires.
    pub fn measure(&mut self, case: Case, bytes: u64, stop: &AtomicBool) -> Result<Sample, Error> {
        let cable = self
            .cables
            .iter()
            .find(|cable| cable.wire == case.wire)
            .ok_or_else(|| Error::new(format!("there is no cable {}", case.wire.name()), ""))?;
        for host in [SENDER, RECEIVER] {
            self.net.in_host(host, || set_options(case.change))??;
        }
        let count = || -> Result<EndCounters, Error> {
            Ok([self.net.counters(SENDER)?, self.net.counters(RECEIVER)?])
        };
        let counted = match self.counted.take() {
            Some(counted) => counted,
            None => count()?,
        };
        let threads_before = kernel_times(cable)?;
        let (busy, softirqs) = (threads::busy()?, threads::softirqs()?);
        let clock = Clock::start();

        let listener = self.listener.try_clone().tried(|| "share a socket")?;
        let (on_sender, on_receiver) = self.about.pinned;
        let given_up = Arc::new(AtomicBool::new(false));
        let unwanted = given_up.clone();
        let reader =
            self.net.spawn_in(RECEIVER, move || receive(&listener, on_receiver, &unwanted))?;
        let options = options(cable, case);
        let sent = self.net.in_host(SENDER, || {
            let session = Session { clock, stop };
            send(&options, &session, bytes, on_sender)
        })?;
        given_up.store(sent.is_err(), Ordering::Relaxed);
        let received = reader.join().map_err(|_| {
            Error::new("the thread that reads has panicked", "this is a fault of the program")
        })?;
        let sent = sent?;
        let (read, receiver_spent) = received?;
        let wall = clock.now().since(Time::ZERO).0;
        let threads_after = settled(cable)?;
        let busy = threads::busy()?.saturating_sub(busy);
        let softirqs = threads::softirqs()?.saturating_sub(softirqs);

        let after = count()?;
        self.counted = Some(after);
        let [sender, receiver] = [after[0].since(&counted[0]), after[1].since(&counted[1])];
        let by_kernel = |i: usize| threads_after[i].saturating_sub(threads_before[i]);
        let sample = Sample {
            case: 0,
            round: 0,
            bytes: read,
            sender: Spent { caller_ns: sent.spent, kernel_ns: by_kernel(0) },
            receiver: Spent { caller_ns: receiver_spent, kernel_ns: by_kernel(1) },
            wall_ns: wall,
            busy_ns: busy,
            softirqs,
            payload: sent.info.snd_mss,
            segments: sender.out_segments,
            acks: receiver.out_segments,
            retransmitted: u64::from(sent.info.total_retrans),
            window: sent.info.snd_wnd.unwrap_or(0),
        };
        check(case, (bytes, self.tried), &sample, &sent.info)?;
        Ok(sample)
    }
}

/// Whether the transfer matches its case.
fn check(
    case: Case,
    (bytes, measured): (u64, bool),
    sample: &Sample,
    info: &TcpInfo,
) -> Result<(), Error> {
    let wrong = |message: String| {
        Err(Error::new(
            format!("MSS {}, {}, {}: {message}", case.mss, case.wire.name(), case.change.name()),
            "is something else setting net.ipv4.tcp_* in namespaces of this process? \
             `lasthop doctor` looks for the cause",
        ))
    };
    if sample.bytes != bytes {
        return wrong(format!("{} bytes of {bytes} arrived", sample.bytes));
    }
    let found = [info.timestamps, info.sack, info.window_scaling];
    let requested = enabled_options(case.change);
    if found != requested {
        return wrong(format!(
            "the ends agreed on timestamps, SACK, window scaling: {found:?}; requested {requested:?}"
        ));
    }
    // The first transfer from an address only stores the bound for the next ones.
    if measured && info.cwnd > FLIGHT {
        return wrong(format!(
            "the congestion window is {} segments, wanted {FLIGHT} at most",
            info.cwnd
        ));
    }
    let payload = u32::from(case.mss) - if requested[0] { TIMESTAMPS } else { 0 };
    if sample.payload != payload {
        return wrong(format!("segments carry {} bytes instead of {payload}", sample.payload));
    }
    if case.wire.apart() && (sample.sender.kernel_ns == 0 || sample.receiver.kernel_ns == 0) {
        return wrong("packets were not received by the threads assigned to that".to_owned());
    }
    Ok(())
}

/// Whether timestamps, SACK and window scaling are on.
fn enabled_options(change: Change) -> [bool; 3] {
    [Change::NoTimestamps, Change::NoSack, Change::NoScaling].map(|off| change != off)
}

/// Sets the options of future connections, in the calling thread's namespace.
fn set_options(change: Change) -> Result<(), Error> {
    let keys = ["tcp_timestamps", "tcp_sack", "tcp_window_scaling"];
    keys.into_iter().zip(enabled_options(change)).try_for_each(|(key, on)| {
        preset::write_sysctl(&format!("ipv4/{key}"), if on { "1" } else { "0" })
    })
}

fn options(cable: &Cable, case: Case) -> SendOptions {
    let from = if case.change == Change::QuickAcks { 3 } else { 1 };
    SendOptions {
        from: Some(SocketAddr::from((cable.address(from), 0))),
        congestion: Some("cubic".to_owned()),
        mss: Some(case.mss),
        ..SendOptions::new(SocketAddr::from((cable.address(2), PORT)))
    }
}

/// CPU time of the kernel threads of both ends.
fn kernel_times(cable: &Cable) -> Result<[u64; 2], Error> {
    let mut times = [0; 2];
    for (time, end) in times.iter_mut().zip(&cable.ends) {
        if let Some(thread) = end.thread {
            *time = threads::spent_by(thread)?;
        }
    }
    Ok(times)
}

/// Like `kernel_times`, after the threads have become idle: the last ACK may still be under way.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel is waited for, outside of what is measured"
)]
fn settled(cable: &Cable) -> Result<[u64; 2], Error> {
    let mut last = kernel_times(cable)?;
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(1));
        let now = kernel_times(cable)?;
        if now == last {
            break;
        }
        last = now;
    }
    Ok(last)
}

fn failed(part: &str, error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::new(
            format!("{part}: no progress for {PATIENCE} s"),
            "is this machine very busy? then try again",
        ),
        _ => Error::new(format!("{part}: {error}"), "`lasthop doctor` looks for the cause"),
    }
}

fn be_patient(stream: &TcpStream) -> io::Result<()> {
    let patience = Some(Duration::from_secs(PATIENCE));
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)
}

/// Writes `bytes` bytes and waits until the other end has closed.
fn send(
    options: &SendOptions,
    session: &Session<'_>,
    bytes: u64,
    processor: usize,
) -> Result<WriterResult, Error> {
    threads::pin_current_thread(processor)?;
    let chunk = vec![0x5a; CHUNK];
    let began = threads::own()?;
    let mut stream = endpoint::connected(options, session, |_| ())
        .map_err(|error| Error::new(error.to_string(), error.help()))?;
    let mut move_all = || -> io::Result<()> {
        be_patient(&stream)?;
        let mut left = bytes;
        while left > 0 {
            let size = left.min(CHUNK as u64);
            stream.write_all(&chunk[..size as usize])?;
            left -= size;
        }
        stream.shutdown(Shutdown::Write)?;
        match stream.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(io::Error::other("the receiver has sent something")),
        }
    };
    move_all().map_err(|error| failed("the sender", &error))?;
    let spent = threads::own()? - began;
    let info = TcpInfo::of(&stream).tried(|| "read TCP_INFO")?;
    Ok(WriterResult { spent, info })
}

/// Reads until the other end closes. Returns the number of bytes and the CPU time.
fn receive(
    listener: &TcpListener,
    processor: usize,
    unwanted: &AtomicBool,
) -> Result<(u64, u64), Error> {
    threads::pin_current_thread(processor)?;
    let mut room = vec![0; CHUNK];
    let began = threads::own()?;
    let mut move_all = || -> io::Result<u64> {
        setsockopt(listener, ReceiveTimeout, &TimeVal::milliseconds(100))?;
        let mut stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                Err(error) if unwanted.load(Ordering::Relaxed) => return Err(error),
                Err(_) => {}
            }
        };
        be_patient(&stream)?;
        let mut bytes = 0;
        loop {
            match stream.read(&mut room)? {
                0 => return Ok(bytes),
                count => bytes += count as u64,
            }
        }
    };
    let bytes = move_all().map_err(|error| failed("the receiver", &error))?;
    Ok((bytes, threads::own()? - began))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use lasthop_observe::cpu_time::Wire;
    use nix::sched::sched_getaffinity;
    use nix::unistd::Pid;

    use super::*;

    fn spent_some() {
        let mut sum = 0_u64;
        while threads::own().unwrap() < 2_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }

    /// A processor available to this process.
    fn processor() -> usize {
        let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
        (0..1024).find(|i| set.is_set(*i) == Ok(true)).unwrap()
    }

    /// Both ends report the bytes, and the CPU time of their threads.
    #[test]
    fn both_ends_count_the_bytes_and_their_own_time() {
        let listener = endpoint::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        listener.set_nonblocking(false).unwrap();
        let to = listener.local_addr().unwrap();
        let on = processor();
        let bytes = 3 * CHUNK as u64 + 7;
        let reader = std::thread::spawn(move || {
            spent_some();
            let before = threads::own().unwrap();
            let (read, spent) = receive(&listener, on, &AtomicBool::new(false)).unwrap();
            let most = threads::own().unwrap() - before;
            let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
            let used = (0..1024).filter(|i| set.is_set(*i) == Ok(true)).collect::<Vec<_>>();
            (read, spent, most, used)
        });
        let writer = std::thread::spawn(move || {
            spent_some();
            let before = threads::own().unwrap();
            let stop = AtomicBool::new(false);
            let session = Session { clock: Clock::start(), stop: &stop };
            let sent = send(&SendOptions::new(to), &session, bytes, on).unwrap();
            (sent.spent, threads::own().unwrap() - before, sent.info)
        });
        let (read, spent, most, used) = reader.join().unwrap();
        assert_eq!(read, bytes);
        assert!(0 < spent && spent <= most, "the receiver: {spent} ns of {most} ns");
        assert_eq!(used, [on], "the processor that it stays on");
        let (spent, most, info) = writer.join().unwrap();
        assert!(0 < spent && spent <= most, "the sender: {spent} ns of {most} ns");
        // The SYN and the FIN count as one byte each.
        assert!((bytes..=bytes + 2).contains(&info.bytes_acked), "{info:?}");
    }

    /// A receiver without a sender ends when it is stopped.
    #[test]
    fn a_stopped_receiver_without_a_sender_ends() {
        let listener = endpoint::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        listener.set_nonblocking(false).unwrap();
        let error = receive(&listener, processor(), &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.message, format!("the receiver: no progress for {PATIENCE} s"));
    }

    /// A sample counts only if the transfer matches its case; the error names the difference.
    #[test]
    fn a_transfer_that_differs_from_its_case_is_refused() {
        let mut room = [0_u8; 248];
        // TCP_INFO with timestamps, SACK and scaling, and a window of FLIGHT segments.
        room[5] = 7;
        room[80..84].copy_from_slice(&FLIGHT.to_ne_bytes());
        let info = TcpInfo::parse(&room).unwrap();
        let spent = |kernel_ns| Spent { caller_ns: 5, kernel_ns };
        let case = Case { mss: 1000, wire: Wire::Plain, change: Change::Base };
        let good = Sample {
            case: 0,
            round: 0,
            bytes: 77,
            sender: spent(1),
            receiver: spent(1),
            wall_ns: 1,
            busy_ns: 1,
            softirqs: 0,
            payload: 988,
            segments: 1,
            acks: 1,
            retransmitted: 0,
            window: 1,
        };
        let checked = |case: Case, measured: bool, sample: &Sample, info: &TcpInfo| {
            let result = check(case, (77, measured), sample, info);
            result.map_err(|error| error.message.split_once(": ").unwrap().1.to_owned())
        };
        assert_eq!(checked(case, true, &good, &info), Ok(()));
        let wide = TcpInfo { cwnd: FLIGHT + 1, ..info };
        assert_eq!(checked(case, false, &good, &wide), Ok(()), "the trial may have any window");
        let wrong = |message: &str| Err(message.to_owned());
        let text = "the congestion window is 201 segments, wanted 200 at most";
        assert_eq!(checked(case, true, &good, &wide), wrong(text));
        let less = Sample { bytes: 76, ..good };
        assert_eq!(checked(case, true, &less, &info), wrong("76 bytes of 77 arrived"));
        let small = Sample { payload: 1000, ..good };
        let text = "segments carry 1000 bytes instead of 988";
        assert_eq!(checked(case, true, &small, &info), wrong(text));
        let text = "packets were not received by the threads assigned to that";
        for (sender, receiver) in [(0, 1), (1, 0), (0, 0)] {
            let idle = Sample { sender: spent(sender), receiver: spent(receiver), ..good };
            assert_eq!(checked(case, true, &idle, &info), wrong(text), "{sender}, {receiver}");
            let together = Case { wire: Wire::Whole, ..case };
            assert_eq!(checked(together, true, &idle, &info), Ok(()), "one thread serves both");
        }
        // Each disabled option must be off, and all others on.
        for (i, change) in
            [Change::NoTimestamps, Change::NoSack, Change::NoScaling].into_iter().enumerate()
        {
            let case = Case { change, ..case };
            let payload = if i == 0 { 1000 } else { 988 };
            let sample = Sample { payload, ..good };
            let off = |at: usize| TcpInfo {
                timestamps: at != 0,
                sack: at != 1,
                window_scaling: at != 2,
                ..info
            };
            assert_eq!(checked(case, true, &sample, &off(i)), Ok(()), "{change:?}");
            for other in [0, 1, 2, 3].into_iter().filter(|other| *other != i) {
                let error = checked(case, true, &sample, &off(other)).unwrap_err();
                assert!(error.starts_with("the ends agreed on"), "{change:?}: {error}");
            }
        }
    }
}
