"""Cases of each rule: the rule, words of its message, and what is broken; for the cluster, then for pods."""

from typing import Any

from fake_cluster import BEFORE, SPACE, condition, ended, event, hook_pod, node, pending, pod, thing, waiting

Case = tuple[str, dict[str, Any], tuple[str, ...]]
CREATE = "FailedCreate"
CONTAINER = f"{SPACE}/mnist-worker-0/main"
SECURITY = (
    'pods "mnist-worker-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false '
    '(container "main" must set securityContext.allowPrivilegeEscalation=false)'
)
QUOTA = 'pods "x" is forbidden: exceeded quota: team-a, requested: nvidia.com/gpu=4, used: 4, limited: 4'
POLICY = "ValidatingAdmissionPolicy 'gpu-needs-limits' with binding 'b' denied request: no"
SANDBOX = "loadFlannelSubnetEnv failed: open /run/flannel/subnet.env: no such file"
TAINT = "0/4 nodes are unavailable: 1 node(s) had untolerated taint {nvidia.com/gpu: present}."
GANG = "9/0 tasks in gang unschedulable: pod group is not ready"
FAILED = "TFJob mnist has failed because 1 Worker replica(s) failed."
HOOK = 'failed calling webhook "mutatepod.volcano.sh": connection refused'
INIT = pod(phase="Pending", ready=False, state=waiting("PodInitializing"))
INIT["spec"]["initContainers"] = [{"name": "proxy", "restartPolicy": "Always"}, {"name": "wait"}]
INIT["status"]["initContainerStatuses"] = [
    {"name": name, "ready": False, "started": True, "state": {"running": {"startedAt": BEFORE}}}
    for name in ("proxy", "wait")
]


def case(rule: str, *words: str, **change: Any) -> Case:
    return rule, change, words


def starting(reason: str, message: str = "") -> dict[str, Any]:
    """A pod whose container has not begun yet."""
    return pod(phase="Pending", ready=False, state=waiting(reason, message))


def lost(reason: str, message: str) -> dict[str, Any]:
    """A pod that the kubelet gave up."""
    return {**pod(), "status": {"phase": "Failed", "reason": reason, "message": message}}


CASES = [
    # Of the cluster.
    case(
        "api-down",
        "connection refused",
        nodes=[],
        pods=[],
        problems=["nodes: dial tcp 127.0.0.1:6443: connect: connection refused"],
    ),
    case("disk-pressure", "trainyard-worker", "disk", nodes=[node(DiskPressure=("True", "kubelet has disk pressure"))]),
    case(
        "disk-pressure",
        "freed 0",
        events=[event("FreeDiskSpaceFailed", "freed 0 bytes", kind="Node", name="trainyard-worker", space="")],
    ),
    case(
        "disk-pressure", "No space is left", pods=[starting("ErrImagePull", "write /var/lib: no space left on device")]
    ),
    case("memory-pressure", "short of memory", nodes=[node(MemoryPressure=("True", "kubelet has memory pressure"))]),
    case(
        "node-not-ready",
        "trainyard-worker",
        "stopped posting",
        nodes=[node(Ready=("Unknown", "Kubelet stopped posting node status."))],
    ),
    case("node-not-ready", "cni plugin", nodes=[node(Ready=("False", "cni plugin not initialized"))]),
    case(
        "webhook-silent",
        "mutatepod.volcano.sh",
        "does not answer",
        events=[event(CREATE, f"Internal error occurred: {HOOK}", kind="Job")],
    ),
    case(
        "webhook-silent",
        "validatequeue.volcano.sh",
        **hook_pod('Error from server: failed calling webhook "validatequeue.volcano.sh": no endpoints available'),
    ),
    case(
        "pod-security",
        "PyTorchJob trainyard-e2e/mnist",
        "restricted",
        events=[event("FailedCreatePod", SECURITY, kind="PyTorchJob", name="mnist")],
    ),
    case("pod-security", "allowPrivilegeEscalation", events=[event(CREATE, SECURITY, kind="Job", name="mnist")]),
    case("quota", "quota", "team-a", events=[event(CREATE, QUOTA, kind="Job")]),
    case("policy", "policy", "gpu-needs-limits", events=[event(CREATE, POLICY, kind="Job")]),
    case(
        "create-failed",
        "can't be created",
        events=[event(CREATE, 'serviceaccount "x" not found', kind="ReplicaSet", name="rs")],
    ),
    case(
        "no-gpus",
        "0 GPUs",
        "Incompatible strategy",
        nodes=[node(gpus=0)],
        pods=[pod("nvidia-device-plugin-x", space="trainyard-system")],
        logs={"trainyard-system/nvidia-device-plugin-x/main": "Incompatible strategy detected auto"},
    ),
    case("no-gpus", "No device plugin pod runs there", nodes=[node(gpus=0)], pods=[pod("other")]),
    case(
        "claim-pending",
        "data",
        "timed out",
        claims=[thing("data", phase="Pending")],
        events=[
            event("ProvisioningFailed", "mount server: connection timed out", kind="PersistentVolumeClaim", name="data")
        ],
    ),
    case(
        "claim-pending",
        "trainyard-shared",
        claims=[{**thing("data", phase="Pending"), "spec": {"storageClassName": "trainyard-shared"}}],
    ),
    case(
        "queue-closed", "training is closed", queues=[{"metadata": {"name": "training"}, "status": {"state": "Closed"}}]
    ),
    case("unhealthy-gpus", "1 unhealthy of 4", nodes=[node(gpus=4, usable=3)]),
    case(
        "job-failed",
        "TFJob trainyard-e2e/mnist",
        "Worker replica",
        jobs=[thing("mnist", "TFJob", conditions=condition("Failed", "True", FAILED))],
    ),
    case("job-failed", "is aborted", jobs=[thing("vc", "Job", state={"phase": "Aborted", "message": "policy"})]),
    case(
        "accuracy",
        "train.tfjob",
        "0.410",
        checks=[{"id": "train.tfjob", "status": "failed", "reason": "low", "figures": {"accuracy": 0.41, "bar": 0.9}}],
    ),
    # Of pods.
    case("evicted", "was evicted", "low on resource", pods=[lost("Evicted", "The node was low on resource: memory.")]),
    case(
        "out-of-memory",
        "main",
        "256Mi",
        "trainyard-worker",
        pods=[pod(phase="Failed", ready=False, state=ended(137, "OOMKilled"))],
    ),
    case(
        "out-of-memory",
        "killed for memory",
        pods=[pod(ready=False, state=waiting("CrashLoopBackOff"), last=ended(137, "OOMKilled"), restarts=3)],
    ),
    case(
        "image",
        "trainyard-worker",
        "trainer-torch:0.1.0",
        "no such host",
        pods=[starting("ImagePullBackOff", "Back-off pulling image")],
        events=[
            event("Failed", "Failed to pull image: dial tcp: lookup docker.io: no such host"),
            event("Failed", "Error: ImagePullBackOff"),
        ],
    ),
    case(
        "image",
        "policy of Never",
        pods=[pod(ready=False, state=waiting("ErrImageNeverPull", "not present with pull policy of Never"))],
    ),
    case(
        "bad-config", "trainyard-s3", pods=[starting("CreateContainerConfigError", 'secret "trainyard-s3" not found')]
    ),
    case(
        "mount",
        "mount.nfs: No such device",
        "mnist-worker-0",
        pods=[starting("ContainerCreating")],
        events=[event("FailedMount", 'MountVolume.SetUp failed for volume "shared": mount.nfs: No such device')],
    ),
    case(
        "sandbox", "subnet.env", pods=[starting("ContainerCreating")], events=[event("FailedCreatePodSandBox", SANDBOX)]
    ),
    case(
        "device-admission",
        "no healthy devices",
        pods=[lost("UnexpectedAdmissionError", "Allocate failed: no healthy devices present")],
    ),
    case(
        "hook-failed",
        "trainyard-apply-9x",
        "exit 1",
        "is forbidden",
        **hook_pod("applying\nqueues.scheduling.volcano.sh is forbidden\n"),
    ),
    case(
        "crash-loop",
        "4 restarts",
        "exit 2",
        "ImportError: no module torch",
        pods=[pod(ready=False, state=waiting("CrashLoopBackOff", "back-off 40s"), last=ended(2), restarts=4)],
        logs={CONTAINER: "started", f"{CONTAINER}/previous": "x\nImportError: no module torch\n\n"},
    ),
    case(
        "pod-failed",
        "exit 1",
        "no such bucket: datasets",
        pods=[pod(phase="Failed", ready=False, state=ended(1))],
        logs={CONTAINER: "no such bucket: datasets"},
    ),
    case(
        "unschedulable",
        "mnist-worker-0",
        "untolerated taint",
        pods=[pending(conditions=condition("PodScheduled", "False", "3/4 tasks in gang unschedulable"))],
        events=[event("FailedScheduling", TAINT)],
    ),
    case(
        "unschedulable",
        "gang trainyard-e2e/big",
        podgroups=[thing("big", phase="Pending", conditions=condition("Unschedulable", "True", GANG))],
    ),
    case(
        "probe",
        "503",
        pods=[pod(ready=False)],
        events=[event("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")],
    ),
    case(
        "init-stuck",
        "wait;",
        "master-0",
        pods=[INIT],
        logs={f"{SPACE}/mnist-worker-0/wait": "waiting for mnist-master-0\n"},
    ),
]
