//! Golden figures of all systems: many small runs, a block for each system, as digests in `tests/net`. A failure names
//! the blocks and runs that differ; see the head of `crates/checks/shared/golden.rs`.

mod cases;
#[path = "../../../../checks/shared/golden.rs"]
mod golden;
mod run_figures;
mod systems;
mod texts;
mod traces;

use golden::{Block, Digest, check, differences};

#[test]
fn a_difference_is_named_by_block_and_seed() {
    let block = |name: &str, digest: &str, figures: [&str; 2]| {
        let mut block = Block::new(name);
        block.put("digest", digest);
        for (seed, figures) in (7..).zip(figures) {
            block.run(seed, figures.to_owned());
        }
        block
    };
    let stored =
        [block("a", "0", ["x", "y"]), block("b", "0", ["x", "y"]), block("b", "1", ["x", "y"])];
    let text: String = stored.iter().map(Block::line).collect();
    assert_eq!(differences(&text, &stored), [] as [String; 0]);
    let changed =
        [block("a", "0", ["x", "z"]), block("b", "0", ["x", "y"]), block("b", "2", ["x", "y"])];
    assert_eq!(differences(&text, &changed), ["a: 1 of 2 runs: run 2 (seed 8)", "b: its figures"]);
    let other = [block("b", "0", ["x", "y"]), Block::new("a"), block("c", "0", ["x", "y"])];
    assert_eq!(differences(&text, &other), ["a: 0 runs, 2 before", "c: new", "b: missing"]);
}
