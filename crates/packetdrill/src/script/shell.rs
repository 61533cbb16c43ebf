//! The shell commands of a script, as far as they are settings of TCP.
//!
//! No command is passed to a shell. `sysctl -q name=value`, `set_sysctls.py /proc/sys/...=value` and the
//! usual `defaults.sh` become [`Command::Setting`]. Commands without an effect in a separate network are
//! ignored; all others are [`Command::Refused`], so that a run can report them.

/// Meaning of a piece of a shell command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// A setting below `net.ipv4`: its name without that prefix, and its value.
    Setting(String, String),
    /// The cached state of servers is discarded: segment sizes and Fast Open cookies.
    ForgetServers,
    /// It is not executed.
    Refused(String),
}

/// Maximum number of pieces of one command.
const PIECES_MAX: usize = 256;

/// The usual initial settings of scripts.
pub const DEFAULTS: &[(&str, &str)] = &[
    ("tcp_rmem", "4096 540000 15728640"),
    ("tcp_wmem", "4096 262144 4194304"),
    ("tcp_timestamps", "1"),
    ("tcp_syn_retries", "5"),
    ("tcp_synack_retries", "5"),
    ("tcp_frto", "2"),
    ("tcp_sack", "1"),
    ("tcp_dsack", "1"),
    ("tcp_fack", "0"),
    ("tcp_reordering", "3"),
    ("tcp_congestion_control", "cubic"),
    ("tcp_slow_start_after_idle", "0"),
    ("tcp_early_retrans", "4"),
    ("tcp_recovery", "1"),
    ("tcp_tso_win_divisor", "3"),
    ("tcp_ecn", "0"),
    ("tcp_ecn_option", "2"),
    ("tcp_pacing_ss_ratio", "200"),
    ("tcp_pacing_ca_ratio", "120"),
    ("tcp_notsent_lowat", "4294967295"),
    ("tcp_fastopen", "0x70403"),
    ("tcp_fastopen_key", "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4"),
    ("tcp_syncookies", "1"),
];

/// The meanings of the commands of `text`, in order.
pub fn commands(text: &str) -> Vec<Command> {
    let text = text.replace("\\\n", " ");
    let mut all = Vec::new();
    for line in text.lines() {
        for piece in pieces(line) {
            if all.len() < PIECES_MAX {
                command(&piece, &mut all);
            }
        }
    }
    all
}

/// The words of each command of a line, without comments and redirections.
fn pieces(line: &str) -> Vec<Vec<String>> {
    let (mut pieces, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ';' | '|' | '&') => {
                // `&>` and `>&` redirect; `&&` and `||` join.
                if c == '&' && chars.peek() == Some(&'>') {
                    continue;
                }
                if c == '&' && word.as_ref().is_some_and(|word| word.ends_with('>')) {
                    word.get_or_insert_default().push(c);
                    continue;
                }
                words.extend(word.take());
                pieces.push(core::mem::take(&mut words));
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    pieces.push(words);
    pieces.into_iter().map(without_redirections).filter(|words| !words.is_empty()).collect()
}

fn without_redirections(words: Vec<String>) -> Vec<String> {
    let mut remaining = Vec::new();
    let mut skip = false;
    for word in words {
        if core::mem::take(&mut skip) {
            continue;
        }
        let redirects = word.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('>');
        if redirects {
            skip = word.ends_with('>');
        } else {
            remaining.push(word);
        }
    }
    remaining
}

fn command(words: &[String], all: &mut Vec<Command>) {
    let whole = words.join(" ");
    let name = words[0].rsplit('/').next().unwrap_or("");
    let settings = |words: &[String], all: &mut Vec<Command>| {
        for word in words.iter().filter(|word| !word.starts_with('-')) {
            all.push(match setting(word) {
                Some((name, value)) => Command::Setting(name, value),
                None => Command::Refused(whole.clone()),
            });
        }
    };
    match name {
        "sysctl" | "set_sysctls.py" => settings(&words[1..], all),
        "defaults.sh" => all.extend(
            DEFAULTS.iter().map(|(n, v)| Command::Setting((*n).to_owned(), (*v).to_owned())),
        ),
        "ip" if whole.starts_with("ip tcp_metrics flush") => all.push(Command::ForgetServers),
        "true" | ":" => {}
        // Each run has a separate network, without offloads, behind a plain queue.
        _ if name.starts_with("sysctl_restore_") => {}
        "ethtool" => {}
        "ip" if words.get(1).is_some_and(|word| word == "tcp_metrics") => {}
        "tc" if whole.ends_with("dev tun0 root pfifo") || whole.starts_with("tc qdisc del") => {}
        _ => all.push(Command::Refused(whole)),
    }
}

/// A setting below `net.ipv4` of the form `name=value`.
fn setting(word: &str) -> Option<(String, String)> {
    let (path, value) = word.split_once('=')?;
    let path = path.trim_start_matches("/proc/sys/").replace('/', ".");
    let name = path.strip_prefix("net.ipv4.")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = !name.is_empty() && name.chars().all(plain) && value.len() <= 256;
    let value = with_products(&value.split_whitespace().collect::<Vec<_>>().join(" "));
    fits.then(|| (name.to_owned(), value))
}

/// Replaces each product of the shell, such as `$((15*1024*1024))`, by its value. Other expansions are unchanged, and
/// no setting accepts them.
fn with_products(value: &str) -> String {
    let (mut text, mut rest) = (String::new(), value);
    while let Some((before, after)) = rest.split_once("$((") {
        let Some((product, behind)) = after.split_once("))") else { break };
        let mut factors = product.split('*').map(|factor| factor.trim().parse::<u64>().ok());
        let number = factors.try_fold(1u64, |number, factor| number.checked_mul(factor?));
        let Some(number) = number else { break };
        text += &format!("{before}{number}");
        rest = behind;
    }
    text + rest
}
