"""Translation of a step's pod: amounts, GPUs, secrets, placement, claims, retries."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest
from kfp import dsl, kubernetes
from translated import GPUS, SETTINGS, VISION, configured, of, on, plain, step, template

from trainyard.contract import Pool
from trainyard.pipelines import translate

HIDDEN = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}


def test_a_gpu_is_asked_for_as_the_platform_wants_it(tmp_path: Path) -> None:
    found = configured(tmp_path, lambda t: t.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(2))
    asked = found["container"]["resources"]
    assert asked["requests"]["nvidia.com/gpu"] == asked["limits"]["nvidia.com/gpu"] == "2"
    assert {"cpu", "memory"} <= set(asked["requests"]) and {"cpu", "memory"} <= set(asked["limits"])
    assert found["tolerations"] == GPUS.tolerations and found["nodeSelector"] == GPUS.labels
    assert found["activeDeadlineSeconds"] == SETTINGS.deadline
    assert HIDDEN not in found["container"]["env"]
    with pytest.raises(translate.Unsupported, match="plain uses the accelerator NVIDIA_TESLA_K80"):
        configured(tmp_path, lambda t: t.set_accelerator_type("NVIDIA_TESLA_K80").set_accelerator_limit(1))


def test_cpu_and_memory(tmp_path: Path) -> None:
    found = configured(tmp_path, lambda t: t.set_cpu_request("2").set_memory_limit("4Gi"))
    assert found["container"]["resources"] == {
        "requests": {"cpu": "2", "memory": "4Gi"},
        "limits": {"cpu": "2", "memory": "4Gi"},
    }
    assert HIDDEN in found["container"]["env"], "an image may show GPUs by itself"


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


def test_an_optional_name_that_is_not_given_names_nothing(tmp_path: Path) -> None:
    @dsl.pipeline(name="named")
    def named(secret: Optional[str] = None):  # noqa: UP045
        kubernetes.use_secret_as_env(step(), secret, {"token": "TOKEN"}, optional=True)

    found = of(named, tmp_path)
    reference = next(one for one in template(found, "step")["container"]["env"] if one["name"] == "TOKEN")
    assert reference["valueFrom"]["secretKeyRef"]["optional"] is True
    [given] = found["spec"]["arguments"]["parameters"]
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", given["value"]), "Kubernetes takes no such name"


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


def test_steps_of_a_team_that_stays_on_pools_stay_there(tmp_path: Path) -> None:
    """Steps without GPUs by the workflow's selector, also those that choose; one with GPUs has its own."""

    @dsl.pipeline(name="two")
    def two():
        kubernetes.add_node_selector(step(word="b"), "disk", "ssd")
        plain().set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(1)

    stays = {"trainyard.io/pool": "cpu"}
    team = replace(VISION, pools=(GPUS, Pool("cpu", "cpu", stays)), stays=True)
    made = of(two, tmp_path, settings=replace(SETTINGS, team=team))
    assert made["spec"]["nodeSelector"] == stays
    assert template(made, "step")["nodeSelector"] == stays | {"disk": "ssd"}
    assert template(made, "plain")["nodeSelector"] == GPUS.labels
    assert "nodeSelector" not in of(two, tmp_path)["spec"]


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


def test_retries_wait_as_kfp_says(tmp_path: Path) -> None:
    found = configured(tmp_path, lambda t: t.set_retry(3, "30s", 1.5, "2m"))
    backoff = {"duration": "30s", "factor": "2", "cap": "120s"}
    assert found["retryStrategy"] == {"limit": "3", "retryPolicy": "Always", "backoff": backoff}
    at_once = configured(tmp_path, lambda t: t.set_retry(1))
    assert at_once["retryStrategy"] == {"limit": "1", "retryPolicy": "Always"}


def test_a_step_finds_the_sites_mlflow_server_and_its_own_value_goes_first(tmp_path: Path) -> None:
    @dsl.pipeline(name="digits")
    def digits():
        plain()
        step(word="b").set_env_variable("MLFLOW_TRACKING_URI", "https://own.example.org")

    def told(settings: translate.Settings, name: str) -> dict:
        made = template(of(digits, tmp_path, settings=settings), name)
        return {one["name"]: one for one in made["container"]["env"] if one["name"].startswith("MLFLOW")}

    tracked = on(raw={"mlflow": {"trackingUri": "http://mlflow.tracking.svc:5000"}})
    found = told(tracked, "plain")
    assert found["MLFLOW_TRACKING_URI"]["value"] == "http://mlflow.tracking.svc:5000"
    assert found["MLFLOW_EXPERIMENT_NAME"]["value"] == "vision/digits"
    assert found["MLFLOW_TRACKING_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == "trainyard-mlflow"
    assert told(tracked, "step")["MLFLOW_TRACKING_URI"]["value"] == "https://own.example.org"
    assert not told(SETTINGS, "plain")
