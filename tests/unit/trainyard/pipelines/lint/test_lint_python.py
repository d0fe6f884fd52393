"""Python files: findings have the lines of the author's file, and what does not compile is one finding."""

from pathlib import Path

import pytest
from lint_cases import site

from trainyard.pipelines.lint.files import check, known

GOOD = """\
from kfp import dsl

IMAGE = "site.invalid/trainyard/trainer-torch:0.2.0"


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(rate: float) -> float:
    return rate


@dsl.component(
    base_image="example.org/mine:1",
    install_kfp_package=False,
)
def elsewhere(rate: float) -> float:
    return rate


@dsl.pipeline
def digits(rate: float = 0.1):
    train(rate=rate)
"""
USE = "    train(rate=rate)\n"
HERA = """\
from hera.workflows import Container, Workflow

with Workflow(generate_name="digits-", entrypoint="begin", service_account_name="pipeline") as w:
    Container(name="main", image="python:3.11", command=["true"])
"""


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        (USE, "    elsewhere(rate=rate)\n", "p17", "@dsl.component("),
        (USE, f"{USE.rstrip()}.set_cpu_limit('900')\n", "TY402", "train(rate=rate)"),
        (USE, "    train(rate='fast')\n", "TY103", "train(rate='fast')"),
        (USE, "    train()\n", "TY103", "train()"),
        ("def digits", "def digits(", "TY103", "def digits"),
        ("from kfp import dsl\n", "from kfp import dsl\nimport nowhere\n", "TY103", "import nowhere"),
        ("@dsl.pipeline\n", "", "TY103", ""),
    ],
)  # fmt: skip
def test_one_finding_at_its_line(tmp_path: Path, old: str, new: str, code: str, line: str) -> None:
    text = GOOD.replace(old, new, 1)
    file = tmp_path / "digits.py"
    file.write_text(text)
    found = check(file, site())
    assert {one.code for one in found} == {code}, found
    assert len({one.line for one in found}) == 1
    assert line in text.splitlines()[found[0].line - 1]
    assert all(one.reason and one.hint for one in found)


def test_a_clean_file(tmp_path: Path) -> None:
    file = tmp_path / "digits.py"
    file.write_text(GOOD)
    assert check(file, site()) == []


def test_a_workflow_written_with_hera(tmp_path: Path) -> None:
    file = tmp_path / "digits.py"
    file.write_text(HERA)
    assert {one.code for one in check(file, site())} == {"TY214", "p17"}


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.py", GOOD, True),
        ("a.py", HERA, True),
        ("a.py", "print('hello')\n", False),
        ("trainyard.yaml", "", True),
        ("a.yaml", "kind: PyTorchJob\n", True),
        ("a.yaml", '{"kind": "Workflow"}', True),
        ("a.yaml", "kind: Deployment2\n", False),
        ("a.yaml", "deploymentSpec: {}\n", True),
        ("compose.yaml", "services: {web: {image: nginx}}\n", False),
    ],
)
def test_files_of_other_kinds_can_be_told(tmp_path: Path, name: str, text: str, wanted: bool) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert known(file) is wanted
