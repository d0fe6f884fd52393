"""The pod of a training job: its placement, its permissions, and the transfer of code and results."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.contract.model import Pool
from trainyard.kinds import packages, registry
from trainyard.kinds.environment import mlflow_environment, store_environment
from trainyard.kinds.flags import flags, of_program
from trainyard.kinds.spec import JobSpec, amount_of
from trainyard.kinds.team_config import BUCKET, TeamConfig

Object = dict[str, Any]
JOB_LABEL = "trainyard.io/job"
ROOT = packages.BASE  # a volume of the pod: the code, and below it the command's output
CODE = f"{ROOT}/code"
USER = 1000
GRACE_S = 600  # time to copy remaining files when a pod ends; with none to copy the pod ends at once
SYNC_S = 30
CLOSED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
# On a GPU node an image may expose all GPUs by default; a container's own environment has precedence.
NO_GPU = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
FETCH, UPLOAD = "trainyard-fetch", "trainyard-upload"
DEVICE = Path(__file__).with_name("device.py")
EXIT = {"name": "TRAINYARD_EXIT", "value": f"{ROOT}/.trainyard-exit"}  # the command's exit code, for the uploader


def hide_gpus(container: Object) -> None:
    """Hides all GPUs from a container that requests none, unless its own environment decides otherwise."""
    environment = container.setdefault("env", [])
    if not any(entry["name"] == NO_GPU["name"] for entry in environment):
        environment.append(dict(NO_GPU))


def restricted() -> Object:
    """Security context of a pod for Pod Security's restricted level; volumes belong to the pod's user."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


@dataclass(frozen=True)
class Part:
    """One kind of pod of a job.

    `waits`: its command only waits for others to start ranks in it. `uploader`: suffix of the name of the pod that
    uploads the results; "" means any.
    """

    container: str
    command: tuple[str, ...]
    gpus: bool = False
    works: bool = True  # whether it runs the command, and so needs code and data
    uploads: bool = False
    waits: bool = False
    uploader: str = ""
    token: bool = False


def template(spec: JobSpec, team_config: TeamConfig, part: Part) -> Object:
    """Builds the pod template of one part."""
    gpus = spec.gpus if part.gpus else 0
    pool = team_config.team.pool(spec.pool if gpus or not spec.gpus else "", gpus=gpus > 0)
    priority = spec.priority or team_config.team.priority
    mounts, volumes = _volumes(spec, part)
    inner: Object = {
        "schedulerName": team_config.contract.scheduler,
        "nodeSelector": dict(pool.labels),
        # The command is then not process 1, and a termination signal ends it even if it doesn't handle signals.
        "shareProcessNamespace": True,
        "securityContext": restricted(),
        "containers": [_main(spec, team_config, part, gpus, pool, mounts)],
        "volumes": volumes,
    }
    if priority:
        inner["priorityClassName"] = priority
    if not part.token:
        inner["automountServiceAccountToken"] = False
    if gpus and pool.tolerations:
        inner["tolerations"] = [dict(one) for one in pool.tolerations]
    if gpus and spec.nodes > 1:
        inner["topologySpreadConstraints"] = [_spread(spec)]
    if part.works and moves(spec):
        inner["initContainers"] = [_fetch(spec, team_config), *_packages(spec, team_config)]
        if part.uploads and spec.output:
            inner["initContainers"].append(_upload(spec, team_config, part))
            inner["terminationGracePeriodSeconds"] = GRACE_S
    reached = packages.LABEL if part.works and spec.packages else {}
    return {"metadata": {"labels": {**labels(spec), **reached}}, "spec": inner}


def image_of(spec: JobSpec, team_config: TeamConfig) -> str:
    """The image of a job's pods, the same for all, including those without GPUs. Raises UsageError."""
    pool = team_config.team.pool(spec.pool, gpus=True) if spec.gpus else None
    return team_config.image(spec.image, spec.framework, pool)


def moves(spec: JobSpec) -> bool:
    """Whether files are copied into or out of the job's pods."""
    return bool(spec.code or spec.output or spec.packages)


def labels(spec: JobSpec) -> dict[str, str]:
    """Labels of the job and its pods."""
    own = {"app.kubernetes.io/name": spec.name, "app.kubernetes.io/managed-by": "trainyard", JOB_LABEL: spec.name}
    return {**spec.labels, **own}


def home(spec: JobSpec) -> str:
    """Working directory of the command; "" leaves it to the image."""
    return CODE if spec.code else ROOT if spec.output else ""


def literal(words: Sequence[str]) -> list[str]:
    """Words escaped so that Kubernetes passes them unchanged instead of expanding `$(NAME)`."""
    return [word.replace("$(", "$$(") for word in words]


@functools.cache
def device() -> str:
    """The program that prints on which device a command computes, with the build information of each framework."""
    builds = {kind.modules[0]: kind.build for kind in registry.KINDS if kind.build}
    head, _, rest = DEVICE.read_text().partition(" = {}\n")
    return f"{head} = {builds}\n{rest}"


def announced(spec: JobSpec, words: Sequence[str]) -> list[str]:
    """The command, wrapped to print its device first if the job's image has Python."""
    if not spec.python:
        return list(words)
    first = next(iter(registry.of_framework(spec.framework).modules), "")
    return [*literal([spec.python, "-c", device()]), first, *words]


def _main(spec: JobSpec, team_config: TeamConfig, part: Part, gpus: int, pool: Pool, mounts: list[Object]) -> Object:
    cpu, memory = (spec.cpu, spec.memory) if part.works else ("100m", "512Mi")
    requests: Object = {"cpu": cpu, "memory": memory}
    limits: Object = {"memory": memory}
    usual = (team_config.team.limits.get("limits") or {}).get("cpu")
    if usual and amount_of(cpu) > amount_of(str(usual)):
        limits["cpu"] = cpu  # the team's default limit would be below the request
    if gpus:
        requests[pool.resource] = limits[pool.resource] = gpus
    found: Object = {
        "name": part.container,
        "image": image_of(spec, team_config),
        "command": list(part.command) if part.waits or not part.works else announced(spec, part.command),
        "env": _environment(spec, team_config, part),
        "resources": {"requests": requests, "limits": limits},
        "securityContext": dict(CLOSED),
        "volumeMounts": mounts,
    }
    if not gpus:
        hide_gpus(found)
    if part.works and home(spec):
        found["workingDir"] = home(spec)
    return found


def _environment(spec: JobSpec, team_config: TeamConfig, part: Part) -> list[Object]:
    if not part.works:
        # The launcher's role allows `create` on pods/exec, which kubectl's older protocol requires.
        return [{"name": "KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "value": "false"}]
    found: list[Object] = [
        {"name": "HOME", "value": "/tmp"},
        {"name": "PYTHONUNBUFFERED", "value": "1"},
        {"name": "TRAINYARD_TEAM", "value": team_config.team.name},
        {"name": "TRAINYARD_JOB", "value": spec.name},
        {"name": "TRAINYARD_BUCKET", "value": BUCKET},
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]
    if home(spec):
        found.append({"name": "TRAINYARD_RESULTS", "value": f"{home(spec)}/{spec.results}"})
        if spec.checkpoints:
            found.append({"name": "TRAINYARD_CHECKPOINTS", "value": f"{home(spec)}/{spec.checkpoints}"})
    if spec.nodes > 1 and spec.ranks_per_node == 1 and "RANK" in registry.of_framework(spec.framework).environment:
        # Without LOCAL_RANK, Accelerate assumes a single process, whatever RANK is; without the launcher's run id,
        # Lightning assumes rank 0.
        found += [{"name": "LOCAL_RANK", "value": "0"}, {"name": "LOCAL_WORLD_SIZE", "value": "1"}]
        found.append({"name": "TORCHELASTIC_RUN_ID", "value": spec.name})
    if spec.packages:
        found.append(dict(packages.USER_BASE))
    found += store_environment()
    if told := mlflow_environment(spec, team_config):
        found += [*told, *([dict(EXIT)] if part.uploads and spec.output and spec.tracked and spec.python else [])]
    for name, value in spec.env.items():
        found = [entry for entry in found if entry["name"] != name]
        if isinstance(value, Mapping):
            source = {"secretKeyRef": {"name": value["secret"], "key": value["key"]}}
            found.append({"name": name, "valueFrom": source})
        else:
            found.append({"name": name, "value": literal([value])[0]})
    return found


def _volumes(spec: JobSpec, part: Part) -> tuple[list[Object], list[Object]]:
    mounts: list[Object] = [{"name": "tmp", "mountPath": "/tmp"}, {"name": "shm", "mountPath": "/dev/shm"}]
    memory = spec.shared_memory if part.works else "64Mi"
    volumes: list[Object] = [
        {"name": "tmp", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": memory}},
    ]
    if not part.works:
        return mounts, volumes
    if moves(spec):
        mounts.append({"name": "trainyard", "mountPath": ROOT})
        volumes.append({"name": "trainyard", "emptyDir": {}})
    for claim in dict.fromkeys(mount.claim for mount in spec.mounts):
        only = all(mount.read_only for mount in spec.mounts if mount.claim == claim)
        source: Object = {"claimName": claim, **({"readOnly": True} if only else {})}
        volumes.append({"name": _volume_name(claim), "persistentVolumeClaim": source})
    for mount in spec.mounts:
        entry: Object = {"name": _volume_name(mount.claim), "mountPath": mount.path}
        mounts.append(entry | ({"readOnly": True} if mount.read_only else {}))
    return mounts, volumes


def _volume_name(claim: str) -> str:
    return f"claim-{claim.replace('.', '-')}"[:63].rstrip("-")


def _spread(spec: JobSpec) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {JOB_LABEL: spec.name}},
    }


def _fetch(spec: JobSpec, team_config: TeamConfig) -> Object:
    """Init container that fetches the code, creates folders, and restores checkpoints of earlier attempts."""
    words = ["fetch", f"--into={home(spec) or ROOT}"]
    if home(spec):
        words.append(f"--folder={spec.results}")
    if spec.code:
        words += [f"--code={BUCKET}/{spec.code}", f"--sha256={spec.code_sha256}"]
    if spec.packages:
        words += packages.fetched(spec.requirements, spec.packages)
    if home(spec) and spec.checkpoints:
        words.append(f"--folder={spec.checkpoints}")
        for place in filter(None, (spec.output, spec.resume)):  # the newer comes first and is not overwritten
            words.append(f"--restore={BUCKET}/{place}/{spec.checkpoints}={spec.checkpoints}")
    found = helper(FETCH, words, team_config.platform_image)
    if spec.packages:
        found["env"] += package_sources(team_config.contract.packages, spec.requirement_files)
    return found


def package_sources(site: Mapping[str, Any], files: Mapping[str, str]) -> list[Object]:
    """Variables of the fetch container: the site's index, and requirements that are not part of any code."""
    found = packages.index_environment(site)
    if files:
        found.append({"name": packages.FILES, "value": literal([json.dumps(dict(files))])[0]})
    return found


def _packages(spec: JobSpec, team_config: TeamConfig) -> list[Object]:
    """Init containers that install the code's requirements, if new, and save them."""
    if not spec.packages:
        return []
    memory = max(spec.memory, packages.MEMORY, key=amount_of)
    image, place = image_of(spec, team_config), packages.kept(home(spec) or ROOT, spec.packages)
    return installation(image, place, team_config.contract.packages, team_config.platform_image, memory)


def installation(
    image: str, place: list[str], site: Mapping[str, Any], platform_image: str, memory: str
) -> list[Object]:
    """Containers that install packages in a run's own image, and save them for later runs at `packages.kept`."""
    keep = helper(packages.KEEP, place, platform_image)
    return [packages.install(image, site, CLOSED, NO_GPU, memory), keep]


def _upload(spec: JobSpec, team_config: TeamConfig, part: Part) -> Object:
    """Sidecar that copies the command's output to the store, and ends a little after the command."""
    words = ["upload", f"--from={home(spec)}", f"--to={BUCKET}/{spec.output}", f"--every={SYNC_S}"]
    words.append(f"--folder={spec.results}")
    if spec.checkpoints:
        words.append(f"--folder={spec.checkpoints}")
    if part.uploader:
        words.append(f"--only={part.uploader}")
    made = helper(UPLOAD, words, team_config.platform_image) | {"restartPolicy": "Always"}
    if spec.tracked and (told := mlflow_environment(spec, team_config)):
        made["args"] += literal([f"--param={name}={value}" for name, value in flags(of_program(spec.command)).items()])
        made["env"] += [{"name": "TRAINYARD_JOB", "value": spec.name}, *told, *([dict(EXIT)] if spec.python else [])]
    return made


def helper(name: str, words: list[str], platform_image: str) -> Object:
    """A container of the platform in a run's pod, with access to the store."""
    pod_name = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return {
        "name": name,
        "image": platform_image,
        "args": ["run-files", *words],
        "env": [pod_name, {"name": "HOME", "value": "/tmp"}, dict(NO_GPU), *store_environment()],
        "resources": {"requests": {"cpu": "10m", "memory": "48Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {**CLOSED, "readOnlyRootFilesystem": True},
        "volumeMounts": [{"name": "trainyard", "mountPath": ROOT}, {"name": "tmp", "mountPath": "/tmp"}],
    }
