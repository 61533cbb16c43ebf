//! Calls of the socket layer.

use super::scan::Scan;
use super::{Call, Expr, Fault};

/// Maximum nesting of arguments, and maximum length of one list.
const DEPTH_MAX: u32 = 8;
const LIST_MAX: usize = 64;

pub(super) fn call(scan: &mut Scan<'_>) -> Result<Call, Fault> {
    let until = if scan.eat("...")? { Some(scan.seconds()?) } else { None };
    let name = scan.word()?.to_owned();
    scan.expect("(")?;
    let args = list(scan, ")", 0)?;
    scan.expect("=")?;
    let result = expr(scan, 0)?;
    scan.blanks()?;
    let errno = match scan.peek() {
        Some(c) if c.is_ascii_alphabetic() => Some(scan.word()?.to_owned()),
        _ => None,
    };
    // A note in parentheses explains the error or the result.
    if scan.eat("(")? {
        scan.until(")")?;
    }
    Ok(Call { name, args, until, result, errno })
}

fn list(scan: &mut Scan<'_>, end: &str, depth: u32) -> Result<Vec<Expr>, Fault> {
    let mut items = Vec::new();
    if scan.eat(end)? {
        return Ok(items);
    }
    loop {
        if items.len() >= LIST_MAX {
            return Err(scan.wrong("at most 64 values"));
        }
        items.push(expr(scan, depth)?);
        if scan.eat(end)? {
            return Ok(items);
        }
        if !scan.eat(",")? {
            return Err(scan.wrong(&format!("`,` or `{end}`")));
        }
    }
}

fn expr(scan: &mut Scan<'_>, depth: u32) -> Result<Expr, Fault> {
    let first = single(scan, depth)?;
    if !scan.eat("|")? {
        return Ok(first);
    }
    let mut terms = vec![first];
    loop {
        if terms.len() >= LIST_MAX {
            return Err(scan.wrong("at most 64 flags"));
        }
        terms.push(single(scan, depth)?);
        if !scan.eat("|")? {
            return Ok(Expr::Or(terms));
        }
    }
}

fn single(scan: &mut Scan<'_>, depth: u32) -> Result<Expr, Fault> {
    if depth > DEPTH_MAX {
        return Err(scan.wrong("values nested at most eight deep"));
    }
    if scan.eat("...")? {
        return Ok(Expr::Any);
    }
    if scan.eat("[")? {
        return Ok(Expr::List(list(scan, "]", depth + 1)?));
    }
    if scan.eat("{")? {
        return braces(scan, depth + 1);
    }
    if scan.eat("\"")? {
        let text = scan.until("\"")?.to_owned();
        // `"text"...` means that more may follow.
        scan.eat("...")?;
        return Ok(Expr::Text(text));
    }
    scan.blanks()?;
    match scan.peek() {
        Some(c) if c.is_ascii_digit() || c == '-' => Ok(Expr::Int(scan.int()?)),
        _ => {
            let word = scan.word()?.to_owned();
            // `htons(80)`, `inet_addr("192.0.2.1")`.
            if scan.eat("(")? {
                let mut args = list(scan, ")", depth + 1)?;
                return Ok(if args.len() == 1 { args.remove(0) } else { Expr::Tuple(args) });
            }
            Ok(Expr::Word(word))
        }
    }
}

/// `name=value` pairs or plain values, after `{`.
fn braces(scan: &mut Scan<'_>, depth: u32) -> Result<Expr, Fault> {
    let (mut fields, mut values) = (Vec::new(), Vec::new());
    if scan.eat("}")? {
        return Ok(Expr::Fields(fields));
    }
    loop {
        if fields.len() + values.len() >= LIST_MAX {
            return Err(scan.wrong("at most 64 values"));
        }
        match name(scan)? {
            Some(name) => fields.push((name, expr(scan, depth)?)),
            None => values.push(expr(scan, depth)?),
        }
        if scan.eat("}")? {
            break;
        }
        scan.expect(",")?;
    }
    match (fields.is_empty(), values.is_empty()) {
        (false, true) => Ok(Expr::Fields(fields)),
        (true, _) => Ok(Expr::Tuple(values)),
        (false, false) => Err(scan.wrong("only values or only `name=value`")),
    }
}

/// `name=` or `name(...)=`, if that is next.
fn name(scan: &mut Scan<'_>) -> Result<Option<String>, Fault> {
    let mut ahead = *scan;
    ahead.blanks()?;
    if !ahead.peek().is_some_and(|c| c.is_ascii_alphabetic()) {
        return Ok(None);
    }
    let name = ahead.word()?.to_owned();
    if ahead.eat("(")? {
        ahead.until(")")?;
    }
    if !ahead.eat("=")? {
        return Ok(None);
    }
    *scan = ahead;
    Ok(Some(name))
}
