//! Arguments and results: their values, and comparison with the expectation.

use super::flows::PORT;
use crate::script::Expr;
use crate::symbol;

/// The number that `expr` represents.
pub fn number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Int(n) => Some(*n),
        Expr::Word(word) => symbol(word),
        Expr::Or(terms) => terms.iter().try_fold(0, |sum, term| Some(sum | number(term)?)),
        Expr::List(items) if items.len() == 1 => number(&items[0]),
        _ => None,
    }
}

/// The number in an argument; `...` and an omitted argument count as 0.
///
/// # Errors
/// The value, if it is not known.
pub fn integer(expr: &Expr) -> Result<i64, String> {
    match expr {
        Expr::Any => Ok(0),
        _ => number(expr).ok_or_else(|| format!("the value {}", show(expr))),
    }
}

/// The number in a field of an argument; an omitted field counts as 0.
///
/// # Errors
/// The value, if it is not known.
pub fn integer_field(expr: &Expr, name: &str) -> Result<i64, String> {
    expr.field(name).map_or(Ok(0), integer)
}

/// The port in an address; `...` is the usual one of scripts.
///
/// # Errors
/// The value, if it is no port.
pub fn port(address: &Expr) -> Result<u16, String> {
    let Some(port) = address.field("sin_port") else { return Ok(PORT) };
    u16::try_from(integer(port)?).map_err(|_| format!("the port {}", show(port)))
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
