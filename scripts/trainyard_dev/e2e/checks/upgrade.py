"""From the previous version to this one, back, and forth again, while a training job runs."""

import io
import json
from typing import Any

from minio.error import S3Error

from trainyard.contract.model import reference
from trainyard_agent.install.crds import VERSION as CRD_VERSION
from trainyard_dev.chart import previous, summary
from trainyard_dev.e2e import options, releases, store
from trainyard_dev.e2e.checks import trail
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.entry import ALONE, APART, RELEASE_CODE, TORCH, check
from trainyard_dev.e2e.probe_job import ProbeJob
from trainyard_dev.e2e.recorder import CheckError, require
from trainyard_dev.images import registry, source
from trainyard_dev.images.registry import NETWORK
from trainyard_dev.versions import load

CRD = "pytorchjobs.kubeflow.org"
FIELD = "nprocPerNode"  # removed from the CRD beforehand, as if the previous version did not have it
FIELD_PATH = f"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/{FIELD}"
NEW = "DaemonSet trainyard-system/trainyard-logs"  # object of an option that the upgrade switches on
OBJECT, TEXT = "upgrade-e2e/kept.txt", b"written before the upgrade"
TITLES = {
    "upgrade.previous": f"version {previous.version()}, built from Git history, installs and trains",
    "upgrade.diff": "chart diff shows the upgrade's changes, and changes nothing",
    "upgrade.crds": "one helm upgrade --wait: CRDs are updated, queues and teams are kept",
    "upgrade.keys": "all generated keys are kept, and the running job's key and address stay valid",
    "upgrade.options-on": "monitoring and logs, enabled by that upgrade, work",
    "upgrade.rollback": "helm rollback, then helm upgrade: claims, objects and keys stay the same",
    "upgrade.options": "back on this version, monitoring has its earlier series, and logs lack no line",
    "upgrade.job-survives": "the training job survives upgrade, rollback and upgrade, and succeeds",
}


@check(*TITLES, needs=("uninstall.purge",),  # the cluster has no release then
       locks={ALONE, APART}, images=(TORCH, *options.IMAGES), inputs=(*RELEASE_CODE, "versions.yaml"))  # fmt: skip
def from_previous(context: Context, images: source.Source | None = None) -> None:
    """All checks in order, on a cluster without a release; leaves this version installed with two teams.

    Args:
        images: source of the cluster's images; None detects it.
    """
    if reason := previous.missing():
        context.recorder.skip_all(TITLES, reason)
        return
    image = reference("docker.io", load().image("trainer-torch"))  # where 0.3.0 allows our images
    job = ProbeJob(context, previous.job("pytorchjob"), NAMESPACE, image)
    lines = trail.Lines(context)
    try:
        _install_previous(context, job, images or source.choose("auto"))
        if not context.recorder.passed("upgrade.previous"):
            return
        _diff(context)
        held = releases.identities(context)
        former = store.credentials(context.kubectl, NAMESPACE)
        _upgrade(context)
        if context.recorder.passed("upgrade.crds"):
            _keys(context, held, former)
            before = _options_on(context, lines)
            _back_and_forth(context, job, held, former)
            _options_kept(context, lines, before)
        _survived(context, job)
    finally:
        lines.remove()
        job.remove()


def _install_previous(context: Context, job: ProbeJob, images: source.Source) -> None:
    with context.recorder.check("upgrade.previous", TITLES["upgrade.previous"]) as figures:
        figures |= {"version": previous.version(), "commit": previous.commit()[:7]}
        base = images.base(context.engine)
        address = registry.start(context.engine, NETWORK, lambda: images.registry_image(context.engine, base))
        figures["images_pushed"] = len(previous.push_images(context.engine, base, address))
        with releases.values(context, previous.tree()) as files:
            figures["install_seconds"] = releases.put(context, "install", files, package=previous.package())
        with store.connect(context.kubectl, SYSTEM) as s3:
            s3.client.put_object("datasets", OBJECT, io.BytesIO(TEXT), len(TEXT))
        lack = json.dumps([{"op": "remove", "path": FIELD_PATH}])
        context.kubectl("patch", "crd", CRD, "--type=json", "-p", lack)
        job.start()


def _diff(context: Context) -> None:
    with context.recorder.check("upgrade.diff", TITLES["upgrade.diff"]) as figures:
        release = releases.installed(context)
        with releases.values(context) as files, options.values(options.ALL) as on:
            found = summary.of_tree(release, [*files, on])
        print("\n".join(f"    {line}" for line in summary.table(found, most=8).splitlines()), flush=True)
        kinds = [change.kind for change in found.changes]
        figures |= {kind: kinds.count(kind) for kind in ("added", "changed", "removed", "kept")}
        verdicts = {one.component: one.verdict for one in found.components}
        figures |= {"images": len(found.images), "crds": found.crds, "verdicts": verdicts}
        due = (previous.version(), load().raw["trainyard"])
        require((found.before, found.after) == due, f"chart diff compares {found.before} with {found.after}")
        summary.refuse_blocked(found)
        moved = {name.rpartition("/")[2] for name, _, _ in found.images}
        require("platform" in moved, f"the platform image is not among the changed images: {sorted(moved)}")
        require(FIELD in found.crds.get(CRD, ""), f"chart diff does not show that {CRD} gets {FIELD}: {found.crds}")
        added = [change.object for change in found.changes if change.kind == "added"]
        require(NEW in added, f"chart diff does not show that {NEW} is added")
        revision = int(release.metadata()["revision"])
        require(revision == found.revision, "chart diff changed the release")


def _upgrade(context: Context) -> None:
    with context.recorder.check("upgrade.crds", TITLES["upgrade.crds"]) as figures:
        queues = _queues(context)
        figures["upgrade_seconds"] = _put(context)
        crd = context.kubectl.get("crd", CRD)[0]
        fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        require(FIELD in fields, f"{CRD} still lacks {FIELD}")
        noted = (crd["metadata"].get("annotations") or {}).get(CRD_VERSION)
        due = load().raw["components"]["training-operator"]
        require(noted == due, f"{CRD} is annotated with version {noted}, not {due}")
        require(crd["status"]["storedVersions"] == ["v1"], f"{CRD} stores {crd['status']['storedVersions']}")
        left = context.kubectl.find("clusterrole", "trainyard-crds")
        require(left is None, "the permissions of the CRD hook still exist")
        now = _queues(context)
        for name, uid in queues.items():
            require(now.get(name) == uid, f"queue {name} is {'gone' if name not in now else 'another one'}")
        for team in (NAMESPACE, OTHER):
            require(team in now, f"team {team} has no queue")
        figures |= {"queues": sorted(now), "crd_version": noted}


def _put(context: Context) -> float:
    """`helm upgrade` to this version with all options; returns its seconds."""
    with releases.values(context) as files, options.values(options.ALL) as on:
        return releases.put(context, "upgrade", [*files, on])


def _options_on(context: Context, lines: trail.Lines) -> trail.ProcessStart | None:
    """Both options work after the first upgrade; returns Prometheus' process, None if that failed."""
    with context.recorder.check("upgrade.options-on", TITLES["upgrade.options-on"]) as figures:
        before = trail.born(context)
        lines.begin()
        figures["objects"] = {option: len(found) for option, found in options.objects(context).items()}
        return before
    return None


def _options_kept(context: Context, lines: trail.Lines, before: trail.ProcessStart | None) -> None:
    title = TITLES["upgrade.options"]
    if not (before and context.recorder.passed("upgrade.rollback")):
        context.recorder.skip("upgrade.options", title, "they did not run before, or the release was not restored")
        return
    with context.recorder.check("upgrade.options", title) as figures:
        trail.require_kept(context, before)
        figures |= lines.complete()


def _queues(context: Context) -> dict[str, str]:
    """UIDs of all queues by name."""
    found = context.kubectl.get("queues.scheduling.volcano.sh")
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in found}


def _keys(context: Context, before: dict[str, str], former: dict[str, str]) -> None:
    with context.recorder.check("upgrade.keys", TITLES["upgrade.keys"]) as figures:
        lost = releases.lost(before, releases.identities(context))
        require(not lost, f"after the upgrade {lost}")
        _goes_on(context, former)
        figures |= {"compared": len(before), "endpoint": former["endpoint"]}


def _goes_on(context: Context, former: dict[str, str]) -> None:
    """The store still answers at the address and accepts the key that a job started with. Raises CheckError."""
    address = store.credentials(context.kubectl, NAMESPACE)["endpoint"]
    require(
        address == former["endpoint"], f"the store of team {NAMESPACE} was {former['endpoint']}, now it is {address}"
    )
    try:
        with store.connect(context.kubectl, SYSTEM, user=former) as s3:
            s3.names("runs", f"{NAMESPACE}/")
    except S3Error as error:
        raise CheckError(f"the running job's key gets {error.code}") from None


def _back_and_forth(context: Context, job: ProbeJob, before: dict[str, str], former: dict[str, str]) -> None:
    with context.recorder.check("upgrade.rollback", TITLES["upgrade.rollback"]) as figures:
        job.require_alive()
        brought = options.objects(context)
        figures["rollback_seconds"] = releases.roll_back(context, 1)
        meta = releases.installed(context).metadata()
        require(meta["version"] == previous.version(), f"the release has version {meta['version']} after the rollback")
        lost = releases.lost(before, releases.identities(context))
        require(not lost, f"after the rollback {lost}")
        left = options.left(context, brought)
        require(not left, f"objects of options still exist: {', '.join(left)}")
        options.require_claims(context, options.ALL)
        job.require_alive()
        figures["upgrade_seconds"] = _put(context)
        lost = releases.lost(before, releases.identities(context))
        require(not lost, f"after the second upgrade {lost}")
        _goes_on(context, former)
        missing = {NAMESPACE, OTHER} - set(_queues(context))
        require(not missing, f"after the second upgrade {sorted(missing)} have no queue")
        figures |= {"compared": len(before), "object": _object(context)}


def _object(context: Context) -> str:
    """The object written before the first upgrade. Raises CheckError if its content differs."""
    with store.connect(context.kubectl, SYSTEM) as s3:
        held = s3.read("datasets", OBJECT)
        s3.client.remove_object("datasets", OBJECT)
    require(held == TEXT, f"s3://datasets/{OBJECT} holds {held!r}")
    return f"{len(held)} bytes, the same"


def _survived(context: Context, job: ProbeJob) -> None:
    with context.recorder.check("upgrade.job-survives", TITLES["upgrade.job-survives"]) as figures:
        require(job.pods, "the job never started")
        job.require_alive()
        result: dict[str, Any] = job.finish()
        figures |= result | {"pods": len(job.pods), "restarts": 0}
