//! `lasthop link`: a tunnel to another host that repairs losses of the path.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use lasthop_live::tunnel::{self as link, TunnelReport};
use lasthop_proto::tunnel::message::VERSION;
use lasthop_proto::tunnel::session::Notice;
use lasthop_scenario::{Error, Key, TunnelFile, parse_tunnel};
use serde_json::json;

use crate::failure::{Failure, Located};
use crate::outcome::Outcome;
use crate::scenario::{read, regular};
use crate::{format, output, style};

/// Run a tunnel to another host that repairs what the path loses (TULIP)
#[derive(clap::Args, Debug)]
pub struct LinkArgs {
    /// The tunnel's file
    #[arg(value_name = "FILE", required_unless_present = "keygen")]
    file: Option<PathBuf>,
    /// Make a new key and do nothing else: into FILE, for its owner only, or printed
    #[arg(long, conflicts_with_all = ["check", "socket"])]
    keygen: bool,
    /// With --keygen: put the key in the place of one that is there
    #[arg(long, requires = "keygen")]
    force: bool,
    /// Only check the file and the key
    #[arg(long)]
    check: bool,
    /// Control socket, instead of the one in the file
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &LinkArgs, json: bool) -> Result<Outcome, Failure> {
    let Some(path) = args.file.as_deref().filter(|_| !args.keygen) else {
        keygen(args.file.as_deref(), args.force, json)?;
        return Ok(Outcome::Done);
    };
    let file = load(path)?;
    let key = key(&file.key)?;
    if args.check {
        check(path, &file, json)?;
        return Ok(Outcome::Done);
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let given = args.socket.clone().or_else(|| file.socket.as_ref().map(PathBuf::from));
    let socket = super::station::socket(given, &name)?;
    link::run(&name, &file, key, &socket, move |news| print_news(&news, json))
        .map_err(|fault| Failure::input(fault.to_string(), fault.remedy()))?;
    Ok(Outcome::Done)
}

fn keygen(into: Option<&Path>, force: bool, json: bool) -> Result<(), Failure> {
    let random = link::random()
        .map_err(|error| Failure::file(Path::new("/dev/urandom"), error, "is /dev mounted?"))?;
    let key: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let Some(path) = into else {
        return match json {
            true => output::print_json(format::LINK, &json!({ "key": key })),
            false => output::exact(&format!("{key}\n")),
        };
    };
    let file = "choose a file in a directory that is there, and that you may write to";
    if path.is_dir() {
        return Err(Failure::input(format!("{}: this is a directory", path.display()), file));
    }
    keep(path, &key, force).map_err(|error| {
        if error.kind() == ErrorKind::NotFound {
            let dir = path.parent().unwrap_or(path).display();
            return Failure::input(
                format!("{}: there is no directory {dir}", path.display()),
                file,
            );
        }
        let help = match error.kind() {
            ErrorKind::AlreadyExists => {
                "hosts with the existing key could no longer connect to this host; \
                 `--force` replaces it"
            }
            _ => file,
        };
        Failure::file(path, error, help)
    })?;
    match json {
        true => {
            output::print_json(format::LINK, &json!({ "key-file": path.display().to_string() }))
        }
        false => output::print(&format!(
            "{}: a new key; copy it to the other host over a channel that you trust\n",
            path.display()
        )),
    }
}

/// Writes the key atomically into a file that only its owner may read.
fn keep(path: &Path, key: &str, force: bool) -> io::Result<()> {
    if !force && fs::symlink_metadata(path).is_ok() {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "the file exists already"));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let part = path.with_file_name(name);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&part)?;
    let written =
        writeln!(file, "{key}").and_then(|()| file.sync_all()).and_then(|()| match force {
            true => fs::rename(&part, path),
            // Another process may have created the file meanwhile.
            false => fs::hard_link(&part, path).and_then(|()| fs::remove_file(&part)),
        });
    written.inspect_err(|_| drop(fs::remove_file(&part)))
}

/// Reads and checks the file.
fn load(path: &Path) -> Result<TunnelFile, Failure> {
    let help = "give a tunnel's file, for example /etc/lasthop/link.toml; docs/reference/tunnel.md explains it";
    let mut from = regular(path, help)?;
    let text = read(&mut from, path, help)?;
    parse_tunnel(&text).map_err(|Error(diagnostic)| {
        Failure::Scenario(Box::new(Located::new(*diagnostic, &path.to_string_lossy(), &text, &[])))
    })
}

/// The key itself: 64 hexadecimal digits.
fn key(from: &Key) -> Result<Option<[u8; 32]>, Failure> {
    let mut mode = 0;
    let (word, place) = match from {
        Key::None => return Ok(None),
        Key::File(path) => {
            // A unit of systemd may only read the copy that systemd passes.
            let passed = credentials().map(|dir| dir.join("link.key")).filter(|key| key.exists());
            let path = passed.as_deref().unwrap_or(Path::new(path));
            let help = if path.exists() {
                "the file has a key that `lasthop link --keygen link.key` made; it must be readable by the user of the tunnel"
            } else {
                &format!("make one: `lasthop link --keygen {}`", path.display())
            };
            let mut from = regular(path, help)?;
            mode = from.metadata().map_err(|error| Failure::file(path, error, help))?.mode();
            (read(&mut from, path, help)?, path.display().to_string())
        }
        Key::Environment(name) => {
            let word = std::env::var(name).map_err(|_| {
                let help = format!("set it: `{name}=$(lasthop link --keygen)`");
                Failure::input(format!("there is no environment variable `{name}`"), help)
            })?;
            (word, format!("${name}"))
        }
    };
    let key = digits(word.trim()).ok_or_else(|| {
        let help = "a key has 64 hexadecimal digits; `lasthop link --keygen` makes one";
        Failure::input(format!("{place} holds no key"), help)
    })?;
    if mode & 0o077 != 0 && !is_credential(Path::new(&place)) {
        return Err(Failure::input(
            format!("others may read {place}, which holds the key"),
            format!("`chmod 600 {place}`"),
        ));
    }
    Ok(Some(key))
}

/// The directory of the credentials that systemd passes.
fn credentials() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY").filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// Whether systemd passes this file as a credential. Its ACL restricts access, and its mode shows only the
/// mask of the ACL.
fn is_credential(path: &Path) -> bool {
    credentials().is_some_and(|dir| path.parent() == Some(&dir))
}

fn digits(word: &str) -> Option<[u8; 32]> {
    let word: &[u8; 64] = word.as_bytes().try_into().ok()?;
    let mut key = [0; 32];
    for (byte, pair) in key.iter_mut().zip(word.chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    // A key of zeros means an open tunnel.
    (key != [0; 32]).then_some(key)
}

fn check(path: &Path, file: &TunnelFile, json: bool) -> Result<(), Failure> {
    let keyed = file.key != Key::None;
    if json {
        return output::print_json(
            format::LINK,
            &json!({
                "tun": file.tun, "addresses": file.addresses, "listen": file.listen, "peer": file.peer,
                "keyed": keyed, "window": file.window, "rate": file.rate, "queue": file.queue,
            }),
        );
    }
    let peer = file.peer.map_or("any peer".to_owned(), |peer| peer.to_string());
    let open = if keyed { "" } else { "; OPEN, without a key" };
    output::print(&format!("{}: good: {} | {peer}{open}\n", path.display(), file.tun))
}

/// A notice about foreign messages, as text.
fn noticed(notice: &Notice) -> String {
    match notice {
        Notice::OtherKey(from) => format!(
            "{from} has another key and was refused: both hosts must have the same key file"
        ),
        Notice::RefusedBy(from) => format!(
            "{from} reports that its key differs from ours (or an attacker on the path forged this report): both hosts \
             must have the same key file"
        ),
        Notice::OtherVersion(from, version) => format!(
            "{from} uses version {version} of the protocol, and this host only {VERSION}: both hosts need the same \
             version of lasthop"
        ),
        Notice::Reflected(from) => {
            format!("{from} returns our own messages, so it is not a peer; is `peer` right?")
        }
    }
}

/// Prints an event. A closed output does not stop the tunnel.
fn print_news(news: &TunnelReport, json: bool) {
    let value = match news {
        TunnelReport::Ready { tun, listen, socket, metrics } => {
            json!({ "ready": { "tun": tun, "listen": listen, "socket": socket.display().to_string(), "metrics": metrics } })
        }
        TunnelReport::Up { peer, mtu, window } => {
            json!({ "up": { "peer": peer, "mtu": mtu, "window": window } })
        }
        TunnelReport::Down => json!({ "down": {} }),
        TunnelReport::Mtu(mtu) => json!({ "mtu": mtu }),
        TunnelReport::Moved(peer) => json!({ "moved": { "peer": peer } }),
        TunnelReport::Notice(notice) => json!({ "notice": { "message": noticed(notice) } }),
        TunnelReport::Warning(text) => json!({ "warning": { "message": text } }),
    };
    let line = match news {
        _ if json => format::LINK.line(&value).trim_end().to_owned(),
        TunnelReport::Ready { tun, listen, socket, metrics } => {
            let metrics = metrics.map(|at| format!("; metrics at http://{at}/metrics"));
            let (socket, metrics) = (socket.display(), metrics.unwrap_or_default());
            format!("running; {tun}, datagrams at {listen}, control socket {socket}{metrics}")
        }
        TunnelReport::Up { peer, mtu, window } => {
            format!("the peer is there: {peer}; packets of up to {mtu} bytes, window {window}")
        }
        TunnelReport::Down => "the peer is gone".to_owned(),
        TunnelReport::Mtu(mtu) => format!("packets of up to {mtu} bytes pass"),
        TunnelReport::Moved(peer) => format!("the peer now has the address {peer}"),
        TunnelReport::Notice(notice) => format!("{} {}", style::bold("warning:"), noticed(notice)),
        TunnelReport::Warning(text) => format!("{} {text}", style::bold("warning:")),
    };
    match news {
        TunnelReport::Warning(_) | TunnelReport::Notice(_) if json => eprintln!("{line}"),
        TunnelReport::Warning(_) | TunnelReport::Notice(_) => {
            eprint!("{}", style::stderr_wrapped(&format!("{line}\n")));
        }
        _ if json => drop(output::exact(&format!("{line}\n"))),
        _ => drop(output::print(&format!("{line}\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_64_digits() {
        let word = "0123456789abcdefABCDEF9876543210".repeat(2);
        assert_eq!(digits(&word).unwrap()[..3], [0x01, 0x23, 0x45]);
        for bad in ["", "0", &word[1..], &word.replace('9', "x"), &"0".repeat(64)] {
            assert_eq!(digits(bad), None, "{bad}");
        }
    }
}
