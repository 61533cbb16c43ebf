//! Compresses a text a given number of times, for callgrind: once and eleven times give the number of
//! instructions in `src/compress/mod.rs`.

fn main() {
    let text = include_bytes!("../../../LICENSE-APACHE");
    let times = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    let left: usize =
        (0..times).map(|_| zstd::bulk::compress(text, 3).map_or(0, |v| v.len())).sum();
    println!("{times} times, {left} bytes");
}
