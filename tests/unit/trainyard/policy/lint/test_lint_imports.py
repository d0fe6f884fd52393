"""TY304: imports that an image of the platform lacks, in the code next to trainyard.yaml and in text in pods."""

from pathlib import Path

import pytest
import yaml
from lint_cases import site

from trainyard import __version__
from trainyard.pipelines.lint.files import check, check_text
from trainyard.policy.lint.finding import Finding, Severity


def imports(found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.code == "TY304"]


def settings(folder: Path, code: str, **more: object) -> list[Finding]:
    (folder / "train.py").write_text(code)
    values = {"name": "digits", "framework": "pytorch", "command": ["python", "train.py"], **more}
    (folder / "trainyard.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    return imports(check(folder / "trainyard.yaml", site()))


def test_the_code_beside_the_settings_is_read(tmp_path: Path) -> None:
    (said,) = settings(tmp_path, "import torch\nimport keras\n")
    assert said.reason == "train.py:2 imports keras, which the image trainer-torch lacks"
    assert said.severity is Severity.ERROR and "write keras==" in said.hint and said.line == 3
    (late,) = settings(tmp_path, "def f():\n    import keras\n")
    assert late.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("import transformers", {}),  # train takes the image that has it
        ("import keras", {"framework": "tensorflow"}),
        ("import anything", {"image": "team/image:1"}),
        ("import anything", {"command": ["./run"], "env": {"PYTHONPATH": "/shared"}, "image": "team/image:1"}),
    ],
)
def test_what_train_would_run_is_no_finding(code: str, more: dict[str, object], tmp_path: Path) -> None:
    assert settings(tmp_path, code, **more) == []


def test_a_list_that_can_not_be_installed_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "deps.txt").write_text("-e .\n")
    assert settings(tmp_path, "import pandas", requirements="deps.txt") == []
    (said,) = [one for one in check(tmp_path / "trainyard.yaml", site()) if one.code == "TY104"]
    assert said.reason == "deps.txt:1: -e . would install a source folder" and said.line == 6


def test_a_model_that_is_saved_beside_the_script_is_a_finding(tmp_path: Path) -> None:
    assert (
        settings(tmp_path, "import torch\ntorch.save(1, 'model.pt')\ntorch.save(1, 'out/model.pt')\n", results="out")
        == []
    )
    (said,) = [one for one in check(tmp_path / "trainyard.yaml", site()) if one.code == "TY305"]
    assert said.reason == "train.py:2 saves model.pt, which is lost with the pod" and said.severity is Severity.WARNING
    assert said.hint == "save it below out/, given by TRAINYARD_RESULTS" and said.line == 3


def pod(image: str, *words: str, **more: object) -> list[Finding]:
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
        "spec": {"containers": [{"name": "main", "image": image, "command": ["python3", "-c"], "args": words, **more}]},
    }
    return imports(check_text(yaml.safe_dump(made), "pod.yaml", site()))


TORCH = f"site.invalid/trainyard/trainer-torch:{__version__}"


def test_the_text_of_a_program_in_a_pod_is_read() -> None:
    (said,) = pod(TORCH, "import torch\nimport pandas\n")
    assert said.reason == "main imports pandas, which the image trainer-torch lacks"
    assert said.hint == "use the image of yours that has it" and said.field.endswith("args[0]")
    (said,) = pod(TORCH, "import kfp\nfrom kfp import dsl\ndef step():\n    from keras import Sequential\n")
    assert said.hint == "use the image trainer-tensorflow"


def test_what_is_no_program_or_no_image_of_ours_is_left_alone() -> None:
    assert pod(TORCH, "echo import pandas") == []
    assert pod("team/image:1", "import pandas\nimport x\n") == []
    assert pod(TORCH, "import pandas\n", env=[{"name": "PYTHONPATH", "value": "/shared"}]) == []
