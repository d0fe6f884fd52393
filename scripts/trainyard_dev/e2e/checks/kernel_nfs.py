"""A real Linux kernel mounts the NFS server in the cluster, from a guest in QEMU."""

import re
import time
from collections.abc import Callable
from functools import partial

from trainyard_dev.e2e.checks import storage
from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.entry import check
from trainyard_dev.e2e.recorder import Figures, possible, require
from trainyard_dev.e2e.sites.guest import machine

# Exports of the profile kind, for 127.0.0.1 only: the end of a port-forward.
WRITABLE, READONLY = "/kernel-check", "/kernel-check-ro"
VERSIONS = ("4.1", "4.2")
MEBIBYTES = 16
MARK = "written by the server"


@check("storage.kernel-nfs", title="a real kernel mounts the NFS server: versions 4.1 and 4.2, two clients, locks",
       inputs=("charts/nfs",))  # fmt: skip
def kernel_nfs(context: Context, figures: Figures) -> None:
    """Boots the guest against a port-forward to the server's pod and checks its facts."""
    possible(not (lacking := machine.missing()), lacking)
    pod = storage.nfs_server(context)
    exports = context.kubectl("exec", "-n", SYSTEM, pod, "--", "cat", "/etc/ganesha/exports").stdout
    folders = [line.split()[0] for line in exports.splitlines() if line]
    for name in (WRITABLE, READONLY):
        require(f"/export{name}" in folders, f"the server has no export {name}: nfs.exports of the profile lacks it")
    put = f"echo '{MARK}' > /export{READONLY}/file"
    context.kubectl("exec", "-n", SYSTEM, pod, "--", "bash", "-c", put)
    began = time.monotonic()
    with context.kubectl.forward(f"pod/{pod}", 2049, SYSTEM) as port:
        facts = machine.boot(
            {
                "NFS_PORT": str(port),
                "NFS_WRITABLE": WRITABLE,
                "NFS_READONLY": READONLY,
                "NFS_FOREIGN": "/shared",
                "NFS_MEBIBYTES": str(MEBIBYTES),
            }
        )
    figures |= {"kernel": facts["kernel"], "mebibytes": MEBIBYTES, "seconds": round(time.monotonic() - began, 1)}
    for version in VERSIONS:
        figures |= {f"v{version} {what}": facts.get(f"{version}.{what}", "") for what in ("flock", "range-lock")}
        figures[f"v{version} write refused"] = facts.get(f"{version}.readonly-export-write", "")
    for problem in judge(facts):
        require(False, problem)


def _is_option(option: str, seen: str) -> bool:
    return option in seen.split(",")


def judge(facts: dict[str, str]) -> list[str]:
    """Differences from the expected facts, one sentence each."""
    problems = []
    refused = re.compile("mount:.*(No such file|denied)", re.DOTALL)
    due: dict[str, tuple[str, Callable[[str], object]]] = {"foreign-export": ("refused", refused.match)}
    for version in VERSIONS:
        due |= {
            f"{version}.options": (f"mounted with vers={version}", partial(_is_option, f"vers={version}")),
            f"{version}.unmounted": ("no mount left", lambda seen: seen == "0"),
            f"{version}.readonly-export-read": (f"{MARK!r}", lambda seen: seen == MARK),
        }
        for name in ("read", "read-by-other", "readonly-mount-read"):
            due[f"{version}.{name}"] = ("the sum of what was written", lambda seen: seen == facts.get("data"))
        for name in ("flock", "range-lock"):
            due[f"{version}.{name}"] = ("refused, then granted", lambda seen: seen == "refused, then granted")
        for name in ("readonly-export-write", "readonly-mount-write"):
            due[f"{version}.{name}"] = ("a read-only file system", lambda seen: "Read-only file system" in seen)
    for name, (wanted, right) in due.items():
        seen = facts.get(name, "nothing")
        if not right(seen):
            problems.append(f"{name}: found {seen!r}, expected {wanted}")
    return problems + [
        f"{name}: {seen}" for name, seen in facts.items() if name.startswith("module.") or name.endswith(".failed")
    ]
