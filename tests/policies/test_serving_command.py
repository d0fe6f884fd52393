"""`trainyard serve` and `trainyard models` on a real API server, as members, viewers, strangers and steps of pipelines.

What no controller does here is played: it would make ReplicaSets of a Deployment. The store is a folder; tests/storage
has a real one.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from model_shelf import FolderStore

from trainyard.cli import trainyard
from trainyard.errors import TrainyardError, UsageError
from trainyard.kube import Access, KubeError
from trainyard.kube.client import JSON_PATCH
from trainyard.pipelines.steps import models
from trainyard.serving import apply, shelf, versions
from trainyard_dev.apiserver import ApiServer, Identity

MEMBER, VIEWER = Identity("ada", ("vision-members",)), Identity("vic", ("vision-viewers",))
OTHER, STEP = Identity("bob", ("speech-members",)), Identity.account("vision", "pipeline")
TENSORS = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 784]}],
           "outputs": [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}]}  # fmt: skip
Call = Callable[..., Any]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderStore:
    """The registry with two versions of one model, 1 and 2, the second one better."""
    made = FolderStore(tmp_path / "store")

    @contextmanager
    def opened(kube: Any, known: Any) -> Iterator[shelf.ModelRegistry]:
        yield shelf.ModelRegistry(made, kube.namespace, shelf.bucket_of(known))

    monkeypatch.setattr(shelf, "opened", opened)
    for version, accuracy in (("1", 0.9), ("2", 0.95)):
        folder = tmp_path / version
        folder.mkdir()
        (folder / "model.pt").write_text(version)
        given = {
            "name": "digits",
            "framework": "pytorch",
            "version": version,
            "metrics": {"accuracy": accuracy},
            **TENSORS,
        }
        shelf.ModelRegistry(made, "vision").register(folder, shelf.complete(folder, given))
    return made


@pytest.fixture
def run(server: ApiServer, store: FolderStore, made: Any) -> Iterator[Call]:
    """`run("serve", "digits")` as a member of team vision, or as somebody else; nothing is left afterwards."""

    def call(*words: str, who: Identity = MEMBER, team: str = "vision") -> Any:
        groups = [word for group in who.groups for word in ("--as-group", group)]
        access = ["--kubeconfig", str(server.kubeconfig), "-n", team, "--as", who.user, *groups]
        return CliRunner().invoke(trainyard, [*words, *access], standalone_mode=False)

    yield call
    kube = Access(str(server.kubeconfig), namespace="vision").connect()
    apply.stop(kube, "digits")
    for one in kube.list(kube.path("apps/v1", "replicasets")):
        kube.delete(f"{kube.path('apps/v1', 'replicasets')}/{one['metadata']['name']}")


def member(server: ApiServer) -> Any:
    return Access(str(server.kubeconfig), namespace="vision", user=MEMBER.user, groups=MEMBER.groups).connect()


def rolled(server: ApiServer, number: int) -> None:
    """What Deployment's controller leaves of a template: a ReplicaSet with its number."""
    kube = Access(str(server.kubeconfig), namespace="vision").connect()
    found = apply.deployment(kube, "digits")
    assert found is not None
    template = json.loads(json.dumps(found["spec"]["template"]))
    labels = template["metadata"]["labels"] | {"pod-template-hash": f"h{number}"}
    template["metadata"]["labels"] = labels
    made = {"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": f"model-digits-h{number}", "namespace": "vision", "labels": labels,
                         "annotations": {versions.REVISION: str(number)}},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}}  # fmt: skip
    assert server.create(made).ok


def serving(server: ApiServer, *, canary: bool = False) -> versions.Served | None:
    found = apply.deployment(member(server), "digits", canary=canary)
    return versions.of_template(found["spec"]["template"]) if found else None


def test_a_member_serves_a_version_beside_it_another_and_takes_it_back(server: ApiServer, run: Call) -> None:
    done = run("serve", "digits@1", "--no-wait", "--replicas", "4")
    assert done.exception is None, done.exception
    assert done.stdout == "http://model-digits.vision.svc\n"
    assert (found := serving(server)) and found.version == "1"
    assert found.image == "site.invalid/trainyard/server-torch:0.4.0"
    kube = member(server)
    selector = kube.get(kube.path("v1", "services", "model-digits"))["spec"]["selector"]
    assert selector == {"trainyard.io/model": "digits"}

    assert run("serve", "digits", "--canary-share", "25", "--no-wait").exception is None
    assert (found := serving(server)) and found.version == "1"
    assert (canary := serving(server, canary=True)) and canary.version == "2"
    counts = [apply.deployment(kube, "digits", canary=one)["spec"]["replicas"] for one in (False, True)]  # type: ignore[index]
    assert counts == [3, 1]

    back = run("serve", "rollback", "digits", "--no-wait")
    assert back.exception is None, back.exception
    assert serving(server, canary=True) is None and (found := serving(server)) and found.version == "1"
    assert apply.deployment(kube, "digits")["spec"]["replicas"] == 4  # type: ignore[index]


def test_a_version_goes_back_to_the_one_before_without_the_store(
    server: ApiServer, run: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("serve", "digits@1", "--no-wait", "--cpu", "300m").exception is None
    rolled(server, 1)
    assert run("serve", "digits@2", "--no-wait").exception is None
    rolled(server, 2)
    monkeypatch.setattr(shelf, "opened", None)  # it is away
    told = run("serve", "rollback", "digits", "--dry-run")
    assert told.stdout == "digits@1\n" and "would roll digits back to 1" in told.stderr
    assert (found := serving(server)) and found.version == "2"
    assert run("serve", "rollback", "digits", "--no-wait").stdout == "digits@1\n"
    assert (found := serving(server)) and (found.version, found.place()) == (
        "1",
        {"bucket": "runs/vision/models/digits/1"},
    )
    template = apply.deployment(member(server), "digits")["spec"]["template"]["spec"]  # type: ignore[index]
    assert {"name": "MODEL_VERSION", "value": "1"} in template["containers"][0]["env"]
    assert f"--digest={found.digest}" in template["initContainers"][0]["args"]
    assert template["containers"][0]["resources"]["requests"]["cpu"] == "300m"
    with pytest.raises(UsageError, match=r"no earlier version is 7. versions that were in service before: 2"):
        raise run("serve", "rollback", "digits", "--to", "7").exception
    assert run("serve", "rollback", "digits", "--to", "2", "--no-wait").stdout == "digits@2\n"
    rolled(server, 3)


def test_the_next_version_keeps_what_was_said_after_a_rollback(server: ApiServer, run: Call) -> None:
    assert run("serve", "digits@1", "--no-wait", "--memory", "2Gi").exception is None
    rolled(server, 1)
    assert run("serve", "digits@2", "--no-wait").exception is None
    rolled(server, 2)
    assert run("serve", "rollback", "digits", "--no-wait").exception is None
    done = run("serve", "digits@2", "--dry-run", "-o", "json")
    [deployment] = [one for one in json.loads(done.stdout)["items"] if one["kind"] == "Deployment"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["memory"] == "2Gi" and (found := serving(server)) and found.version == "1"


def test_outside_only_with_a_key_which_the_cluster_has_as_a_digest(server: ApiServer, run: Call) -> None:
    with pytest.raises(UsageError, match=r"access.from is outside and access.keys is empty"):
        raise run("serve", "digits@1", "--no-wait", "--from", "outside").exception
    done = run("serve", "digits@1", "--no-wait", "--from", "outside", "--key")
    assert done.exception is None, done.exception
    key = done.stdout.strip()
    kube = member(server)
    held = json.loads(kube.get(kube.path("v1", "configmaps", "model-digits-keys"))["data"]["keys.json"])
    assert held == [hashlib.sha256(key.encode()).hexdigest()] and key not in json.dumps(held)
    port = kube.get(kube.path("v1", "services", "model-digits-outside"))["spec"]["ports"][0]["nodePort"]
    listed = run("serve", "list").stdout
    assert f"every node's port {port}" in listed and " outside " in listed
    # No longer from outside: that Service goes, and the keys stay asked for.
    done = run("serve", "digits@1", "--no-wait", "--from", "team")
    assert "deleted service/model-digits-outside" in done.stderr
    assert kube.find(kube.path("v1", "services", "model-digits-outside")) is None
    # A second key beside the first, then one alone.
    second = run("serve", "digits@1", "--no-wait", "--key").stdout.strip()
    place = kube.path("v1", "configmaps", "model-digits-keys")
    assert len(json.loads(kube.get(place)["data"]["keys.json"])) == 2
    third = run("serve", "digits@1", "--no-wait", "--key", "--revoke-keys").stdout.strip()
    assert json.loads(kube.get(place)["data"]["keys.json"]) == [hashlib.sha256(third.encode()).hexdigest()]
    assert len({key, second, third}) == 3


def test_what_scales_it_comes_and_goes_and_its_number_stays(server: ApiServer, run: Call) -> None:
    assert run("serve", "digits@1", "--no-wait", "--scale-by", "cpu", "--max", "6").exception is None
    kube = member(server)
    scaler = kube.path("autoscaling/v2", "horizontalpodautoscalers", "model-digits")
    assert kube.get(scaler)["spec"]["maxReplicas"] == 6
    # The autoscaler has its own mind, which the next version must not change.
    admin = Access(str(server.kubeconfig), namespace="vision").connect()
    admin.patch(admin.path("apps/v1", "deployments", "model-digits"), {"spec": {"replicas": 5}})
    assert run("serve", "digits@2", "--no-wait").exception is None
    assert apply.deployment(kube, "digits")["spec"]["replicas"] == 5  # type: ignore[index]
    done = run("serve", "digits@2", "--no-wait", "--scale-by", "none", "--replicas", "3")
    assert "deleted horizontalpodautoscaler/model-digits" in done.stderr and kube.find(scaler) is None
    assert apply.deployment(kube, "digits")["spec"]["replicas"] == 3  # type: ignore[index]


def test_stopped_nothing_of_it_is_left(server: ApiServer, run: Call) -> None:
    assert run("serve", "digits@1", "--no-wait", "--from", "outside", "--key", "--scale-by", "cpu").exception is None
    gone = run("serve", "stop", "digits").stderr.splitlines()
    assert {line.removeprefix("deleted ") for line in gone} == {
        "deployment/model-digits", "service/model-digits", "service/model-digits-outside",
        "configmap/model-digits-keys", "poddisruptionbudget/model-digits", "horizontalpodautoscaler/model-digits",
    }  # fmt: skip
    with pytest.raises(TrainyardError, match="vision: digits is not in service"):
        raise run("serve", "stop", "digits").exception
    assert "no models are in service in vision" in run("serve", "list").stderr


def test_strangers_and_viewers_serve_nothing_and_see_what_they_may(server: ApiServer, run: Call) -> None:
    for who in (VIEWER, OTHER):
        with pytest.raises(KubeError, match=f'User "{who.user}" cannot'):
            raise run("serve", "digits@1", "--no-wait", who=who).exception
    assert run("serve", "digits@1", "--no-wait").exception is None
    assert "digits" in run("serve", "list", who=VIEWER).stdout
    for words in (("list",), ("rollback", "digits"), ("stop", "digits")):
        with pytest.raises(KubeError, match='User "bob" cannot'):
            raise run("serve", *words, who=OTHER).exception
    with pytest.raises(KubeError, match='User "vic" cannot delete'):
        raise run("serve", "stop", "digits", who=VIEWER).exception
    assert serving(server)


def test_another_teams_model_is_refused_by_the_rules_whatever_is_rendered(run: Call, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("model: {source: {bucket: runs/speech/models/digits/1}}\n")
    with pytest.raises(
        KubeError, match="the model comes from s3://runs/speech/models/digits/1, which is not this team's"
    ):
        raise run("serve", "digits@1", "--no-wait", "--values", str(values)).exception


def test_a_step_changes_the_version_and_nothing_else(server: ApiServer, run: Call) -> None:
    assert run("serve", "digits@1", "--no-wait").exception is None
    step = Access(str(server.kubeconfig), namespace="vision", user=STEP.user).connect()
    path, found = step.path("apps/v1", "deployments", "model-digits"), apply.deployment(step, "digits")
    assert found is not None
    old = versions.of_template(found["spec"]["template"])
    assert old is not None
    new = versions.Served("2", f"sha256:{'c' * 64}", "s3://runs/vision/models/digits/2", old.image)
    step.patch(path, versions.change(found, new), content=JSON_PATCH)
    assert (now := serving(server)) and now.version == "2"
    # The same change once more says that it was made of an older state.
    with pytest.raises(KubeError, match="the server rejected our request") as caught:
        step.patch(path, versions.change(found, new), content=JSON_PATCH)
    assert caught.value.status in (models.CONFLICT, models.INVALID)
    foreign = versions.Served("3", f"sha256:{'c' * 64}", "s3://runs/speech/models/digits/3", old.image)
    with pytest.raises(KubeError, match="which is not this team's"):
        step.patch(path, versions.change(apply.deployment(step, "digits") or {}, foreign), content=JSON_PATCH)
    opened = [{"op": "replace", "path": "/spec/template/metadata/labels/trainyard.io~1access", "value": "outside"}]
    with pytest.raises(KubeError, match="would answer without a key"):
        step.patch(path, opened, content=JSON_PATCH)
    with pytest.raises(KubeError, match="cannot create resource"):
        step.create({**found, "metadata": {"name": "model-other", "labels": found["metadata"]["labels"]}})
    with pytest.raises(KubeError, match="cannot delete resource"):
        step.delete(path)


def test_the_gate_compares_with_what_is_in_service(run: Call) -> None:
    assert run("models", "gate", "digits@2", "--minimum", "0.9").exception is None
    assert run("serve", "digits@2", "--no-wait").exception is None
    done = run("models", "gate", "digits@1")
    with pytest.raises(
        TrainyardError, match=r"digits@1 has accuracy 0.9, digits@2 in service requires 0.95: it stays out"
    ):
        raise done.exception
    verdict = json.loads(run("models", "gate", "digits@1", "--gain", "-0.06", "-o", "json").stdout)
    assert verdict["passed"] is True and verdict["served"] == "digits@2"
    rows = json.loads(run("models", "list", "-o", "json").stdout)
    assert [(row["version"], row["inService"]) for row in rows] == [("2", True), ("1", False)]
    table = run("models", "compare", "digits@1").stdout
    assert "digits@2" in table.splitlines()[0] and "metrics.accuracy" in table
