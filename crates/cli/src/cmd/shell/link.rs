//! The scenario of the options' link.

use std::str::FromStr;

use lasthop_proto::units::{Probability, Rate, Span, UnitError};
use lasthop_scenario::Argument;
use toml::Value;

use crate::failure::Failure;
use crate::scenario::{Text, with_files};

/// Options that `--scenario` replaces.
const OWN: [&str; 8] =
    ["rate", "rate_back", "delay", "loss", "queue", "discipline", "trace", "agent"];

/// Properties of the link.
#[derive(clap::Args, Debug, Default)]
pub struct Link {
    /// Rate towards the program, and from it without --rate-back [default: infinitely fast]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "The link")]
    rate: Option<String>,
    /// Rate from the program
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "The link")]
    rate_back: Option<String>,
    /// Delay, one way [default: 0s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "The link")]
    delay: Option<String>,
    /// Probability that a packet is lost, in either direction [default: 0]
    #[arg(long, value_name = "P", allow_hyphen_values = true, help_heading = "The link")]
    loss: Option<String>,
    /// Queue in front of the link, in packets or bytes [default: 1000p]
    #[arg(long, value_name = "QUEUE", help_heading = "The link")]
    queue: Option<String>,
    /// What the queue does: codel, fq-codel, pie and others of docs/reference/scenario-files.md
    #[arg(long, value_name = "DISCIPLINE", help_heading = "The link")]
    discipline: Option<String>,
    /// Traces of Mahimahi instead of rates: from the program, towards it
    #[arg(long, value_name = "UP,DOWN", conflicts_with_all = ["rate", "rate_back"], help_heading = "The link")]
    trace: Option<String>,
    /// What runs at the base station before the link, which is a radio then, for example snoop
    #[arg(long, value_name = "AGENT", requires = "rate", conflicts_with_all = ["trace", "rate_back"], help_heading = "The link")]
    agent: Option<String>,
    /// The path of a scenario: a file, or a built-in one
    #[arg(long, value_name = "FILE|NAME", conflicts_with_all = OWN, help_heading = "The link")]
    pub scenario: Option<String>,
}

/// Hosts and a transfer, which a scenario requires; the program replaces the transfer. The near host is the
/// program's.
const HOSTS: &str = r#"transfer = { from = "far", to = "near", bytes = "1B" }

[host.far]
side = "left"
[host.near]
side = "right"
"#;

/// More than a scenario's default of 50 packets, since programs and queues are modern.
const QUEUE: &str = "1000p";

impl Link {
    /// The scenario of the options, without included files.
    pub fn text(&self) -> Result<Text, Failure> {
        if let Some(word) = self.loss.as_deref().filter(|word| is_bare_one(word)) {
            return Err(ambiguous_loss_failure(word));
        }
        self.check()?;
        let mut link: Vec<(&str, &str)> = vec![("queue", self.queue.as_deref().unwrap_or(QUEUE))];
        let mut stage = String::new();
        let optional = [("delay", &self.delay), ("discipline", &self.discipline)];
        link.extend(optional.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?))));
        let rate = self.rate.as_deref();
        if let Some(agent) = &self.agent {
            stage += &format!("[[path]]\nagent = {}\n", quoted(agent));
            link.extend(rate.map(|rate| ("rate", rate)));
            link.push(("duplex", "full"));
        } else if let Some(trace) = &self.trace {
            let Some((up, down)) = trace.split_once(',') else {
                let help = "two files, for example `--trace up.trace,down.trace`; the same one twice is possible";
                return Err(Failure::input(format!("`{trace}` is one trace"), help));
            };
            link.extend([("trace-left", up), ("trace-right", down)]);
        } else {
            link.extend(rate.map(|rate| ("rate-right", rate)));
            link.extend(self.rate_back.as_deref().or(rate).map(|rate| ("rate-left", rate)));
        }
        let kind = if self.agent.is_some() { "radio" } else { "link" };
        let errors = |p| format!("errors = {{ model = \"packet-loss\", p = {} }}\n", quoted(p));
        let (mut loss, course) = (String::new(), self.loss.as_ref().map(|p| format!("0s {p}")));
        match (&self.loss, &course) {
            (Some(p), _) if kind == "radio" => loss = errors(p),
            // A line that varies has losses over time, too.
            (_, Some(course)) if self.trace.is_some() => link.push(("losses", course)),
            (Some(p), _) => link.push(("frame-loss", p)),
            (None, _) => {}
        }
        let keys: Vec<_> =
            link.iter().map(|(key, value)| format!("{key} = {}", quoted(value))).collect();
        stage +=
            &format!("[[path]]\nname = \"{kind}\"\n{kind} = {{ {} }}\n{loss}", keys.join(", "));
        let (origin, name) = ("the options of the link".to_owned(), "shell".to_owned());
        let text = Text { origin, name, text: format!("{HOSTS}\n{stage}") };
        words_of_options(&text)?;
        Ok(text)
    }

    /// Checks quantities here, since an error in the scenario of the options would point at a text that the user did not
    /// write.
    fn check(&self) -> Result<(), Failure> {
        type Check = fn(&str) -> Option<UnitError>;
        let quantities: [(&str, &Option<String>, Check, &str); 4] = [
            ("--rate", &self.rate, fault::<Rate>, "20mbit"),
            ("--rate-back", &self.rate_back, fault::<Rate>, "20mbit"),
            ("--delay", &self.delay, fault::<Span>, "20ms"),
            ("--loss", &self.loss, fault::<Probability>, "1%"),
        ];
        for (option, value, fault, example) in quantities {
            if let Some((value, error)) = value.as_ref().and_then(|v| Some((v, fault(v)?))) {
                let message = format!("`{option} {value}`: {error}");
                return Err(Failure::input(message, format!("for example `{option} {example}`")));
            }
        }
        Ok(())
    }

    /// Name of the link in a prompt.
    pub fn label(&self) -> String {
        let loss = self.loss.as_ref().map(|loss| format!("loss {loss}"));
        let words = [&self.scenario, &self.rate, &self.trace, &self.delay, &loss, &self.agent];
        let words: Vec<_> = words.into_iter().flatten().map(String::as_str).collect();
        let label = if words.is_empty() { "link".to_owned() } else { words.join(" ") };
        // The label is quoted in shell commands.
        label.chars().filter(|c| c.is_alphanumeric() || " .,:/%+-_".contains(*c)).collect()
    }
}

impl Text {
    /// Includes the files that the text names, relative to the current directory.
    pub fn with_files(mut self, arguments: &[Argument]) -> Result<Text, Failure> {
        self.text = with_files(self.text, std::path::Path::new(""), arguments)?;
        Ok(self)
    }
}

/// Names the option of a wrong word, in place of the scenario that was made of the options.
fn words_of_options(text: &Text) -> Result<(), Failure> {
    let Err(error) = lasthop_scenario::parse(&text.text, &text.name, &[]) else { return Ok(()) };
    let key = error.key.rsplit('.').next().unwrap_or_default();
    if !["queue", "discipline", "agent"].contains(&key) {
        return Ok(());
    }
    let problem = error.message.split_once("`: ").map_or(&*error.message, |(_, problem)| problem);
    let help =
        error.help.replace(&format!("`{key} = \""), &format!("`--{key} ")).replace("\"`", "`");
    Err(Failure::input(format!("`--{key}`: {problem}"), help))
}

/// The fault of a word that is no quantity of this kind.
fn fault<T: FromStr<Err = UnitError>>(word: &str) -> Option<UnitError> {
    word.parse::<T>().err()
}

/// Whether a loss is 1 without a unit, which may mean everything or 1 %, as in `tc`.
pub fn is_bare_one(word: &str) -> bool {
    word.trim().parse() == Ok(1.0)
}

/// The error for a loss of 1.
fn ambiguous_loss_failure(word: &str) -> Failure {
    Failure::input(
        format!("`--loss {word}` would lose every packet"),
        "write `--loss 1%` for one packet in a hundred, as `tc` means it, or `--loss 100%` for all",
    )
}

/// Quotes a word of the user as a TOML string.
fn quoted(word: &str) -> String {
    Value::String(word.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::{LivePath, Stage, StageKind};

    fn path(link: &Link) -> Vec<Stage> {
        let text = link.text().unwrap().with_files(&[]).unwrap();
        LivePath::of_scenario(&text.text, &text.name, &[]).unwrap().1.path
    }

    fn some(word: &str) -> Option<String> {
        Some(word.to_owned())
    }

    #[test]
    fn the_program_is_on_the_right() {
        let link = Link { rate: some("2mbit"), rate_back: some("1mbit"), ..Link::default() };
        let path = path(&Link { delay: some("7ms"), queue: some("9p"), ..link });
        let line = path[0].kind.line().unwrap();
        let rates = [line.rate_right, line.rate_left].map(|rate| rate.map(Rate::bps));
        assert_eq!((rates, line.delay), ([Some(2_000_000), Some(1_000_000)], Span::millis(7)));
    }

    #[test]
    fn one_rate_is_for_both_directions_and_a_loss_for_all_kinds_of_links() {
        let rate = || Link { rate: some("2mbit"), loss: some("3%"), ..Link::default() };
        let [line, radio, trace] = [
            path(&rate()),
            path(&Link { agent: some("snoop"), ..rate() }),
            path(&Link { trace: some("lte.up,lte.down"), rate: None, ..rate() }),
        ];
        let rates = line[0].kind.line().map(|line| (line.rate_right, line.rate_left));
        assert!(rates.is_some_and(|(right, left)| right.is_some() && right == left));
        assert!(matches!(line[0].kind, StageKind::Serial(_)), "a line that loses frames");
        assert!(matches!(radio[0].kind, StageKind::Agent(_)));
        let StageKind::Radio(radio) = &radio[1].kind else { panic!("{radio:?}") };
        assert!(radio.errors_right.is_some() && radio.errors_left.is_some());
        let StageKind::Varied(varied) = &trace[0].kind else { panic!("{trace:?}") };
        assert!(varied.losses.is_some() && varied.right.is_some() && varied.left != varied.right);
    }

    #[test]
    fn a_loss_of_one_must_say_whether_it_is_a_percentage() {
        for word in ["1", "1.0", " 1 "] {
            let link = Link { loss: some(word), ..Link::default() };
            assert!(link.text().unwrap_err().to_string().contains("every packet"), "{word}");
        }
        for word in ["1%", "100%", "0.01", "0"] {
            assert!(Link { loss: some(word), ..Link::default() }.text().is_ok(), "{word}");
        }
    }

    #[test]
    fn a_label_needs_no_quotes_of_shells() {
        let link = Link { rate: some("2mbit"), loss: some("1%"), ..Link::default() };
        assert_eq!(link.label(), "2mbit loss 1%");
        let link = Link { scenario: some("a'; rm -rf $HOME `b`"), ..Link::default() };
        assert_eq!(link.label(), "a rm -rf HOME b");
    }
}
