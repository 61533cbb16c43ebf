//! Values of calls as the numbers of Linux, and lengths of lists of buffers.

use lasthop_proto::tcp::sockets::{Errno, Ready};

use super::super::values::number;
use crate::script::Expr;

pub(super) fn events_of(ready: &Ready) -> i64 {
    let bits = [
        (ready.read, 1 | 64),
        (ready.write, 4),
        (ready.error, 8),
        (ready.hang_up, 16),
        (ready.read_closed, 0x2000),
    ];
    bits.into_iter().filter(|(set, _)| *set).fold(0, |sum, (_, bit)| sum | bit)
}

pub(super) fn errno_number(errno: Errno) -> i64 {
    match errno {
        Errno::Again => 11,
        Errno::HostDown => 112,
        Errno::HostUnreachable => 113,
        Errno::Invalid => 22,
        Errno::NetUnreachable => 101,
        Errno::NoNetwork => 64,
        Errno::NoProtocol => 92,
        Errno::NotSupported => 95,
        Errno::Pipe => 32,
        Errno::Protocol => 71,
        Errno::ConnectionReset => 104,
        Errno::NotConnected => 107,
        Errno::TimedOut => 110,
        Errno::ConnectionRefused => 111,
    }
}

/// Bytes of a message.
pub(super) fn message(message: &Expr) -> Result<i64, String> {
    let pieces = message.field("msg_iov").ok_or("sendmsg() without msg_iov")?;
    self::pieces(pieces)
}

pub(super) fn pieces(list: &Expr) -> Result<i64, String> {
    let Expr::List(items) = list else { return Err("a list of buffers by name".to_owned()) };
    let len = |item: &Expr| match item {
        Expr::Tuple(parts) => parts.get(1).and_then(number),
        _ => None,
    };
    let sum = items.iter().map(len).try_fold(0i64, |sum, len| sum.checked_add(len?));
    sum.ok_or_else(|| "buffers without a length".to_owned())
}
