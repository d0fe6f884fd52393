"""Missing parts of a workflow written for Argo get the team's values: templates, artifacts, claims, and owner."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard import contract
from trainyard.contract import Pool, Team
from trainyard.errors import UsageError
from trainyard.paths import ROOT
from trainyard.pipelines import adapt, source
from trainyard.pipelines.submit import prepare
from trainyard.pipelines.translate.settings import Settings
from trainyard.policy import fill

GPU = "nvidia.com/gpu"
POOL = Pool("gpu", "gpu", {"trainyard.io/pool": "gpu"}, {"key": GPU, "effect": "NoSchedule"}, resource=GPU)
STORE = {"endpoint": "https://trainyard-minio.trainyard-system.svc:9000", "region": "us-east-1", "mode": "inCluster"}
TEAM = Team("vision", ("vision",), pools=(POOL,))
SITE = contract.load(ROOT / "tests" / "policies" / "teams.yaml")
SETTINGS = Settings(SITE, TEAM)
HIDDEN = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
RAW = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: by-hand-}
spec: {entrypoint: main}
"""


def made(templates: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    """The spec of a workflow with these templates, as it is sent."""
    queue, said = spec.pop("chosen", ""), spec.pop("said", [])
    document = yaml.safe_load(RAW)
    document["spec"] |= {"templates": copy.deepcopy(templates), **spec}
    return dict(adapt.workflow(document, SETTINGS, {}, queue=queue, say=said.append)["spec"])


def test_a_context_of_the_author_s_is_completed_and_not_replaced() -> None:
    template = {"name": "main", "securityContext": {"runAsUser": 7}, "container": {"image": "i"}}
    spec = made([template], securityContext={"runAsUser": 8737, "runAsNonRoot": True})
    assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsGroup"]) == (8737, 1000)
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    own = spec["templates"][0]["securityContext"]
    assert (own["runAsUser"], own["runAsNonRoot"]) == (7, True)


def test_containers_that_argo_does_not_close_are_closed() -> None:
    template = {
        "name": "main",
        "containerSet": {"containers": [{"name": "a"}, {"name": "b", "securityContext": {"runAsUser": 5}}]},
        "sidecars": [{"name": "beside"}],
        "initContainers": [{"name": "before"}],
    }
    [found] = made([template])["templates"]
    contexts = [one["securityContext"] for one in [*found["containerSet"]["containers"], *found["sidecars"]]]
    assert all(one["capabilities"] == {"drop": ["ALL"]} for one in contexts)
    assert not any(one["allowPrivilegeEscalation"] for one in contexts)
    assert contexts[1]["runAsUser"] == 5
    assert found["initContainers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_gpus_bring_their_nodes_and_the_others_see_none() -> None:
    train = {
        "name": "main",
        "container": {"image": "i", "resources": {"limits": {GPU: 1}}},
        "sidecars": [{"name": "s"}],
    }
    plain = {"name": "plain", "script": {"image": "i", "source": "true"}}
    first, second = made([train, plain])["templates"]
    assert first["container"]["resources"] == {"requests": {GPU: 1}, "limits": {GPU: 1}}
    assert first["nodeSelector"] == {"trainyard.io/pool": "gpu"}
    assert first["tolerations"] == [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    assert "env" not in first["container"] and HIDDEN in first["sidecars"][0]["env"]
    assert "tolerations" not in second and HIDDEN in second["script"]["env"]


def test_nodes_that_the_author_chose_stay() -> None:
    own = {"key": GPU, "operator": "Equal", "value": "yes"}
    template = {
        "name": "main", "container": {"image": "i", "resources": {"requests": {GPU: "2"}}},
        "nodeSelector": {"zone": "a"}, "tolerations": [own],
    }  # fmt: skip
    [found] = made([template])["templates"]
    assert (found["nodeSelector"], found["tolerations"]) == ({"zone": "a"}, [own])
    assert found["container"]["resources"]["limits"] == {GPU: "2"}


def test_a_template_within_a_task_gets_a_name_where_that_changes_nothing() -> None:
    inline = {"container": {"image": "i", "args": ["{{workflow.name}}"]}}
    outer = {"container": {"image": "i", "args": ["{{inputs.parameters.of-the-outer}}"]}}
    dag = {"name": "main", "dag": {"tasks": [{"name": "a", "inline": inline}, {"name": "b", "inline": outer}]}}
    steps = {"name": "main-a", "steps": [[{"name": "c", "inline": {"suspend": {}}}]]}
    spec = made([dag, steps])
    first, second = spec["templates"][0]["dag"]["tasks"]
    assert first["template"] == "main-a-2" and "inline" not in first
    assert second["inline"] == outer, "the outer template's own value would be lost"
    assert spec["templates"][1]["steps"][0][0] == {"name": "c", "template": "main-a-c"}
    names = [one["name"] for one in spec["templates"]]
    assert names == ["main", "main-a", "main-a-2", "main-a-c"]
    assert spec["templates"][2]["activeDeadlineSeconds"] == spec["activeDeadlineSeconds"]


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("results/out.txt", "vision/results/out.txt"),
        ("/results/out.txt", "vision/results/out.txt"),
        ("{{workflow.name}}/out.txt", "vision/{{workflow.name}}/out.txt"),
        ("vision/out.txt", "vision/out.txt"),
        ("{{inputs.parameters.key}}", "{{inputs.parameters.key}}"),
    ],
)
def test_a_key_without_bucket_lies_below_the_team(given: str, key: str) -> None:
    said: list[str] = []
    template = {"name": "main", "outputs": {"artifacts": [{"name": "out", "path": "/x", "s3": {"key": given}}]}}
    [found] = made([template], said=said)["templates"]
    assert found["outputs"]["artifacts"][0]["s3"] == {"key": key}
    changed = f"artifact out: the key {given} is {key}, since the team's objects are below vision/"
    assert said == ([changed] if given != key else [])


def test_a_bucket_by_name_gets_the_store_and_the_team_s_keys() -> None:
    place = {"bucket": "datasets", "key": "shared/mnist"}
    whole = {"bucket": "b", "key": "k", "endpoint": "s3.example.org"}
    task = {"name": "a", "template": "main", "arguments": {"artifacts": [{"name": "in", "s3": dict(place)}]}}
    given = {"artifacts": [{"name": "far", "s3": dict(whole)}]}
    spec = made([{"name": "main", "dag": {"tasks": [task]}}], arguments=given)
    [found] = spec["templates"][0]["dag"]["tasks"][0]["arguments"]["artifacts"]
    assert found["s3"] == {
        **place, "endpoint": "trainyard-minio.trainyard-system.svc:9000", "insecure": False, "region": "us-east-1",
        "accessKeySecret": {"name": "trainyard-s3", "key": "access-key"},
        "secretKeySecret": {"name": "trainyard-s3", "key": "secret-key"},
        "caSecret": {"name": "trainyard-s3", "key": "ca.crt"},
    }  # fmt: skip
    assert spec["arguments"]["artifacts"][0]["s3"] == whole


def test_steps_of_a_team_that_stays_on_pools_stay_there() -> None:
    """Steps without GPUs by the workflow's selector; one with GPUs has its own, whatever its affinity."""
    pools = (POOL, Pool("cpu", "cpu", {"trainyard.io/pool": "cpu"}))
    settings = replace(SETTINGS, team=replace(TEAM, pools=pools, stays=True))
    limits = {"resources": {"limits": {GPU: 1}}}
    train = {"name": "train", "container": {"image": "i", **limits}, "affinity": {"nodeAffinity": {}}}
    document = yaml.safe_load(RAW)
    document["spec"]["templates"] = [{"name": "main", "container": {"image": "i"}}, train]
    spec = adapt.workflow(copy.deepcopy(document), settings, {})["spec"]
    assert spec["nodeSelector"] == {"trainyard.io/pool": "cpu"}
    assert [one.get("nodeSelector") for one in spec["templates"]] == [None, {"trainyard.io/pool": "gpu"}]
    assert "nodeSelector" not in adapt.workflow(document, SETTINGS, {})["spec"]


def test_the_store_is_known_from_the_contract() -> None:
    assert SITE.store["endpoint"] == STORE["endpoint"]
    assert Settings.of(SITE, "vision").contract.shared_class == "trainyard-shared"


def test_a_run_that_names_no_class_gets_the_one_that_is_filled_in_for_the_team() -> None:
    team = replace(SITE.team("vision"), fill={"deadlineSeconds": 3600, "priorityClass": "training-low"})
    site = replace(SITE, teams={"vision": team})
    main = {"name": "main", "container": {"image": "site.invalid/trainyard/pipeline:0.4.0", "command": ["true"]}}

    def sent(own: dict[str, str], **asked: str) -> str | None:
        spec = {"entrypoint": "main", "templates": [copy.deepcopy(main)], **own}
        document = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}, "spec": spec}
        made = adapt.workflow(document, Settings.of(site, "vision", **asked), {})
        assert "priorityClassName" not in fill.filled(made, site, team).names
        return made["spec"].get("podPriorityClassName")

    assert sent({}) == "training-low"
    assert sent({"podPriorityClassName": "training-normal"}) == "training-normal", "what the file says stays"
    assert sent({"podPriorityClassName": "training-low"}, priority="training-normal") == "training-normal"


def test_a_run_takes_the_times_that_the_values_say_for_its_team_and_no_default(tmp_path: Path) -> None:
    values = yaml.safe_load((ROOT / "tests" / "policies" / "teams.yaml").read_text())
    teams = values["global"]["contract"]["teams"]
    vision = next(one for one in teams if one["name"] == "vision")

    def sent(own: dict[str, int], **spec: object) -> tuple[int, int]:
        vision["fill"] = own
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        settings = Settings.of(contract.load(file), "vision")
        assert settings.ends({"activeDeadlineSeconds": 7200}) == 7200, "what a pipeline says of itself stays"
        main = {"name": "main", "container": {"image": "site.invalid/trainyard/pipeline:0.4.0", "command": ["true"]}}
        document = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}}
        document["spec"] = {"entrypoint": "main", "templates": [main], **spec}
        found = adapt.workflow(document, settings, {})["spec"]
        assert found["activeDeadlineSeconds"] == found["templates"][0]["activeDeadlineSeconds"]
        assert (
            settings.ends({}) == settings.deadline and settings.keep == found["ttlStrategy"]["secondsAfterCompletion"]
        )
        return found["activeDeadlineSeconds"], settings.keep

    assert sent({}) == (604800, 604800)
    assert sent({"deadlineSeconds": 3600, "keepSeconds": 7200}) == (3600, 7200)
    assert sent({"deadlineSeconds": 3600}) == (3600, 604800)
    assert sent({"deadlineSeconds": 3600}, activeDeadlineSeconds=9000)[0] == 9000


def test_claims_get_the_team_s_class() -> None:
    claim = {"metadata": {"name": "work"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    named = {"metadata": {"name": "own"}, "spec": {"storageClassName": "mine"}}
    scratch = {"name": "x", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    spec = made([{"name": "main", "volumes": [scratch]}], volumeClaimTemplates=[claim, named])
    classes = [one["spec"]["storageClassName"] for one in spec["volumeClaimTemplates"]]
    assert classes == ["trainyard-shared", "mine"]
    inner = spec["templates"][0]["volumes"][0]["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert inner["storageClassName"] == "trainyard-shared"


def test_ends_that_the_author_gave_stay() -> None:
    template = {"name": "main", "container": {"image": "i"}}
    spec = made([template], ttlStrategy={"secondsAfterSuccess": 5}, templateDefaults={"activeDeadlineSeconds": 30})
    assert spec["ttlStrategy"] == {"secondsAfterSuccess": 5, "secondsAfterCompletion": SETTINGS.keep}
    assert "activeDeadlineSeconds" not in spec["templates"][0], "the nearer end of templateDefaults would be lost"


def test_the_queue_of_the_file_stays_unless_another_is_asked_for() -> None:
    meta = {"annotations": {"scheduling.volcano.sh/queue-name": "training"}}
    assert made([], podMetadata=copy.deepcopy(meta))["podMetadata"]["annotations"] == meta["annotations"]
    chosen = made([], podMetadata=meta, chosen="vision")["podMetadata"]["annotations"]
    assert chosen == {"scheduling.volcano.sh/queue-name": "vision"}


def test_a_workflow_of_another_namespace_is_refused() -> None:
    document = yaml.safe_load(RAW.replace("generateName: by-hand-", "generateName: by-hand-, namespace: argo"))
    with pytest.raises(UsageError) as caught:
        adapt.workflow(document, SETTINGS, {})
    assert str(caught.value) == (
        "the workflow's namespace is argo, but you submit it to vision."
        " remove metadata.namespace, or choose the team with -n."
    )


@pytest.mark.parametrize(
    ("kind", "spec", "line"),
    [
        ("WorkflowTemplate", "spec: {entrypoint: main,\n  templates: [{name: main, container: {image: busybox}}]}", 5),
        (
            "CronWorkflow",
            "spec:\n  schedule: '* * * * *'\n  workflowSpec: {entrypoint: main,\n"
            "    templates: [{name: main, container: {image: busybox}}]}",
            7,
        ),
    ],
)
def test_what_is_kept_for_later_gives_one_run(tmp_path: Path, kind: str, spec: str, line: int) -> None:
    file = tmp_path / "later.yaml"
    file.write_text(f"apiVersion: argoproj.io/v1alpha1\nkind: {kind}\nmetadata: {{name: nightly}}\n{spec}\n")
    raw = source.read(file)
    assert raw.workflow["kind"] == "Workflow"
    assert raw.workflow["metadata"] == {"generateName": "nightly-"}
    assert raw.workflow["spec"]["entrypoint"] == "main"
    assert raw.note == f"the {kind} nightly starts one run and is not stored"
    assert raw.line(("spec", "templates", 0, "container", "image")) == line


def test_findings_name_the_line_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "raw.yaml"
    file.write_text(
        RAW.replace("spec: {entrypoint: main}", "spec:\n  entrypoint: main\n  serviceAccountName: argo\n")
        + "  templates:\n    - name: main\n      container:\n        image: docker.io/library/busybox\n"
    )
    with pytest.raises(UsageError) as caught:
        prepare.workflow(prepare.Wanted(file), SITE, "vision", print)
    said = str(caught.value)
    assert f"{file}:7: error p21" in said and "argo" in said
    assert f"{file}:12: error" in said and "busybox" in said
    assert f"{file}:1:" not in said


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("templates: no", "templates is false, not a list"),
        ("templates: [no]", "is false, not a map"),
        ("podMetadata: none", 'podMetadata is "none", not a map'),
        ("templates: [{name: main, steps: [{name: a, template: b}]}]", "not a list"),
        ("arguments: {parameters: who}", 'parameters is "who", not a list'),
    ],
)
def test_a_part_of_another_shape_is_said_with_its_line(tmp_path: Path, spec: str, words: str) -> None:
    file = tmp_path / "raw.yaml"
    file.write_text(RAW.replace("spec: {entrypoint: main}", f"spec:\n  entrypoint: main\n  {spec}"))
    with pytest.raises(UsageError) as caught:
        prepare.workflow(prepare.Wanted(file), SITE, "vision", print)
    assert f"{file}:7: error TY105" in str(caught.value) and words in str(caught.value)
