"""What each rule about pods is held against: the rule, what is broken, words of the sentence."""

from __future__ import annotations

from typing import Any

from fake_cluster import BEFORE, SPACE, ended, event, hook_pod, pending, pod, waiting

INIT = pod(phase="Pending", ready=False, state=waiting("PodInitializing"))
INIT["spec"]["initContainers"] = [{"name": "proxy", "restartPolicy": "Always"}, {"name": "wait"}]
INIT["status"]["initContainerStatuses"] = [
    {"name": name, "ready": False, "started": True, "state": {"running": {"startedAt": BEFORE}}}
    for name in ("proxy", "wait")
]

CASES: list[tuple[str, dict[str, Any], list[str]]] = [
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
        "pod-failed",
        {
            "pods": [pod(phase="Failed", ready=False, state=ended(1))],
            "logs": {f"{SPACE}/mnist-worker-0/main": "no such bucket: datasets"},
        },
        ["exit 1", "no such bucket: datasets"],
    ),
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
        "init-stuck",
        {"pods": [INIT], "logs": {f"{SPACE}/mnist-worker-0/wait": "waiting for mnist-master-0\n"}},
        ["wait;", "master-0"],
    ),
]
