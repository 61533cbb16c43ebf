#!/bin/sh
# Builds the Debian package into target/debian. Needs cargo-deb: cargo install cargo-deb --locked
# What the package holds and no file of the tree does is written to target/package first. `try-deb.sh` tries the result.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cargo build --profile dist --locked --package lasthop
lasthop=$target/dist/lasthop
package=target/package
rm -rf "$package"
mkdir -p "$package"
for shell in bash zsh fish; do
    "$lasthop" completions "$shell" >"$package/completions.$shell"
done
version=$("$lasthop" --version | cut -d' ' -f2)
# The last change counts, so that the same tree gives the same package.
at=$(git log -1 --format=%ct 2>/dev/null || date +%s)
{
    printf 'lasthop (%s-1) unstable; urgency=medium\n\n' "$version"
    printf '  * What is new stands in /usr/share/doc/lasthop/changelog.gz.\n\n'
    printf ' -- The lasthop contributors <lasthop@localhost>  %s\n' "$(LC_ALL=C date -u -R -d "@$at")"
} | gzip -9n >"$package/changelog.Debian.gz"
gzip -9nc CHANGELOG.md >"$package/changelog.gz"
"$lasthop" man "$package/man1"
gzip -9n "$package"/man1/*.1
# cargo-deb reads `target/release` in the list of files as the directory of the profile.
cargo deb --profile dist --locked --package lasthop --no-build
