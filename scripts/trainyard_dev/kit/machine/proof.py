"""What the cluster shows on its GPU. A step that needs a card that computes is `not here` on the mock one."""

import json
import re
import time
from typing import Any

from machine import borrow
from machine.node import DRIVER, OWN, Kit
from machine.record import NotHereError, Step

TEAM, ADA = ("-n", "vision"), f"{OWN}/ada.conf"
SYSTEM = ("-n", "trainyard-system")
GPU = "nvidia.com/gpu"
_NO_CARD = "the mock GPU computes nothing"
_BURN = """import time, torch
x, end = torch.rand(8192, 8192, device="cuda"), time.time() + 60
while time.time() < end: x @ x; torch.cuda.synchronize()"""
_SERVE = """import http.server, json, torch
device = "cuda:0" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(16, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).to(device)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200), self.end_headers()
        best = model(torch.ones(1, 16, device=device)).argmax().item()
        self.wfile.write(json.dumps({"device": device, "prediction": best}).encode())
http.server.HTTPServer(("", 8080), Handler).serve_forever()"""
_PAGE = """from pathlib import Path
from trainyard_agent.exporter import mock_dcgm as exporter
root = Path("/driver")
print(exporter.page("kit", exporter.state(root, list(exporter.shown(root))), {}))"""


def ada(kit: Kit, *argv: str, **more: Any) -> str:
    """A program with the token of a member of the team, who may do what members may."""
    return kit.inside(*argv, KUBECONFIG=ADA, **more)


def spec(kit: Kit, *command: str, gpus: int = 0, image: str = "base", env: dict[str, str] | None = None,
         volumes: dict[str, dict[str, Any]] | None = None) -> dict[str, Any]:  # fmt: skip
    """A pod as a member writes it; `volumes`: the source of each by the place where it is mounted."""
    held: dict[str, Any] = {"memory": "16Gi"} | ({GPU: gpus} if gpus else {})
    named = {f"v{number}": pair for number, pair in enumerate((volumes or {}).items())}
    main = {
        "name": "pytorch", "image": f"site.invalid/trainyard/{image}:{kit.list()['version']}", "command": list(command),
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
        "resources": {"requests": held | {"cpu": "50m", "memory": "64Mi"}, "limits": held},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": name, "mountPath": place} for name, (place, _) in named.items()],
    }  # fmt: skip
    safe = {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    return {"restartPolicy": "Never", "securityContext": safe, "containers": [main],
            "volumes": [{"name": name, **source} for name, (_, source) in named.items()]}  # fmt: skip


def pod(name: str, spec: dict[str, Any]) -> str:
    """A manifest for kubectl's input."""
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def apply(kit: Kit, manifest: str, *where: str) -> None:
    """Creates an object, as the member in the team's namespace; elsewhere as the administrator."""
    if where:
        kit.kubectl("apply", *where, "-f", "-", input=manifest)
    else:
        ada(kit, "kubectl", "apply", "-f", "-", input=manifest)


def logs(kit: Kit, name: str, where: tuple[str, ...] = TEAM, seconds: float = 180) -> str:
    """What a pod printed, once it has ended. Raises RuntimeError if it failed."""
    path = "jsonpath={.status.phase}"
    phase = kit.wait(f"end of {name}", seconds, "kubectl", "get", "pod", name, *where, "-o", path, until="Succ|Fail")
    said = kit.kubectl("logs", name, *where)
    if phase != "Succeeded":
        raise RuntimeError(f"{name} failed: {said[-500:]}")
    return said


def ready(kit: Kit, *names: str) -> None:
    """Waits until these pods of the team run at once."""
    pods = [f"pod/{name}" for name in names]
    kit.kubectl("wait", "--for=condition=Ready", *pods, *TEAM, "--timeout=90s", timeout=100)


def plugin(kit: Kit, shares: int = 1) -> str:
    """The device plugin counts the GPU. Its CDI specification gets mounts of PyTorch, and PyTorch's image a name."""
    path = "jsonpath={.status.allocatable.nvidia\\.com/gpu}"
    kit.wait("GPU of the node", 90, "kubectl", "get", "node", "kit", "-o", path, until=f"^{shares}$")
    added = borrow.mounts(borrow.site())
    kit.inside("tee", borrow.SPEC, input=borrow.into(kit.inside("cat", borrow.SPEC), added))
    ours = [f"site.invalid/trainyard/{name}:{kit.list()['version']}" for name in ("base", "trainer-torch")]
    kit.inside("ctr", "-n", "k8s.io", "images", "tag", "--force", *ours)
    words = ["nvidia-ctk", "cdi", "generate", f"--driver-root={DRIVER}", "--dev-root=/"]
    said = kit.inside(*words, LD_LIBRARY_PATH=f"{DRIVER}/usr/lib/x86_64-linux-gnu")
    found = sorted(set(re.findall(r"path: (/dev/\S+)", said)))
    return f"{shares} of {GPU}; nvidia-ctk names {', '.join(found)}; {len(added)} mounts of the machine's PyTorch"


def member(kit: Kit) -> str:
    """A member of the team logs in with a token of the API server."""
    kit.kubectl("create", "serviceaccount", "ada", "-n", "default", check=False)
    token = kit.kubectl("create", "token", "ada", "-n", "default", "--duration=2h")
    for words in (
        ("set-cluster", "kit", "--server=https://10.0.0.2:6443", "--certificate-authority=/etc/kubernetes/pki/ca.crt"),
        ("set-credentials", "ada", f"--token={token}"),
        ("set-context", "kit", "--cluster=kit", "--user=ada", "--namespace=vision"),
        ("use-context", "kit"),
    ):
        ada(kit, "kubectl", "config", *words)
    kit.wait("keys of the team", 120, "kubectl", "get", "secret", "trainyard-s3", *TEAM, "-o", "name")
    return ada(kit, "kubectl", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")


def smi(kit: Kit) -> str:
    """nvidia-smi in a pod of the team."""
    if kit.mock:
        raise NotHereError("nvidia-smi is the driver's, and the mock has none")
    apply(kit, pod("smi", spec(kit, "nvidia-smi", gpus=1)))
    return logs(kit, "smi")


def pytorchjob(kit: Kit) -> str:
    """A PyTorchJob trains, and keeps its results over NFS; its log names device and accuracy."""
    code = ("create", "configmap", "ddp", f"--from-file={OWN}/kit/ddp/train.py", "--dry-run=client", "-o", "json")
    apply(kit, kit.kubectl(*code))
    places = {"/code": {"configMap": {"name": "ddp"}},
              "/workspace": {"persistentVolumeClaim": {"claimName": "workspace"}},
              "/dev/shm": {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}}  # fmt: skip
    # Debian's PyTorch lacks libuv; NCCL names its version as it starts.
    env = {"USE_LIBUV": "0", "NCCL_DEBUG": "INFO", "TRAINYARD_RESULTS": "/workspace/ddp"}
    held = spec(kit, "python3", "/code/train.py", gpus=1, image="trainer-torch", env=env, volumes=places)
    master = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": held}}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "ddp"},
           "spec": {"runPolicy": {"cleanPodPolicy": "None"}, "pytorchReplicaSpecs": {"Master": master}}}  # fmt: skip
    apply(kit, json.dumps(job))
    kit.wait("pod of the job", 60, "kubectl", "get", "pod", "ddp-master-0", *TEAM, "-o", "name")
    return trained(logs(kit, "ddp-master-0"), mock=kit.mock)


def trained(said: str, *, mock: bool) -> str:
    """Device and accuracy from a log. Raises RuntimeError without them, or if a real GPU was not used."""
    found = re.search(r"computes on (cuda:0|cpu)(?s:.*)accuracy ([\d.]+)", said)
    if not found or float(found[2]) < 0.8 or (found[1] == "cpu" and not mock):
        raise RuntimeError(f"not trained on the card: {said[-500:]}")
    return f"accuracy {found[2]} on {found[1]}"


def train(kit: Kit) -> str:
    """`trainyard train` by the member: uploads the code, follows the job, fetches the results."""
    words = ["train", "--dir", f"{OWN}/kit/ddp", "--framework", "pytorch", "--gpus", "1", "--cpu", "500m"]
    words += ["--memory", "8Gi", "-e", "USE_LIBUV=0", "--", "python", "train.py"]
    return trained(ada(kit, "python3", "-m", "trainyard", *words, timeout=180), mock=kit.mock)


def nccl(kit: Kit) -> str:
    """NCCL started, with the one rank that one card allows."""
    if kit.mock:
        raise NotHereError(f"{_NO_CARD}, so the rank uses gloo")
    return re.findall(r"NCCL version \S+", kit.kubectl("logs", "ddp-master-0", *TEAM))[0]


def labels(kit: Kit) -> str:
    """GPU labels that node preparation has set."""
    found = json.loads(kit.kubectl("get", "node", "kit", "-o", "jsonpath={.metadata.labels}"))
    held = [f"{key}={found[key]}" for key in found if key.startswith(f"{GPU}.")]
    if f"{GPU}.present=true" not in held:
        raise RuntimeError(f"no GPU labels: {held}")
    return ", ".join(held)


def exporter(kit: Kit) -> str:
    """Memory and utilisation of the GPU, by NVML, as our exporter reports them, while a pod computes on a real one."""
    if not kit.mock:
        apply(kit, pod("burn", spec(kit, "python3", "-c", _BURN, gpus=1, image="trainer-torch")))
        ready(kit, "burn")
        time.sleep(15)
    asks = spec(kit, "python3", "-c", _PAGE, image="platform", volumes={"/driver": {"hostPath": {"path": DRIVER}}})
    asks |= {"securityContext": {}}
    asks["containers"][0]["securityContext"] = {"privileged": True, "runAsUser": 0}
    apply(kit, pod("exporter", asks), *SYSTEM)
    series = logs(kit, "exporter", SYSTEM)
    kit.kubectl("delete", "pod", "burn", *TEAM, "--ignore-not-found", "--wait=false")
    found = re.findall(r"^DCGM_FI_DEV_(GPU_UTIL|FB_USED|FB_FREE){.*} (\d+)", series, re.M)
    if len(found) < 3 or (not kit.mock and "0" in dict(found).values()):
        raise RuntimeError(f"no figures of a GPU at work: {found}")
    lacking = "; the mock's library reports no utilisation" if kit.mock else ""
    return ", ".join(f"{name} {value}" for name, value in found) + lacking


def gpus(kit: Kit) -> str:
    """`trainyard gpus` as the member sees it; the platform refreshes it every 30 s."""
    words = ("python3", "-m", "trainyard", "gpus", "--kubeconfig", ADA)
    return kit.wait("GPU in the table", 90, *words, until="^gpu ")


def hidden(kit: Kit) -> str:
    """Without a request no GPU: a member's pod with NVIDIA_VISIBLE_DEVICES is refused, an administrator's sees none."""
    env = {"NVIDIA_VISIBLE_DEVICES": "all"}
    alone = pod("alone", spec(kit, "sh", "-c", "ls /dev | grep nvidia || echo none", env=env))
    said = ada(kit, "sh", "-c", "kubectl apply -f - 2>&1 || true", input=alone)
    apply(kit, alone, "-n", "default")
    if "NVIDIA_VISIBLE_DEVICES" not in said or (seen := logs(kit, "alone", ("-n", "default"))) != "none":
        raise RuntimeError(f"it was not refused ({said}), or sees {seen}")
    return "a member's pod is refused; where no policy of ours is bound, the pod runs and sees no GPU"


def sharing(kit: Kit) -> str:
    """Two pods share the card by the device plugin's time slicing."""
    sliced = json.dumps({"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]}}})
    words = ("create", "configmap", "sliced", f"--from-literal=config.yaml={sliced}", "--dry-run=client", "-o", "json")
    apply(kit, kit.kubectl(*words), *SYSTEM)
    main = {"name": "nvidia-device-plugin-ctr", "env": [{"name": "CONFIG_FILE", "value": "/sliced/config.yaml"}],
            "volumeMounts": [{"name": "sliced", "mountPath": "/sliced"}]}  # fmt: skip
    held = {"containers": [main], "volumes": [{"name": "sliced", "configMap": {"name": "sliced"}}]}
    patch = json.dumps({"spec": {"template": {"spec": held}}})
    kit.kubectl("patch", "daemonset/trainyard-nvidia-device-plugin", *SYSTEM, "-p", patch)
    plugin(kit, shares=2)  # the plugin has replaced its specification
    both = ("share-a", "share-b")
    for one in both:
        apply(kit, pod(one, spec(kit, "sh", "-c", "ls /dev/nvidia0; nvidia-smi -L 2>&1; sleep 300", gpus=1)))
    ready(kit, *both)
    said = [kit.kubectl("logs", one, *TEAM).splitlines() for one in both]
    kit.kubectl("delete", "pod", *both, *TEAM, "--wait=false", "--grace-period=1")
    return f"both run at once: {said}"


def served(kit: Kit) -> str:
    """A model answers over HTTP, computed on the card."""
    apply(kit, pod("served", spec(kit, "python3", "-c", _SERVE, gpus=1, image="trainer-torch")))
    ready(kit, "served")
    address = kit.kubectl("get", "pod", "served", *TEAM, "-o", "jsonpath={.status.podIP}")
    said = kit.wait("answer", 60, "curl", "-sS", f"http://{address}:8080/")
    kit.kubectl("delete", "pod", "served", *TEAM, "--wait=false", "--grace-period=1")
    if json.loads(said)["device"] == "cpu":
        raise NotHereError(f"{_NO_CARD}: {said}") if kit.mock else RuntimeError(f"served by the CPU: {said}")
    return said


STEPS: list[Step] = [
    ("device plugin", plugin), ("member's token", member), ("nvidia-smi in a pod", smi), ("PyTorchJob", pytorchjob),
    ("trainyard train", train), ("NCCL", nccl), ("GPU labels", labels), ("exporter", exporter),
    ("trainyard gpus", gpus), ("no GPU without a request", hidden), ("two pods by time slicing", sharing),
    ("served model", served),
]  # fmt: skip
