"""Each team has a controller of its own: what one team's workflows make of theirs, the others' don't feel."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import controller
import samples
from kfp import dsl
from pipeline_harness import WORKFLOWS, PipelineHarness, member

from trainyard_dev.apiserver import Identity
from trainyard_dev.argo import NAME
from waiting import wait

# What the program may have of memory beside what it maps of its file. A cluster's limit kills it; here it dies of it.
MEMORY = 256 * 2**20
DIES_S = 120.0
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings"
REFUSED = re.compile(r"forbidden|cannot (list|watch|get|create)")


@dsl.pipeline(name="two-steps")
def two_steps(text: str) -> str:
    return samples.read(taken=samples.write(text=text).output).outputs["text"]


def doubling() -> dict[str, Any]:
    """A workflow that no rule can foresee: each step is given its text twice over. No pod is ever made."""
    twice = [{"name": "text", "value": "{{inputs.parameters.text}}" * 2}]
    grow = {
        "name": "grow",
        "inputs": {"parameters": [{"name": "text"}]},
        "steps": [[{"name": "again", "template": "grow", "arguments": {"parameters": twice}}]],
    }
    spec = {
        "serviceAccountName": "pipeline", "activeDeadlineSeconds": 3600, "entrypoint": "grow",
        "ttlStrategy": {"secondsAfterCompletion": 3600},
        "arguments": {"parameters": [{"name": "text", "value": "x" * 1000}]},
        "templates": [grow],
    }  # fmt: skip
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "doubling"}, "spec": spec}


def test_a_workflow_that_ends_its_controller_ends_no_other_teams(harness: PipelineHarness) -> None:
    mine, others = harness.controllers["vision"], harness.controllers["speech"]
    mine.kill()
    mine.before = ("prlimit", f"--data={MEMORY}", "--")
    mine.start()
    try:
        before = others.pid
        harness.submit(doubling())
        other = harness.start(two_steps, {"text": "meanwhile"}, team="speech", cache=False)
        wait(lambda: mine.ended, "the end of the controller", DIES_S)
        assert re.search(r"out of memory|cannot allocate memory", mine.log), mine.log[-2000:]
        # Speech doesn't feel it, not even what it submits only now.
        assert other.wait().phase == "Succeeded"
        assert harness.run(two_steps, {"text": "afterwards"}, team="speech", cache=False).phase == "Succeeded"
        assert not others.ended and others.pid == before
        # Vision's members help themselves.
        gone = harness.server.call("DELETE", f"{WORKFLOWS.format('vision')}/doubling", identity=member("vision"))
        assert gone.ok, gone.message
    finally:
        mine.kill()
        mine.before = ()
        mine.start()
    assert harness.run(two_steps, {"text": "again"}, cache=False).phase == "Succeeded"


def test_a_teams_controller_is_refused_in_another_teams_namespace(harness: PipelineHarness) -> None:
    namespace = harness.controller.namespace
    vision = Identity.account(namespace, "trainyard-workflow-controller-vision")
    for method, path in (
        ("GET", "/apis/argoproj.io/v1alpha1/namespaces/{}/workflows"),
        ("GET", "/api/v1/namespaces/{}/pods"),
        ("POST", "/api/v1/namespaces/{}/pods"),
    ):
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": []}}
        answer = harness.server.call(method, path.format("speech"), body if method == "POST" else None, identity=vision)
        assert answer.status == 403
        assert f'User "{vision.user}" cannot' in answer.message and 'in the namespace "speech"' in answer.message


def test_its_informers_see_what_they_ask_for(harness: PipelineHarness) -> None:
    """Its log has no refusal: neither of the whole cluster, nor of what it needs in its team's namespace."""
    for team, one in harness.controllers.items():
        run = harness.run(two_steps, {"text": "seen"}, team=team)
        assert run.phase == "Succeeded", run.message
        assert [line for line in one.log.splitlines() if REFUSED.search(line)] == []


@dsl.pipeline(name="counted")
def counted(folder: str):
    first = samples.shell(script=f"echo first >> {folder}/ran; sleep 0.2")
    with dsl.ParallelFor([1, 2, 3, 4]) as number:
        samples.shell(script=f"echo loop-{number} >> {folder}/ran; sleep 0.2").after(first)


def each_step_ran_once(harness: PipelineHarness, folder: Path) -> None:
    folder.mkdir()
    run = harness.run(counted, {"folder": str(folder)}, cache=False)
    assert run.phase == "Succeeded", run.summary()
    ran = Counter((folder / "ran").read_text().split())
    assert ran == Counter(["first", "loop-1", "loop-2", "loop-3", "loop-4"])
    assert len(harness.kubelet.of(run.name)) == 5


def test_two_controllers_of_a_team_run_each_step_once(harness: PipelineHarness, tmp_path: Path) -> None:
    """As for a moment while one version follows another without Helm's hook."""
    second = controller.of(harness.server, harness.objects, tmp_path / "second", "vision")
    second.start()
    try:
        for number in range(3):
            each_step_ran_once(harness, tmp_path / str(number))
        assert "counted" in second.log
    finally:
        second.kill()


def test_the_controller_of_a_release_before_has_no_say_any_more(harness: PipelineHarness, tmp_path: Path) -> None:
    """It still has its rights for a moment; rules know the team's own by its account."""
    shared = {"kind": "ServiceAccount", "name": NAME, "namespace": harness.controller.namespace}
    bindings = []
    for namespace in ("vision", harness.controller.namespace):
        held = harness.server.call("GET", f"{BINDINGS.format(namespace)}/{NAME}").body
        bindings.append({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "roleRef": held["roleRef"],
            "metadata": {"name": "before", "namespace": namespace}, "subjects": [shared],
        })  # fmt: skip
    old = controller.of(harness.server, harness.objects, tmp_path / "old", "vision", account=NAME)
    try:
        for one in bindings:
            assert harness.server.create(one).ok
        old.start()
        for number in range(3):
            each_step_ran_once(harness, tmp_path / str(number))
        assert "is written by Argo only" in old.log or "makes Argo treat the pod as its own" in old.log
    finally:
        old.kill()
        for one in bindings:
            harness.server.call("DELETE", f"{BINDINGS.format(one['metadata']['namespace'])}/before")
