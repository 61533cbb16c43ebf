//! Messages to the service manager (sd_notify(3)): short datagrams, possibly with a descriptor that the manager stores
//! for the next process.

use std::env;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use lasthop_proto::units::{Span, Time};
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};

use crate::sys::inherited;

/// The service manager, if there is one.
#[derive(Debug)]
pub struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// The name of its socket.
    name: String,
    /// Interval of the watchdog notifications.
    period: Option<Span>,
    next: Time,
}

impl Manager {
    /// The manager that the environment names.
    pub fn from_environment() -> Manager {
        Manager::named(|name| env::var(name).ok())
    }

    /// The manager that the given variables name.
    fn named(variable: impl Fn(&str) -> Option<String>) -> Manager {
        let name = variable("NOTIFY_SOCKET").unwrap_or_default();
        let socket = open(&name).ok();
        let watched = variable("WATCHDOG_USEC").and_then(|text| text.parse().ok());
        let own = variable("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        // Half of the requested interval, as the manual recommends.
        let period = watched.filter(|us| own && *us > 0).map(|us: u64| Span::micros(us / 2));
        Manager { socket, name, period, next: Time::ZERO }
    }

    /// Sends a notification such as `READY=1`.
    pub fn say(&self, words: &str) {
        if let Some((socket, address)) = &self.socket {
            // Without a listening manager the datagram is lost.
            let _ = socket.send_to_addr(words.as_bytes(), address);
        }
    }

    /// Stores a descriptor under `name` in the manager for the next process, in place of an earlier one of this name.
    ///
    /// # Errors
    /// Errors of the system. It is no error if the manager does not store descriptors.
    pub fn store(&self, name: &str, descriptor: &impl AsFd) -> io::Result<()> {
        let Some((socket, _)) = &self.socket else { return Ok(()) };
        self.forget(name);
        let address = match self.name.strip_prefix('@') {
            Some(name) => UnixAddr::new_abstract(name.as_bytes())?,
            None => UnixAddr::new(self.name.as_str())?,
        };
        // The manager must not poll the descriptor (FDPOLL=0), which is never ready.
        let words = format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0");
        let descriptors = [descriptor.as_fd().as_raw_fd()];
        let control = [ControlMessage::ScmRights(&descriptors)];
        let words = [IoSlice::new(words.as_bytes())];
        sendmsg(socket.as_raw_fd(), &words, &control, MsgFlags::empty(), Some(&address))?;
        Ok(())
    }

    /// Removes the descriptor under `name` from the manager.
    pub fn forget(&self, name: &str) {
        self.say(&format!("FDSTOREREMOVE=1\nFDNAME={name}"));
    }

    /// Sends a watchdog notification, if one is due.
    pub fn alive(&mut self, now: Time) {
        let Some(period) = self.period.filter(|_| now >= self.next) else { return };
        self.next = now + period;
        self.say("WATCHDOG=1");
    }
}

/// The descriptor that the service manager has stored under `name` for this process. Later calls return `None`.
pub fn stored(name: &str) -> Option<OwnedFd> {
    let variable = |name: &str| env::var(name).ok();
    if variable("LISTEN_PID")? != std::process::id().to_string() {
        return None;
    }
    let count = variable("LISTEN_FDS")?.parse().ok()?;
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let mut all = inherited::take(count).into_iter().zip(names.split(':'));
    all.find_map(|(descriptor, own)| (own == name).then_some(descriptor))
}

fn open(name: &str) -> io::Result<(UnixDatagram, SocketAddr)> {
    if name.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(variables: &[(&str, &str)]) -> Manager {
        let find = |name: &str| variables.iter().find(|(found, _)| *found == name);
        Manager::named(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    /// sd_watchdog_enabled(3): half of the variable's time, and only if the variable is for this process.
    #[test]
    fn the_watchdog_period_is_half_of_watchdog_usec() {
        let own = std::process::id().to_string();
        let period = |us, pid: Option<&str>| {
            let pid = pid.map(|pid| ("WATCHDOG_PID", pid));
            let variables: Vec<_> = [("WATCHDOG_USEC", us)].into_iter().chain(pid).collect();
            named(&variables).period
        };
        assert_eq!(named(&[]).period, None);
        assert_eq!(period("3000000", None), Some(Span::micros(1_500_000)));
        assert_eq!(period("2", Some(&own)), Some(Span::micros(1)));
        assert_eq!(period("1", None), Some(Span::ZERO));
        assert_eq!(period("3000000", Some("0")), None, "for another process");
        for none in ["0", "", "x", "-1"] {
            assert_eq!(period(none, None), None, "{none}");
        }
    }

    /// Notifications arrive at a socket with a path, and at one with an abstract name.
    #[test]
    fn notifications_and_watchdog_pings_reach_the_manager() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("lasthop-notify-{}", std::process::id());
        let abstracted = SocketAddr::from_abstract_name(&name).unwrap();
        let cases = [
            (path.to_str().unwrap().to_owned(), UnixDatagram::bind(&path).unwrap()),
            (format!("@{name}"), UnixDatagram::bind_addr(&abstracted).unwrap()),
        ];
        for (name, socket) in cases {
            socket.set_nonblocking(true).unwrap();
            let received = || {
                let mut room = [0; 64];
                let len = socket.recv(&mut room).ok()?;
                Some(String::from_utf8_lossy(&room[..len]).into_owned())
            };
            let mut manager = named(&[("NOTIFY_SOCKET", &name), ("WATCHDOG_USEC", "2000")]);
            manager.say("READY=1");
            assert_eq!(received().as_deref(), Some("READY=1"), "{name}");
            let at = |us| Time::ZERO + Span::micros(us);
            for (us, fed) in [
                (0, true),
                (1, false),
                (999, false),
                (1000, true),
                (1999, false),
                (2500, true),
                (3499, false),
                (3500, true),
            ] {
                manager.alive(at(us));
                assert_eq!(received().as_deref(), fed.then_some("WATCHDOG=1"), "{name}: {us}");
            }
            let mut unwatched = named(&[("NOTIFY_SOCKET", &name)]);
            unwatched.alive(at(1 << 40));
            assert_eq!(received(), None);
        }
        named(&[]).say("READY=1");
    }
}
