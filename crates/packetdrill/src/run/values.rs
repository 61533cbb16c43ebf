//! Arguments and results: their values, and comparison with the expectation.

use crate::script::Expr;

/// Names of the socket layer with their values on Linux.
const NAMES: &[(&str, i64)] = &[
    ("AF_UNSPEC", 0),
    ("AF_INET", 2),
    ("AF_INET6", 10),
    ("SOCK_STREAM", 1),
    ("SOCK_DGRAM", 2),
    ("SOCK_NONBLOCK", 0o4000),
    ("IPPROTO_TCP", 6),
    ("IPPROTO_IP", 0),
    ("SOL_SOCKET", 1),
    ("SOL_TCP", 6),
    ("SOL_IP", 0),
    ("SO_REUSEADDR", 2),
    ("SO_ERROR", 4),
    ("SO_SNDBUF", 7),
    ("SO_RCVBUF", 8),
    ("SO_KEEPALIVE", 9),
    ("SO_LINGER", 13),
    ("SO_MAX_PACING_RATE", 47),
    ("SO_RCVLOWAT", 18),
    ("SO_MARK", 36),
    ("SO_ZEROCOPY", 60),
    ("IP_TOS", 1),
    ("IP_MTU_DISCOVER", 10),
    ("IP_FREEBIND", 15),
    ("IP_PMTUDISC_DONT", 0),
    ("IP_PMTUDISC_WANT", 1),
    ("IP_PMTUDISC_DO", 2),
    ("TCP_NODELAY", 1),
    ("TCP_MAXSEG", 2),
    ("TCP_CORK", 3),
    ("TCP_KEEPIDLE", 4),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 6),
    ("TCP_SYNCNT", 7),
    ("TCP_LINGER2", 8),
    ("TCP_DEFER_ACCEPT", 9),
    ("TCP_WINDOW_CLAMP", 10),
    ("TCP_QUICKACK", 12),
    ("TCP_CONGESTION", 13),
    ("TCP_USER_TIMEOUT", 18),
    ("TCP_FASTOPEN", 23),
    ("TCP_NOTSENT_LOWAT", 25),
    ("TCP_FASTOPEN_CONNECT", 30),
    ("TCP_FASTOPEN_KEY", 33),
    ("TCP_INQ", 36),
    ("F_GETFL", 3),
    ("F_SETFL", 4),
    ("O_RDONLY", 0),
    ("O_RDWR", 2),
    ("O_NONBLOCK", 0o4000),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("MSG_OOB", 1),
    ("MSG_PEEK", 2),
    ("MSG_TRUNC", 0x20),
    ("MSG_ERRQUEUE", 0x2000),
    ("MSG_DONTWAIT", 0x40),
    ("MSG_EOR", 0x80),
    ("MSG_NOSIGNAL", 0x4000),
    ("MSG_MORE", 0x8000),
    ("MSG_ZEROCOPY", 0x0400_0000),
    ("MSG_FASTOPEN", 0x2000_0000),
    ("POLLIN", 1),
    ("POLLPRI", 2),
    ("POLLOUT", 4),
    ("POLLERR", 8),
    ("POLLHUP", 16),
    ("POLLRDHUP", 0x2000),
    ("POLLRDNORM", 64),
    ("EPOLLIN", 1),
    ("EPOLLOUT", 4),
    ("EPOLLERR", 8),
    ("EPOLLHUP", 16),
    ("EPOLLRDHUP", 0x2000),
    ("EPOLLET", 1 << 31),
    ("EPOLLONESHOT", 1 << 30),
    ("EPOLLEXCLUSIVE", 1 << 28),
    ("EPOLL_CTL_ADD", 1),
    ("EPOLL_CTL_DEL", 2),
    ("EPOLL_CTL_MOD", 3),
    ("FIONREAD", 0x541b),
    ("SIOCINQ", 0x541b),
    ("SIOCOUTQ", 0x5411),
    ("SIOCOUTQNSD", 0x894b),
    ("NULL", 0),
    ("CMSG_LEVEL_IP", 0),
    ("CMSG_TYPE_RECVERR", 11),
    ("TCP_CM_INQ", 36),
    ("ENOMSG", 42),
    ("SO_TIMESTAMPING", 37),
    ("SCM_TIMESTAMPING", 37),
    ("SO_EE_ORIGIN_TIMESTAMPING", 4),
    ("SO_EE_ORIGIN_ZEROCOPY", 5),
    ("SO_EE_CODE_ZEROCOPY_COPIED", 1),
    ("SCM_TSTAMP_SND", 0),
    ("SCM_TSTAMP_SCHED", 1),
    ("SCM_TSTAMP_ACK", 2),
    ("SOF_TIMESTAMPING_TX_SOFTWARE", 1 << 1),
    ("SOF_TIMESTAMPING_SOFTWARE", 1 << 4),
    ("SOF_TIMESTAMPING_OPT_ID", 1 << 7),
    ("SOF_TIMESTAMPING_TX_SCHED", 1 << 8),
    ("SOF_TIMESTAMPING_TX_ACK", 1 << 9),
];

/// The number that `expr` represents.
pub fn number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Int(n) => Some(*n),
        Expr::Word(word) => NAMES.iter().find(|(name, _)| name == word).map(|(_, value)| *value),
        Expr::Or(terms) => terms.iter().try_fold(0, |sum, term| Some(sum | number(term)?)),
        Expr::List(items) if items.len() == 1 => number(&items[0]),
        _ => None,
    }
}

/// The bytes of a text, in which `\x0a` represents one byte.
pub fn bytes_of(text: &str) -> Vec<u8> {
    let mut pieces = text.split("\\x");
    let mut bytes = pieces.next().unwrap_or("").as_bytes().to_vec();
    for piece in pieces {
        match piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&piece.as_bytes()[2..]);
            }
            None => bytes.extend(piece.as_bytes()),
        }
    }
    bytes
}

/// The name that `expr` is.
pub fn word(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Word(word) => Some(word),
        _ => None,
    }
}

/// Whether `got` satisfies `expected`.
pub fn matches(expected: &Expr, got: &Expr) -> bool {
    match (expected, got) {
        (Expr::Any, _) => true,
        (Expr::List(a), Expr::List(b)) | (Expr::Tuple(a), Expr::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| matches(a, b))
        }
        (Expr::Fields(a), Expr::Fields(_)) => {
            a.iter().all(|(name, value)| got.field(name).is_none_or(|got| matches(value, got)))
        }
        _ => match (number(expected), number(got)) {
            (Some(a), Some(b)) => a == b,
            _ => expected == got,
        },
    }
}

/// A value in the language of scripts.
pub fn show(expr: &Expr) -> String {
    let join = |items: &[Expr]| items.iter().map(show).collect::<Vec<_>>().join(", ");
    match expr {
        Expr::Any => "...".to_owned(),
        Expr::Int(n) => n.to_string(),
        Expr::Word(word) => word.clone(),
        Expr::Text(text) => format!("\"{text}\""),
        Expr::Or(terms) => terms.iter().map(show).collect::<Vec<_>>().join("|"),
        Expr::List(items) => format!("[{}]", join(items)),
        Expr::Tuple(items) => format!("{{{}}}", join(items)),
        Expr::Fields(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}={}", show(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_names_have_numeric_values() {
        let word = |name: &str| Expr::Word(name.to_owned());
        assert_eq!(number(&Expr::Or(vec![word("POLLIN"), word("POLLOUT")])), Some(5));
        assert_eq!(number(&Expr::List(vec![Expr::Int(7)])), Some(7));
        assert_eq!(number(&word("SOMETHING")), None);
    }

    #[test]
    fn a_text_has_bytes() {
        assert_eq!(bytes_of("a\\x00\\xffb\\xz"), [b'a', 0, 0xff, b'b', b'z']);
        assert!(bytes_of("\\x").is_empty());
    }

    #[test]
    fn dots_allow_any_value() {
        let five = Expr::List(vec![Expr::Int(5)]);
        assert!(matches(&Expr::Any, &five) && matches(&five, &five));
        assert!(!matches(&five, &Expr::List(vec![Expr::Int(6)])));
        assert!(matches(&Expr::Word("POLLIN".into()), &Expr::Int(1)));
    }
}
