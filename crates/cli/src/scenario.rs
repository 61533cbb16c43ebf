//! Loads scenarios and parses them to plans.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use lasthop_scenario::examples::file;
use lasthop_scenario::files::{self, Named};
use lasthop_scenario::{Argument, Error, Plan, Warning, example, nearest_example};
use lasthop_study::Source;

use crate::failure::{Failure, Located, instead_of};
use crate::snippet::Severity;
use crate::{features, note, output};

/// Size limit of a scenario, bytes, so that a capture given by mistake is not read completely.
const LONGEST: u64 = 16 << 20;
/// Size limit of a file of a link, bytes: an hour of a 5G trace.
const LONGEST_FILE: u64 = 128 << 20;

/// Text and name of a scenario.
#[derive(Debug)]
pub struct Text {
    /// Origin for messages: the path, or the name of a built-in scenario.
    pub origin: String,
    /// The scenario's name, where the text gives none.
    pub name: String,
    /// The text itself.
    pub text: String,
}

/// Adds the files that the text and of `arguments` name. Paths in the text are relative to the directory
/// `directory`.
pub fn with_files(
    mut text: String,
    directory: &Path,
    arguments: &[Argument],
) -> Result<String, Failure> {
    let help = "paths in a scenario start at its directory, those of `--set` and `--vary` at the current one; files are \
                traces of `mm-link`, CSV, or visits such as `8s east`, in UTF-8, at most 128 MiB: `lasthop trace` makes \
                traces, `head -n` cuts them";
    for Named { name, by_argument } in files::named(&text, arguments) {
        let path = if by_argument { PathBuf::from(&name) } else { directory.join(&name) };
        let mut from = match std::fs::File::open(&path) {
            // A file has precedence over a built-in one.
            Err(_) if file(&name).is_some() => continue,
            opened => opened.map_err(|error| Failure::file(&path, error, help))?,
        };
        let bytes = bounded(&mut from, &path, "a file of a scenario", LONGEST_FILE, help)?;
        let content = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            Failure::input(format!("{}: line {line} is not text in UTF-8", path.display()), help)
        })?;
        text = files::with(text, &name, &content);
    }
    Ok(text)
}

impl Text {
    /// Reads a file, `-` for stdin, or a built-in scenario, with the files that it and `arguments` name. A file has precedence over a built-in of the same name.
    pub fn load(word: &str, arguments: &[Argument]) -> Result<Text, Failure> {
        let mut text = Text::alone(word)?;
        let directory = if Path::new(word).is_file() { Path::new(word).parent() } else { None };
        text.text = with_files(text.text, directory.unwrap_or(Path::new("")), arguments)?;
        note::detail(|| {
            format!("scenario {}, {} bytes with its files", text.origin, text.text.len())
        });
        Ok(text)
    }

    fn alone(word: &str) -> Result<Text, Failure> {
        let path = Path::new(word);
        if word == "-" {
            let text = read(&mut std::io::stdin().lock(), Path::new("stdin"), SCENARIO)?;
            return Ok(Text { origin: "stdin".to_owned(), name: "stdin".to_owned(), text });
        }
        if !path.is_file()
            && let Some(example) = example(word.strip_suffix(".toml").unwrap_or(word))
        {
            return Ok(Text {
                origin: format!("{} (built in)", example.name),
                name: example.name.to_owned(),
                text: example.text.to_owned(),
            });
        }
        let with_ending = format!("{word}.toml");
        let stem = path.file_stem().map_or(word.into(), |stem| stem.to_string_lossy());
        let help = || match (instead_of(path), nearest_example(&stem)) {
            _ if Path::new(&with_ending).is_file() => format!("did you mean `{with_ending}`?"),
            (Some(guess), _) => guess,
            (None, Some(near)) => format!("did you mean the built-in scenario `{near}`?"),
            (None, None) => "give a TOML file or one of `lasthop list scenarios`, for example \
                     `lasthop run west97-lan`"
                .to_owned(),
        };
        if path.is_dir() {
            return Err(Failure::input(format!("{word}: this is a directory"), help()));
        }
        let mut file = std::fs::File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::input(
                format!("there is neither a file nor a built-in scenario `{word}`"),
                help(),
            ),
            _ => Failure::file(path, error, help()),
        })?;
        let text = read(&mut file, path, SCENARIO)?;
        let name = path.file_stem().map_or("scenario".into(), |stem| stem.to_string_lossy());
        Ok(Text { origin: word.to_owned(), name: name.into_owned(), text })
    }

    /// Parses the text with the arguments of the command line.
    pub fn plan(&self, arguments: &[Argument]) -> Result<(Plan, Vec<Warning>), Failure> {
        let (plan, warnings) = lasthop_scenario::parse(&self.text, &self.name, arguments)
            .map_err(|error| self.wrong(error, arguments, None))?;
        features::check(&plan)?;
        Ok((plan, warnings))
    }

    /// The failure for an error in the text, in `arguments` or in a table of points.
    pub fn wrong(
        &self,
        error: Error,
        arguments: &[Argument],
        points: Option<(&Path, &str)>,
    ) -> Failure {
        let located = match (error.at.source, points) {
            (lasthop_scenario::Source::Points, Some((path, points))) => {
                Located::new(*error.0, &path.to_string_lossy(), points, arguments)
            }
            _ => self.located(*error.0, arguments),
        };
        Failure::Scenario(Box::new(located))
    }

    /// The text in the form for studies.
    pub fn source(&self) -> Source<'_> {
        Source { origin: &self.origin, name: &self.name, text: &self.text }
    }

    /// Prints warnings with their locations.
    pub fn warn(&self, warnings: &[Warning], arguments: &[Argument]) {
        for warning in warnings.iter().filter(|_| !note::is_quiet()) {
            eprint!("{}", self.located(warning.clone(), arguments).rendered(Severity::Warning));
        }
    }

    /// A warning with its location, in JSON.
    pub fn json(&self, warning: &Warning, arguments: &[Argument]) -> serde_json::Value {
        self.located(warning.clone(), arguments).json()
    }

    fn located(&self, diagnostic: Warning, arguments: &[Argument]) -> Located {
        Located::new(diagnostic, &self.origin, &self.text, arguments)
    }
}

/// Remedy for a file that is no scenario.
pub const SCENARIO: &str = "a scenario is a TOML file in UTF-8";

/// `help`, with the command for a scenario that is given in place of another kind of file.
pub fn or_run(path: &Path, help: &str) -> String {
    match path.extension().is_some_and(|ending| ending == "toml") {
        true => format!("{help}; a scenario is run by `lasthop run {}`", output::quoted(path)),
        false => help.to_owned(),
    }
}

/// Reads a text of bounded length; `path` and `help` are for messages.
pub fn read(from: &mut impl std::io::Read, path: &Path, help: &str) -> Result<String, Failure> {
    let bytes = bounded(from, path, "a text", LONGEST, help)?;
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(text) => Err(not_text(path, help, text.as_bytes(), text.len())),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            Err(not_text(path, help, error.as_bytes(), valid))
        }
    }
}

/// The failure for a file that is no text in UTF-8 after `valid` bytes.
fn not_text(path: &Path, help: &str, bytes: &[u8], valid: usize) -> Failure {
    let name = path.display();
    if lasthop_observe::capture::open(bytes).is_ok() {
        let help = format!("{help}; `lasthop analyze {}` reads a capture", output::quoted(path));
        return Failure::input(format!("{name}: this is not a text file, but a capture"), help);
    }
    if bytes.starts_with(&[0xff, 0xfe, 0, 0]) || bytes.starts_with(&[0, 0, 0xfe, 0xff]) {
        let help = format!("{help}: save it in UTF-8, or convert it, `iconv -f UTF-32 -t UTF-8`");
        return Failure::input(format!("{name}: this is text in UTF-32"), help);
    }
    let packed = [(&[0x1f, 0x8b][..], "gunzip"), (&[0x28, 0xb5, 0x2f, 0xfd], "unzstd")];
    if let Some((_, program)) = packed.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        let help = format!("{help}: decompress it, `{program} {}`", output::quoted(path));
        return Failure::input(format!("{name}: this is a compressed file"), help);
    }
    // Every other byte of Western text in UTF-16 is zero.
    let zeros = |first| bytes.iter().skip(first).step_by(2).filter(|byte| **byte == 0).count();
    let has_mark = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    if has_mark || zeros(0).abs_diff(zeros(1)) * 4 > bytes.len() {
        let help = format!("{help}: save it in UTF-8, or convert it, `iconv -f UTF-16 -t UTF-8`");
        return Failure::input(format!("{name}: this is text in UTF-16"), help);
    }
    let is_printed = |byte: &u8| !byte.is_ascii_control() || b"\t\n\r".contains(byte);
    if bytes.iter().all(is_printed) {
        let line = 1 + bytes[..valid].iter().filter(|byte| **byte == b'\n').count();
        let help = format!("{help}: save it in UTF-8, or convert it, `iconv -f LATIN1 -t UTF-8`");
        return Failure::input(format!("{name}: line {line} is not in UTF-8"), help);
    }
    Failure::input(format!("{name}: this is not a text file"), help)
}

/// Opens a file of a service. Rejects pipes and devices, which would block the service.
pub fn regular(path: &Path, help: &str) -> Result<std::fs::File, Failure> {
    let error = |error| Failure::file(path, error, help);
    // Opening a pipe would block already.
    let kind = std::fs::metadata(path).map_err(error)?;
    if !kind.is_file() {
        let description = if kind.is_dir() { "a directory" } else { "not a regular file" };
        return Err(Failure::input(format!("{}: this is {description}", path.display()), help));
    }
    std::fs::File::open(path).map_err(error)
}

/// Reads bytes of bounded length; `subject` describes them in messages.
fn bounded(
    from: &mut impl std::io::Read,
    path: &Path,
    subject: &str,
    most: u64,
    help: &str,
) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    from.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::file(path, error, help))?;
    if bytes.len() as u64 > most {
        let message =
            format!("{}: larger than {} MiB, too large for {subject}", path.display(), most >> 20);
        return Err(Failure::input(message, help));
    }
    Ok(bytes)
}
