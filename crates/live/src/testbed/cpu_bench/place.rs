//! The processors of the two ends, and the description of the machine.

use lasthop_observe::cpu_time::About;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::utsname::uname;
use nix::unistd::Pid;

use super::super::error::{Error, Tried as _};
use super::cable::Cable;
use super::threads::pin;

/// Assigns each end a processor, if there are two, and its kernel threads as well. A user who may not move
/// kernel threads leaves them.
pub(super) fn place(cables: &[Cable]) -> Result<About, Error> {
    let set = sched_getaffinity(Pid::from_raw(0)).tried(|| "query the processors")?;
    let allowed: Vec<usize> =
        (0..CpuSet::count()).filter(|i| set.is_set(*i).unwrap_or(false)).collect();
    let first = allowed.first().copied().unwrap_or(0);
    let pinned = (first, allowed.last().copied().unwrap_or(first));
    let threads = cables.iter().flat_map(|cable| cable.ends.iter().zip([pinned.0, pinned.1]));
    let all_pinned = threads
        .filter_map(|(end, processor)| Some((end.thread?, processor)))
        .all(|(thread, processor)| pin(thread, processor).is_ok());
    let kernel = uname().map(|name| name.release().to_string_lossy().into_owned());
    Ok(About {
        kernel: kernel.unwrap_or_default(),
        processors: allowed.len(),
        pinned,
        kernel_threads_pinned: all_pinned,
    })
}
