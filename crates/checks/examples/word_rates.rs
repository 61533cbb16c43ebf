//! Prints the frequency of hard-to-read constructions in comments, messages and documents, per 10,000 words, and the
//! files with the highest rates: `cargo run -p lasthop-checks --example word_rates [NUMBER OF FILES]`.

#[path = "../shared/language.rs"]
#[allow(dead_code, reason = "tests/language.rs uses the rest")]
mod language;

use language::{CONSTRUCTIONS, Text};

/// Files with fewer words have no meaningful rate.
const LEAST_WORDS: usize = 80;

fn main() {
    let worst = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
    let (comments, documents) = (language::comments(), language::documents());
    println!("comments\n{}", language::rates(&comments));
    let [short, lines, vague] = language::short_comments(&comments);
    println!("{short} of {lines} comment lines have one or two words; {vague} vague type names\n");
    println!("messages\n{}", language::rates(&language::messages()));
    println!(
        "comments of other languages, lessons, changes\n{}",
        language::rates(&language::others())
    );
    println!("documents\n{}", language::rates(&documents));
    let rejected = CONSTRUCTIONS.iter().filter(|construction| construction.rejected);
    println!("rejected: {}", rejected.map(|c| c.name).collect::<Vec<_>>().join(", "));
    let long = comments.iter().chain(&documents).filter(|text| text.words() >= LEAST_WORDS);
    let rate = |text: &Text| 1e4 * text.hits().len() as f64 / text.words() as f64;
    let mut rates: Vec<(f64, &str)> = long.map(|text| (rate(text), text.path.as_str())).collect();
    rates.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (rate, path) in rates.into_iter().take(worst) {
        println!("{rate:6.0} {path}");
    }
}
