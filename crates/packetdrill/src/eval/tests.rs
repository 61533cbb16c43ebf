use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn eval(code: &str) -> Result<Vec<String>, Refusal> {
    let lookup = |name: &str| match name {
        "tcpi_snd_cwnd" => Some(10),
        "tcpi_rtt" => Some(100_123),
        "tcpi_options" => Some(6),
        _ => None,
    };
    run(code, &lookup, &mut BTreeMap::new())
}

#[test]
fn expressions_have_the_values_of_python() {
    for (text, value) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 // 2, 7 % 2, 7 / 2", "3 1 3.5"),
        ("-7 // 2", "-4"),
        ("1 << 4 | 1", "17"),
        ("6 & 3 ^ 1", "3"),
        ("~0", "-1"),
        ("1 < 2 < 3, 1 < 3 < 2", "1 0"),
        ("not 0 and 5", "5"),
        ("0 or 3", "3"),
        ("2 in (1, 2), 2 not in (1, 2)", "1 0"),
        ("abs(-3), min(4, 2, 3), max(1, 5)", "3 2 5"),
        ("0x10 == 16", "1"),
        ("1.5 + 1", "2.5"),
        ("\"cwnd\", tcpi_snd_cwnd", "cwnd 10"),
        ("(tcpi_options & TCPI_OPT_SACK) != 0", "1"),
    ] {
        assert_eq!(eval(&format!("print({text})")), Ok(vec![value.to_owned()]), "{text}");
    }
}

#[test]
fn an_assertion_that_fails_shows_its_text_and_the_value() {
    let Err(Refusal::False(text)) = eval("assert tcpi_snd_cwnd == 9, tcpi_snd_cwnd") else {
        panic!("it holds")
    };
    assert_eq!(text, "expected tcpi_snd_cwnd == 9, got 10");
    assert_eq!(eval("assert 100000 <= tcpi_rtt <= 101000, tcpi_rtt"), Ok(vec![]));
}

#[test]
fn statements_end_at_line_breaks_or_semicolons() {
    let code = "x = 3  # why\nassert x == 3; assert (x +\n 1) == 4, \\\n x\n\nprint 'a;b', x";
    assert_eq!(eval(code), Ok(vec!["a;b 3".to_owned()]));
}

#[test]
fn unsupported_code_is_named_and_wrong_code_refused() {
    for (code, feature) in [
        ("assert tcpi_unknown == 1", "the name `tcpi_unknown` in an assertion"),
        ("for x in y: print(x)", "the Python statement `for x in y: print(x)`"),
        ("assert len((1, 2)) == 2", "the function `len` in an assertion"),
    ] {
        assert_eq!(eval(code), Err(Refusal::Unsupported(feature.to_owned())), "{code}");
    }
    for code in ["assert 1 +", "assert 1 // 0", "assert (1", "assert 'a' < 1"] {
        assert!(matches!(eval(code), Err(Refusal::Wrong(_))), "{code}");
    }
}

proptest! {
    /// Any code is evaluated or rejected.
    #[test]
    fn any_code_is_evaluated_or_refused(code in "[ -~\n]{0,120}") {
        let _ = eval(&code);
        let _ = eval(&format!("assert {code}"));
    }
}
