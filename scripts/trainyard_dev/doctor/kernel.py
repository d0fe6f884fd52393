"""Checks of the kernel features that kind's nodes, pod networking, network policies and NFS need."""

import re

from trainyard_dev.doctor.finding import Finding, State
from trainyard_dev.doctor.probes import Machine, kernel_release

GROUP = "kernel"
NEEDED = (
    ("overlay", "OVERLAY_FS", "overlay", "layers of images"),
    ("bridge", "BRIDGE", "bridge", "the network of the nodes"),
    ("bridge filter", "BRIDGE_NETFILTER", "br_netfilter", "Services of pods on one node"),
    ("veth", "VETH", "veth", "the network of pods"),
    ("conntrack", "NF_CONNTRACK", "nf_conntrack", "Services"),
    ("NAT", "NF_NAT", "nf_nat", "Services"),
)
INSTANCES = 512  # inotify instances for four nodes of kubelet, containerd and their pods


def has(m: Machine, option: str, module: str) -> bool | None:
    """Whether the kernel has a feature, built in or as a module that can be loaded; None where unknown."""
    if m.exists(f"/sys/module/{module}"):
        return True
    config = m.read("/proc/config.gz") or m.read(f"/boot/config-{kernel_release()}")
    if config:
        value = re.search(rf"^CONFIG_{option}=([ym])$", config, re.MULTILINE)
        if value is None:
            return False
        if value[1] == "y":
            return True
    if m.which("modprobe"):
        return m.run("modprobe", "-n", "-q", module)[0] == 0
    return None


def has_nfs(m: Machine) -> bool:
    """Whether the kernel can mount NFS by itself."""
    listed = re.search(r"\bnfs4?\b", m.read("/proc/filesystems"))
    return listed is not None or bool(has(m, "NFS_FS", "nfs"))


def check(m: Machine) -> list[Finding]:
    found = [_needed(m, *row) for row in NEEDED]
    found += [_policies(m), _queue(m), _nfs(m), _fuse(m), _inotify(m)]
    return found


def _needed(m: Machine, name: str, option: str, module: str, purpose: str) -> Finding:
    there = has(m, option, module)
    shown = {True: "yes", False: f"no; needed for {purpose}", None: f"unknown; needed for {purpose}"}[there]
    state: State = "ok" if there else "warn" if there is None else "missing"
    hint = "" if there else _hint(m, module, option)
    return Finding(GROUP, name, shown, state, hint)


def _hint(m: Machine, modules: str, option: str) -> str:
    """The hint: load the module if the kernel supports modules; else use another kernel."""
    if m.exists(f"/lib/modules/{kernel_release()}"):
        return f"modprobe -a {modules}   # or boot a kernel with CONFIG_{option}"
    return f"boot a kernel with CONFIG_{option} (this one loads no modules)"


def _policies(m: Machine) -> Finding:
    there = (has(m, "IP_SET", "ip_set"), has(m, "NETFILTER_XT_SET", "xt_set"))
    if all(there):
        return Finding(GROUP, "network policies", "ipset: enforced by kube-router's policy controller", "ok")
    state = "no ipset: policies are not enforced" if False in there else "unknown; policies need ipset"
    return Finding(GROUP, "network policies", state, "warn", _hint(m, "ip_set xt_set", "IP_SET"))


def _queue(m: Machine) -> Finding:
    there = has(m, "NETFILTER_XT_TARGET_NFQUEUE", "xt_NFQUEUE")
    return Finding(
        GROUP, "NFQUEUE", {True: "yes", False: "no", None: "unknown"}[there], "ok" if there else "not needed"
    )


def _nfs(m: Machine) -> Finding:
    if has_nfs(m):
        return Finding(GROUP, "NFS client", "yes", "ok")
    lacks = "no: nodes mount NFS v3 in user space, so kernel locks and caches are not tested"
    return Finding(GROUP, "NFS client", lacks, "warn", _hint(m, "nfs", "NFS_FS"))


def _fuse(m: Machine) -> Finding:
    there = m.exists("/dev/fuse")
    if there:
        return Finding(GROUP, "/dev/fuse", "yes", "ok")
    if has_nfs(m):
        return Finding(GROUP, "/dev/fuse", "no", "not needed")
    return Finding(
        GROUP, "/dev/fuse", "no, and the kernel has no NFS client either", "missing", _hint(m, "fuse", "FUSE_FS")
    )


def _inotify(m: Machine) -> Finding:
    text = m.read("/proc/sys/fs/inotify/max_user_instances").strip()
    if not text.isdigit():
        return Finding(GROUP, "inotify instances", "can't be read", "warn")
    if int(text) >= INSTANCES:
        return Finding(GROUP, "inotify instances", text, "ok")
    shown = f"{text}; four nodes need {INSTANCES}"
    if m.uid() == 0:
        return Finding(GROUP, "inotify instances", f"{shown}: raised by `cluster up`", "ok")
    return Finding(GROUP, "inotify instances", shown, "warn", f"sysctl -w fs.inotify.max_user_instances={INSTANCES}")
