//! A network with one interface whose other end is this process: the kernel's TCP under test scripts.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};

use super::error::{Error, Tried as _};
use super::{enter, ip};
use crate::sys::tun;

/// Name of the kernel's interface.
const NAME: &str = "tun0";

/// The other end of the interface.
#[derive(Debug)]
pub struct Tunnelled {
    file: File,
}

impl Tunnelled {
    /// Moves the calling process to a private network with one interface: `local` is its address with a
    /// prefix, `gateway` its default router.
    ///
    /// # Errors
    ///
    /// If the process has several threads, the kernel forbids it, or /dev/net/tun cannot be opened.
    pub fn enter(local: &str, gateway: &str) -> Result<Tunnelled, Error> {
        enter::enter()?;
        let file = File::options().read(true).write(true).open("/dev/net/tun").map_err(|error| {
            Error::new(
                format!("cannot open /dev/net/tun: {error}"),
                "run as root, or allow it: `sudo chmod 0666 /dev/net/tun`; a container needs `--device /dev/net/tun`",
            )
        })?;
        tun::attach(&file, NAME).tried(|| "make a TUN interface")?;
        ip::batch(&[
            "link set dev lo up".to_owned(),
            format!("addr add {local} dev {NAME}"),
            format!("link set dev {NAME} mtu 1500 up"),
            format!("route add default via {gateway} dev {NAME}"),
            // Scripts change this route.
            format!("route add 192.0.2.1 via {gateway} dev {NAME}"),
        ])?;
        Ok(Tunnelled { file })
    }

    /// Sets a value below `net.ipv4`. Returns false for an unknown name or an invalid value.
    pub fn set(name: &str, value: &str) -> bool {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        plain && fs::write(format!("/proc/sys/net/ipv4/{name}"), value).is_ok()
    }

    /// A handle for another thread.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn share(&self) -> io::Result<Tunnelled> {
        self.file.try_clone().map(|file| Tunnelled { file })
    }

    /// Waits for the next packet of the kernel.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut room = vec![0; 65_536];
        let len = (&self.file).read(&mut room)?;
        room.truncate(len);
        Ok(room)
    }

    /// Delivers a packet to the kernel.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(drop)
    }
}
