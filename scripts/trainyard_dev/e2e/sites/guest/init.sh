#!/bin/busybox sh
# PID 1 of the guest. It mounts exports of the NFS server at 10.0.2.2 (the host, as QEMU shows it) and says what it saw on
# the second serial port, one line each: FACT NAME TEXT. Its variables come from the kernel's command line:
#   NFS_PORT       the server's port on the host
#   NFS_WRITABLE   an export that this machine may write
#   NFS_READONLY   one that it may only read; it holds the file "file"
#   NFS_FOREIGN    one that is not for this machine
#   NFS_MEBIBYTES  how much to write
# Two clients: this one, and B, with a network interface and a host name of its own, which the server takes for another.

# init attach VERSION EXPORT DIRECTORY [OPTIONS]
if [ "$1" = attach ]; then
    options=vers=$2,proto=tcp,port=$NFS_PORT,addr=10.0.2.2,clientaddr=10.0.2.15,sec=sys,hard${5:+,$5}
    exec mount -i -t nfs4 -o "$options" "10.0.2.2:$3" "$4"
fi

/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
exec </dev/null >/dev/ttyS1 2>&1

fact() { echo "FACT $*"; }
attach() { sh /init attach "$@"; }
# A command's last line, or else its exit code.
said() { "$@" 2>&1 | tail -n 1 | grep . || echo "nothing"; }
digest() { sha256sum <"$1" | cut -d' ' -f1; }
now() { cut -d' ' -f1 /proc/uptime; }
since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.2f", to - from }'; }
as_b() { nsenter -t "$(cat /tmp/b)" -n -u "$@"; }
interface() { ip link set lo up; ip link set "$1" up; ip addr add 10.0.2.15/24 dev "$1"; }

for module in /modules/*; do
    insmod "$module" || fact "module.$module" "can't be loaded"
done
fact kernel "$(uname -r)"
fact booted "$(now)"

hostname client-a
interface eth0
unshare -n -u sh -c 'hostname client-b; echo $$ >/tmp/b.new; mv /tmp/b.new /tmp/b; exec sleep 1000' &
until [ -e /tmp/b ]; do usleep 20000; done
ip link set eth1 netns "$(cat /tmp/b)"
as_b ip link set lo up
as_b ip link set eth1 up
as_b ip addr add 10.0.2.15/24 dev eth1

dd if=/dev/urandom of=/tmp/data bs=1M count="$NFS_MEBIBYTES" 2>/dev/null
fact data "$(digest /tmp/data)"

for version in 4.1 4.2; do
    attach $version "$NFS_WRITABLE" /a || fact $version.failed "client A can't mount $NFS_WRITABLE"
    as_b sh /init attach $version "$NFS_WRITABLE" /b || fact $version.failed "client B can't mount $NFS_WRITABLE"
    fact $version.options "$(grep ' /a nfs4 ' /proc/mounts | cut -d' ' -f4)"

    began=$(now)
    dd if=/tmp/data of=/a/data bs=1M conv=fsync 2>/dev/null
    fact $version.write-seconds "$(since "$began")"
    umount /a # with it go the cached pages
    attach $version "$NFS_WRITABLE" /a
    began=$(now)
    fact $version.read "$(digest /a/data)"
    fact $version.read-seconds "$(since "$began")"
    fact $version.read-by-other "$(digest /b/data)"

    fact $version.flock "$(said locks flock /a/lock /b/lock)"
    fact $version.range-lock "$(said locks range /a/lock /b/lock)"

    attach $version "$NFS_READONLY" /c
    fact $version.readonly-export-read "$(said cat /c/file)"
    fact $version.readonly-export-write "$(said touch /c/new)"
    umount /c
    attach $version "$NFS_WRITABLE" /c ro
    fact $version.readonly-mount-read "$(digest /c/data)"
    fact $version.readonly-mount-write "$(said touch /c/new)"
    umount /c

    rm /a/data /a/lock
    umount /a && umount /b && fact $version.unmounted "$(grep -c ' nfs4 ' /proc/mounts)"
done
fact foreign-export "$(said attach 4.1 "$NFS_FOREIGN" /c)"
fact end "$(now)"
poweroff -f
