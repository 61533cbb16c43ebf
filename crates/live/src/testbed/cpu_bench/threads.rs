//! Threads, including the kernel's: their processors and CPU times.

use std::fs;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

use super::super::error::{Error, Tried as _};
use crate::clock::nanoseconds;

/// The kernel's thread that receives at an interface: `napi/NAME-NUMBER`, truncated by older kernels.
pub(super) fn of_interface(interface: &str) -> Result<Pid, Error> {
    let name = format!("napi/{interface}");
    let processes = fs::read_dir("/proc").tried(|| "list the processes")?;
    let numbers = processes
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers {
        // A thread that has exited meanwhile has no name.
        let Ok(found) = fs::read_to_string(format!("/proc/{number}/comm")) else { continue };
        if is_thread(found.trim_end(), &name) {
            return Ok(Pid::from_raw(number));
        }
    }
    Err(Error::new(
        format!("the kernel's thread `{name}` cannot be found"),
        "a container hides the kernel's threads: run lasthop outside of it, or \
         share its process namespace (`--pid host`)",
    ))
}

fn is_thread(found: &str, name: &str) -> bool {
    found.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// CPU time of a process or of a kernel thread, nanoseconds.
pub(super) fn spent_by(pid: Pid) -> Result<u64, Error> {
    let clock = ClockId::pid_cpu_clock_id(pid).tried(|| format!("find the clock of process {pid}"));
    read(clock?)
}

/// CPU time of the calling thread, nanoseconds, system calls included.
pub(super) fn own() -> Result<u64, Error> {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: ClockId) -> Result<u64, Error> {
    clock_gettime(clock).tried(|| "read a CPU clock").map(nanoseconds)
}

/// Busy time of all processors, nanoseconds, at the resolution of ticks.
pub(super) fn busy() -> Result<u64, Error> {
    let text = fs::read_to_string("/proc/stat").tried(|| "read /proc/stat")?;
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100).max(1) as u64;
    Ok(ticks(&text).unwrap_or(0) * (1_000_000_000 / per_second))
}

/// Ticks of user, nice, system, interrupts and softirqs. User includes guests; stolen time is excluded.
fn ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let at = |i: usize| fields.get(i).copied();
    Some(at(0)? + at(1)? + at(2)? + at(5).unwrap_or(0) + at(6).unwrap_or(0))
}

/// Number of softirqs for received packets on all processors.
pub(super) fn softirqs() -> Result<u64, Error> {
    let text = fs::read_to_string("/proc/softirqs").tried(|| "read /proc/softirqs")?;
    Ok(net_rx_count(&text).unwrap_or(0))
}

fn net_rx_count(softirqs: &str) -> Option<u64> {
    let counts = softirqs.lines().find_map(|line| line.trim_start().strip_prefix("NET_RX:"))?;
    Some(counts.split_whitespace().map_while(|word| word.parse::<u64>().ok()).sum())
}

/// Pins the calling thread to one processor.
pub(super) fn pin_current_thread(processor: usize) -> Result<(), Error> {
    pin(Pid::from_raw(0), processor).tried(|| format!("stay on processor {processor}"))
}

pub(super) fn pin(pid: Pid, processor: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    sched_setaffinity(pid, &set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_matches_its_full_interface_name() {
        for good in ["napi/w17s0-8193", "napi/w17s0", "napi/w17s0-"] {
            assert!(is_thread(good, "napi/w17s0"), "{good}");
        }
        for bad in ["napi/w17s01", "napi/w17r0-8193", "napi/w1", "ksoftirqd/0", ""] {
            assert!(!is_thread(bad, "napi/w17s0"), "{bad}");
        }
    }

    #[test]
    fn busy_time_excludes_idle_iowait_and_steal() {
        let stat = "cpu  10 20 30 4000 5000 6 7 8000 9 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(ticks(stat), Some(10 + 20 + 30 + 6 + 7));
        assert_eq!(ticks("cpu  1 2 3 4\n"), Some(6));
        for end in 0..stat.len() {
            let _ = ticks(&stat[..end]);
        }
        assert_eq!(ticks("intr 1 2"), None);
    }

    /// All processors together cannot exceed their time since the boot.
    #[test]
    fn busy_time_grows_with_work_in_nanoseconds() {
        let (before, begin) = (busy().unwrap(), own().unwrap());
        let mut sum = 0_u64;
        while own().unwrap() - begin < 150_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let after = busy().unwrap();
        // The counter has ticks; the first and the last are incomplete.
        assert!(after - before >= 50_000_000, "{} ns for 150 ms", after - before);
        let uptime = fs::read_to_string("/proc/uptime").unwrap();
        let seconds: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let processors = sysconf(SysconfVar::_NPROCESSORS_CONF).unwrap().unwrap() as f64;
        assert!((after as f64) < (seconds + 1.0) * processors * 1e9, "{after} ns in {seconds} s");
    }

    #[test]
    fn softirqs_of_all_processors_are_added() {
        let table = "       CPU0       CPU1\n  NET_TX:  5 6\n  NET_RX:         20         22\n";
        assert_eq!((net_rx_count(table), net_rx_count("NET_RX")), (Some(42), None));
    }

    #[test]
    fn cpu_time_excludes_waiting() {
        let before = own().unwrap();
        let (_sender, wait) = std::sync::mpsc::channel::<()>();
        let _ = wait.recv_timeout(std::time::Duration::from_millis(50));
        let waited = own().unwrap() - before;
        let mut sum = 0_u64;
        while own().unwrap() - before < 60_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(waited < 40_000_000, "{waited} ns of CPU time for waiting 50 ms");
        assert!(spent_by(Pid::this()).unwrap() >= 60_000_000);
    }
}
