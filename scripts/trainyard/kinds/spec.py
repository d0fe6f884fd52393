"""A user's settings of a training job, with the checks that need nothing of the platform."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds import registry
from trainyard_agent.quantity import number

# frameworks with settings of their own
PYTORCH, TENSORFLOW, MPI, VOLCANO, JOB = "pytorch", "tensorflow", "mpi", "volcano", "job"
NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
NAME_LONGEST = 50  # pods are named after the job, role and index, and a pod's name is its host name: 63 at most
DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


@dataclass(frozen=True)
class Mount:
    """A claim of the team's namespace, and its mount path."""

    claim: str
    path: str
    read_only: bool = False


@dataclass(frozen=True)
class JobSpec:
    """One training job. Empty texts mean the platform's default, `deadline` or `keep` 0 the team's; times in seconds.

    `env` maps a name to a string or to {"secret": …, "key": …}. `code` and `output` are keys in the bucket for runs: an
    archive that is unpacked in the working directory, and the folder for results; `resume` is such a folder of an
    earlier job, whose checkpoints this one starts from. `min_nodes` makes it elastic: it starts with that many nodes, 0
    means all. `packages` is the key of the packages in the code's file `requirements`; if empty, none are installed.
    `requirement_files` are that file and its includes, by name, if the code is in the image and not in the store.
    `python` is the image's Python that prints the command's device before the start; empty: not printed. `tracked`:
    metrics below `results` are sent to the site's MLflow server; False if something else sends them.
    """

    name: str
    command: tuple[str, ...]
    framework: str = PYTORCH
    team: str = ""
    image: str = ""
    nodes: int = 1
    min_nodes: int = 0
    gpus: int = 0
    processes: int = 0
    parameter_servers: int = 0
    pool: str = ""
    queue: str = ""
    priority: str = ""
    cpu: str = "1"
    memory: str = "2Gi"
    shared_memory: str = "256Mi"
    env: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    results: str = "results"
    tracked: bool = True
    checkpoints: str = ""
    deadline: int = 0
    retries: int = 0
    keep: int = 0
    code: str = ""
    code_sha256: str = ""
    requirements: str = ""
    requirement_files: Mapping[str, str] = field(default_factory=dict)
    packages: str = ""
    output: str = ""
    resume: str = ""
    python: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Rejects contradictory settings. Raises UsageError."""
        if not NAME.fullmatch(self.name) or len(self.name) > NAME_LONGEST:
            hint = f"use up to {NAME_LONGEST} lower-case letters, digits and hyphens, starting with a letter"
            raise UsageError(f"invalid job name: {self.name!r}", hint=hint)
        if self.framework not in registry.FRAMEWORKS:
            hint = f"use one of {', '.join(registry.FRAMEWORKS)}"
            raise UsageError(f"unknown framework {self.framework!r}", hint=hint)
        if not self.command:
            raise UsageError("the job has no command", where=self.name, hint="write it after --, or under command")
        if self.nodes < 1 or self.gpus < 0:
            raise UsageError("nodes must be at least 1, and gpus at least 0", where=self.name)
        if self.framework == JOB and self.nodes > 1:
            what = f"a plain Job is one pod, but nodes is {self.nodes}: nothing would start its pods together"
            raise UsageError(what, where=self.name, hint=f"use framework {several_nodes()}")
        if self.min_nodes:
            self._check_elastic()
        if self.parameter_servers and self.framework != TENSORFLOW:
            what = f"parameterServers are for tensorflow only, but framework is {self.framework}"
            raise UsageError(what, where=self.name, hint="remove them, or use framework tensorflow")
        if self.processes and not registry.of_framework(self.framework).per_gpu:
            what = f"{self.framework} runs one process per node, but processes is {self.processes}"
            raise UsageError(what, where=self.name, hint="remove processes")
        if self.checkpoints and self.checkpoints == self.results:
            what = f"results and checkpoints are the same folder, {self.results}"
            raise UsageError(what, where=self.name, hint="give checkpoints a folder of their own")
        for title, amount in (("cpu", self.cpu), ("memory", self.memory), ("sharedMemory", self.shared_memory)):
            if amount_of(amount) <= 0:
                raise UsageError(f"{title} is {amount!r}", where=self.name, hint="use a quantity such as 2 or 4Gi")
        if amount_of(self.shared_memory) > amount_of(self.memory):
            what = f"sharedMemory {self.shared_memory} is more than memory {self.memory}, which includes it"
            raise UsageError(what, where=self.name, hint="raise memory")

    def _check_elastic(self) -> None:
        if self.framework != PYTORCH:
            what = f"only jobs of pytorch can be elastic, but framework is {self.framework}"
            raise UsageError(what, where=self.name, hint="remove minNodes, or use framework pytorch")
        if not 0 < self.min_nodes < self.nodes:
            what = f"minNodes is {self.min_nodes}, but nodes is {self.nodes}"
            raise UsageError(what, where=self.name, hint="use fewer for minNodes; nodes is the job's largest size")

    @property
    def ranks_per_node(self) -> int:
        """Number of processes of the command on each node."""
        if self.processes:
            return self.processes
        return max(1, self.gpus) if registry.of_framework(self.framework).per_gpu else 1

    @classmethod
    def of(cls, values: Mapping[str, Any], **more: Any) -> JobSpec:
        """Creates a spec from keys of trainyard.yaml that `check` found well-formed; `more` are further fields."""
        given: dict[str, Any] = {}
        for key, value in values.items():
            name = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", key)
            if name not in cls.__dataclass_fields__:
                raise UsageError(f"unknown setting {key}", hint="see docs/train.md for all settings")
            given[name] = value
        for name in ("deadline", "keep"):
            if name in given:
                given[name] = seconds(given[name])
        for name in ("cpu", "memory", "shared_memory"):
            if name in given:
                given[name] = str(given[name])
        given["command"] = tuple(given.get("command") or ())
        given["mounts"] = tuple(
            Mount(mount["claim"], mount["path"], bool(mount.get("readOnly"))) for mount in given.get("mounts") or ()
        )
        return cls(**{**given, "name": given.get("name", ""), **more})


def several_nodes() -> str:
    """Frameworks whose jobs run on several nodes, as text."""
    names = [kind.framework for kind in registry.with_gang()]
    return f"{', '.join(names[:-1])} or {names[-1]}"


def seconds(text: str | int) -> int:
    """Seconds of a duration such as `90m`, `1d12h` or a number. Raises UsageError."""
    match = DURATION.fullmatch(str(text))
    if str(text).isdigit():
        found = int(text)
    else:
        parts = match.groups() if match else ()
        found = sum(int(part or 0) * unit for part, unit in zip(parts, (86400, 3600, 60, 1), strict=False))
    if found < 1:
        raise UsageError(f"invalid duration: {text!r}", hint="write it as 90m, 12h or 2d")
    return found


def amount_of(quantity: str) -> float:
    """Numeric value of a Kubernetes quantity; 0 if the quantity is invalid."""
    try:
        return number(quantity)
    except ValueError:
        return 0.0
