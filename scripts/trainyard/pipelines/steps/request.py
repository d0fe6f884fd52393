"""The request to a training component, and the job name derived from it."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds.mpi_words import starts_ranks
from trainyard.kinds.spec import MPI, NAME_LONGEST, JobSpec, Mount, seconds
from trainyard.names import RUN, label
from trainyard.pipelines.steps.run import Run

ARTIFACTS = ("model", "metrics", "data")
PLAIN = (
    "image", "nodes", "gpus", "processes", "parameter_servers", "pool", "cpu", "memory", "shared_memory", "env",
    "checkpoints", "retries",
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """One training job of a step. `folder` is its prefix in the run's bucket, the same for every attempt."""

    framework: str
    given: Mapping[str, Any]
    run: Run
    data: str

    @classmethod
    def of(cls, framework: str, given: Mapping[str, Any], run: Run) -> Request:
        """A request from a component's arguments."""
        data = given.get("data")
        arguments = {key: value for key, value in given.items() if key not in ARTIFACTS and key != "steps"}
        return cls(framework, arguments, run, data.uri if data is not None else "")

    @property
    def job(self) -> str:
        """The job's name: equal for equal work of one step in one run, so that a second attempt finds the first."""
        key = [self.run.uid, self.run.task, self.framework, self.data, self.given]
        digest = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()[:8]
        return f"{str(self.given['name'])[: NAME_LONGEST - 9].rstrip('-')}-{digest}"

    @property
    def folder(self) -> str:
        """Prefix of all of the job's files in the run's bucket."""
        return f"{self.run.team}/pipelines/jobs/{self.job}"

    @property
    def results(self) -> str:
        """Prefix of its results in the run's bucket."""
        return f"{self.folder}/{self.given.get('results') or 'results'}"

    def words(self) -> list[str]:
        """The command with its placeholders replaced."""
        try:
            more = shlex.split(str(self.given.get("arguments") or ""))
        except ValueError as error:
            what = f"`arguments` can't be split into words: {error}"
            raise TrainyardError(what, hint="quote it as in a shell") from None
        return [self.place(str(word)) for word in [*self.given["command"], *more]]

    def place(self, text: str) -> str:
        """A word with {data}, {out}, {checkpoints}, {job} and the names of `settings` replaced."""
        bucket = f"s3://{self.run.bucket}"
        if "{data}" in text and not self.data:
            what = "the command uses {data}, and the step has no `data`"
            raise TrainyardError(what, hint="pass data=…, an artifact of an earlier step")
        settings = self.given.get("settings") or {}
        places = {
            **{f"{{{name}}}": _plain(value) for name, value in settings.items()},
            "{data}": self.data,
            "{out}": f"{bucket}/{self.results}",
            "{checkpoints}": f"{bucket}/{self.folder}/{self.given.get('checkpoints') or 'checkpoints'}",
            "{job}": self.job,
        }
        for name, value in places.items():
            text = text.replace(name, value)
        return text

    def launched(self) -> tuple[dict[str, Any], str]:
        """The settings of the job, and a sentence if its command starts ranks itself; "" if it does not.

        Raises:
            UsageError: an option of `horovodrun` or `mpirun` can't be met.
        """
        given = self.given
        values = {key: given[key] for key in PLAIN if key in given}
        env = {key: self.place(value) if isinstance(value, str) else value for key, value in given["env"].items()}
        return launched({**values, "env": env, "command": self.words()}, self.framework)

    def spec(self) -> JobSpec:
        """The job's specification for the platform's generator. Raises UsageError for contradictory settings."""
        given = self.given
        values, _ = self.launched()
        return JobSpec(
            **{**values, "command": tuple(values["command"])},
            name=self.job,
            framework=self.framework,
            team=self.run.team,
            queue=given.get("queue") or self.run.queue,
            priority=given.get("priority") or self.run.priority,
            mounts=tuple(_mount(mount) for mount in given.get("mounts") or ()),
            results=given.get("results") or "results",
            tracked=bool(given.get("results")),
            deadline=seconds(given.get("deadline") or "1d"),
            output=self.folder if given.get("results") or given.get("checkpoints") else "",
            labels={RUN: label(self.run.name), "trainyard.io/task": label(self.run.task)},
            owner=self.run.owner,
        )


def launched(values: dict[str, Any], framework: str) -> tuple[dict[str, Any], str]:
    """A step's settings with the options of a command such as `horovodrun -np 16 -H …`, and a sentence about it.

    One node, the component's default, counts as not set.
    """
    if framework != MPI or not starts_ranks(values["command"]):
        return values, ""
    from trainyard.kinds import mpi_launch

    unsaid = [key for key, default in (("nodes", 1), ("processes", 0)) if values.get(key) == default]
    said = {key: value for key, value in values.items() if key not in unsaid}
    made, note = mpi_launch.translated({**said, "framework": framework}, Path("."))
    return {**values, **{key: value for key, value in made.items() if key != "framework"}}, note


def _mount(mount: Any) -> Mount:
    if not isinstance(mount, Mapping) or not mount.get("claim") or not mount.get("path"):
        raise UsageError(f"a mount is {mount!r}", hint='write it as {"claim": "workspace", "path": "/work"}')
    return Mount(mount["claim"], mount["path"], bool(mount.get("readOnly")))


def _plain(value: Any) -> str:
    """A setting as a word; protobuf turns whole numbers into fractions."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
