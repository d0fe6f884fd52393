"""The rules that name a cause: each on objects as a real cluster shows them, and none on a healthy cluster."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.diagnose import Collected, probable_cause
from trainyard.diagnose.cause import matching
from trainyard.diagnose.rules import RULES
from trainyard.report.phases import moment

NOW = "2026-05-28T20:30:00Z"
BEFORE = "2026-05-28T20:29:00Z"
SPACE = "trainyard-e2e"


def pod(
    name: str = "mnist-worker-0",
    *,
    phase: str = "Running",
    ready: bool = True,
    state: dict[str, Any] | None = None,
    last: dict[str, Any] | None = None,
    restarts: int = 0,
    node: str | None = "trainyard-worker",
    space: str = SPACE,
    **status: Any,
) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "docker.io/trainyard/trainer-torch:0.1.0",
        "ready": ready,
        "restartCount": restarts,
        "state": state or {"running": {"startedAt": NOW}},
        "lastState": last or {},
    }
    limits = {"limits": {"memory": "256Mi"}}
    return {
        "metadata": {"name": name, "namespace": space},
        "spec": {"containers": [{"name": "main", "resources": limits}], **({"nodeName": node} if node else {})},
        "status": {"phase": phase, "containerStatuses": [container], **status},
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "finishedAt": NOW}}


def pending(name: str = "mnist-worker-0", **more: Any) -> dict[str, Any]:
    found = pod(name, phase="Pending", ready=False, node=None, **more)
    found["status"].pop("containerStatuses")
    return found


def node(
    name: str = "trainyard-worker", *, gpus: int | None = 4, usable: int | None = None, **conditions: Any
) -> dict[str, Any]:
    state = {
        "Ready": ("True", "kubelet is posting ready status"),
        "DiskPressure": ("False", ""),
        "MemoryPressure": ("False", ""),
    }
    state |= conditions
    has = {} if gpus is None else {"nvidia.com/gpu": str(gpus)}
    can = has if usable is None else {"nvidia.com/gpu": str(usable)}
    return {
        "metadata": {"name": name, "labels": {"trainyard.io/pool": "cpu" if gpus is None else "gpu"}},
        "status": {
            "capacity": has,
            "allocatable": can,
            "conditions": [{"type": k, "status": s, "message": m} for k, (s, m) in state.items()],
        },
    }


def event(
    reason: str, message: str, *, kind: str = "Pod", name: str = "mnist-worker-0", at: str = NOW, space: str = SPACE
) -> dict[str, Any]:
    return {
        "type": "Normal" if reason.startswith("Success") else "Warning",
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": kind, "namespace": space, "name": name},
        "firstTimestamp": at,
        "lastTimestamp": at,
    }


def healthy() -> Collected:
    """A cluster after a good run, with the warnings that come and go in every one."""
    hook = pod(
        "trainyard-hook-x", phase="Succeeded", ready=False, state=ended(0, "Completed"), space="trainyard-system"
    )
    return Collected(
        nodes=[node(), node("trainyard-worker2"), node("trainyard-worker3", gpus=None)],
        pods=[
            pod(),
            pod("mnist-master-0", phase="Succeeded", ready=False, state=ended(0, "Completed")),
            pod("volcano-scheduler-x", restarts=1, last=ended(1), space="trainyard-system"),
            hook,
        ],
        events=[
            event("FailedScheduling", "0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu."),
            event("FailedMount", 'MountVolume.SetUp failed for volume "s3": secret "trainyard-s3" not found'),
            event("Unhealthy", "Readiness probe failed", name="volcano-scheduler-x", space="trainyard-system"),
            event("FailedCreate", 'failed calling webhook "x"', kind="ReplicaSet", name="rs", at=BEFORE),
            event("SuccessfulCreate", "Created pod: rs-1", kind="ReplicaSet", name="rs"),
            event("FailedMount", "no such device", name="deleted-since"),
        ],
        podgroups=[{"metadata": {"name": "mnist", "namespace": SPACE}, "status": {"phase": "Running", "conditions": [
            {"type": "Unschedulable", "status": "True", "message": "3/4 tasks in gang unschedulable"}]}}],
        queues=[{"metadata": {"name": "training"}, "status": {"state": "Open"}}],
        jobs=[{"kind": "PyTorchJob", "metadata": {"name": "mnist", "namespace": SPACE}, "status": {"conditions": [
            {"type": "Failed", "status": "False"}, {"type": "Succeeded", "status": "True"}]}}],
        claims=[{"metadata": {"name": "data", "namespace": SPACE}, "status": {"phase": "Bound"}}],
        logs={"trainyard-system/volcano-scheduler-x/main/previous": "lost the lease"},
        checks=[{"id": "train.pytorchjob", "status": "passed", "figures": {"accuracy": 0.94, "bar": 0.9}}],
    )  # fmt: skip


def test_a_healthy_cluster_has_no_cause() -> None:
    assert matching(healthy()) == []
    assert probable_cause(healthy()) == ""


SECURITY = (
    'pods "mnist-worker-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false '
    '(container "main" must set securityContext.allowPrivilegeEscalation=false)'
)
HOOK_JOB = {
    "kind": "Job",
    "metadata": {
        "name": "trainyard-apply",
        "namespace": "trainyard-system",
        "annotations": {"helm.sh/hook": "post-install"},
    },
}


def hook_pod(log: str) -> dict[str, Any]:
    found = pod("trainyard-apply-9x", phase="Failed", ready=False, state=ended(1), space="trainyard-system")
    found["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "trainyard-apply"}]
    return {"pods": [found], "jobs": [HOOK_JOB], "logs": {"trainyard-system/trainyard-apply-9x/main": log}}


INIT = pod(phase="Pending", ready=False, state=waiting("PodInitializing"))
INIT["spec"]["initContainers"] = [{"name": "proxy", "restartPolicy": "Always"}, {"name": "wait"}]
INIT["status"]["initContainerStatuses"] = [
    {"name": name, "ready": False, "started": True, "state": {"running": {"startedAt": BEFORE}}}
    for name in ("proxy", "wait")
]

CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "api-down",
        {"nodes": [], "pods": [], "problems": ["nodes: dial tcp 127.0.0.1:6443: connect: connection refused"]},
        ["connection refused"],
    ),
    (
        "disk-pressure",
        {"nodes": [node(DiskPressure=("True", "kubelet has disk pressure"))]},
        ["trainyard-worker", "disk"],
    ),
    (
        "disk-pressure",
        {"events": [event("FreeDiskSpaceFailed", "freed 0 bytes", kind="Node", name="trainyard-worker", space="")]},
        ["freed 0"],
    ),
    (
        "disk-pressure",
        {
            "pods": [
                pod(
                    phase="Pending",
                    ready=False,
                    state=waiting("ErrImagePull", "write /var/lib: no space left on device"),
                )
            ]
        },
        ["No space is left"],
    ),
    ("memory-pressure", {"nodes": [node(MemoryPressure=("True", "kubelet has memory pressure"))]}, ["short of memory"]),
    (
        "node-not-ready",
        {"nodes": [node(Ready=("Unknown", "Kubelet stopped posting node status."))]},
        ["trainyard-worker", "stopped posting"],
    ),
    ("node-not-ready", {"nodes": [node(Ready=("False", "cni plugin not initialized"))]}, ["cni plugin"]),
    (
        "evicted",
        {
            "pods": [
                {
                    **pod(ready=False),
                    "status": {
                        "phase": "Failed",
                        "reason": "Evicted",
                        "message": "The node was low on resource: memory.",
                    },
                }
            ]
        },
        ["was evicted", "low on resource"],
    ),
    (
        "out-of-memory",
        {"pods": [pod(phase="Failed", ready=False, state=ended(137, "OOMKilled"))]},
        ["main", "256Mi", "trainyard-worker"],
    ),
    (
        "out-of-memory",
        {"pods": [pod(ready=False, state=waiting("CrashLoopBackOff"), last=ended(137, "OOMKilled"), restarts=3)]},
        ["killed for memory"],
    ),
    (
        "webhook-silent",
        {
            "events": [
                event(
                    "FailedCreate",
                    'Internal error occurred: failed calling webhook "mutatepod.volcano.sh": connection refused',
                    kind="Job",
                )
            ]
        },
        ["mutatepod.volcano.sh", "does not answer"],
    ),
    (
        "webhook-silent",
        hook_pod('Error from server: failed calling webhook "validatequeue.volcano.sh": no endpoints available'),
        ["validatequeue.volcano.sh"],
    ),
    (
        "pod-security",
        {"events": [event("FailedCreatePod", SECURITY, kind="PyTorchJob", name="mnist")]},
        ["PyTorchJob trainyard-e2e/mnist", "restricted"],
    ),
    (
        "pod-security",
        {"events": [event("FailedCreate", SECURITY, kind="Job", name="mnist")]},
        ["allowPrivilegeEscalation"],
    ),
    (
        "quota",
        {
            "events": [
                event(
                    "FailedCreate",
                    'pods "x" is forbidden: exceeded quota: team-a, requested: nvidia.com/gpu=4, used: 4, limited: 4',
                    kind="Job",
                )
            ]
        },
        ["quota", "team-a"],
    ),
    (
        "policy",
        {
            "events": [
                event(
                    "FailedCreate",
                    "ValidatingAdmissionPolicy 'gpu-needs-limits' with binding 'b' denied request: no",
                    kind="Job",
                )
            ]
        },
        ["policy", "gpu-needs-limits"],
    ),
    (
        "create-failed",
        {"events": [event("FailedCreate", 'serviceaccount "x" not found', kind="ReplicaSet", name="rs")]},
        ["can't be created"],
    ),
    (
        "image",
        {
            "pods": [pod(phase="Pending", ready=False, state=waiting("ImagePullBackOff", "Back-off pulling image"))],
            "events": [
                event("Failed", "Failed to pull image: dial tcp: lookup docker.io: no such host"),
                event("Failed", "Error: ImagePullBackOff"),
            ],
        },
        ["trainyard-worker", "trainer-torch:0.1.0", "no such host"],
    ),
    (
        "image",
        {"pods": [pod(ready=False, state=waiting("ErrImageNeverPull", "not present with pull policy of Never"))]},
        ["policy of Never"],
    ),
    (
        "bad-config",
        {
            "pods": [
                pod(
                    phase="Pending",
                    ready=False,
                    state=waiting("CreateContainerConfigError", 'secret "trainyard-s3" not found'),
                )
            ]
        },
        ["trainyard-s3"],
    ),
    (
        "mount",
        {
            "pods": [pod(phase="Pending", ready=False, state=waiting("ContainerCreating"))],
            "events": [event("FailedMount", 'MountVolume.SetUp failed for volume "shared": mount.nfs: No such device')],
        },
        ["mount.nfs: No such device", "mnist-worker-0"],
    ),
    (
        "sandbox",
        {
            "pods": [pod(phase="Pending", ready=False, state=waiting("ContainerCreating"))],
            "events": [
                event(
                    "FailedCreatePodSandBox", "loadFlannelSubnetEnv failed: open /run/flannel/subnet.env: no such file"
                )
            ],
        },
        ["subnet.env"],
    ),
    (
        "device-admission",
        {
            "pods": [
                {
                    **pod(),
                    "status": {
                        "phase": "Failed",
                        "reason": "UnexpectedAdmissionError",
                        "message": "Allocate failed: no healthy devices present",
                    },
                }
            ]
        },
        ["no healthy devices"],
    ),
    (
        "hook-failed",
        hook_pod("applying\nqueues.scheduling.volcano.sh is forbidden\n"),
        ["trainyard-apply-9x", "exit 1", "is forbidden"],
    ),
    (
        "crash-loop",
        {
            "pods": [pod(ready=False, state=waiting("CrashLoopBackOff", "back-off 40s"), last=ended(2), restarts=4)],
            "logs": {
                f"{SPACE}/mnist-worker-0/main": "started",
                f"{SPACE}/mnist-worker-0/main/previous": "x\nImportError: no module torch\n\n",
            },
        },
        ["4 restarts", "exit 2", "ImportError: no module torch"],
    ),
    (
        "no-gpus",
        {
            "nodes": [node(gpus=0)],
            "pods": [pod("nvidia-device-plugin-x", space="trainyard-system")],
            "logs": {"trainyard-system/nvidia-device-plugin-x/main": "Incompatible strategy detected auto"},
        },
        ["0 GPUs", "Incompatible strategy"],
    ),
    ("no-gpus", {"nodes": [node(gpus=0)], "pods": [pod("other")]}, ["No device plugin pod runs there"]),
    (
        "pod-failed",
        {
            "pods": [pod(phase="Failed", ready=False, state=ended(1))],
            "logs": {f"{SPACE}/mnist-worker-0/main": "no such bucket: datasets"},
        },
        ["exit 1", "no such bucket: datasets"],
    ),
    (
        "claim-pending",
        {
            "claims": [{"metadata": {"name": "data", "namespace": SPACE}, "status": {"phase": "Pending"}}],
            "events": [
                event(
                    "ProvisioningFailed",
                    "mount server: connection timed out",
                    kind="PersistentVolumeClaim",
                    name="data",
                )
            ],
        },
        ["data", "timed out"],
    ),
    (
        "claim-pending",
        {
            "claims": [
                {
                    "metadata": {"name": "data", "namespace": SPACE},
                    "spec": {"storageClassName": "trainyard-shared"},
                    "status": {"phase": "Pending"},
                }
            ]
        },
        ["trainyard-shared"],
    ),
    (
        "queue-closed",
        {"queues": [{"metadata": {"name": "training"}, "status": {"state": "Closed"}}]},
        ["training is closed"],
    ),
    ("unhealthy-gpus", {"nodes": [node(gpus=4, usable=3)]}, ["1 unhealthy of 4"]),
    (
        "unschedulable",
        {
            "pods": [
                pending(
                    conditions=[
                        {"type": "PodScheduled", "status": "False", "message": "3/4 tasks in gang unschedulable"}
                    ]
                )
            ],
            "events": [
                event(
                    "FailedScheduling",
                    "0/4 nodes are unavailable: 1 node(s) had untolerated taint {nvidia.com/gpu: present}.",
                )
            ],
        },
        ["mnist-worker-0", "untolerated taint"],
    ),
    (
        "unschedulable",
        {
            "podgroups": [
                {
                    "metadata": {"name": "big", "namespace": SPACE},
                    "status": {
                        "phase": "Pending",
                        "conditions": [
                            {
                                "type": "Unschedulable",
                                "status": "True",
                                "message": "9/0 tasks in gang unschedulable: pod group is not ready",
                            }
                        ],
                    },
                }
            ]
        },
        ["gang trainyard-e2e/big"],
    ),
    (
        "probe",
        {
            "pods": [pod(ready=False)],
            "events": [event("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")],
        },
        ["503"],
    ),
    (
        "job-failed",
        {
            "jobs": [
                {
                    "kind": "TFJob",
                    "metadata": {"name": "mnist", "namespace": SPACE},
                    "status": {
                        "conditions": [
                            {
                                "type": "Failed",
                                "status": "True",
                                "message": "TFJob mnist has failed because 1 Worker replica(s) failed.",
                            }
                        ]
                    },
                }
            ]
        },
        ["TFJob trainyard-e2e/mnist", "Worker replica"],
    ),
    (
        "job-failed",
        {
            "jobs": [
                {
                    "kind": "Job",
                    "metadata": {"name": "vc", "namespace": SPACE},
                    "status": {"state": {"phase": "Aborted", "message": "policy"}},
                }
            ]
        },
        ["is aborted"],
    ),
    (
        "init-stuck",
        {"pods": [INIT], "logs": {f"{SPACE}/mnist-worker-0/wait": "waiting for mnist-master-0\n"}},
        ["wait;", "master-0"],
    ),
    (
        "accuracy",
        {
            "checks": [
                {"id": "train.tfjob", "status": "failed", "reason": "low", "figures": {"accuracy": 0.41, "bar": 0.9}}
            ]
        },
        ["train.tfjob", "0.410"],
    ),
]


def broken(change: dict[str, Any]) -> Collected:
    base = healthy()
    return Collected(
        **{**vars(base), "pods": [p for p in base.pods if p["metadata"]["name"] != "mnist-worker-0"], **change}
    )


@pytest.mark.parametrize(("rule", "change", "words"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_each_rule_names_its_cause_first(rule: str, change: dict[str, Any], words: list[str]) -> None:
    found = matching(broken(change))
    assert found, "no rule applied"
    assert found[0][0] == rule
    sentence = probable_cause(broken(change))
    assert "\n" not in sentence
    assert sentence.endswith((".", "!", "?"))
    for word in words:
        assert word in sentence


def test_every_rule_has_a_case_and_its_own_name() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert {case[0] for case in CASES} == set(names)


def test_the_cause_comes_before_what_it_brings_about() -> None:
    """An image that can't be had, the gang that waits for it, and the job that failed in the end."""
    found = Collected(
        nodes=[node()],
        pods=[
            pod("mnist-worker-0", phase="Pending", ready=False, state=waiting("ImagePullBackOff", "not found")),
            pending("mnist-worker-1", conditions=[{"type": "PodScheduled", "status": "False", "message": "gang"}]),
        ],
        checks=[{"id": "train.x", "status": "failed", "reason": "timed out", "figures": {"accuracy": 0.0, "bar": 0.9}}],
    )
    assert [name for name, _ in matching(found)] == ["image", "unschedulable", "accuracy"]


def test_what_was_made_to_be_refused_is_no_cause() -> None:
    found = broken(
        {"pods": [pending("refused-0", conditions=[{"type": "PodScheduled", "status": "False", "message": "gang"}])]}
    )
    assert matching(found)[0][0] == "unschedulable"
    found.expected = ("refused-",)
    assert probable_cause(found) == ""


def test_a_pod_that_only_just_starts_is_no_cause() -> None:
    young = pod("young", phase="Pending", ready=False, state=waiting("ContainerCreating"))
    young["metadata"]["creationTimestamp"] = NOW
    found = broken({"pods": [young], "now": moment(NOW) + 30})
    found.events = []
    assert probable_cause(found) == ""
    found.now += 60
    assert "young" in probable_cause(found)


def test_no_rule_matched_says_where_to_look() -> None:
    found = healthy()
    found.checks = [{"id": "storage.rwx", "status": "failed", "reason": "the second pod read other bytes"}]
    sentence = probable_cause(found)
    assert sentence.startswith("No rule matched: check storage.rwx failed")
    assert "events.txt" in sentence
    found.checks = []
    found.problems = ["pods: no answer within 20 s"]
    assert "could not be read in full" in probable_cause(found)
    odd = Collected(pods=[pod("odd", ready=False)])
    assert "odd" in probable_cause(odd)


def test_odd_objects_do_not_break_the_diagnosis() -> None:
    odd: dict[str, Any] = {"metadata": None, "status": None, "spec": None}
    found = Collected(
        events=[odd, {}],
        pods=[odd, {}],
        nodes=[odd, {}],
        podgroups=[odd],
        queues=[odd],
        jobs=[odd],
        claims=[odd],
        checks=[{}],
    )
    assert isinstance(probable_cause(found), str)
    assert not [p for p in found.problems if p.startswith("rule")]
    found = Collected(
        nodes=[
            {"metadata": {"labels": {"trainyard.io/pool": "gpu"}}, "status": {"capacity": {"nvidia.com/gpu": "many"}}}
        ]
    )
    assert probable_cause(found).startswith("No rule matched")
    assert any(p.startswith("rule no-gpus") for p in found.problems)
