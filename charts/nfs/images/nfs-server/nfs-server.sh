#!/bin/bash
# Entry point of the NFS server: makes the exported directories, then runs rpcbind and ganesha.
#
# /etc/ganesha/ganesha.conf  the server's configuration (mandatory)
# /etc/ganesha/exports       one directory a line: PATH UID GID MODE (optional; '#' starts a comment)
#
# NFSv3 needs rpcbind, and ganesha gives up without it, so the two live and die together: when either ends,
# so does the container, with exit code 1 (0 after SIGTERM), and the kubelet starts both again.
set -euo pipefail

config=${GANESHA_CONFIG:-/etc/ganesha/ganesha.conf}
exports=${GANESHA_EXPORTS:-/etc/ganesha/exports}
level=${GANESHA_LOG_LEVEL:-NIV_EVENT}

fail() { echo "nfs-server: $*" >&2; exit 1; }

# Owner and mode are set on the top directory only: what lies below belongs to the users.
make_directory() {
    local path=$1 uid=$2 gid=$3 mode=$4
    [[ $path == /export/* && $path != *..* ]] || fail "$exports: $path is not below /export"
    mkdir -p "$path" || fail "cannot make $path: is the volume at /export writable?"
    chown "$uid:$gid" "$path" && chmod "$mode" "$path" || fail "cannot set owner and mode of $path"
}

[[ -r $config ]] || fail "no configuration at $config: mount one there"
if [[ -r $exports ]]; then
    while read -r path uid gid mode _; do
        [[ -z $path || $path == \#* ]] && continue
        [[ -n $mode ]] || fail "$exports: '$path' needs PATH UID GID MODE"
        make_directory "$path" "$uid" "$gid" "$mode"
    done < "$exports"
fi

# rpcbind changes to its own user, and without CAP_KILL it can't be signalled from here: it ends with the container,
# whose PID 1 this script is.
mkdir -p /run/rpcbind /run/ganesha
rpcbind -f &
rpcbind=$!
# rpcbind answers within milliseconds; ganesha registers with it once, at its start.
for try in {1..50}; do
    (exec 3<>/dev/tcp/127.0.0.1/111) 2>/dev/null && break
    (( try < 50 )) || fail "rpcbind does not listen on TCP port 111 after 5 s"
    [[ -d /proc/$rpcbind ]] || fail "rpcbind ended at its start: is port 111 taken?"
    sleep 0.1
done

ganesha.nfsd -F -L /dev/stdout -N "$level" -f "$config" -p /run/ganesha/ganesha.pid &
ganesha=$!
stopping=0
trap 'stopping=1; kill -TERM "$ganesha" 2>/dev/null || true' TERM INT

code=0
wait -n "$rpcbind" "$ganesha" || code=$?
if (( stopping )); then
    wait "$ganesha" 2>/dev/null || true
    exit 0
fi
fail "rpcbind or ganesha ended (code $code): see the lines above"
