#!/bin/bash
# Runs a script under a separate systemd, in a temporary overlay over this machine: in-systemd.sh SCRIPT FILE
# SCRIPT gets the path of a copy of FILE as its argument. This script prints its output and returns its exit code. Needs root,
# overlayfs, and systemd installed (not running), as in a container. The script has no access to the machine's network.
set -eu
script=$(realpath "$1") file=$(realpath "$2")
share=$(mktemp -d)
trap 'rm -rf "$share"' EXIT
cp "$script" "$share/script"
cp "$file" "$share/"
cat >"$share/try.service" <<END
[Unit]
DefaultDependencies=no
Requires=sysinit.target dbus.service
After=sysinit.target dbus.service

[Service]
Type=oneshot
TimeoutStartSec=300
ExecStart=sh -c "sh /try/script /try/${file##*/} >/try/out 2>&1; echo \$? >/try/code"
ExecStopPost=systemctl --force --force poweroff
END

# systemd ends by a signal after the power-off.
timeout --kill-after=10 400 unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child bash -euc '
    work=$(mktemp -d)
    mount -t tmpfs tmpfs "$work"
    cd "$work"
    mkdir upper work root
    mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
    cd root
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    if [ -d /sys/fs/cgroup/systemd ]; then
        mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
        mkdir sys/fs/cgroup/unified sys/fs/cgroup/systemd
        mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
        mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
    else
        mount -t cgroup2 cgroup2 sys/fs/cgroup
    fi
    # Devices with the modes that udev sets; those of the machine may have other modes.
    mount -t tmpfs -o mode=755 tmpfs dev
    for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0" "net/tun 10 200"; do
        set -- $node "$@"
        case $1 in */*) mkdir -p "dev/${1%/*}" ;; esac
        mknod -m 666 "dev/$1" c "$2" "$3"
    done
    mkdir dev/shm dev/pts
    mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    mount -t tmpfs -o mode=755 tmpfs run
    mount -t tmpfs -o mode=1777 tmpfs tmp
    mkdir -p try old
    mount --bind "$0" try
    cp try/try.service etc/systemd/system/
    # Images of containers forbid packages to start or stop services; this permits it.
    rm -f usr/sbin/policy-rc.d
    pivot_root . old
    umount -l old
    exec env container=oci /lib/systemd/systemd --system --unit=try.service
' "$share" >"$share/boot" 2>&1 </dev/null || true

if [ ! -e "$share/code" ]; then
    echo "in-systemd: the script did not run to its end: $(tail -n 3 "$share/boot" | tr '\n' ' ')" >&2
    cat "$share/out" 2>/dev/null || true
    exit 125
fi
cat "$share/out"
exit "$(cat "$share/code")"
