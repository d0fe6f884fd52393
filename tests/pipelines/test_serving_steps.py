"""Steps that register, judge and serve a model, against the real API server with the rights of the pipelines' account.

What Deployment's controller would write is written by the tests; the store is a folder.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stepping import TEAM, Step

from trainyard import contract
from trainyard.errors import TrainyardError
from trainyard.kube import Access
from trainyard.pipelines.steps import models
from trainyard.pipelines.steps.jobs import Jobs
from trainyard.serving import apply, plan, render, shelf, versions
from trainyard.serving.plan import ServeRequest
from trainyard_agent.api import Api
from trainyard_dev.apiserver import ApiServer
from waiting import wait

TENSORS = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 784]}],
           "outputs": [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}]}  # fmt: skip
PATH = f"/apis/apps/v1/namespaces/{TEAM}/deployments/model-digits"


@pytest.fixture
def jobs(api: Api, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.setattr(models, "POLL_INTERVAL_S", 0.05)
    return Jobs(api, TEAM)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "TRAINYARD_RUN": "serve-x1", "TRAINYARD_RUN_UID": "u1", "TRAINYARD_TEAM": TEAM, "TRAINYARD_BUCKET": "runs",
        "TRAINYARD_BUCKETS": str(tmp_path / "buckets"),
    }  # fmt: skip


def register(tmp_path: Path, env: dict[str, str], content: str, accuracy: float) -> str:
    """A version by the step that registers; returns its name."""
    folder = tmp_path / content
    folder.mkdir()
    (folder / "model.pt").write_text(content)
    (folder / "model.json").write_text(json.dumps({"framework": "pytorch", "file": "model.pt", **TENSORS}))
    artifact = SimpleNamespace(path=str(folder), metadata={"accuracy": accuracy, "name": "no number"})
    registered = SimpleNamespace(path=str(tmp_path / f"{content}-card"), metadata={})
    uri, version = models.register({"model": artifact, "registered": registered, "name": "digits"}, env)
    assert uri == f"s3://runs/vision/models/digits/{version}" and registered.metadata["version"] == version
    card = json.loads((tmp_path / "buckets" / uri.removeprefix("s3://") / "model.json").read_text())
    assert (card["run"], card["metrics"]) == ("serve-x1", {"accuracy": accuracy})
    return version


@pytest.fixture
def served(server: ApiServer, tmp_path: Path, env: dict[str, str]) -> Iterator[str]:
    """A first version in service, as a member put it there."""
    version = register(tmp_path, env, "first", 0.9)
    kube = Access(str(server.kubeconfig), namespace=TEAM, user="ada", groups=("vision-members",)).connect()
    known = contract.live(kube)
    card = shelf.ModelRegistry(shelf.Folder(tmp_path / "buckets"), TEAM).find("digits")
    apply.send(kube, render.objects(plan.values(known, TEAM, card, ServeRequest(), {}), TEAM), "digits")
    ready(server)
    yield version
    apply.stop(Access(str(server.kubeconfig), namespace=TEAM).connect(), "digits")


def ready(server: ApiServer) -> None:
    """What the controller writes when all pods are new and ready."""
    found = server.call("GET", PATH).body
    count = found["spec"]["replicas"]
    found["status"] = {"observedGeneration": found["metadata"]["generation"], "replicas": count,
                       "updatedReplicas": count, "readyReplicas": count, "availableReplicas": count}  # fmt: skip
    assert server.replace(found, sub="status").ok


def now(server: ApiServer) -> str:
    found = versions.of_template(server.call("GET", PATH).body["spec"]["template"])
    assert found
    return found.version


def begin(version: str, env: dict[str, str], jobs: Jobs, **given: Any) -> Step:
    return Step(lambda: models.serve({"name": "digits", "version": version, **given}, env, jobs))


def test_a_better_version_takes_the_place(
    server: ApiServer, jobs: Jobs, env: dict[str, str], tmp_path: Path, served: str
) -> None:
    version = register(tmp_path, env, "second", 0.95)
    passed, against = models.gate({"name": "digits", "version": version}, env, jobs)
    assert (passed, against) == (True, served)
    step = begin(version, env, jobs)
    wait(lambda: now(server) == version, "the new version", 30)
    time.sleep(0.3)
    assert step.is_alive()  # nobody has said that it is ready
    ready(server)
    assert (step.ended(), step.value) == ("", version)
    # Once more, as after an attempt whose answer was lost: nothing changes.
    generation = server.call("GET", PATH).body["metadata"]["generation"]
    assert models.serve({"name": "digits", "version": version}, env, jobs) == version
    assert server.call("GET", PATH).body["metadata"]["generation"] == generation


def test_a_version_that_does_not_get_ready_goes_back(
    server: ApiServer, jobs: Jobs, env: dict[str, str], tmp_path: Path, served: str
) -> None:
    version = register(tmp_path, env, "broken", 0.99)
    said = begin(version, env, jobs, timeout="1s").ended()
    assert said.startswith(f"digits@{version} did not go into service: it is not ready after 1 s")
    assert f"digits@{served} is back" in said and now(server) == served


def test_a_worse_version_stays_out(jobs: Jobs, env: dict[str, str], tmp_path: Path, served: str) -> None:
    version = register(tmp_path, env, "worse", 0.85)
    given = {"name": "digits", "version": version}
    assert models.gate(given, env, jobs) == (False, served)
    assert models.gate({**given, "gain": -0.1}, env, jobs) == (True, served)
    says = rf"digits@{version} has accuracy 0.85, digits@{served} in service requires"
    with pytest.raises(TrainyardError, match=says):
        models.gate({**given, "strict": True}, env, jobs)


def test_what_nobody_has_put_into_service_is_not_served(jobs: Jobs, env: dict[str, str], tmp_path: Path) -> None:
    version = register(tmp_path, env, "alone", 0.9)
    assert models.gate({"name": "digits", "version": version}, env, jobs) == (True, "")
    assert models.gate({"name": "digits", "version": version, "minimum": 0.95}, env, jobs) == (False, "")
    with pytest.raises(TrainyardError, match=r"digits is not in service in vision. serve it once with trainyard serve"):
        models.serve({"name": "digits", "version": version}, env, jobs)
    with pytest.raises(TrainyardError, match="digits has no version zz"):
        models.gate({"name": "digits", "version": "zz"}, env, jobs)
