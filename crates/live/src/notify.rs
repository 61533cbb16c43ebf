//! Telling the service manager how we fare (sd_notify(3)): a datagram of a few words.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use lasthop_proto::units::{Span, Time};

/// The service manager, if there is one that wants to know.
#[derive(Debug)]
pub struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants to hear that we are alive.
    period: Option<Span>,
    next: Time,
}

impl Manager {
    /// The one that the environment names.
    pub fn from_environment() -> Manager {
        let socket = env::var("NOTIFY_SOCKET").ok().and_then(|name| open(&name).ok());
        let watched = env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok());
        let own =
            env::var("WATCHDOG_PID").ok().is_none_or(|pid| pid == std::process::id().to_string());
        // Twice as often as is asked for, as the manual says.
        let period = watched.filter(|us| own && *us > 0).map(|us: u64| Span::micros(us / 2));
        Manager { socket, period, next: Time::ZERO }
    }

    /// Says something, such as `READY=1`.
    pub fn say(&self, words: &str) {
        if let Some((socket, address)) = &self.socket {
            // A manager that does not listen changes nothing for us.
            let _ = socket.send_to_addr(words.as_bytes(), address);
        }
    }

    /// Says that the loop goes round, when it is time to.
    pub fn alive(&mut self, now: Time) {
        let Some(period) = self.period.filter(|_| now >= self.next) else { return };
        self.next = now + period;
        self.say("WATCHDOG=1");
    }
}

fn open(name: &str) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}
