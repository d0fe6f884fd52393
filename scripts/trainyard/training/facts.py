"""Facts for comparing training jobs, from a job's object and the store: what it was made from, and its results."""

import hashlib
import json
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kinds import status
from trainyard.kinds.flags import flags, of_program
from trainyard.kinds.pods import FETCH, UPLOAD
from trainyard.kinds.team_config import BUCKET
from trainyard.kube import Kube, KubeError
from trainyard.observe import jobs
from trainyard.observe.comparison import Facts
from trainyard.policy.lint.pods import Pod, mapping, pods
from trainyard.times import now, when
from trainyard.training import actions, launch, report
from trainyard.training.transfer import Store
from trainyard_agent.runs.run_metrics import numbers

Object = dict[str, Any]
METRICS = "metrics.json"
GONE = "gone"  # state of a job whose object was deleted
SHOWN = 12  # characters of a digest
OURS = ("HOME", "PYTHONUNBUFFERED", "NODE_NAME", "NVIDIA_VISIBLE_DEVICES")  # variables of every job
OURS_BEGIN = ("TRAINYARD_", "S3_", "MLFLOW_", "KUBECTL_")
RESULTS = ("out", "output", "output-dir", "output_dir", "results")


def of(kube: Kube, job: Object, store: Store) -> Facts:
    """Facts about one job. Omits facts that can't be read from the store."""
    name = job["metadata"]["name"]
    state = jobs.outcome(actions.poll(kube, job))[0]
    begun, end = when(status.started(job)), when(status.finished(job)) or now()
    found = [pod for pod in pods(job) if _main(pod)]
    works = max(found, key=lambda pod: len(_words(pod)), default=None)
    given = flags(_words(works)) if works else {}
    container = _main(works) if works else {}
    plain = {one["name"]: str(one["value"]) for one in container.get("env") or [] if one.get("value") is not None}
    own = {key: value for key, value in plain.items() if key not in OURS and not key.startswith(OURS_BEGIN)}
    data = {key: value for key, value in {**given, **own}.items() if value.startswith("s3://") and key not in RESULTS}
    gpus = sum(pod.amount(resource) * pod.count for pod in found for resource in _gpus(pod))
    parameters = {"image": container.get("image", ""), "pods": sum(pod.count for pod in found), "gpus": int(gpus)}
    parameters |= {key: value for key, value in {**given, **own}.items() if not value.startswith("s3://")}
    return Facts(
        name=name,
        kind=report.kind_of(job),
        state=state,
        seconds=(end - begun).total_seconds() if begun else None,
        parameters=parameters,
        metrics=metrics(store, places(job)),
        data={key: _listed(store, uri) for key, uri in data.items()} | (_claims(works, container) if works else {}),
        code={"code": code(works)} if works else {},
    )


def gone(kube: Kube, name: str, store: Store) -> Facts:
    """Facts about a deleted job: the metrics in the store. Raises KubeError if the store contains none."""
    place = kept(kube.namespace, name)
    files = store.list(f"{place}/")
    if not files:
        what = f"no run or job {name} in {kube.namespace}, and no such results in the store"
        raise KubeError(what, status=404, where=f"s3://{place}", hint="list the runs with `trainyard runs list`")
    folders = [file.rpartition("/")[0] for file in sorted(files) if file.rpartition("/")[2] == METRICS]
    return Facts(name=name, kind="job", state=GONE, metrics=metrics(store, [f"{place}/{one}" for one in folders]))


def kept(team: str, name: str) -> str:
    """Location of a job's results and checkpoints, as bucket/key."""
    return f"{BUCKET}/{launch.output_of(team, name)}"


def places(job: Object) -> list[str]:
    """Possible locations of the job's metrics, as bucket/key: uploaded results, and output folders in its command."""
    found = []
    for pod in pods(job):
        for helper in pod.spec.get("initContainers") or []:
            args = [str(word) for word in helper.get("args") or []]
            if helper.get("name") == UPLOAD and (to := _option(args, "--to")):
                found.append(f"{to}/{_option(args, '--folder')}")
        for key, value in flags(_words(pod)).items():
            if key in RESULTS and value.startswith("s3://"):
                found.append(value.removeprefix("s3://").rstrip("/"))
    return list(dict.fromkeys(found))


def metrics(store: Store, where: list[str]) -> dict[str, float]:
    """The numbers in the first metrics.json; {} if there is none, or it can't be read."""
    for place in where:
        try:
            if store.stat(f"{place}/{METRICS}"):
                return numbers(json.loads(store.read(f"{place}/{METRICS}")))
        except (TrainyardError, ValueError):
            continue
    return {}


def code(pod: Pod) -> str:
    """Digest of the code that was sent; if the code is in the image, of image and command."""
    for helper in pod.spec.get("initContainers") or []:
        if helper.get("name") == FETCH and (
            digest := _option([str(word) for word in helper.get("args") or []], "--sha256")
        ):
            return f"sha256 {digest[:SHOWN]}"
    return digest_of(_main(pod))


def digest_of(container: Object) -> str:
    """Short digest of image, command and arguments of a container."""
    what = [container.get(key) for key in ("image", "command", "args", "source")]
    return f"sha256 {hashlib.sha256(json.dumps(what).encode()).hexdigest()[:SHOWN]}"


def _main(pod: Pod) -> Object:
    return next((mapping(one) for one in pod.spec.get("containers") or []), {})


def _words(pod: Pod) -> list[str]:
    """The program and its arguments, without the words that launch it."""
    return of_program([str(word) for key in ("command", "args") for word in _main(pod).get(key) or []])


def _option(args: list[str], name: str) -> str:
    return next((word.partition("=")[2] for word in args if word.startswith(f"{name}=")), "")


def _gpus(pod: Pod) -> set[str]:
    """Extended resources of a pod whose names are those of GPUs."""
    asked = {key for one, _ in pod.containers() for key in mapping(mapping(one.get("resources")).get("limits"))}
    return {key for key in asked if "/" in key and ("gpu" in key or "mig" in key)}


def _claims(pod: Pod, container: Object) -> dict[str, str]:
    mounts = {one.get("name"): one.get("mountPath", "") for one in container.get("volumeMounts") or []}
    return {
        str(mounts[volume["name"]]): f"claim {volume['persistentVolumeClaim'].get('claimName', '')}"
        for volume in pod.spec.get("volumes") or []
        if volume.get("persistentVolumeClaim") and volume.get("name") in mounts
    }


def _listed(store: Store, uri: str) -> str:
    """An address with a digest of its current files, from names and sizes: the content is not read."""
    try:
        found = store.list(uri.removeprefix("s3://").rstrip("/") + "/")
    except TrainyardError:
        return uri
    digest = hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest()
    return f"{uri} ({len(found)} files, {digest[:SHOWN]})" if found else uri
