//! Conversion of a script's calls to calls of the kernel.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use lasthop_live::sys::calls as sys;

use super::super::values::{bytes_of, integer, integer_field, number, port, show, word};
use super::super::wire::REMOTE;
use super::Reply;
use crate::script::{Call, Expr};

/// A call that can be made on any thread.
pub(super) type Job = Box<dyn FnOnce() -> Reply + Send>;

/// `MSG_FASTOPEN`: the call also connects.
const FAST_OPEN: i32 = 0x2000_0000;

/// Maximum length of buffers in bytes.
const BUFFER_MAX: i64 = 1 << 28;

fn reply(result: io::Result<i64>) -> Reply {
    match result {
        Ok(value) => Reply::value(value),
        Err(error) => Reply::error(&sys::errno_name(&error)),
    }
}

fn job(call: impl FnOnce() -> io::Result<i64> + Send + 'static) -> Result<Job, String> {
    Ok(Box::new(move || reply(call())))
}

/// A call that writes a number into the argument `index`.
fn writes(
    index: usize,
    call: impl FnOnce() -> io::Result<i64> + Send + 'static,
) -> Result<Job, String> {
    Ok(Box::new(move || match call() {
        Ok(value) => Reply {
            value: 0,
            errno: None,
            written: vec![(index, Expr::List(vec![Expr::Int(value)]))],
        },
        Err(error) => Reply::error(&sys::errno_name(&error)),
    }))
}

pub(super) fn prepare(call: &Call, fds: &BTreeMap<i64, i32>) -> Result<Job, String> {
    let arg = |index: usize| call.arg(index);
    let small = |index: usize| -> Result<i32, String> {
        Ok(integer(arg(index))?.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
    };
    let option = || match small(2) {
        Ok(name) => Ok((small(1)?, name)),
        Err(_) => Err(format!("{} {}", call.name, show(arg(2)))),
    };
    let real = |fd: i64| fds.get(&fd).copied().unwrap_or(-1);
    let fd = number(arg(0)).map_or(-1, real);
    let len = |index: usize| match integer(arg(index))? {
        len @ 0..=BUFFER_MAX => Ok(vec![0u8; len as usize]),
        _ => Err("buffers of that size".to_owned()),
    };
    let address = |index: usize, host| Ok::<_, String>(SocketAddrV4::new(host, port(arg(index))?));
    let peer = Ipv4Addr::from(REMOTE);
    match call.name.as_str() {
        "socket" => {
            let domain = match word(arg(0)) {
                Some("AF_INET6") => return Err("IPv6".to_owned()),
                _ => 2,
            };
            let kind = small(1)?;
            if kind & 0xf != 1 {
                return Err("sockets other than SOCK_STREAM".to_owned());
            }
            job(move || sys::socket(domain, kind, 6))
        }
        "bind" => {
            let to = address(1, Ipv4Addr::UNSPECIFIED)?;
            job(move || sys::bind(fd, to))
        }
        "listen" => {
            let backlog = small(1)?;
            job(move || sys::listen(fd, backlog))
        }
        "accept" | "accept4" => {
            let flags = if call.name == "accept4" { small(3)? } else { 0 };
            job(move || sys::accept(fd, flags))
        }
        "connect" => {
            let to = address(1, peer)?;
            job(move || sys::connect(fd, to))
        }
        "write" | "send" | "sendto" => {
            if word(arg(1)) == Some("NULL") {
                return Err("writes of no buffer".to_owned());
            }
            let flags = if call.name == "write" { 0 } else { small(3)? };
            let opens = flags & FAST_OPEN != 0 && call.args.len() > 4;
            let to = match opens {
                true => Some((address(4, peer)?, word(arg(4)) != Some("AF_UNSPEC"))),
                false => None,
            };
            let bytes = len(2)?;
            // A write to a closed pipe is an error without a signal.
            job(move || sys::send(fd, &bytes, flags | 0x4000, to))
        }
        "sendmsg" | "writev" => {
            let list = match call.name.as_str() {
                "writev" => arg(1),
                _ => arg(1).field("msg_iov").unwrap_or(&Expr::Any),
            };
            let Expr::List(items) = list else {
                return Err("a list of buffers by name".to_owned());
            };
            let piece = |item: &Expr| match item {
                Expr::Tuple(parts) => parts.get(1).and_then(number),
                _ => None,
            };
            let sum = items.iter().map(piece).try_fold(0i64, |sum, len| sum.checked_add(len?));
            let sum =
                sum.filter(|sum| (0..=BUFFER_MAX).contains(sum)).ok_or("buffers of that size")?;
            let flags = if call.name == "sendmsg" { small(2)? } else { 0 };
            if flags & 0x0400_0000 != 0 {
                return Err("MSG_ZEROCOPY".to_owned());
            }
            let named = arg(1).field("msg_name").is_some();
            let to = match named && flags & FAST_OPEN != 0 {
                true => Some((address(1, peer)?, true)),
                false => None,
            };
            job(move || sys::send(fd, &vec![0; sum as usize], flags | 0x4000, to))
        }
        "read" | "recv" | "recvfrom" => {
            let flags = if call.name == "read" { 0 } else { small(3)? };
            let mut room = len(2)?;
            job(move || sys::recv(fd, &mut room, flags))
        }
        "shutdown" => {
            let how = small(1)?;
            job(move || sys::shutdown(fd, how))
        }
        "close" => job(move || sys::close(fd)),
        "fcntl" => {
            let set = match word(arg(1)) {
                Some("F_SETFL") => Some(small(2)?),
                Some("F_GETFL") => None,
                _ => return Err("fcntl() other than F_GETFL and F_SETFL".to_owned()),
            };
            job(move || sys::flags(fd, set))
        }
        "setsockopt" => {
            let (level, name) = option()?;
            let value: Vec<u8> = match arg(3) {
                Expr::Text(text) => bytes_of(text),
                value @ Expr::Fields(_) => {
                    let field =
                        |name| Ok::<_, String>((integer_field(value, name)? as i32).to_ne_bytes());
                    [field("onoff")?, field("linger")?].concat()
                }
                value => match number(value) {
                    // A number may be larger than an int: only its bits count.
                    Some(n) => (n as u32).to_ne_bytes().to_vec(),
                    None => return Err(format!("setsockopt {}", show(arg(2)))),
                },
            };
            job(move || sys::setsockopt(fd, level, name, &value))
        }
        "getsockopt" => {
            let (level, name) = option()?;
            writes(3, move || sys::getsockopt(fd, level, name))
        }
        "ioctl" => {
            let request = number(arg(1)).ok_or("an ioctl of that name")? as u64;
            writes(2, move || sys::ioctl(fd, request))
        }
        "poll" => {
            let Expr::List(items) = arg(0) else { return Err("poll() without a list".to_owned()) };
            let watched = |item: &Expr| {
                let (fd, events) = (integer_field(item, "fd")?, integer_field(item, "events")?);
                Ok::<_, String>((fd, real(fd), events as i16))
            };
            let fds = items.iter().map(watched).collect::<Result<Vec<_>, _>>()?;
            let timeout = small(2)?;
            Ok(Box::new(move || {
                let raw: Vec<(i32, i16)> =
                    fds.iter().map(|(_, fd, events)| (*fd, *events)).collect();
                match sys::poll(&raw, timeout) {
                    Err(error) => Reply::error(&sys::errno_name(&error)),
                    Ok((value, revents)) => {
                        let item = |((fd, _, events), revents): (&(i64, i32, i16), &i16)| {
                            let fields = [
                                ("fd", *fd),
                                ("events", (*events).into()),
                                ("revents", (*revents).into()),
                            ];
                            let fields = fields.map(|(name, n)| (name.to_owned(), Expr::Int(n)));
                            Expr::Fields(fields.to_vec())
                        };
                        let items = fds.iter().zip(&revents).map(item).collect();
                        Reply { value, errno: None, written: vec![(0, Expr::List(items))] }
                    }
                }
            }))
        }
        other => Err(format!("the call {other}()")),
    }
}
