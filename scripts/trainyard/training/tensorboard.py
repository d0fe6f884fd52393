"""TensorBoard for a run: a pod in the team's namespace that reads event files in the team's folder of the store."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kinds import TeamConfig
from trainyard.kinds.pods import USER
from trainyard.kube import Kube
from trainyard.observe import pods as seen
from trainyard.training.transfer import pod

Object = dict[str, Any]
LABEL = "trainyard.io/tensorboard"
IMAGE = "trainerTorch"  # key in the contract: the smallest image with TensorBoard
PORT = 6006
ROOT = "/events"
TENSORBOARD, EVENTS = "tensorboard", "events"
EVERY_S, LOOK_S, READY_S = 10, 5.0, 120.0
FOUND = "event files:"  # prefix in the log of the pod's second container


def manifest(team_config: TeamConfig, name: str, places: Sequence[str], seconds: int) -> Object:
    """A Job of one pod: TensorBoard, which only listens inside the pod and has no keys, and a container for the files.

    Args:
        places: `bucket/prefix=folder`, each shown under its folder's name.
        seconds: time after which it ends by itself.

    Raises:
        TrainyardError: the contract names no image with TensorBoard.
    """
    if IMAGE not in team_config.contract.images:
        raise TrainyardError(f"the platform names no image {IMAGE}, which has TensorBoard", hint="update the release")
    events, tmp = {"name": EVENTS, "mountPath": ROOT}, {"name": "tmp", "mountPath": "/tmp"}
    args = ["event-files", f"--into={ROOT}", f"--every={EVERY_S}", *places]
    mirror = pod.store_container(team_config, EVENTS, args, [events, tmp])
    board = {
        "name": TENSORBOARD,
        "image": team_config.contract.images[IMAGE],
        "command": ["python3", "-m", "tensorboard.main", f"--logdir={ROOT}", "--host=127.0.0.1", f"--port={PORT}"],
        "args": ["--load_fast=false", f"--reload_interval={EVERY_S}"],
        "env": list(map(dict, pod.ENVIRONMENT)),
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": mirror["securityContext"],
        "volumeMounts": [{**events, "readOnly": True}, tmp],
    }
    volumes = [{"name": EVENTS, "emptyDir": {"sizeLimit": "4Gi"}}, {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}}]
    return pod.job(team_config, TENSORBOARD, LABEL, name, [board, mirror], volumes, seconds, fsGroup=USER)


@contextmanager
def running(kube: Kube, team_config: TeamConfig, places: Sequence[str], seconds: int) -> Iterator[str]:
    """Yields the name of the pod, which runs as long as the block; it is deleted afterwards, even after Ctrl-C.

    Raises:
        TrainyardError: the pod was rejected, or did not start.
    """
    name = f"trainyard-tensorboard-{secrets.token_hex(4)}"
    with pod.running(kube, manifest(team_config, name, places, seconds), LABEL) as found:
        yield found


def found(kube: Kube, pod: str) -> int | None:
    """Number of event files that the pod has fetched so far; None before its first check. Raises TrainyardError."""
    said = [line.decode(errors="replace") for line in kube.logs(pod, EVENTS, tail=20)]
    for line in reversed(said):
        if FOUND in line:
            return int(line.rpartition(FOUND)[2])
    if said and "object store" in said[-1]:
        raise TrainyardError(said[-1].partition(" ")[2])
    return None


def watch(kube: Kube, pod: str, say: Callable[[str], None], stopped: Callable[[float], bool]) -> None:
    """Reports the files found, until `stopped(seconds)` or the pod's end. Raises TrainyardError if it failed."""
    known: int | None = None
    begun = time.monotonic()
    while not stopped(LOOK_S):
        state = kube.find(kube.path("v1", "pods", pod))
        if state is None or seen.phase(state) != "Running":
            _ended(kube, pod, state)
            say("TensorBoard's time limit is reached; run the command again to continue")
            return
        now = found(kube, pod)
        if now != known and now:
            say(f"{now} event file{'s' * (now > 1)}")
        elif now == 0 and known is None:
            say("no event files yet; checking what the run has written to the store every 10 s")
        elif now is None and time.monotonic() - begun > READY_S:
            raise TrainyardError("the pod can't read the object store", hint=f"kubectl logs {pod} -c {EVENTS}")
        known = now


def _ended(kube: Kube, pod: str, state: Object | None) -> None:
    """Raises TrainyardError with the last words of a container that failed by itself."""
    for one in seen.containers(state or {}):
        over = seen.state(one, "terminated")
        if over.get("exitCode") not in (None, 0, 137, 143):
            last = [line.decode(errors="replace") for line in kube.logs(pod, str(one["name"]), tail=3)]
            raise TrainyardError(f"{one['name']} ended with code {over['exitCode']}: {' | '.join(last)}")
