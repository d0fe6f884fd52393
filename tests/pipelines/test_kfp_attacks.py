"""What must not work against the service behind kfp.Client, by kind, on the real platform: denied in a sentence."""

import base64
import copy
import gzip
import http.client
import io
import itertools
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import kfp_service
import pytest
import yaml
from kfp import compiler
from kfp_world import API, MAPS, NEVER, OWN, SPEC, World
from pipeline_harness import PipelineHarness
from test_kfp_client import scores

from waiting import wait


@pytest.fixture(scope="module")
def world(harness: PipelineHarness, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("attacks")
    compiler.Compiler().compile(scores, str(folder / "scores.yaml"))
    people = {"ada": ("vision",), "sue": ("speech",), "nia": (), "root": ()}
    with kfp_service.running(harness, folder, people) as service:
        rbac = "rbac.authorization.k8s.io"
        harness.server.create({
            "apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "root"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "root", "namespace": kfp_service.PEOPLE}],
        })  # fmt: skip
        for team in ("vision", "speech"):
            harness.empty_quotas(team)
        made = World(service, yaml.safe_load((folder / "scores.yaml").read_text()))
        for who, team in (("ada", "vision"), ("sue", "speech")):
            asked = who, "GET", f"/runs/{made.of[team]['runs']}"
            wait(lambda asked=asked: made.ok(*asked)["state"] == "SUCCEEDED", "the runs")
        yield made
        for who, team in (("ada", "vision"), ("sue", "speech")):  # other tests count schedules
            made.ok(who, "DELETE", f"/recurringruns/{made.of[team]['recurringruns']}")


def test_only_one_valid_token_of_the_header_counts(world: World) -> None:
    ada, sue = world.service.tokens["ada"], world.service.tokens["sue"]
    head, _, rest = ada.partition(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=") + f".{rest.partition('.')[0]}."
    before, runs = world.state(), "/runs?namespace=vision"
    for header in ("", "Bearer", "Bearer null", f"Bearer {unsigned}", f"Bearer {head}.x.y", f"Basic {ada}", ada,
                   f"Bearer {ada}, Bearer {ada}", f"Bearer {ada} x", "Bearer \xe4"):  # fmt: skip
        for method, path in (*world.routes(), ("GET", runs), ("POST", "/runs"), ("POST", "/pipelines/upload")):
            world.no(401, "token", "", method, path, authorization=header)
    world.no(401, "no token", "", "GET", f"{runs}&access_token={ada}", cookie=f"__Host-trainyard={ada}")
    for tokens in ((ada, sue), (sue, ada)):
        connection = http.client.HTTPConnection(world.service.url.removeprefix("http://"))
        connection.putrequest("GET", API + runs)
        for one in tokens:
            connection.putheader("authorization", f"Bearer {one}")
        connection.endheaders()
        assert connection.getresponse().status == 401
    assert world.state() == before


def test_other_teams_and_claims_of_identity(world: World) -> None:
    before, own, sues = world.state(), world.of["vision"], world.of["speech"]
    for who, team in (("nia", "vision"), ("nia", "speech"), ("ada", "speech")):
        for method, path in world.routes(team):
            world.no(403, "forbidden", who, method, path)
        for asked in (f"runs?namespace={team}", f"runs?experiment_id={world.of[team]['experiments']}"):
            world.no(403, "forbidden", who, "GET", f"/{asked}")
    forwarded = {"X_Forwarded_Access_Token": world.service.tokens["sue"], "Connection": "authorization"}
    for headers in ({"Impersonate_User": "sue"}, {"X_Remote_User": "sue", "kubeflow_userid": "sue"}, forwarded):
        world.no(403, "forbidden", "ada", "GET", "/runs?namespace=speech", **headers)
    for name in ("*", "speech,vision", "../speech", "vision%3FlabelSelector=a", "speech%00", "SPEECH"):
        world.no(400, "is not a namespace", "ada", "GET", f"/runs?namespace={name}")
    body: dict[str, Any] = {"experiment_id": own["experiments"]}
    for words, reference in (
        ("forbidden", {"pipeline_version_id": sues["version"]}),
        ("no pipeline version", {"pipeline_id": sues["pipelines"], "pipeline_version_id": own["version"]}),
        ("no pipeline version", {"pipeline_version_id": "trainyard-system.trainyard-contract"}),
    ):
        world.no((403, 404), words, "ada", "POST", "/runs", body | {"pipeline_version_reference": reference})
    body |= {"pipeline_spec": world.spec}
    world.no(403, "forbidden", "ada", "POST", "/runs", body | {"experiment_id": sues["experiments"]})
    world.no(400, "can't be chosen", "ada", "POST", "/runs", body | {"service_account": "default"})
    world.no(400, "can't be chosen", "ada", "POST", "/runs", body | {"runtime_config": {"pipeline_root": "s3://x"}})
    assert world.state() == before


def test_ids_reach_only_objects_of_their_kind(world: World) -> None:
    """Also for an administrator, whom no right of the API server stops."""
    own, meta = world.of["vision"], {"name": "plain", "namespace": "vision"}
    world.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"name": NEVER}})
    before = world.state()
    bad = ("vision.", "vision..", ".", "vision.%20", "vision.x%3Fwatch=true", "vision.x%23", "vision.plain",
           "vision.%00", "trainyard-system.trainyard-contract", "kube-system.coredns",
           "vision.artifact-repositories")  # fmt: skip
    for who, (method, path), one, wrong in itertools.product(("ada", "root"), world.routes(), own.values(), bad):
        if one in path:
            world.no((403, 404, 405), "", who, method, path.replace(one, wrong, 1))
    for kind, other in (("pipelines", "experiments"), ("runs", "recurringruns"), ("recurringruns", "runs")):
        for method in ("GET", "DELETE"):
            world.no(404, "no ", "ada", method, f"/{kind}/{own[other]}")
    assert world.state() == before


ODD = '{"name": ["\\ud800"], "parameters": {"a": NaN}, "pipeline_id": {}}'
# Name: status, and what else there is.
WORKFLOWS_OF_ANY_CONTENT: dict[str, Any] = {
    "nodes in a circle": ({"nodes": {"own": OWN | {"boundaryID": "own", "children": ["own"]}}}, {}),
    "other forms": ({"nodes": {"a": None, "b": 5, "c": {}, "d": OWN | {"startedAt": 5, "displayName": []}}}, {}),
    "no nodes": ({"nodes": [], "phase": {}, "startedAt": "99999-01-01T00:00:00Z", "message": 5}, {}),
    "packed": ({"compressedNodes": base64.b64encode(gzip.compress(bytes(64 << 20))).decode()}, {}),
    "cut off": ({"compressedNodes": "H4sI", "phase": "Failed"}, {}),
    "in a database": ({"offloadNodeStatusVersion": "fnv:1"}, {}),
    "parameters": ({"nodes": {"own": OWN | {"outputs": {"parameters": [
                   None, {"name": {}}, {"name": "n", "value": "NaN"}, {"name": "deep", "value": "[" * 5000},
                   {"name": "long", "value": "9" * 4000}]}}}}, {}),
    "artifacts": ({"nodes": {"own": OWN | {"outputs": {"artifacts": [None, {"name": "a", "s3": {"key": 17}}]}}}}, {}),
    "items": ({"nodes": {"l": OWN | {"id": "l", "type": "DAG", "displayName": "loop"},
                         "own": OWN | {"boundaryID": "l", "displayName": f"each(0:{'at:' * 99_000})"}}}, {}),
    "depends": ({"finishedAt": None}, {"templates": [
        *SPEC["templates"], {"name": "d", "dag": {"tasks": [{"name": "a", "depends": "a" * 200_000 + "!"}]}}],
        "entrypoint": "d"}),
    "note": ({"phase": "Succeeded"}, {"meta": {"annotations": {"trainyard.io/kfp": ODD}}}),
}  # fmt: skip


@pytest.mark.parametrize("name", WORKFLOWS_OF_ANY_CONTENT)
def test_a_workflow_of_any_content_breaks_no_list(world: World, name: str) -> None:
    status, more = WORKFLOWS_OF_ANY_CONTENT[name]
    world.workflow(status, **more)
    run = world.ok("ada", "GET", "/runs/vision.own")
    assert run["run_id"] == "vision.own" and run.get("finished_at") != ""
    listed = {one["run_id"] for one in world.ok("ada", "GET", "/runs?namespace=vision&page_size=200")["runs"]}
    assert {"vision.own", world.of["vision"]["runs"]} <= listed
    for verb in ("terminate", "retry", "archive"):
        world.ask("ada", "POST", f"/runs/vision.own:{verb}")
    world.ok("ada", "DELETE", "/runs/vision.own")


def test_artifacts_elsewhere_are_not_read(world: World) -> None:
    store, trap = world.service.harness.store.client(), socket.create_server(("127.0.0.1", 0))
    for folder in ("speech/pipelines/x", "vision-2/pipelines/x", "vision/training/x", "vision/pipelines/x"):
        found = '{"metadata": {"a": NaN}}' if folder == "vision/pipelines/x" else f'{{"metadata": {{"{NEVER}": 1}}}}'
        store.put_object("runs", f"{folder}/meta.json", io.BytesIO(found.encode()), len(found))
    trapped = {"endpoint": f"127.0.0.1:{trap.getsockname()[1]}", "insecure": True}
    keys = ("speech/pipelines/x", "/speech/pipelines/x", "vision/pipelines/../../speech/pipelines/x",
            "vision//pipelines/x", "vision-2/pipelines/x", "vision/training/x", "vision", "")  # fmt: skip
    places = [{"bucket": "runs", "key": key} for key in keys]
    places += [{"bucket": bucket, "key": "vision/pipelines/x"} for bucket in ("datasets", "runs/speech", ".minio.sys")]
    for s3 in ({"bucket": "runs", "key": "vision/pipelines/x", **trapped}, *places):
        outputs = {"outputs": {"artifacts": [{"name": "out", "s3": s3}, {"name": "main-logs", "s3": s3}]}}
        repository = {"artifactRepository": {"s3": {"bucket": "datasets", **trapped}}}
        world.workflow({"phase": "Succeeded", "nodes": {"own": OWN | outputs}, "artifactRepositoryRef": repository})
        world.ok("ada", "GET", "/runs/vision.own")
        for name in ("out", "main-logs"):
            asked = base64.urlsafe_b64encode(json.dumps(["vision.own", "own", name]).encode()).decode().rstrip("=")
            if s3 in places:
                world.no(404, "no artifact", "ada", "GET", f"/artifacts/{asked}")
            else:  # the service asks its own store, not the endpoint that a Workflow names
                assert world.ok("ada", "GET", f"/artifacts/{asked}")["metadata"] == {"a": "NaN"}
    trap.settimeout(0.1)
    with pytest.raises(TimeoutError):
        trap.accept()


def test_config_maps_that_pretend_hide_no_honest_one(world: World) -> None:
    own = world.of["vision"]
    name = f"kfp-version-{own['version'].partition('.')[2].replace('.', '-')}"
    honest = world.server.call("GET", f"{MAPS.format('vision')}/{name}").body["binaryData"]
    reference = {"pipeline_version_reference": {"pipeline_version_id": own["version"]}}
    for bomb in (bytes(64 << 20), b"a: &a [x]\nb: *a", b"a: 1", b"\xff"):
        world.change(name, {"binaryData": {"spec": base64.b64encode(gzip.compress(bomb)).decode()}})
        listed = world.ok("ada", "GET", f"/pipelines/{own['pipelines']}/versions")["pipeline_versions"]
        assert [one["pipeline_version_id"] for one in listed] == [own["version"]]
        world.no(400, "", "ada", "POST", "/runs", reference | {"experiment_id": own["experiments"]})
    world.change(name, {"binaryData": honest})
    label = own["experiments"].partition(".")[2]
    for kind, data in (("pipeline", {"name": "own "}), ("experiment", {"name": "evil", "label": label})):
        meta = {"name": f"pretend-{kind}", "namespace": "vision", "labels": {"trainyard.io/kfp": kind}}
        world.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
        found = world.ok("ada", "GET", f"/{kind}s?namespace=vision&page_size=200")[f"{kind}s"]
        listed = {one[f"{kind}_id"]: one["display_name"] for one in found}
        assert own[f"{kind}s"] in listed and f"vision.pretend-{kind}" not in listed and "evil" not in listed.values()


def test_pipelines_and_bodies_that_cost_too_much(world: World) -> None:
    before, circle = world.state(), {"t": {"componentRef": {"name": "comp-d"}, "taskInfo": {"name": "t"}}}
    endless = copy.deepcopy(world.spec)
    endless["components"]["comp-d"] = {"dag": {"tasks": circle}}
    endless["root"]["dag"]["tasks"] = circle
    own = {"experiment_id": world.of["vision"]["experiments"], "trigger": {"cron_schedule": {"cron": "@daily"}}}
    for command, words in (
        (["sh", "-c", "pip install " * 9000], ""),
        (["a"] * 70_000, "more than 60,000 values"),
        ([], ""),
    ):
        spec = copy.deepcopy(world.spec) if command else endless
        words = words if command else "kfp's compiler does not write"
        spec["deploymentSpec"]["executors"]["exec-score"]["container"]["command"] = command
        for path in ("/runs", "/recurringruns"):
            world.no(400, words, "ada", "POST", path, own | {"pipeline_spec": spec})
    world.no(413, "larger than 4 MiB", "ada", "POST", "/runs", Content_Length=str(5 << 20))
    world.no(400, "two lengths", "ada", "POST", "/runs", b"0\r\n\r\n", Transfer_Encoding="chunked", Content_Length="5")
    world.no(400, "five fields", "ada", "POST", "/recurringruns", {"trigger": {"cron_schedule": {"cron": "0 4 * * *"}}})
    assert world.state() == before


def test_of_many_at_once_one_makes_it(world: World) -> None:
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(world.ask, "ada", "POST", "/experiments", {"display_name": "race"}) for _ in range(20)]
    assert sorted(one.result()[0] for one in asked) == [200, *[409] * 19]
