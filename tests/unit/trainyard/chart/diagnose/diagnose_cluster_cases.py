"""What each rule about the cluster is held against: the rule, what is broken, words of the sentence."""

from __future__ import annotations

from typing import Any

from fake_cluster import SPACE, event, hook_pod, node, pod, waiting

SECURITY = (
    'pods "mnist-worker-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false '
    '(container "main" must set securityContext.allowPrivilegeEscalation=false)'
)

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
        "accuracy",
        {
            "checks": [
                {"id": "train.tfjob", "status": "failed", "reason": "low", "figures": {"accuracy": 0.41, "bar": 0.9}}
            ]
        },
        ["train.tfjob", "0.410"],
    ),
]
