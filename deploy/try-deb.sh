#!/bin/sh
# Tests a package under systemd, on a machine that may be damaged, such as a container. It installs the package, runs a station
# and a tunnel by their units, kills, upgrades, and removes them. Run it as root: try-deb.sh lasthop_*.deb. It prints a line for
# each step; the exit code is 0 if all succeeded. Needs iproute2, ping, pgrep, and /dev/net/tun with the mode that udev sets.
set -u
deb=$1
failed=0
try() {
    what=$1
    shift
    if "$@" >/tmp/try.log 2>&1; then
        echo "ok      $what"
    else
        failed=1
        echo "FAILED  $what"
        sed 's/^/        /' /tmp/try.log
    fi
}
not() { ! "$@"; }
main_pid() { systemctl show -P MainPID "$1"; }
soon() { # within ten seconds
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        "$@" && return 0
        sleep 1
    done
    return 1
}

try "installs" dpkg -i "$deb"
try "units are well-formed" systemd-analyze verify lasthop-station@base.service lasthop-link@a.service

# Two hosts, and the station's interfaces between them.
for side in "h left0 h0 1" "m right0 m0 2"; do
    set -- $side
    ip netns add "$1"
    ip link add name "$2" type veth peer name "$3"
    ip link set "$3" netns "$1"
    ip link set "$2" up
    ip -n "$1" link set "$3" up
    ip -n "$1" address add "10.5.0.$4/24" dev "$3"
done
mkdir -p /etc/lasthop
printf 'left = "left0"\nright = "right0"\n[[path]]\nagent = "snoop"\n' >/etc/lasthop/base.toml
station=lasthop-station@base
try "--check accepts the machine" lasthop station /etc/lasthop/base.toml --check
try "a station starts" systemctl start $station
try "it is active" systemctl is-active $station
try "packets pass" soon ip netns exec h ping -c 1 -W 1 10.5.0.2
try "ctl reads a setting" lasthop ctl get agent
try "ctl changes a setting" lasthop ctl set agent=none
try "the journal names the user of the change" soon sh -c "journalctl -u $station | grep -q 'set by root'"
try "it reloads its file" systemctl reload $station
try "the journal has the change" soon sh -c "journalctl -u $station | grep -q 'none -> snoop'"
first=$(main_pid $station)
kill -9 "$first"
try "it restarts after a kill" soon sh -c "systemctl is-active $station && test \$(systemctl show -P MainPID $station) != $first"
try "packets pass again" soon ip netns exec h ping -c 1 -W 1 10.5.0.2

lasthop link --keygen /etc/lasthop/a.key
cp -p /etc/lasthop/a.key /etc/lasthop/b.key
# If systemd refuses credentials to all units, as in some containers, the tunnels run as root and read the key file.
echo x >/run/try.credential
if ! systemd-run --wait --pipe -p DynamicUser=yes -p LoadCredential=x:/run/try.credential sh -c 'cat "$CREDENTIALS_DIRECTORY/x"' >/tmp/try.log 2>&1; then
    echo "-       the key as a credential of systemd, which this machine refuses to all units"
    mkdir -p /etc/systemd/system/lasthop-link@.service.d
    printf '[Service]\nDynamicUser=no\nLoadCredential=\n' >/etc/systemd/system/lasthop-link@.service.d/try.conf
    systemctl daemon-reload
fi
for end in 'a listen 1' 'b peer 2'; do
    set -- $end
    printf '%s = "127.0.0.1:4747"\ntun = "tun%s"\naddresses = ["10.8.0.%s/24"]\nkey-file = "%s"\n' \
        "$2" "$1" "$3" "/etc/lasthop/$1.key" >"/etc/lasthop/$1.toml"
    try "a tunnel's end starts ($2)" systemctl start "lasthop-link@$1"
done
try "the tunnel is up" soon sh -c "journalctl -u lasthop-link@b | grep -q 'the peer is there'"
first=$(main_pid $station)
try "installs over itself" dpkg -i "$deb"
try "the station was not restarted" test "$(main_pid $station)" = "$first"
try "a station restarts" systemctl restart $station
try "a station stops" systemctl stop $station
try "it is not active" not systemctl is-active $station
rm -rf /etc/systemd/system/lasthop-link@.service.d
try "is removed" dpkg -r lasthop
try "no process of it runs" not pgrep -x lasthop
try "its units are gone" not systemctl cat $station
try "the user's files remain" test -f /etc/lasthop/base.toml
try "is purged" dpkg -P lasthop
left=$(find /usr /lib/systemd/system /run /var -name '*lasthop*' -not -path '/run/systemd/*' 2>/dev/null)
try "no file of it remains: $left" test -z "$left"
exit $failed
