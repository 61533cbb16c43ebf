//! Remedies for words that are no options of netem.

use super::words::{LineError, wrong};

/// The error for a word that is none of the `options`.
pub(super) fn no_option(word: &str, options: &[&'static str]) -> LineError {
    let separate = |keys: &str| {
        let help =
            format!("give it a separate `[[path]]` next to the link: `{word} = {{ {keys} }}`");
        wrong(format!("`{word}` is a separate stage"), help)
    };
    let none = |help: &str| wrong(format!("netem has no `{word}`"), help);
    match word {
        "tbf" => separate("rate = \"10mbit\", burst = \"32KiB\", latency = \"50ms\""),
        "police" => separate("rate = \"10mbit\", burst = \"100KiB\""),
        "htb" | "hfsc" | "cbq" => none(
            "a limit of the rate is `rate 10mbit` in this line, or a separate stage: `tbf = { rate = \"10mbit\", \
             burst = \"32KiB\", latency = \"50ms\" }`",
        ),
        "codel" | "fq_codel" | "cake" | "pie" | "fq_pie" | "red" | "fq" | "sfq" | "pfifo"
        | "bfifo" => none(
            "the queue's discipline is a key of a link without `netem`: `link = { rate = \"10mbit\", discipline = \
             \"fq-codel\" }`",
        ),
        "jitter" => none("the jitter is the second value of `delay`: `delay 20ms 5ms`"),
        "overhead" => none("the overhead is the second value of `rate`: `rate 10mbit 20`"),
        "bandwidth" | "bw" => none("did you mean `rate`? For example `rate 10mbit`"),
        _ => {
            let near = options.iter().find(|option| is_typing_error(word, option));
            let guess = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            none(&format!(
                "{guess}netem has limit, delay, loss, corrupt, duplicate, reorder, gap, distribution, rate, slot and ecn"
            ))
        }
    }
}

/// Whether two adjacent letters of a word are swapped, or one is wrong, missing or added.
fn is_typing_error(word: &str, option: &str) -> bool {
    let (a, b) = (word.as_bytes(), option.as_bytes());
    let before = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[before..], &b[before..]);
    let is_swapped =
        matches!((a, b), ([a1, a2, a @ ..], [b1, b2, b @ ..]) if (a1, a2, a) == (b2, b1, b));
    let one_wrong = [(1, 1), (0, 1), (1, 0)]
        .into_iter()
        .any(|(m, n)| a.get(m..).is_some_and(|a| Some(a) == b.get(n..)));
    option.len() > 3 && (is_swapped || one_wrong)
}

#[cfg(test)]
mod tests {
    use crate::link::tc::Netem;

    #[test]
    fn words_of_other_disciplines_and_typing_errors_have_a_remedy() {
        let help = |line| Netem::parse(line).unwrap_err().help;
        for (line, meant) in [
            ("dealy 20ms", "did you mean `delay`?"),
            ("dellay 20ms", "did you mean `delay`?"),
            ("duplicat3 1%", "did you mean `duplicate`?"),
            ("delay 20ms jitter 5ms", "`delay 20ms 5ms`"),
            ("htb rate 1mbit", "`rate 10mbit` in this line"),
            ("fq_codel limit 100", "a link without `netem`"),
            ("rate 1mbit overhead 20", "second value of `rate`"),
        ] {
            assert!(help(line).contains(meant), "{line}: {}", help(line));
        }
        assert!(!help("frobnicate").contains("did you mean"));
        assert_eq!(help("delay 1,5ms"), "did you mean `1.5ms`?");
    }
}
