#!/bin/sh
# Builds a Debian package of a program: deb.sh PROGRAM ARCHITECTURE TEXTS OUT
# ARCHITECTURE is Debian's name (amd64, arm64). TEXTS has man1/, completions.bash, completions.zsh and completions.fish, written by a
# program that runs on this machine. VERSION in the environment is the version of the package. try-deb.sh tests the result. Needs only
# dpkg-deb.
set -eu
program=$1 architecture=$2 texts=$3 out=$4
here=$(cd "$(dirname "$0")/.." && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
put() { install -D -m "$3" "$1" "$root/$2"; }

put "$program" usr/bin/lasthop 755
doc=usr/share/doc/lasthop
for unit in lasthop-station@.service lasthop-link@.service; do
    put "$here/deploy/$unit" "usr/lib/systemd/system/$unit" 644
done
put "$here/deploy/link.example.toml" $doc/examples/link.toml 644
put "$here/deploy/station.example.toml" $doc/examples/station.toml 644
put "$here/deploy/grafana.json" $doc/examples/grafana.json 644
(cd "$here/docs" && find how-to reference explanation tutorial -name '*.md') | while read -r page; do
    put "$here/docs/$page" "$doc/$page" 644
done
put "$here/deploy/copyright" $doc/copyright 644
put "$texts/completions.bash" usr/share/bash-completion/completions/lasthop 644
put "$texts/completions.zsh" usr/share/zsh/vendor-completions/_lasthop 644
put "$texts/completions.fish" usr/share/fish/vendor_completions.d/lasthop.fish 644
for page in "$texts"/man1/*.1; do put "$page" "usr/share/man/man1/${page##*/}" 644; done
gzip -9n "$root"/usr/share/man/man1/*.1

# The time of the last commit, so that the same tree gives the same package.
at=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null || date +%s)}
{
    printf 'lasthop (%s-1) unstable; urgency=medium\n\n' "$VERSION"
    printf '  * What is new is listed in /usr/share/doc/lasthop/changelog.gz.\n\n'
    printf ' -- The lasthop contributors <lasthop@localhost>  %s\n' "$(LC_ALL=C date -u -R -d "@$at")"
} | gzip -9n >"$root/$doc/changelog.Debian.gz"
gzip -9nc "$here/CHANGELOG.md" >"$root/$doc/changelog.gz"
chmod 644 "$root/$doc"/changelog*.gz

install -d "$root/DEBIAN"
for script in postinst prerm postrm; do install -m 755 "$here/deploy/debian/$script" "$root/DEBIAN/$script"; done
size=$(du -sk --exclude=DEBIAN "$root" | cut -f1)
cat >"$root/DEBIAN/control" <<END
Package: lasthop
Version: $VERSION-1
Architecture: $architecture
Maintainer: The lasthop contributors <lasthop@localhost>
Installed-Size: $size
Section: net
Priority: optional
Recommends: iproute2
Suggests: tshark, ethtool, prometheus, passt
Description: what a wireless last hop does to TCP, and what would help
 A simulator of base-station agents and TCP senders, an analysis of captures,
 and the base station itself: snoop and others between two interfaces of a
 router, changed and watched while it runs.
END
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
mkdir -p "$out"
SOURCE_DATE_EPOCH=$at dpkg-deb --root-owner-group -Zxz --build "$root" "$out/lasthop_$VERSION-1_$architecture.deb" >/dev/null
