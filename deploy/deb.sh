#!/bin/sh
# Builds the Debian package into target/debian. Needs cargo-deb: cargo install cargo-deb --locked
set -eu
cd "$(dirname "$0")/.."
cargo build --release --locked --package lasthop
mkdir -p target/completions
target/release/lasthop completions bash >target/completions/lasthop.bash
target/release/lasthop completions zsh >target/completions/_lasthop
target/release/lasthop completions fish >target/completions/lasthop.fish
cargo deb --locked --package lasthop --no-build
