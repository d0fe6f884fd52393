"""Uninstalling during a job: nothing hangs, data stay, the same values find it again; a purge leaves nothing."""

import hashlib
import io
import time
from typing import Any

from trainyard.chart.release import inventory, node_folders, removal
from trainyard.names import GPU
from trainyard_dev.e2e import jobs, releases, store
from trainyard_dev.e2e.checks import options_kept
from trainyard_dev.e2e.context import GPU_TOLERATION, NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.recorder import patience, require
from trainyard_dev.e2e.releases import RELEASE, read_contract

OBJECT = "uninstall/data.bin"
WORDS = "workspaces stay"
CLAIM = "workspace"
POD = "busy"
GONE_S = 60
# Kinds whose objects would block a cluster, or use its resources, without the platform.
BLOCKING = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies",
            "validatingadmissionpolicybindings", "clusterroles", "clusterrolebindings", "storageclasses",
            "priorityclasses", "apiservices")  # fmt: skip
TITLES = {
    "uninstall.clean": "helm uninstall while a pod uses a shared volume: nothing hangs or blocks",
    "uninstall.keeps": "CRDs, teams' namespaces, claims, volumes and generated keys are kept",
    "uninstall.reinstall": "a new installation with the same values finds data, claims and keys",
    **options_kept.TITLES,
    "uninstall.purge": "trainyard uninstall --purge leaves nothing behind",
}


def uninstalled(context: Context) -> None:
    """All checks in order, on a release with the two teams; leaves a cluster without a release."""
    kept = options_kept.OptionsRelease(context)
    try:
        _there_and_back(context, kept)
    finally:
        kept.end()
    if context.recorder.passed("uninstall.clean"):
        purged(context)


def _there_and_back(context: Context, kept: options_kept.OptionsRelease) -> None:
    kubectl, recorder = context.kubectl, context.recorder
    held: dict[str, Any] = {}
    with recorder.check("uninstall.clean", TITLES["uninstall.clean"]) as figures:
        context.contract = read_contract(kubectl)
        kept.on()
        held["sha256"] = _data(context)
        _busy(context)
        held["identities"] = releases.identities(context)
        held["crds"] = _crds(context)
        said: list[str] = []
        began = time.monotonic()
        removal.uninstall(releases.installed(context), said.append)
        figures["seconds"] = round(time.monotonic() - began, 1)
        figures["said"] = said[-40:]
        _require_gone(context)
        kept.require_gone()
    if recorder.failed("uninstall.clean"):
        return
    with recorder.check("uninstall.keeps", TITLES["uninstall.keeps"]) as figures:
        lost = releases.lost(held["identities"], releases.identities(context))
        require(not lost, f"after the uninstallation {lost}")
        gone = held["crds"] - _crds(context)
        require(not gone, f"CRDs are gone: {sorted(gone)}")
        figures |= {"claims_and_keys": len(held["identities"]), "crds": len(held["crds"])}
        require(kubectl.find("namespace", NAMESPACE), f"namespace {NAMESPACE} is gone")
    with recorder.check("uninstall.reinstall", TITLES["uninstall.reinstall"]) as figures:
        figures["seconds"] = kept.put("install", {})
        lost = releases.lost(held["identities"], releases.identities(context))
        require(not lost, f"after the second installation {lost}")
        with store.connect(kubectl, SYSTEM) as s3:
            found = hashlib.sha256(s3.read("datasets", OBJECT)).hexdigest()
        require(found == held["sha256"], f"s3://datasets/{OBJECT} has another checksum: {found}")
        figures["sha256"] = found[:16]
        read = context.pod("read-again", f"cat /w/{POD}.txt", claims={CLAIM: "/w"})
        phase, log = context.run_pod(read)
        require(phase == "Succeeded" and log == WORDS, f"the workspace holds {log!r}")
        releases.test(context)
        figures |= kept.back()
    if recorder.passed("uninstall.reinstall"):
        kept.upgraded()


def purged(context: Context) -> None:
    """Everything is removed, including the teams' data."""
    with context.recorder.check("uninstall.purge", TITLES["uninstall.purge"]) as figures:
        release, said = releases.installed(context), list[str]()
        folders = node_folders.written(release)
        held = _lying(context, folders)
        require(held or not folders, f"{', '.join(folders)} of the nodes are empty, so the check would prove nothing")
        began = time.monotonic()
        removal.purge(release, said.append)
        figures |= {"seconds": round(time.monotonic() - began, 1), "removed": len(said)}
        left = [*inventory.remains(release).lines(), *_lying(context, folders)]
        require(not left, f"still exists: {', '.join(left)}")
        _require_gone(context)
        figures["files_on_nodes"] = len(held)


def _lying(context: Context, folders: list[str]) -> list[str]:
    """The contents of these folders on the nodes."""
    found = []
    for node in context.nodes if folders else ():
        listed = context.engine.exec(node.name, ["find", *folders, "-mindepth", "1"], check=False).stdout
        found += [f"{node.name}:{path}" for path in listed.split()]
    return found


def _data(context: Context) -> str:
    """Writes an object to a bucket; returns its checksum."""
    blob = hashlib.sha256(b"trainyard").digest() * 4096
    with store.connect(context.kubectl, SYSTEM) as s3:
        s3.client.put_object("datasets", OBJECT, io.BytesIO(blob), len(blob))
    return hashlib.sha256(blob).hexdigest()


def _busy(context: Context) -> None:
    """Starts a job of a team with its workspace mounted, which runs until someone ends it."""
    script = f"echo {WORDS} > /w/{POD}.txt; while sleep 1; do date > /w/clock; done"
    pod = context.pod(POD, script, claims={CLAIM: "/w"})
    quantities = {"cpu": "50m", "memory": "64Mi", GPU: 1}
    container = pod["spec"]["containers"][0]
    container |= {"name": "pytorch", "resources": {"requests": quantities, "limits": quantities}}
    spec = pod["spec"] | {"schedulerName": "volcano", "tolerations": [GPU_TOLERATION]}
    job = jobs.of_one_master(POD, spec, NAMESPACE, 1800)
    context.create(job)
    for due, seconds in (("create", 60), ("condition=Ready", 90)):
        context.wait(f"pod/{POD}-master-0", due, seconds)


def _crds(context: Context) -> set[str]:
    """Names of the platform's CRDs."""
    return set(inventory.remains(releases.installed(context)).crds)


def _require_gone(context: Context) -> None:
    """Checks that all is gone; pods without owner get a minute for Kubernetes' clean-up. Raises CheckError."""
    wait = patience(GONE_S)
    while left := _left(context):
        wait(f"still exists after {GONE_S} s: {', '.join(left)}")


def _left(context: Context) -> list[str]:
    """Objects that an uninstallation must not leave: pods, queues, gangs, webhooks, policies, roles; or terminating."""
    kubectl = context.kubectl
    found = [f"pod {SYSTEM}/{pod['metadata']['name']}" for pod in kubectl.get("pods", "-n", SYSTEM)]
    running = [pod for pod in kubectl.get("pods", "-n", NAMESPACE) if pod["status"]["phase"] in ("Pending", "Running")]
    found += [f"pod {NAMESPACE}/{pod['metadata']['name']}" for pod in running]
    label = f"{inventory.APPLIED_BY}={RELEASE}"
    for resource, flags in (
        ("queues.scheduling.volcano.sh", ["-l", label]),
        ("podgroups.scheduling.volcano.sh", ["-A"]),
    ):
        if kubectl.find("crd", resource):
            found += [f"{resource} {item['metadata']['name']}" for item in kubectl.get(resource, *flags)]
    for kind in BLOCKING:
        for item in kubectl.get(kind):
            if (item["metadata"].get("annotations") or {}).get(inventory.OWNER) == RELEASE:
                found.append(f"{kind} {item['metadata']['name']}")
    ending = [item for kind in ("namespaces", "pv", "crd") for item in kubectl.get(kind)]
    return found + [f"{item['kind']} {item['metadata']['name']} is ending"
                    for item in ending if item["metadata"].get("deletionTimestamp")]  # fmt: skip
