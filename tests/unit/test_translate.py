"""What a translation says: settings of steps, refusals by name, names, keys and size."""

import json
from dataclasses import replace
from pathlib import Path
from typing import List  # noqa: UP035  (kfp reads annotations of its own kinds)

import pytest
from kfp import compiler, dsl, kubernetes

from trainyard import translate
from trainyard.errors import UsageError
from trainyard.ir import load
from trainyard.jobs.facts import NodePool
from trainyard.translate import conditions, values

GPUS = NodePool(
    "gpu", "gpu", {"trainyard.io/pool": "gpu"}, [{"key": "gpu", "operator": "Exists"}], "nvidia.com/gpu", False
)
SETTINGS = translate.Settings(team="vision", queue="training", priority="training-normal", pools=(GPUS,))
IMAGE = "example.org/step:1"


@dsl.container_component
def step(word: str = "x", made: dsl.OutputPath(str) = None):
    return dsl.ContainerSpec(image=IMAGE, command=["sh", "-c", 'echo "$0" > "$1"', word, made])


@dsl.container_component
def plain():
    return dsl.ContainerSpec(image=IMAGE, command=["true"])


def ir(pipeline, folder: Path):
    path = folder / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(path))
    return load.file(path)


def of(pipeline, folder: Path, arguments=None, settings=SETTINGS) -> dict:
    return translate.workflow(ir(pipeline, folder), arguments, settings)


def template(workflow: dict, name: str) -> dict:
    return next(one for one in workflow["spec"]["templates"] if one["name"] == name)


def configured(folder: Path, configure, arguments=None, **inputs) -> dict:
    """The template of one step, with what `configure(task)` has set."""

    @dsl.pipeline(name="one")
    def one():
        configure(plain())

    return template(of(one, folder, arguments), "plain")


def test_a_run_belongs_to_its_team(tmp_path: Path) -> None:
    @dsl.pipeline(name="My Pipeline")
    def one(word: str = "x"):
        step(word=word)

    workflow = of(one, tmp_path)
    spec, metadata = workflow["spec"], workflow["metadata"]
    assert (metadata["generateName"], metadata["namespace"]) == ("my-pipeline-", "vision")
    assert spec["podMetadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "training"}
    assert spec["podMetadata"]["labels"]["trainyard.io/api-access"] == "true"
    assert (spec["schedulerName"], spec["podPriorityClassName"]) == ("volcano", "training-normal")
    assert spec["serviceAccountName"] == "pipeline" and spec["ttlStrategy"]["secondsAfterCompletion"]
    assert spec["securityContext"]["runAsNonRoot"] and "podSpecPatch" not in json.dumps(workflow)
    container = template(workflow, "step")["container"]
    assert container["command"] == ["/var/run/argo/trainyard-step", "run", "--"]
    assert container["args"][-1] == "{{$.outputs.parameters['made'].output_file}}"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert of(one, tmp_path) == workflow
    elsewhere = template(of(one, tmp_path, settings=replace(SETTINGS, system="platform")), "step")["container"]["env"]
    assert {"name": "TRAINYARD_SYSTEM", "value": "platform"} in elsewhere
    assert "TRAINYARD_SYSTEM" not in [one["name"] for one in container["env"]]


def test_equal_components_share_a_template(tmp_path: Path) -> None:
    @dsl.pipeline(name="many")
    def many():
        before = None
        for number in range(500):
            task = step(word=f"word {number}")
            if before:
                task.after(before)
            before = task

    workflow = of(many, tmp_path)
    assert len(workflow["spec"]["templates"]) == 3
    assert len(json.dumps(workflow)) < 200_000


def test_a_workflow_too_large_is_refused_with_size_and_mend(tmp_path: Path) -> None:
    @dsl.pipeline(name="large")
    def large():
        for number in range(30):
            step(word=f"{number}" + "x" * 50_000)

    with pytest.raises(UsageError) as fault:
        of(large, tmp_path)
    assert "etcd takes 1,048,576; largest parts: template root 1,5" in str(fault.value)
    with pytest.raises(UsageError, match=r"word has 1,100,000 bytes.*hand large values over as artifacts"):

        @dsl.pipeline(name="large")
        def argued(word: str):
            step(word=word)

        of(argued, tmp_path, {"word": "x" * 1_100_000})


def test_the_cache_key_follows_content_and_team(tmp_path: Path) -> None:
    @dsl.pipeline(name="cached")
    def cached(word: str):
        step(word=word)
        step(word=word).set_caching_options(False)

    workflow = of(cached, tmp_path, {"word": "a"})
    first, second = template(workflow, "step-cached"), template(workflow, "step-2")
    assert first["memoize"]["cache"]["configMap"]["name"] == "vision.cached.step"
    assert '{{=sprig.sha256sum(toJson([inputs.parameters["word"]]))}}' in first["memoize"]["key"]
    assert "memoize" not in second
    off = of(cached, tmp_path, {"word": "a"}, translate.Settings(team="vision", cache=False))
    assert "memoize" not in json.dumps(off)


def test_a_gpu_is_asked_for_as_the_platform_wants_it(tmp_path: Path) -> None:
    found = configured(tmp_path, lambda t: t.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(2))
    asked = found["container"]["resources"]
    assert asked["requests"]["nvidia.com/gpu"] == asked["limits"]["nvidia.com/gpu"] == "2"
    assert {"cpu", "memory"} <= set(asked["requests"]) and {"cpu", "memory"} <= set(asked["limits"])
    assert found["tolerations"] == GPUS.tolerations and found["nodeSelector"] == GPUS.labels
    assert found["activeDeadlineSeconds"] == SETTINGS.deadline
    with pytest.raises(translate.Unsupported, match="plain uses the accelerator NVIDIA_TESLA_K80"):
        configured(tmp_path, lambda t: t.set_accelerator_type("NVIDIA_TESLA_K80").set_accelerator_limit(1))


def test_cpu_and_memory(tmp_path: Path) -> None:
    found = configured(tmp_path, lambda t: t.set_cpu_request("2").set_memory_limit("4Gi"))
    assert found["container"]["resources"] == {
        "requests": {"cpu": "2", "memory": "4Gi"},
        "limits": {"cpu": "2", "memory": "4Gi"},
    }


def test_amounts_that_are_arguments_are_known_at_submission(tmp_path: Path) -> None:
    @dsl.pipeline(name="sized")
    def sized(cpu: str, word: str = "x"):
        step(word=word).set_cpu_limit(cpu)

    found = template(of(sized, tmp_path, {"cpu": "3"}), "step")
    assert found["container"]["resources"]["limits"]["cpu"] == "3"

    @dsl.pipeline(name="sized")
    def late():
        step().set_cpu_limit(step().output)

    with pytest.raises(translate.Unsupported, match="a CPU limit that is only known while the pipeline runs"):
        of(late, tmp_path)


def test_secrets_maps_and_fields(tmp_path: Path) -> None:
    def configure(task) -> None:
        kubernetes.use_secret_as_env(task, "keys", {"token": "TOKEN"})
        kubernetes.use_config_map_as_env(task, "facts", {"a": "A"})
        kubernetes.use_secret_as_volume(task, "keys", "/keys", optional=True)
        kubernetes.use_config_map_as_volume(task, "facts", "/facts")
        kubernetes.use_field_path_as_env(task, "NODE", "spec.nodeName")
        kubernetes.empty_dir_mount(task, "scratch", "/scratch", size_limit="1Gi")
        kubernetes.mount_pvc(task, "data", "/data", sub_path="a")
        kubernetes.add_ephemeral_volume(task, "wide", "/wide", ["ReadWriteOnce"], "5Gi", "fast")

    found = configured(tmp_path, configure)
    environment = {one["name"]: one.get("valueFrom") for one in found["container"]["env"]}
    assert environment["TOKEN"] == {"secretKeyRef": {"name": "keys", "key": "token", "optional": False}}
    assert environment["A"] == {"configMapKeyRef": {"name": "facts", "key": "a", "optional": False}}
    assert environment["NODE"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    sources = {tuple(key for key in one if key != "name"): one for one in found["volumes"]}
    assert sources[("secret",)]["secret"] == {"secretName": "keys", "optional": True}
    assert sources[("configMap",)]["configMap"]["name"] == "facts"
    assert sources[("persistentVolumeClaim",)]["persistentVolumeClaim"] == {"claimName": "data"}
    assert sources[("ephemeral",)]["ephemeral"]["volumeClaimTemplate"]["spec"]["storageClassName"] == "fast"
    paths = {one["mountPath"] for one in found["container"]["volumeMounts"]}
    assert {"/keys", "/facts", "/scratch", "/data", "/wide", "/kfp", "/s3"} == paths


def test_placement_and_the_rest(tmp_path: Path) -> None:
    def configure(task) -> None:
        kubernetes.add_node_selector(task, "disk", "ssd")
        kubernetes.add_toleration(task, "spot", "Exists", effect="NoSchedule", toleration_seconds=5)
        kubernetes.add_node_affinity(task, [{"key": "zone", "operator": "In", "values": ["a"]}])
        kubernetes.add_node_affinity(task, [{"key": "new", "operator": "Exists"}], weight=3)
        kubernetes.add_pod_label(task, "a", "b")
        kubernetes.add_pod_annotation(task, "c", "d")
        kubernetes.set_image_pull_policy(task, "Always")
        kubernetes.set_timeout(task, 90)
        kubernetes.set_security_context(task, run_as_user=1234, run_as_non_root=True)

    found = configured(tmp_path, configure)
    assert found["nodeSelector"] == {"disk": "ssd"} and found["activeDeadlineSeconds"] == 90
    assert found["tolerations"] == [
        {"key": "spot", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}
    ]
    affinity = found["affinity"]["nodeAffinity"]
    required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert required == [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    assert affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["weight"] == 3
    assert found["metadata"] == {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    container = found["container"]
    assert container["imagePullPolicy"] == "Always" and container["securityContext"]["runAsUser"] == 1234
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_claims_are_made_mounted_and_removed(tmp_path: Path) -> None:
    @dsl.pipeline(name="claims")
    def claims(size: str = "1Gi"):
        made = kubernetes.CreatePVC(pvc_name_suffix="-data", access_modes=["ReadWriteMany"], size=size)
        one = plain()
        kubernetes.mount_pvc(one, made.outputs["name"], "/data")
        kubernetes.DeletePVC(pvc_name=made.outputs["name"]).after(one)

    workflow = of(claims, tmp_path)
    root = {one["name"]: one for one in template(workflow, "root")["dag"]["tasks"]}
    assert template(workflow, "createpvc")["resource"]["action"] == "create"
    assert template(workflow, "deletepvc")["resource"]["action"] == "delete"
    given = {"name": "ref-0", "value": "{{tasks.createpvc.outputs.parameters.name}}"}
    assert given in root["plain"]["arguments"]["parameters"] and "createpvc.Succeeded" in root["plain"]["depends"]
    volume = template(workflow, "plain")["volumes"][1]
    assert volume["persistentVolumeClaim"]["claimName"] == "{{inputs.parameters.ref-0}}"
    assert "plain.Succeeded" in root["deletepvc"]["depends"]


def test_the_pipelines_own_settings(tmp_path: Path) -> None:
    config = dsl.PipelineConfig(
        workspace=dsl.WorkspaceConfig(
            size="5Gi", kubernetes=dsl.KubernetesWorkspaceConfig(pvcSpecPatch={"storageClassName": "nfs"})
        ),
    )

    @dsl.pipeline(name="spacious", pipeline_config=config)
    def spacious():
        step(word=dsl.WORKSPACE_PATH_PLACEHOLDER)

    workflow = of(spacious, tmp_path)
    (claim,) = workflow["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "nfs" and claim["spec"]["resources"]["requests"]["storage"] == "5Gi"
    mounts = {one["mountPath"] for one in template(workflow, "step")["container"]["volumeMounts"]}
    assert "/kfp-workspace" in mounts
    (task,) = template(workflow, "root")["dag"]["tasks"]
    assert {"name": "word", "value": "/kfp-workspace"} in task["arguments"]["parameters"]


def test_a_command_with_braces_is_kept_from_argo(tmp_path: Path) -> None:
    @dsl.container_component
    def braces():
        return dsl.ContainerSpec(image=IMAGE, command=["sh", "-c", "echo {{workflow.name}} '{{item}}'"])

    @dsl.pipeline(name="braces")
    def one():
        braces()

    container = template(of(one, tmp_path), "braces")["container"]
    assert container["command"][-1] == "--json" and "{{" not in container["args"][0]
    assert json.loads(container["args"][0]) == ["sh", "-c", "echo {{workflow.name}} '{{item}}'"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({}, "the pipeline needs a value for n"),
        ({"n": 1, "m": 2}, "has no input m; its inputs: flag, n, words"),
        ({"n": "one"}, "n is 'one', it takes a whole number"),
        ({"n": 1.5}, "n is 1.5, it takes a whole number"),
        ({"n": True}, "n is True, it takes a whole number"),
        ({"n": 1, "words": "{}"}, "words is {}, it takes a JSON list"),
        ({"n": 1, "words": ["{{x}}"]}, ""),
        ({"n": 1, "flag": "maybe"}, "flag is 'maybe', it takes true or false"),
    ],
)
def test_arguments_are_checked(tmp_path: Path, arguments: dict, what: str) -> None:
    @dsl.pipeline(name="typed")
    def typed(n: int, words: List[str] = ["a"], flag: bool = False):  # noqa: B006, UP006
        with dsl.ParallelFor(words) as word:
            step(word=word)

    if not what:
        (value,) = [
            p["value"]
            for p in of(typed, tmp_path, arguments)["spec"]["arguments"]["parameters"]
            if p["name"] == "words"
        ]
        assert "{{" not in value and json.loads(value) == ["{{x}}"]
        return
    with pytest.raises(UsageError, match=what):
        of(typed, tmp_path, arguments)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("inputs.parameter_values['a'] == 'x'", 'A == "x"'),
        ("!(int(inputs.parameter_values['n']) < 5) && true", "! ( int ( float(N) ) < 5 ) && true"),
        ("inputs.parameter_values['b'] == true", '(lower(B) == "true") == true'),
        ("inputs.parameters['a'].string_value != '{{x}}'", 'A != "\\u007b\\u007bx\\u007d\\u007d"'),
        ("double(inputs.parameter_values['n']) >= -1.5e3", "float ( float(N) ) >= - 1.5e3"),
    ],
)
def test_conditions(condition: str, code: str) -> None:
    kinds = {"a": "STRING", "n": "NUMBER_INTEGER", "b": "BOOLEAN"}
    found = conditions.code(condition, lambda name: values.Value(name.upper(), ""), lambda name: kinds[name])
    assert found == code


def test_an_unknown_condition_is_refused(tmp_path: Path) -> None:
    @dsl.pipeline(name="odd")
    def odd(word: str = "x"):
        with dsl.If(word == "x"):
            step(word=word)

    path = tmp_path / "p.yaml"
    compiler.Compiler().compile(odd, str(path))
    path.write_text(path.read_text().replace("== 'x'", "matches 'x'"))
    with pytest.raises(
        translate.Unsupported, match=r"condition-1 uses the condition .*, not understood from `matches 'x'` on"
    ):
        translate.workflow(load.file(path), {}, SETTINGS)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("name: comp-step", "name: comp-gone", "step uses the component comp-gone, which isn't there"),
        (
            "componentInputParameter: word",
            "componentInputParameter: words",
            "step uses the input words, which isn't there",
        ),
        ("executorLabel: exec-step", "executorLabel: exec-gone", "uses the executor exec-gone, which isn't there"),
        ("image: example.org/step:1", "image: '{{$.inputs.parameters[''word'']}}'", "an image that is a parameter"),
    ],
)
def test_what_dangles_is_refused_by_name(tmp_path: Path, old: str, new: str, what: str) -> None:
    @dsl.pipeline(name="fine")
    def fine(word: str = "x"):
        step(word=word)

    path = tmp_path / "p.yaml"
    compiler.Compiler().compile(fine, str(path))
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(translate.Unsupported, match=what) as fault:
        translate.workflow(load.file(path), {}, SETTINGS)
    assert fault.value.where.startswith(f"{path}:") and fault.value.exit_code == 2


def test_a_failed_task_counts_although_a_later_one_ran(tmp_path: Path) -> None:
    @dsl.pipeline(name="guarded")
    def guarded():
        with dsl.ExitHandler(plain()):
            step()
        step()

    workflow = of(guarded, tmp_path)
    root = template(workflow, "root")["dag"]
    assert "onExit" not in workflow["spec"]
    assert set(root["target"].split()) == {"exit-handler-1", "plain", "step-2"} and root["failFast"] is False
    (exit_task,) = [one for one in root["tasks"] if one["name"] == "plain"]
    assert "exit-handler-1.Failed" in exit_task["depends"] and "exit-handler-1.Succeeded" in exit_task["depends"]


def test_the_exit_task_of_a_whole_pipeline_is_told_what_failed(tmp_path: Path) -> None:
    @dsl.container_component
    def told(status: dsl.PipelineTaskFinalStatus, word: str):
        return dsl.ContainerSpec(image=IMAGE, command=["echo", word, status])

    @dsl.pipeline(name="guarded")
    def guarded(word: str = "x"):
        with dsl.ExitHandler(told(word=word)):
            step()

    workflow = of(guarded, tmp_path)
    assert [one["name"] for one in template(workflow, "root")["dag"]["tasks"]] == ["exit-handler-1"]
    last = template(workflow, workflow["spec"]["onExit"])
    assert last["inputs"]["parameters"] == [{"name": "word", "default": "x"}]
    ((task,),) = last["steps"]
    assert (task["name"], "depends" in task) == ("told", False)
    env = {one["name"]: one["value"] for one in template(workflow, task["template"])["container"]["env"]}
    assert json.loads(env["TRAINYARD_STEP"])["task"] == "told"
    assert "memoize" not in template(workflow, task["template"])
    given = {one["name"]: one["value"] for one in task["arguments"]["parameters"]}
    assert given["word"] == "{{inputs.parameters.word}}"
    assert "workflow.status" in given["status"] and "workflow.failures" in given["status"]


def test_retries_wait_as_kfp_says(tmp_path: Path) -> None:
    found = configured(tmp_path, lambda t: t.set_retry(3, "30s", 1.5, "2m"))
    backoff = {"duration": "30s", "factor": "2", "cap": "120s"}
    assert found["retryStrategy"] == {"limit": "3", "retryPolicy": "Always", "backoff": backoff}
    at_once = configured(tmp_path, lambda t: t.set_retry(1))
    assert at_once["retryStrategy"] == {"limit": "1", "retryPolicy": "Always"}
