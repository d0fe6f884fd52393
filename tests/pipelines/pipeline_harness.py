"""Short names for tests: runs of workflows, and what a user sees of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from kfp import compiler
from kubelet import Kubelet
from store import Store

from trainyard.contract import Contract
from trainyard.pipelines import translate
from trainyard.pipelines.ir import load
from trainyard.pipelines.runs import memoization
from trainyard_dev.apiserver import ApiServer, Identity
from trainyard_dev.argo import Controller

WORKFLOWS = "/apis/argoproj.io/v1alpha1/namespaces/{}/workflows"
MERGE = "application/merge-patch+json"
LATE_S = 120.0
ENDED = ("Succeeded", "Failed", "Error")


@dataclass
class Run:
    """One workflow as it stands."""

    harness: PipelineHarness
    team: str
    name: str
    body: dict[str, Any]

    def refresh(self) -> Run:
        """Reads it again."""
        answer = self.harness.server.call("GET", f"{WORKFLOWS.format(self.team)}/{self.name}")
        assert answer.ok, answer.message
        self.body = answer.body
        return self

    @property
    def phase(self) -> str:
        return str(self.body.get("status", {}).get("phase", ""))

    @property
    def nodes(self) -> list[dict[str, Any]]:
        return list(memoization.unwrap(self.body.get("status", {}).get("nodes", {})).values())

    def node(self, task: str) -> dict[str, Any]:
        """The task's own node: the one above its attempts, when there are some."""
        found = self.of(task)
        assert found, f"no {task} among {sorted(one['displayName'] for one in self.nodes)}"
        return found[0]

    def of(self, task: str) -> list[dict[str, Any]]:
        """Every node of that task, also those of its iterations."""
        found = [one for one in self.nodes if one["displayName"].split("(")[0] == task]
        return sorted(found, key=lambda one: one["displayName"])

    def pods(self, task: str = "") -> list[dict[str, Any]]:
        """Nodes that had a pod, of one task or of all."""
        return [
            one for one in self.nodes
            if one["type"] == "Pod" and not self.cached(one) and one["phase"] not in ("Skipped", "Omitted")
            and task in ("", one["displayName"].split("(")[0])
        ]  # fmt: skip

    @staticmethod
    def cached(node: dict[str, Any]) -> bool:
        """Whether the node was served from cache."""
        return bool(node.get("memoizationStatus", {}).get("hit"))

    def value(self, task: str, name: str) -> Any:
        """An output parameter of a task."""
        found = self.node(task)["outputs"]["parameters"]
        return next(one["value"] for one in found if one["name"] == name)

    def key(self, task: str, name: str) -> str:
        """Where an output artifact of a task lies in the store."""
        found = self.node(task)["outputs"]["artifacts"]
        return str(next(one["s3"]["key"] for one in found if one["name"] == name))

    @property
    def message(self) -> str:
        """The messages of the run and of all nodes that failed."""
        failed = [one for one in self.nodes if one["phase"] in ("Failed", "Error")]
        return "\n".join(filter(None, (one.get("message", "") for one in [self.body.get("status", {}), *failed])))

    def lineage(self, task: str) -> dict[str, Any]:
        """The lineage file of a task."""
        return dict(json.loads(self.harness.store.read(self.key(task, "lineage"))))

    def wait(self, until: Callable[[Run], bool] = lambda run: run.phase in ENDED) -> Run:
        """Waits until it has ended, or for something else."""
        end = monotonic() + LATE_S
        while not until(self.refresh()):
            assert monotonic() < end, f"late: {self.phase} {self.summary()}"
            sleep(0.1)
        return self

    def summary(self) -> list[tuple[str, ...]]:
        """Every node with its type, phase and message."""
        return [(one["displayName"], one["type"], one["phase"], one.get("message", "")) for one in self.nodes]

    def log(self) -> str:
        """What the containers of all its pods have written."""
        return "\n".join(life.log for life in self.harness.kubelet.of(self.name))


def member(team: str) -> Identity:
    """A data scientist of the team."""
    return Identity("somebody", (f"{team}-members", "system:authenticated"))


@dataclass
class PipelineHarness:
    """The platform: API server with rules and rights, each team's controller, kubelet, store."""

    server: ApiServer
    objects: list[dict[str, Any]]
    store: Store
    kubelet: Kubelet
    controllers: dict[str, Controller]
    contract: Contract
    folder: Path

    @property
    def controller(self) -> Controller:
        """That of the team vision, in which tests run what they don't say otherwise."""
        return self.controllers["vision"]

    def workflow(
        self, pipeline: Any, arguments: dict[str, Any] | None = None, team: str = "vision", **settings: Any
    ) -> dict[str, Any]:
        """A kfp pipeline as `trainyard submit` makes a workflow of it."""
        file = self.folder / f"{pipeline.name}.yaml"
        compiler.Compiler().compile(pipeline, str(file))
        chosen = translate.Settings.of(self.contract, team, **settings)
        return translate.workflow(load.file(file), arguments or {}, chosen)

    def submit(self, workflow: dict[str, Any], team: str = "vision") -> Run:
        """Creates a workflow as a member of the team; refused ones fail the test."""
        self.empty_quotas(team)
        workflow = workflow | {"metadata": workflow["metadata"] | {"namespace": team}}
        answer = self.server.call("POST", WORKFLOWS.format(team), workflow, identity=member(team))
        assert answer.ok, answer.message
        return Run(self, team, answer.body["metadata"]["name"], answer.body)

    def empty_quotas(self, team: str) -> None:
        """Takes ended pods out of the quotas' sums: nothing here does that, as a cluster's controllers do."""
        path = f"/api/v1/namespaces/{team}/resourcequotas"
        for quota in self.server.call("GET", path).body["items"]:
            used = {"status": {"used": dict.fromkeys(quota["status"].get("used", {}), "0")}}
            answer = self.server.call("PATCH", f"{path}/{quota['metadata']['name']}/status", used, content=MERGE)
            assert answer.ok, answer.message

    def start(
        self, pipeline: Any, arguments: dict[str, Any] | None = None, team: str = "vision", **settings: Any
    ) -> Run:
        """Translates and creates it."""
        return self.submit(self.workflow(pipeline, arguments, team, **settings), team)

    def run(self, pipeline: Any, arguments: dict[str, Any] | None = None, team: str = "vision", **settings: Any) -> Run:
        """The same, until it has ended."""
        return self.start(pipeline, arguments, team, **settings).wait()
