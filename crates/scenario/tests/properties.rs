//! Whatever the text and the arguments are, the answer is a plan or an error with a place inside of them.

use lasthop_scenario::{Argument, Source, examples, parse};
use proptest::prelude::*;

/// Parses, and checks that an error can be shown.
fn answered(text: &str, arguments: &[Argument]) -> Result<(), TestCaseError> {
    let (faults, ok) = match parse(text, "property", arguments) {
        Ok((plan, warnings)) => {
            prop_assert!(!plan.cells.is_empty());
            (warnings, true)
        }
        Err(error) => (vec![*error.0], false),
    };
    for fault in faults {
        let within = match fault.at.source {
            Source::File => text.len(),
            Source::Argument(index) => arguments[index].text().len(),
            Source::Points => 0,
            // No file is read here.
            Source::Referenced(_) => 0,
        };
        prop_assert!(fault.at.span.start <= fault.at.span.end, "{fault:?}");
        prop_assert!(fault.at.span.end <= within, "{fault:?}");
        prop_assert!(!fault.message.is_empty() && !fault.help.is_empty(), "{fault:?}");
        prop_assert!(ok || !fault.label.is_empty(), "{fault:?}");
    }
    Ok(())
}

/// An argument that often makes sense.
fn argument() -> impl Strategy<Value = Argument> {
    let key = prop_oneof![
        Just("agent".to_owned()),
        Just("host.*.tcp".to_owned()),
        Just("transfer.bytes".to_owned()),
        "(host|path|transfer|errors|radio|link)\\.(fixed|mobile|[0-9]|radio|errors|mean|rate)",
        "[a-z.*0-9-]{0,12}",
    ];
    let value = prop_oneof![
        "(none|snoop|sack|reno|2mbit|64KiB|0|-1|\\[\\]|\\{\\}|true)(,[a-z0-9]{1,4})?",
        ".{0,8}",
    ];
    (any::<bool>(), key, value).prop_map(|(vary, key, value)| {
        let text = format!("{key}={value}");
        if vary { Argument::Vary(text) } else { Argument::Set(text) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_text_is_answered(text in ".{0,200}") {
        answered(&text, &[])?;
    }

    #[test]
    fn a_damaged_scenario_is_answered(
        which in any::<proptest::sample::Index>(),
        from in any::<proptest::sample::Index>(),
        length in 0_usize..12,
        patch in "[a-z0-9\"=\\[\\]{}.,\n -]{0,6}",
    ) {
        let text = which.get(examples()).text;
        let from = from.index(text.len());
        let mut bytes = text.as_bytes().to_vec();
        bytes.splice(from..(from + length).min(text.len()), patch.into_bytes());
        answered(&String::from_utf8_lossy(&bytes), &[])?;
    }

    #[test]
    fn arbitrary_arguments_are_answered(
        which in any::<proptest::sample::Index>(),
        arguments in proptest::collection::vec(argument(), 0..4),
    ) {
        answered(which.get(examples()).text, &arguments)?;
    }
}

#[test]
fn deep_nesting_is_refused() {
    for depth in [100, 10_000] {
        let text = format!("transfer = {}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&text, "deep", &[]).is_err());
        let key = vec!["host"; depth].join(".");
        assert!(parse("", "deep", &[Argument::Set(format!("{key}=1"))]).is_err());
    }
}
