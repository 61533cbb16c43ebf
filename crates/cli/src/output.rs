//! Output of results: files are written atomically.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

pub use lasthop_batch::files::AtomicFile;

use crate::failure::Failure;
use crate::format::Format;
use crate::outcome::Outcome;
use crate::{note, style};

/// Prints text to stdout, wrapped to the terminal's width.
pub fn print(text: &str) -> Result<(), Failure> {
    exact(&style::wrapped(&for_here(text)))
}

/// Directories that `sudo` searches, whatever the caller's PATH.
const SECURE_PATH: [&str; 7] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/snap/bin"];

/// Adapts a text to this machine. If `sudo` would not find this program, as after `cargo install`, the
/// `sudo lasthop` commands name its file. Pages of the manual are named where a package has put them.
pub fn for_here(text: &str) -> Cow<'_, str> {
    naming(text, str::to_owned)
}

/// [`for_here`] for a text in JSON.
pub fn for_here_in_json(text: &str) -> Cow<'_, str> {
    naming(text, |program| {
        let quoted = serde_json::Value::from(program).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    })
}

fn naming(text: &str, escaped: impl Fn(&str) -> String) -> Cow<'_, str> {
    const COMMAND: &str = "sudo lasthop";
    let text = naming_pages(text, &escaped);
    let program = std::env::current_exe().ok().filter(|_| text.contains(COMMAND));
    match program.as_deref().and_then(named_for_sudo) {
        Some(program) => Cow::Owned(text.replace(COMMAND, &format!("sudo {}", escaped(&program)))),
        None => text,
    }
}

/// The text with pages of the manual where a package has put them. Commands in it are unchanged.
pub fn with_manual(text: &str) -> Cow<'_, str> {
    naming_pages(text, str::to_owned)
}

fn naming_pages(text: &str, escaped: impl Fn(&str) -> String) -> Cow<'_, str> {
    let program = std::env::current_exe().ok().filter(|_| text.contains("docs/"));
    match program.as_deref().and_then(pages) {
        Some(pages) => Cow::Owned(with_pages(text, &escaped(&pages))),
        None => Cow::Borrowed(text),
    }
}

/// The directory in which a package has put the manual, by the place of the program.
fn pages(program: &Path) -> Option<String> {
    let dir = program.parent()?.parent()?.join("share/doc/lasthop");
    dir.join("how-to").is_dir().then(|| dir.display().to_string())
}

/// The text with the pages of the manual below `dir`.
pub fn with_pages(text: &str, dir: &str) -> String {
    ["how-to", "reference", "explanation"].iter().fold(text.to_owned(), |text, part| {
        text.replace(&format!("docs/{part}/"), &format!("{dir}/{part}/"))
    })
}

/// The path of this program for `sudo`, if its name is not sufficient.
fn named_for_sudo(program: &Path) -> Option<String> {
    let dir = program.parent()?;
    let found = SECURE_PATH.iter().any(|secure| Path::new(secure) == dir);
    let found = found && program.file_name().is_some_and(|name| name == "lasthop");
    (!found).then(|| quoted(program))
}

/// Prints text to stdout without wrapping: data for programs, files, and text to copy. A closed pipe is an
/// error that ends the program quietly.
pub fn exact(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output)
}

/// Reports the finished runs of an interrupted command, and `dir` if they are stored there.
pub fn interrupted(dir: Option<&Path>) -> Outcome {
    match dir {
        Some(dir) => eprintln!(
            "interrupted; finished work is stored in {}: the same command continues from there",
            dir.display()
        ),
        None => eprintln!(
            "interrupted; with `-o DIR` finished work would be stored, and the same command would continue"
        ),
    }
    Outcome::Interrupted
}

/// Quotes a word for a shell if needed.
pub fn quoted(word: impl AsRef<std::ffi::OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,+%:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Prints an answer as JSON, with its format.
pub fn print_json(format: Format, answer: &impl serde::Serialize) -> Result<(), Failure> {
    exact(&for_here_in_json(&json(&format.of(answer))?))
}

/// Creates a directory for results if needed, and checks that it is writable.
pub fn prepare(dir: &Path) -> Result<(), Failure> {
    let help = "choose a directory that is not there yet, or that you may write to";
    if fs::metadata(dir).is_ok_and(|found| !found.is_dir()) {
        let message = format!("{}: this is a file, and results need a directory", dir.display());
        return Err(Failure::input(message, help));
    }
    fs::create_dir_all(dir).map_err(|error| Failure::file(dir, error, help))?;
    // An uncommitted file is removed.
    AtomicFile::create(&dir.join("probe"))
        .map(drop)
        .map_err(|error| Failure::file(dir, error, help))
}

/// Writes a file atomically.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = lasthop_batch::files::whole(path, bytes);
    note::detail(|| format!("wrote {}, {} bytes", path.display(), bytes.len()));
    written.map_err(|error| match path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) if error.kind() == io::ErrorKind::NotFound => Failure::input(
            format!("{}: there is no directory {}", path.display(), dir.display()),
            "create it, or choose a file in a directory that is there",
        ),
        _ => Failure::file(path, error, "is there room, and may you write there?"),
    })
}

/// Removes files of an earlier answer of `command` from a directory of results: `names` are those of this answer. A
/// hidden file lists them for the next one. Other files are not touched.
pub fn remove_former(dir: &Path, command: &str, names: &[String]) -> Result<(), Failure> {
    let list = dir.join(format!(".lasthop-{command}"));
    // Absent, or not text: no earlier answer.
    let former = fs::read_to_string(&list).unwrap_or_default();
    for name in former.lines().filter(|name| !names.iter().any(|new| new == name)) {
        let is_plain = Path::new(name).file_name().is_some_and(|plain| plain == name);
        let path = dir.join(name);
        if is_plain && path.is_file() {
            fs::remove_file(&path)
                .map_err(|error| Failure::file(&path, error, "it is of an earlier answer"))?;
            note::detail(|| format!("removed {}, of an earlier answer", path.display()));
        }
    }
    write(&list, (names.join("\n") + "\n").as_bytes())
}

/// The list of plots and pages that other commands have made from the results in a directory, for [`remove_former`].
const MADE: &str = "made";

/// Adds `name` to the files that were made from the results in `dir`.
pub fn add_made(dir: &Path, name: &str) -> Result<(), Failure> {
    let list = dir.join(format!(".lasthop-{MADE}"));
    let former = fs::read_to_string(&list).unwrap_or_default();
    let others = former.lines().filter(|other| *other != name);
    write(
        &list,
        others.chain([name]).map(|name| format!("{name}\n")).collect::<String>().as_bytes(),
    )
}

/// Writes the results of a directory. If they differ from those that it had, files made from those are removed.
pub fn write_results(dir: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = dir.join(name);
    if fs::read(&path).is_ok_and(|former| former != text.as_bytes()) {
        remove_former(dir, MADE, &[])?;
    }
    write(&path, text.as_bytes())
}

/// A value as JSON for a file or for stdout.
pub fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Output(io::Error::other(error)))?;
    text.push('\n');
    Ok(text)
}

/// Rows of a name and a description.
pub fn two_columns<'a>(rows: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let width = rows.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, description) in rows {
        // Padded before colours are added, which have no width.
        let name = style::heading(&format!("{name:<width$}"));
        text += &format!("{name}  {description}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sudo_needs_the_full_path_outside_its_search_path() {
        let named = |path: &str| named_for_sudo(Path::new(path));
        assert_eq!(["/usr/bin/lasthop", "/usr/local/bin/lasthop"].map(named), [None, None]);
        assert_eq!(named("/home/ann/.cargo/bin/lasthop").unwrap(), "/home/ann/.cargo/bin/lasthop");
        assert_eq!(named("/home/a b/lasthop").unwrap(), "'/home/a b/lasthop'");
        assert_eq!(named("/usr/bin/lasthop-0.2.0").unwrap(), "/usr/bin/lasthop-0.2.0");
    }

    #[test]
    fn printed_commands_name_the_program_that_prints_them() {
        let text = for_here("run `sudo lasthop ctl get`, or `sudo ip link`");
        let own = std::env::current_exe().unwrap();
        assert_eq!(text, format!("run `sudo {} ctl get`, or `sudo ip link`", quoted(&own)));
        assert_eq!(for_here("lasthop run"), "lasthop run");
    }

    #[test]
    fn pages_are_named_where_a_package_has_put_them() {
        let prefix = tempfile::tempdir().unwrap();
        let program = prefix.path().join("bin/lasthop");
        assert_eq!(pages(&program), None);
        fs::create_dir_all(prefix.path().join("share/doc/lasthop/how-to")).unwrap();
        let dir = pages(&program).unwrap();
        let text = with_pages("docs/how-to/link.md explains docs/mine.toml", &dir);
        assert_eq!(text, format!("{dir}/how-to/link.md explains docs/mine.toml"));
    }
}
