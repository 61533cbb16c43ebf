//! A script as a whole: options, events and their times.

use super::scan::Scan;
use super::{Action, EVENTS_MAX, Event, Fault, SCRIPT_MAX, Script, When, call, packet};

pub(super) fn script(text: &str) -> Result<Script, Fault> {
    if text.len() > SCRIPT_MAX {
        return Err(Fault::syntax(1, format!("a script has at most {SCRIPT_MAX} bytes")));
    }
    let mut scan = Scan::new(text);
    let mut script = Script::default();
    loop {
        scan.blanks()?;
        let line = scan.line();
        if scan.eat("--")? {
            script.options.push(option(&mut scan, line)?);
        } else if scan.eat("`")? {
            script.commands.push((line, scan.until("`")?.to_owned()));
        } else if scan.rest().is_empty() {
            return Ok(script);
        } else {
            if script.events.len() >= EVENTS_MAX {
                return Err(Fault::syntax(
                    line,
                    format!("a script has at most {EVENTS_MAX} events"),
                ));
            }
            script.events.push(event(&mut scan, line)?);
        }
    }
}

/// `name`, `name=value` or `name=name=value`, after `--`.
fn option(scan: &mut Scan<'_>, line: u32) -> Result<(u32, String, Option<String>), Fault> {
    let name = scan.run(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-').to_owned();
    if name.is_empty() {
        return Err(scan.wrong("the name of an option, as `--tolerance_usecs=10000`"));
    }
    if !scan.rest().starts_with('=') {
        return Ok((line, name, None));
    }
    scan.expect("=")?;
    let value = scan.run(|c| !c.is_whitespace()).trim_matches('"').to_owned();
    Ok((line, name, Some(value)))
}

fn event(scan: &mut Scan<'_>, line: u32) -> Result<Event, Fault> {
    let when = when(scan)?;
    scan.blanks()?;
    let rest = scan.rest();
    let action = if rest.starts_with('<') || rest.starts_with('>') {
        Action::Packet(packet::packet(scan)?)
    } else if scan.eat("`")? {
        Action::Shell(scan.until("`")?.to_owned())
    } else if scan.eat("%{")? {
        Action::Code(scan.until("}%")?.to_owned())
    } else {
        Action::Call(call::call(scan)?)
    };
    Ok(Event { line, when, action })
}

fn when(scan: &mut Scan<'_>) -> Result<When, Fault> {
    if scan.eat("*")? {
        return Ok(When::Any);
    }
    let relative = scan.eat("+")?;
    let from = scan.seconds()?;
    if !scan.eat("~")? {
        return Ok(if relative { When::After(from) } else { When::At(from) });
    }
    if relative {
        scan.expect("+")?;
    }
    let to = scan.seconds()?;
    if to < from {
        return Err(Fault::syntax(
            scan.line(),
            "the end of a range of times lies before its start",
        ));
    }
    Ok(if relative { When::AfterBetween(from, to) } else { When::Between(from, to) })
}
