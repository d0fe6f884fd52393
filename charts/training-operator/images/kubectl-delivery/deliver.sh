#!/bin/sh
# Waits until every host of the hostfile is a running pod, then puts kubectl into the volume shared with the launcher.
#
# Environment, all with defaults: TARGET_DIR (where kubectl goes), NAMESPACE (of the workers; the pod's own by default),
# HOSTFILE (lines "<pod> slots=<n>"), WAIT_SECONDS (the longest wait for all workers together), KUBECTL (the binary).
# Ends with 1 and one sentence when the workers are not there in time or kubectl can't be placed.
set -eu
trap 'exit 143' TERM # as the container's first process it would ignore the signal otherwise

target=${TARGET_DIR:-/opt/kube}
hostfile=${HOSTFILE:-/etc/mpi/hostfile}
limit=${WAIT_SECONDS:-600}
kubectl=${KUBECTL:-/bin/kubectl}
own=/var/run/secrets/kubernetes.io/serviceaccount/namespace

fail() {
    echo "error: $1" >&2
    exit 1
}

namespace=${NAMESPACE:-}
if [ -z "$namespace" ] && [ -r "$own" ]; then
    namespace=$(cat "$own")
fi
[ -n "$namespace" ] || fail "NAMESPACE is not set and the pod has no service account token"
[ -r "$hostfile" ] || fail "$hostfile can't be read; the operator mounts it from the job's ConfigMap"

# The copy is renamed into place, so the launcher never sees half a binary.
if ! { cp "$kubectl" "$target/.kubectl.part" && chmod 0755 "$target/.kubectl.part" && mv "$target/.kubectl.part" "$target/kubectl"; }; then
    fail "kubectl can't be placed in $target"
fi

started=$(date +%s)
while read -r pod rest || [ -n "$pod" ]; do
    # The launcher itself is listed too when it has a GPU of its own; it can't be running yet.
    case $pod in '' | '#'* | "${HOSTNAME:-}") continue ;; esac
    said=
    while :; do
        # Not kubectl's own --request-timeout: with any such flag it forgets that it runs in a cluster.
        if phase=$(timeout 15 "$kubectl" get pod "$pod" --namespace "$namespace" \
            --output 'jsonpath={.status.phase}' 2>"${TMPDIR:-/tmp}/kubectl.err"); then
            why="its phase is ${phase:-unknown}"
        else
            phase=
            why=$(tail -n 1 "${TMPDIR:-/tmp}/kubectl.err")
        fi
        case $phase in
            Running) break ;;
            Failed | Succeeded) fail "worker $pod has ended already ($phase)" ;;
        esac
        if [ $(($(date +%s) - started)) -ge "$limit" ]; then
            fail "worker $pod is not running after $limit s: $why"
        fi
        [ -n "$said" ] || echo "waiting for $pod: $why"
        said=yes
        sleep 1
    done
    echo "$pod runs"
done <"$hostfile"
echo "kubectl is in $target"
