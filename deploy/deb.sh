#!/bin/sh
# Builds the Debian package into target/debian. Needs cargo-deb: cargo install cargo-deb --locked
set -eu
cd "$(dirname "$0")/.."
cargo build --profile dist --locked --package lasthop
mkdir -p target/completions
target/dist/lasthop completions bash >target/completions/lasthop.bash
target/dist/lasthop completions zsh >target/completions/_lasthop
target/dist/lasthop completions fish >target/completions/lasthop.fish
# cargo-deb reads `target/release` in the list of files as the directory of the profile.
cargo deb --profile dist --locked --package lasthop --no-build
