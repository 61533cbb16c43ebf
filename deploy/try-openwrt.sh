#!/bin/sh
# Tests the OpenWrt recipe in a root file system with only busybox, under qemu-user: try-openwrt.sh PROGRAM [RECIPE], with a static
# program for aarch64. Run it as root, on Debian with qemu-user-static, and with network to download busybox. The init script runs with
# functions of procd that print their arguments, so this shows which commands procd would start, but not that it starts them.
set -eu
program=$1
recipe=${2:-$(cd "$(dirname "$0")" && pwd)/openwrt}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
try() { what=$1; shift; if "$@" >"$work/log" 2>&1; then echo "ok      $what"; else failed=1; echo "FAILED  $what"; sed 's/^/        /' "$work/log"; fi; }

mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/root"
apt="-o Dir::State::lists=$work/apt/lists -o Dir::Cache=$work/apt/cache -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root"
# shellcheck disable=SC2086 # options are words
(cd "$work" && apt-get $apt -qq update && apt-get $apt -qq download busybox-static) >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
dpkg-deb -x "$work"/busybox-static_*_arm64.deb "$work/busybox"

root=$work/root
mkdir -p "$root/bin" "$root/usr/bin" "$root/etc/init.d" "$root/etc/lasthop" "$root/tmp" "$root/proc" "$root/dev" "$root/run"
cp "$(find "$work/busybox" -path '*/bin/busybox' -type f | head -1)" "$root/bin/busybox"
cp "$(command -v qemu-aarch64-static)" "$root/usr/bin/"
# The kernel may not run programs of another architecture, so the applets are scripts with qemu as interpreter.
for word in sh mkdir cat echo grep logger test chmod true; do
    echo '#!/usr/bin/qemu-aarch64-static /bin/busybox' >"$root/bin/$word"
    chmod 755 "$root/bin/$word"
done
# The same files as of the recipe.
install -m 755 "$program" "$root/usr/bin/lasthop"
install -m 755 "$recipe/files/lasthop.init" "$root/etc/init.d/lasthop"
install -m 600 "$recipe/files/base.toml" "$root/etc/lasthop/base.toml"
cat >"$root/tmp/procd" <<'END'
procd_open_instance() { echo "open $*"; }
procd_set_param() { echo "set $*"; }
procd_close_instance() { echo close; }
procd_add_reload_trigger() { echo "trigger $*"; }
logger() { echo "log $*"; }
END
inside() { chroot "$root" /usr/bin/qemu-aarch64-static /bin/busybox sh -c "$1"; }

try "busybox runs" inside 'test "$(echo a)" = a'
try "the program runs" inside '/usr/bin/qemu-aarch64-static /usr/bin/lasthop --version'
try "it simulates" inside '/usr/bin/qemu-aarch64-static /usr/bin/lasthop run quickstart --seeds 1 >/tmp/run && grep -q snoop /tmp/run'
try "--check reads the file and reports missing interfaces" inside \
    '/usr/bin/qemu-aarch64-static /usr/bin/lasthop station /etc/lasthop/base.toml --check >/tmp/check 2>&1; test $? = 1 && grep -q "no interface" /tmp/check'
# The init script needs a wrapper that runs the program with qemu.
try "the init script does not start a station whose check fails, and logs it" inside \
    '. /tmp/procd; . /etc/init.d/lasthop; PROG="/usr/bin/wrapped"; echo "#!/bin/sh" >/usr/bin/wrapped; echo "exec /usr/bin/qemu-aarch64-static /usr/bin/lasthop \"\$@\"" >>/usr/bin/wrapped;
     chmod 755 /usr/bin/wrapped; start_service | grep -q "log -t lasthop /etc/lasthop/base.toml would not run here"'
try "the init script starts a station whose check succeeds" inside \
    '. /tmp/procd; . /etc/init.d/lasthop; PROG=/bin/true; start_service >/tmp/started
     grep -qx "open base" /tmp/started && grep -qx "set command /bin/true station /etc/lasthop/base.toml" /tmp/started && grep -qx close /tmp/started'
exit $failed
