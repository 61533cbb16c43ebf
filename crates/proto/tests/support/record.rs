//! Common parts of segment scripts: a script is the complete record of a machine's actions, line by line.

use lasthop_proto::wire::Flags;

/// Flags by the letters of tcpdump.
pub const FLAGS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('.', Flags::ACK),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('e', Flags::AE),
];

/// The flags of `letters`.
pub fn flags(letters: &str) -> Flags {
    letters.chars().fold(Flags::NONE, |flags, letter| {
        flags | FLAGS.iter().find(|(c, _)| *c == letter).expect("a flag").1
    })
}

/// The letters of `flags`.
pub fn letters(flags: Flags) -> String {
    FLAGS.iter().filter(|(_, flag)| flags.has(*flag)).map(|(letter, _)| letter).collect()
}

/// The lines of a script, without comments and blank lines.
pub fn lines(script: &str) -> impl Iterator<Item = &str> {
    script.lines().map(|l| l.split('#').next().unwrap().trim()).filter(|l| !l.is_empty())
}

pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Fails with the whole record `got` if it differs from the script. `isn` is the initial sequence number of
/// the run.
#[track_caller]
pub fn compare(isn: u32, got: &[String], want: &[String]) {
    if got == want {
        return;
    }
    let same = got.iter().zip(want).take_while(|(a, b)| a == b).count();
    panic!(
        "initial sequence number {isn}: line {} is\n    {}\nwhere the script says\n    {}\nthe whole record:\n{}\n",
        same + 1,
        got.get(same).map_or("(nothing)", |s| s),
        want.get(same).map_or("(nothing)", |s| s),
        got.join("\n"),
    );
}
