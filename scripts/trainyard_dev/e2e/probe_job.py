"""A long training job that must survive changes of the platform: real DDP, one step every fifth of a second."""

import itertools
import json
import re
from typing import Any

from trainyard_dev.e2e import jobs
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import patience, require, until

NAME = "probe-job"
START_S = 180
END_S = 120
STEP = re.compile(r"^step (\d+) at ([0-9.]+) loss", re.M)
# Two ranks train until the first finds /tmp/stop; then it stores the model with the keys that it started with.
SCRIPT = """
import os, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from mnist import store
from mnist.options import wait_for_name
wait_for_name(os.environ["MASTER_ADDR"])
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step, stop = 0, torch.zeros(1)
while not stop.item():
    optimizer.zero_grad()
    loss = model(torch.randn(32, 64)).square().mean()
    loss.backward()
    optimizer.step()
    step += 1
    if dist.get_rank() == 0:
        stop.fill_(os.path.exists("/tmp/stop"))
        if step % 5 == 0:
            print(f"step {step} at {time.time():.1f} loss {loss.item():.5f}", flush=True)
    dist.broadcast(stop, 0)
    time.sleep(0.2)
if dist.get_rank() == 0:
    store.put_checked(store.open_store(os.environ["OUT"]), "steps.txt", str(step).encode())
dist.destroy_process_group()
"""


class ProbeJob:
    """The job in its namespace, and the state of its pods at its start."""

    def __init__(self, context: Context, manifest: dict[str, Any], namespace: str, image: str) -> None:
        """`manifest` is an example PyTorchJob: placement, security and credentials stay, the program changes."""
        self.context, self.namespace = context, namespace
        self.job = _changed(manifest, image, f"s3://runs/{namespace}/{NAME}")
        self.pods: dict[str, str] = {}

    def start(self) -> None:
        """Submit it and wait for its first steps. Raises CheckError."""
        self.context.kubectl("create", "-n", self.namespace, "-f", "-", input=json.dumps(self.job))
        until(self.steps, START_S, f"the job {NAME} made no step", 1)
        self.pods = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self._pods()}
        require(len(self.pods) == 2, f"the job {NAME} has {len(self.pods)} pods, not 2")

    def steps(self) -> list[tuple[int, float]]:
        """(step, Unix seconds) from its log; [] before it runs."""
        log = self.context.kubectl("logs", "-n", self.namespace, f"{NAME}-master-0", check=False).stdout
        return [(int(step), float(at)) for step, at in STEP.findall(log)]

    def require_alive(self) -> None:
        """Require the same pods, never restarted, still making steps. Raises CheckError."""
        found = {pod["metadata"]["name"]: pod for pod in self._pods()}
        uids = {name: pod["metadata"]["uid"] for name, pod in found.items()}
        require(uids == self.pods, f"the pods of {NAME} are {uids}, they were {self.pods}")
        for name, pod in found.items():
            count = sum(one["restartCount"] for one in pod["status"]["containerStatuses"])
            require(count == 0, f"{name} was restarted {count} times")
            require(pod["status"]["phase"] == "Running", f"{name} is {pod['status']['phase']}")
        last, wait = self.steps()[-1][0], patience(30, 1)
        while self.steps()[-1][0] == last:
            wait(f"the job {NAME} made no step for 30 s after step {last}")

    def finish(self) -> dict[str, Any]:
        """Let it end and wait for Succeeded; returns its figures. Raises CheckError."""
        self.context.kubectl("exec", "-n", self.namespace, f"{NAME}-master-0", "-c", "pytorch", "--",
                             "touch", "/tmp/stop")  # fmt: skip
        trace, wait = jobs.Trace(NAME), patience(END_S, 1)
        while not jobs.outcome(trace.job):
            wait(f"the job {NAME} did not end within {END_S} s")
            jobs.poll(self.context, trace, self.job, self.namespace)
        require(jobs.outcome(trace.job) == "succeeded", f"the job {NAME} {jobs.outcome(trace.job)}")
        steps = self.steps()
        pauses = [after[1] - before[1] for before, after in itertools.pairwise(steps)]
        return {"steps": steps[-1][0], "seconds": round(steps[-1][1] - steps[0][1]),
                "longest_pause_s": round(max(pauses, default=0.0), 1)}  # fmt: skip

    def remove(self) -> None:
        """Delete the job in any state."""
        jobs.delete(self.context, self.job, self.namespace)

    def _pods(self) -> list[dict[str, Any]]:
        return self.context.kubectl.get("pods", "-n", self.namespace, "-l", f"app.kubernetes.io/name={NAME}")


def _changed(manifest: dict[str, Any], image: str, out: str) -> dict[str, Any]:
    """The example with two pods, a different program and a different name."""
    job = json.loads(json.dumps(manifest))  # master and worker share their parts by YAML anchors
    job["metadata"] = {"name": NAME, "labels": {"app.kubernetes.io/name": NAME}}
    spec = job["spec"]
    spec["runPolicy"]["schedulingPolicy"]["minAvailable"] = 2
    spec["pytorchReplicaSpecs"]["Worker"]["replicas"] = 1
    for replica in spec["pytorchReplicaSpecs"].values():
        template = replica["template"]
        template["metadata"]["labels"]["app.kubernetes.io/name"] = NAME
        template["spec"].pop("topologySpreadConstraints", None)
        container = template["spec"]["containers"][0]
        container |= {"image": image, "command": ["python3", "-c", SCRIPT]}
        container.pop("args", None)
        container["env"] = [*container["env"], {"name": "OUT", "value": out}]
    return job
