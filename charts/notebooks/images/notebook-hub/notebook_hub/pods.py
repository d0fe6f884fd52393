"""The pod of a notebook, as KubeSpawner's settings: restricted, without its own token, identified by its label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from notebook_hub import names
from notebook_hub.choices import Choice
from notebook_hub.settings import Profile, Settings, Storage, Team

Object = dict[str, Any]
USER = 1000
TELLS_S, LEAST_S = 300, 10  # how often a notebook reports activity to the hub: JupyterHub's default, and the least
HOME, WORKSPACE, SHARED = "/home/notebook", "/workspace", "/shared"
CLUSTER = "/etc/trainyard/cluster"
KFP_PORT = 8890  # of `trainyard kfp proxy` in a notebook
# A notebook's token would be visible to everyone who sees the pod, so these are in a Secret.
SECRET = ("JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN")
QUEUE, PREEMPTABLE = "scheduling.volcano.sh/queue-name", "volcano.sh/preemptable"
# As in pods of training jobs.
STORE = {
    "S3_ENDPOINT": "endpoint",
    "S3_ACCESS_KEY": "access-key",
    "S3_SECRET_KEY": "secret-key",
    "S3_REGION": "region",
    "S3_CA": "ca.crt",
}


def traits(settings: Settings, person: str, choice: Choice) -> Object:
    """KubeSpawner's traits by name, for one start, including all that another start may have set."""
    team, profile = choice.team, choice.profile
    volumes, mounts = _volumes(settings.storage, person)
    return {
        "namespace": team.name,
        "image": profile.image,
        "image_pull_policy": settings.pull_policy,
        "image_pull_secrets": [{"name": one} for one in settings.pull_secrets],
        "cpu_guarantee": profile.cpu,
        "cpu_limit": profile.cpu_limit or profile.cpu,
        "mem_guarantee": size(profile.memory),
        "mem_limit": size(profile.memory_limit or profile.memory),
        "extra_resource_guarantees": {team.gpu_resource: str(profile.gpus)} if profile.gpus else {},
        "extra_resource_limits": {team.gpu_resource: str(profile.gpus)} if profile.gpus else {},
        "node_selector": dict(team.gpu_labels if profile.gpus else team.cpu_labels),
        "tolerations": list(team.gpu_tolerations) if profile.gpus else [],
        "scheduler_name": settings.scheduler if profile.gpus else None,
        "priority_class_name": team.priority if profile.gpus else "",
        "extra_labels": {names.LABEL: "true", "trainyard.io/api-access": "true"},
        "extra_annotations": {QUEUE: team.queue, PREEMPTABLE: "true"} if profile.gpus else {},
        "environment": {**environment(team, profile, settings.idle), **kfp(Path(settings.kfp_api))},
        "volumes": volumes,
        "volume_mounts": mounts,
        "extra_pod_config": extra(profile),
    }


def size(memory: str) -> int:
    """Bytes of a quantity such as 4Gi, which JupyterHub writes differently."""
    return int(memory[:-2]) << {"Mi": 20, "Gi": 30, "Ti": 40}[memory[-2:]]


def fixed() -> Object:
    """Traits that all notebooks share."""
    return {
        "automount_service_account_token": False,
        "service_account": "training",
        "uid": USER,
        "gid": USER,
        "fs_gid": USER,
        "working_dir": HOME,
        "events_enabled": False,
        "enable_user_namespaces": False,
        "pod_name_template": names.PREFIX + "{escaped_username}",
        "pvc_name_template": names.PREFIX + "{escaped_username}",
        "handle_legacy_names": False,
        "remember_pvc_name": False,
        "delete_pvc": False,
        "pod_security_context": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "container_security_context": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def extra(profile: Profile) -> Object:
    """Parts of the pod for which KubeSpawner has no trait."""
    found: Object = {"enableServiceLinks": False, "restartPolicy": "Never", "terminationGracePeriodSeconds": 30}
    if profile.deadline:
        found["activeDeadlineSeconds"] = profile.deadline
    return found


def environment(team: Team, profile: Profile, idle: int) -> Object:
    """Variables of a notebook. On a node with GPUs an image may show all of them by default, so `void` hides them.

    A notebook reports activity to the hub at least four times before it would count as idle.
    """
    found = {
        "HOME": HOME,
        "KUBECONFIG": "/tmp/kubeconfig",
        "TRAINYARD_TEAM": team.name,
        "TRAINYARD_CLUSTER_CA": f"{CLUSTER}/ca.crt",
        "JUPYTERHUB_ACTIVITY_INTERVAL": str(max(LEAST_S, min(TELLS_S, idle // 4)) if idle else TELLS_S),
    }
    return found if profile.gpus else {**found, "NVIDIA_VISIBLE_DEVICES": "void"}


def kfp(folder: Path) -> Object:
    """Variables with which kfp.Client() works: start-notebook runs the proxy that they name. {} without the service."""
    try:
        service, url = ((folder / name).read_text().strip() for name in ("service", "url"))
    except OSError:
        return {}
    found = {"KF_PIPELINES_ENDPOINT": f"http://localhost:{KFP_PORT}", "KFP_API_URL": service}
    return {**found, "KF_PIPELINES_UI_ENDPOINT": url} if url else found


def store(storage: Storage) -> list[Object]:
    """Variables from the Secret of the team's key to the store; none for a team without a key."""
    if not storage.store_secret:
        return []
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": storage.store_secret, "key": key, "optional": True}}}
        for name, key in STORE.items()
    ]


def _volumes(storage: Storage, person: str) -> tuple[list[Object], list[Object]]:
    volumes: list[Object] = [
        {"name": "tmp", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "cluster", "configMap": {"name": "kube-root-ca.crt"}},
    ]
    mounts: list[Object] = [
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "cluster", "mountPath": CLUSTER, "readOnly": True},
        {"name": "home", "mountPath": HOME},
    ]
    home: Object = {"emptyDir": {}}
    if storage.home_size:
        home = {"persistentVolumeClaim": {"claimName": names.notebook(person)}}
    volumes.append({"name": "home", **home})
    if storage.workspace:
        volumes.append({"name": "workspace", "persistentVolumeClaim": {"claimName": storage.workspace}})
        mounts.append({"name": "workspace", "mountPath": WORKSPACE})
    if storage.shared:
        volumes.append({"name": "shared", "persistentVolumeClaim": {"claimName": storage.shared, "readOnly": True}})
        mounts.append({"name": "shared", "mountPath": SHARED, "readOnly": True})
    return volumes, mounts
