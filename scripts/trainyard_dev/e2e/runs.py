"""Submits pipelines as a member of a team and watches their workflows, pods and training jobs until they end."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trainyard.names import RUN
from trainyard.paths import ROOT
from trainyard.pipelines.runs import nodes
from trainyard.pipelines.runs.model import BAD, Run
from trainyard.shell import run
from trainyard_dev import tools
from trainyard_dev.e2e.context import NAMESPACE, Context, member
from trainyard_dev.e2e.jobs import GROUP_API
from trainyard_dev.e2e.recorder import CheckError, require

PIPELINES = ROOT / "pipelines"
FLOWS = Path(__file__).parent / "flows"
OF_RUN = "workflows.argoproj.io/workflow"  # label of a step's pod
WORKFLOWS, JOBS = ("argoproj.io/v1alpha1", "workflows"), ("kubeflow.org/v1", "pytorchjobs")
ENDED = ("Succeeded", "Failed", "Error")
POLL_S = 2.0


@dataclass
class Seen:
    """Observations of one run: its workflow at the end, and every pod and training job that existed meanwhile."""

    name: str
    team: str
    workflow: dict[str, Any] = field(default_factory=dict)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)  # by uid: a recreated one counts again
    queues: set[str] = field(default_factory=set)  # queues of its steps' PodGroup
    seconds: float = 0.0  # from the command to the end, as a user waits

    @property
    def phase(self) -> str:
        """The workflow's phase, "" before the controller has processed it."""
        return self.workflow.get("status", {}).get("phase", "")

    @property
    def run(self) -> Run:
        """The run in the form of `trainyard runs show`."""
        return nodes.run(self.workflow)

    @property
    def cached(self) -> list[str]:
        """Names of the steps that were served from the cache."""
        return sorted(step.name for step in self.run.steps if step.state == "cached")

    @property
    def ran(self) -> list[str]:
        """Names of the steps that had pods."""
        return sorted(step.name for step in self.run.steps if step.attempts)

    @property
    def why_failed(self) -> str:
        """The reason of its failure, for a sentence."""
        reasons = [f"{step.name}: {step.reason}" for step in self.run.steps if step.state in BAD and step.reason]
        return "; ".join(reasons[:3]) or self.run.message

    def output(self, step: str, name: str = "Output") -> str:
        """The value of a step's output parameter."""
        found = [one.outputs for one in self.run.steps if one.name == step]
        values = [o["value"] for o in (found or [{}])[0].get("parameters", []) if o["name"] == name]
        return str(values[0]) if values else ""


def trainyard(
    context: Context, *args: str | Path, team: str = NAMESPACE, of: str = "", check: bool = True, timeout: float = 120
) -> tuple[int, str, str]:
    """Run the command line as a member with Helm; returns code, standard output, standard error.

    Args:
        of: the member's team, if it differs from the command's.
    """
    at = args.index("--") if "--" in args else len(args)
    argv = [ROOT / "bin" / "trainyard", *args[:at], "-n", team, *member(of or team), *args[at:]]
    path = os.pathsep.join((str(tools.binary("helm").parent), os.environ["PATH"]))
    env = {"KUBECONFIG": str(context.kubectl.kubeconfig), "PATH": path}
    done = run(argv, check=False, timeout=timeout, env=env)
    said = done.stderr or ""
    shown = " ".join(map(str, args[:2]))
    require(not check or done.returncode == 0, f"trainyard {shown} ended with {done.returncode}: {said[-600:]}")
    return done.returncode, done.stdout, said


def engineer(
    context: Context, *args: str | Path, check: bool = True, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run the command line with the cluster's own kubeconfig, as a platform engineer."""
    env = {"KUBECONFIG": str(context.kubectl.kubeconfig)}
    return run([ROOT / "bin" / "trainyard", *args], check=check, timeout=timeout, env=env)


def submit(context: Context, file: Path, *options: str, team: str = NAMESPACE) -> Seen:
    """`trainyard submit` without waiting for the end."""
    began = time.monotonic()
    _, out, _ = trainyard(context, "submit", file, "--detach", "-o", "name", *options, team=team)
    return Seen(out.strip().splitlines()[-1], team, seconds=began)


def poll(context: Context, seen: Seen) -> Seen:
    """Update the run's observations."""
    kube = context.kube
    pods, jobs = kube.path("v1", "pods", namespace=seen.team), kube.path(*JOBS, namespace=seen.team)
    seen.workflow = kube.find(kube.path(*WORKFLOWS, seen.name, namespace=seen.team)) or seen.workflow
    found = kube.list(pods, labelSelector=f"{OF_RUN}={seen.name}")
    seen.pods |= {pod["metadata"]["name"]: pod for pod in found}
    seen.jobs |= {job["metadata"]["uid"]: job for job in kube.list(jobs, labelSelector=f"{RUN}={seen.name}")}
    if seen.workflow:
        name = f"podgroup-{seen.workflow['metadata']['uid']}"
        group = kube.find(kube.path(GROUP_API, "podgroups", name, namespace=seen.team))
        seen.queues |= {group["spec"].get("queue", "")} if group else set()
    return seen


def end(context: Context, seen: Seen, timeout: float) -> Seen:
    """Watch until the run has ended. CheckError if it doesn't within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while poll(context, seen).phase not in ENDED:
        if time.monotonic() > deadline:
            raise CheckError(f"run {seen.name} is {seen.phase or 'not begun'} after {timeout:.0f} s: {_stuck(seen)}")
        time.sleep(POLL_S)
    seen.seconds = time.monotonic() - seen.seconds
    return seen


def succeed(context: Context, file: Path, *options: str, timeout: float, team: str = NAMESPACE) -> Seen:
    """Submit, watch, and fail the check unless the run succeeds."""
    return succeeded(context, submit(context, file, *options, team=team), timeout)


def succeeded(context: Context, seen: Seen, timeout: float) -> Seen:
    """Watch a run, and fail the check unless it succeeds."""
    end(context, seen, timeout)
    require(seen.phase == "Succeeded", f"run {seen.name} ended {seen.phase}: {seen.why_failed}")
    return seen


def require_ours(seen: Seen) -> None:
    """Require that its pods have the team's queue, scheduler and account. Raises CheckError."""
    for name, pod in seen.pods.items():
        spec = pod["spec"]
        require(spec["schedulerName"] == "volcano", f"{name} was scheduled by {spec['schedulerName']}")
        require(spec["serviceAccountName"] == "pipeline", f"{name} ran as {spec['serviceAccountName']}")
    require(seen.queues <= {seen.team}, f"its pods were in the queues {sorted(seen.queues)}")


@contextmanager
def copied(folder: Path) -> Iterator[Path]:
    """A copy of a folder of code while the block runs, so that nothing is left in the repository."""
    with TemporaryDirectory(prefix="trainyard-e2e-") as scratch:
        yield Path(shutil.copytree(folder, Path(scratch) / folder.name))


def forget(context: Context, *runs: Seen) -> None:
    """Delete runs, with their pods, as a member."""
    for seen in runs:
        argv = ["delete", "workflows.argoproj.io", seen.name, "-n", seen.team, "--ignore-not-found", "--wait=false"]
        context.kubectl(*member(seen.team), *argv, check=False)


def _stuck(seen: Seen) -> str:
    return "; ".join(f"{step.name} is {step.state} {step.reason}" for step in seen.run.steps if not step.ended)[:500]
