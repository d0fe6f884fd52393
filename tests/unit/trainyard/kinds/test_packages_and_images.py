"""Requirements in a job's pods, and the image for pods with GPUs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sites import of_values

from trainyard import contract
from trainyard.errors import UsageError
from trainyard.kinds import JobSpec, TeamConfig, manifest, registry
from trainyard.kinds.images import trainers
from trainyard.pipelines.lint.files import check, check_text
from trainyard.policy import lint
from trainyard.training import launch

WITH_CUDA = {one.key for one in trainers(cuda=True)}
MOCK = {"name": "mock", "kind": "gpu", "labels": {"trainyard.io/pool": "gpu", "sort": "mock"},
        "taint": {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        "gpu": {"resource": "nvidia.com/gpu", "images": "cpu"}, "selector": {"sort": "mock"}}  # fmt: skip
REAL = {**MOCK, "name": "real", "labels": {"trainyard.io/pool": "gpu", "sort": "real"}, "selector": {},
        "gpu": {"resource": "nvidia.com/gpu"}}  # fmt: skip
SITE = {"index": "https://pypi.example.org/simple", "secret": "index-keys", "ca": "-----BEGIN CERTIFICATE-----\nx\n"
        "-----END CERTIFICATE-----\n"}  # fmt: skip
CPU = {"name": "cpu", "kind": "cpu", "labels": {"trainyard.io/pool": "cpu"}}


@pytest.fixture(scope="module")
def platform() -> contract.Contract:
    teams = [{"name": "vision", "gid": 20001}]
    return of_values({"teams": teams, "nodePools": [REAL, MOCK, CPU], "packages": SITE})


@pytest.fixture
def team_config(platform: contract.Contract) -> TeamConfig:
    return TeamConfig.of(platform, "vision")


def made(team_config: TeamConfig, framework: str = "pytorch", **more: Any) -> dict[str, Any]:
    given = {"nodes": 1 if framework == "job" else 2, "command": ("python", "train.py"), **more}
    return manifest(JobSpec(name="try", framework=framework, **given), team_config)


def pods(node: Any) -> Iterator[dict[str, Any]]:
    """Every pod template in a manifest."""
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
        if isinstance(value, dict) and "containers" in (value.get("spec") or {}):
            yield value
        else:
            yield from pods(value)


SENT = {"code": "vision/code/x.tar.gz", "code_sha256": "0" * 64, "output": "vision/jobs/try",
        "requirements": "requirements.txt", "packages": "vision/packages/abc.tar.gz"}  # fmt: skip


@pytest.mark.parametrize("framework", registry.FRAMEWORKS)
def test_pods_that_run_the_command_have_its_packages_and_no_other_pod(team_config: TeamConfig, framework: str) -> None:
    found = list(pods(made(team_config, framework, **SENT)))
    with_packages = 0
    for pod in found:
        spec = pod["spec"]
        env = {one["name"]: one.get("value") for one in spec["containers"][0]["env"]}
        names = [one["name"] for one in spec.get("initContainers", [])]
        if "trainyard-fetch" not in names:
            assert "PYTHONUSERBASE" not in env and "trainyard.io/packages" not in pod["metadata"]["labels"]
            continue
        with_packages += 1
        assert names[:3] == ["trainyard-fetch", "trainyard-packages", "trainyard-keep"]
        assert env["PYTHONUSERBASE"] == "/trainyard/packages"
        assert pod["metadata"]["labels"]["trainyard.io/packages"] == "true"
        fetch, install, keep = spec["initContainers"][:3]
        assert install["image"] == spec["containers"][0]["image"], "the job's own image has what must not come again"
        assert fetch["image"] == keep["image"] == team_config.platform_image
        assert install["securityContext"] == {
            "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
        }  # fmt: skip
        assert not [one for one in install["env"] if "S3_" in one["name"]], "it needs no key to the store"
    assert with_packages


def test_without_requirements_nothing_of_it_is_there(team_config: TeamConfig) -> None:
    text = yaml.safe_dump(made(team_config, **{**SENT, "packages": "", "requirements": ""}))
    assert "trainyard-packages" not in text and "PYTHONUSERBASE" not in text and "INDEX" not in text


def test_the_index_its_authority_and_its_keys_come_from_the_contract(team_config: TeamConfig) -> None:
    [pod, _] = pods(made(team_config, **SENT))
    fetch, install = pod["spec"]["initContainers"][:2]
    given = {one["name"]: one.get("value") for one in fetch["env"]}
    assert (given["INDEX_URL"], given["INDEX_CA"]) == (SITE["index"], SITE["ca"])
    keys = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in install["env"] if "valueFrom" in one}
    assert keys == {
        "INDEX_USERNAME": {"name": "index-keys", "key": "username"},
        "INDEX_PASSWORD": {"name": "index-keys", "key": "password"},
    }


@pytest.mark.parametrize("framework", registry.FRAMEWORKS)
def test_the_platform_admits_pods_with_packages(
    platform: contract.Contract, team_config: TeamConfig, framework: str
) -> None:
    found = lint.manifest(made(team_config, framework, **SENT), lint.site(platform, "vision"))
    assert [(one.code, one.reason) for one in found if one.severity is lint.Severity.ERROR] == []


def image(job: dict[str, Any]) -> set[str]:
    return {pod["spec"]["containers"][0]["image"].partition(":")[0] for pod in pods(job)}


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "volcano", "job"])
def test_gpus_that_compute_get_an_image_with_cuda(team_config: TeamConfig, framework: str) -> None:
    name = "site.invalid/trainyard/trainer-" + ("tensorflow" if framework == "tensorflow" else "torch")
    assert image(made(team_config, framework, gpus=1)) == {f"{name}-cuda"}
    assert image(made(team_config, framework, gpus=1, pool="mock")) == {name}
    assert image(made(team_config, framework)) == {name}


def test_an_image_for_cpus_on_gpus_that_compute_is_refused_with_the_one_to_take(team_config: TeamConfig) -> None:
    given = team_config.contract.images["trainerTorch"]
    with pytest.raises(UsageError, match="computes on CPUs, and the GPUs of pool real") as refused:
        made(team_config, gpus=1, image=given)
    assert team_config.contract.cuda_images["trainerTorch"] in refused.value.hint
    short = given.partition("/")[2]
    with pytest.raises(UsageError, match="computes on CPUs"):
        made(team_config, gpus=1, image=short)
    assert image(made(team_config, gpus=1, pool="mock", image=given)) == {given.partition(":")[0]}
    assert image(made(team_config, gpus=1, image="own/image:1")) == {"site.invalid/own/image"}


@pytest.mark.parametrize("framework", [kind.framework for kind in registry.KINDS if kind.image not in WITH_CUDA])
def test_a_framework_without_an_image_for_gpus_is_refused_too(team_config: TeamConfig, framework: str) -> None:
    assert {"trainerTorch", "trainerTensorflow", "trainerTransformers"} == WITH_CUDA
    with pytest.raises(UsageError, match=f"the platform's image for {framework}, .* computes on CPUs") as refused:
        made(team_config, framework, gpus=1)
    assert "set image to one with CUDA" in refused.value.hint


@pytest.mark.parametrize("module", ["xgboost", "pandas", "deepspeed"])
def test_what_the_image_with_cuda_lacks_is_refused_by_train_and_lint(
    platform: contract.Contract, team_config: TeamConfig, module: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(f"import torch\nimport {module}\n")
    given = {"framework": "pytorch", "gpus": 1, "pool": "real", "command": ["python", "train.py"]}
    due = f"imports {module}, which the image trainer-torch-cuda lacks"
    with pytest.raises(UsageError, match=due):
        launch.prepare(tmp_path, given, team_config, tmp_path / "x")
    settings = tmp_path / "trainyard.yaml"
    settings.write_text(yaml.safe_dump({"name": "try", **given}))
    (said,) = [one for one in check(settings, lint.site(platform, "vision")) if one.code == "TY304"]
    assert due in said.reason and said.severity is lint.Severity.ERROR


def test_lint_says_the_same_of_a_manifest(platform: contract.Contract, team_config: TeamConfig) -> None:
    job = made(team_config, gpus=1)

    def said() -> list[tuple[str, str]]:
        found = lint.manifest(job, lint.site(platform, "vision"))
        return [(one.field, one.hint) for one in found if one.code == "TY410"]

    assert said() == []
    for pod in pods(job):
        pod["spec"]["containers"][0]["image"] = team_config.contract.images["trainerTorch"]
    assert said()
    field, hint = said()[0]
    assert field.endswith("containers[0].image") and team_config.contract.cuda_images["trainerTorch"] in hint
    for pod in pods(job):
        pod["spec"]["nodeSelector"] = MOCK["labels"]
    assert said() == [], "mock GPUs compute nothing"


def test_a_chart_of_before_has_no_images_with_cuda(tmp_path: Path) -> None:
    raw = {**contract.defaults().raw, "teams": [{"name": "vision", "gid": 20001, "maxGpusPerJob": 8}]}
    file = tmp_path / "contract.yaml"
    file.write_text(
        yaml.safe_dump({key: raw[key] for key in raw if key not in ("gpuImages", "cudaImages", "packages")})
    )
    before = TeamConfig.of(contract.load(file), "vision")
    assert image(made(before, gpus=1)) == {"site.invalid/trainyard/trainer-torch"}


@pytest.mark.parametrize("framework", ["pytorch", "mpi"])
def test_lint_refuses_what_train_refuses(platform: contract.Contract, framework: str) -> None:
    image = "image: trainyard/trainer-torch:0.4.0\n" if framework == "pytorch" else ""
    text = f"name: try\nframework: {framework}\n{image}gpus: 1\ncommand: [python, train.py]\n"
    found = [one for one in check_text(text, "trainyard.yaml", lint.site(platform, "vision")) if one.code == "TY409"]
    assert [(one.severity, one.line) for one in found] == [(lint.Severity.ERROR, 3 if image else 1)]
