//! The text menu of the test sender (west97 4.5): destination, size, trace, start and quit.

use std::io::{self, Read as _, Write};
use std::os::fd::AsFd as _;

use lasthop_live::endpoint::Session;

use super::settings::Settings;

/// Size limit of an input line, bytes.
const LONGEST: usize = 4096;

/// One input of the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MenuInput {
    /// A line without its end.
    Line(String),
    /// The input is at its end.
    End,
    /// Ctrl-C.
    Interrupted,
}

/// The source of input.
pub trait InputSource {
    /// The next one.
    fn next(&mut self) -> io::Result<MenuInput>;
}

/// Input from the standard input, which Ctrl-C interrupts.
pub struct Terminal<'a> {
    session: Session<'a>,
    pending: Vec<u8>,
}

impl<'a> Terminal<'a> {
    /// `session` is stopped by Ctrl-C.
    pub fn new(session: Session<'a>) -> Terminal<'a> {
        Terminal { session, pending: Vec::new() }
    }
}

impl InputSource for Terminal<'_> {
    fn next(&mut self) -> io::Result<MenuInput> {
        let mut input = std::fs::File::from(io::stdin().as_fd().try_clone_to_owned()?);
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Ok(MenuInput::Line(String::from_utf8_lossy(&line).trim().to_owned()));
            }
            if self.pending.len() > LONGEST {
                self.pending.clear();
            }
            if !self.session.wait_for(&input)? {
                return Ok(MenuInput::Interrupted);
            }
            let mut piece = [0; 256];
            match input.read(&mut piece) {
                Ok(0) => return Ok(MenuInput::End),
                Ok(count) => self.pending.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The choice of the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Send to the destination, which is set.
    Start,
    /// Quit.
    Quit,
    /// Ctrl-C.
    Interrupted,
}

/// Shows the menu and changes `settings` until the user selects an action.
pub fn choose(
    settings: &mut Settings,
    trace: &str,
    answers: &mut dyn InputSource,
    out: &mut dyn Write,
) -> io::Result<Choice> {
    loop {
        show(settings, trace, out)?;
        let answer = match ask(answers, out, "choice: ")? {
            Ok(answer) => answer,
            Err(choice) => return Ok(choice),
        };
        match answer.as_str() {
            "1" => match ask(answers, out, "host or host:port: ")? {
                Ok(word) if word.is_empty() => {}
                Ok(word) => match word.parse() {
                    Ok(destination) => settings.destination = Some(destination),
                    Err(error) => writeln!(out, "{error}")?,
                },
                Err(choice) => return Ok(choice),
            },
            "2" => match ask(answers, out, "bytes, such as 2MB: ")? {
                Ok(word) if word.is_empty() => {}
                Ok(word) => match word.parse() {
                    Ok(amount) => settings.amount = amount,
                    Err(error) => writeln!(out, "{error}")?,
                },
                Err(choice) => return Ok(choice),
            },
            "3" => settings.debugging = !settings.debugging,
            "4" if settings.destination.is_some() => return Ok(Choice::Start),
            "4" => writeln!(out, "choose a destination first")?,
            "5" | "q" | "quit" => return Ok(Choice::Quit),
            _ => writeln!(out, "a number from 1 to 5")?,
        }
    }
}

fn show(settings: &Settings, trace: &str, out: &mut dyn Write) -> io::Result<()> {
    let destination =
        settings.destination.as_ref().map_or("none yet".to_owned(), |there| there.to_string());
    let debugging = if settings.debugging {
        format!("on, control blocks to {trace}")
    } else {
        "off".to_owned()
    };
    writeln!(out, "\n  1  destination  {destination}")?;
    writeln!(out, "  2  amount       {}", settings.amount)?;
    writeln!(out, "  3  debugging    {debugging}")?;
    writeln!(out, "  4  start")?;
    writeln!(out, "  5  quit\n")
}

/// Reads an answer, or the meaning of its absence.
fn ask(
    answers: &mut dyn InputSource,
    out: &mut dyn Write,
    question: &str,
) -> io::Result<Result<String, Choice>> {
    write!(out, "{question}")?;
    out.flush()?;
    Ok(match answers.next()? {
        MenuInput::Line(line) => Ok(line),
        MenuInput::End => Err(Choice::Quit),
        MenuInput::Interrupted => Err(Choice::Interrupted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Script(Vec<&'static str>);

    impl InputSource for Script {
        fn next(&mut self) -> io::Result<MenuInput> {
            if self.0.is_empty() {
                return Ok(MenuInput::End);
            }
            Ok(MenuInput::Line(self.0.remove(0).to_owned()))
        }
    }

    fn played(settings: &mut Settings, script: &[&'static str]) -> (Choice, String) {
        let mut out = Vec::new();
        let choice = choose(settings, "tcb.csv", &mut Script(script.to_vec()), &mut out).unwrap();
        (choice, String::from_utf8(out).unwrap())
    }

    #[test]
    fn menu_choices_change_the_settings() {
        let mut settings = Settings::default();
        let script = ["4", "1", "laptop:9", "2", "64KiB", "3", "4"];
        let (choice, shown) = played(&mut settings, &script);
        assert_eq!(choice, Choice::Start);
        assert!(shown.contains("choose a destination first"), "{shown}");
        assert!(shown.contains("on, control blocks to tcb.csv"), "{shown}");
        assert_eq!(settings.destination, Some("laptop:9".parse().unwrap()));
        assert_eq!((settings.amount.0, settings.debugging), (65_536, true));
    }

    #[test]
    fn nonsense_changes_nothing() {
        let mut settings = Settings::default();
        let (choice, shown) =
            played(&mut settings, &["1", "a b", "2", "many", "1", "", "2", "", "9", "", "5"]);
        assert_eq!((choice, &settings), (Choice::Quit, &Settings::default()));
        assert!(shown.contains("such as `laptop`"), "{shown}");
        assert!(shown.contains("`many` does not begin with a number"), "{shown}");
        assert!(shown.contains("a number from 1 to 5"), "{shown}");
        assert_eq!(played(&mut settings, &["1"]).0, Choice::Quit);
    }
}
