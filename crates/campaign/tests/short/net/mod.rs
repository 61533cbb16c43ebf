//! Golden figures of all systems: many small runs, a block for each system, as digests in `tests/net`. A failure names
//! the blocks and runs that differ; see the head of `crates/checks/shared/golden.rs`.

mod cases;
mod forms;
#[path = "../../../../checks/shared/golden.rs"]
mod golden;
#[path = "../../../../checks/shared/record.rs"]
mod record;
mod run_figures;
mod systems;
mod texts;
mod traces;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use golden::{Block, Digest, check, differences};
use lasthop_scenario::Example;

/// Applies `block` to each of `systems` on all processors; the blocks are in the order of `systems`.
fn each<T: Sync>(systems: &[T], block: impl Fn(&T) -> Block + Sync) -> Vec<Block> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((i, system)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, systems.get(i)?)))
        {
            done.push((i, block(system)));
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut blocks: Vec<(usize, Block)> = thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().flat_map(|thread| thread.join().expect("its panic is shown")).collect()
    });
    blocks.sort_by_key(|(i, _)| *i);
    blocks.into_iter().map(|(_, block)| block).collect()
}

/// The examples, without the one whose axes list every system: each system has a block of its own.
fn examples() -> Vec<Example> {
    lasthop_scenario::examples()
        .iter()
        .filter(|example| example.name != "explore")
        .copied()
        .collect()
}

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
