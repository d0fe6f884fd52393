"""Packages of components: refused before submission where neither the image nor the platform's wheels have them."""

from pathlib import Path
from typing import Any

import pytest
import sites
import yaml
from lint_cases import VALUES

from trainyard.contract import read
from trainyard.pipelines import lint
from trainyard.pipelines.lint.wheels import missing

FILES = ["pandas-2.2.3-cp313-cp313-manylinux_2_17_x86_64.whl", "einops-0.8.0-py3-none-any.whl",
         "scipy-1.9.0-cp311-cp311-manylinux_2_17_x86_64.whl"]  # fmt: skip
PIPELINE = """\
from kfp import dsl

@dsl.component(packages_to_install=["{0}"], base_image="{1}")
def fit() -> str:
    return ""

@dsl.pipeline
def fitting():
    fit()
"""


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("pandas", ""),
        ("pandas>=2,<3", ""),
        ("Einops[extra]==0.8.0", ""),
        ("numpy", ""),
        ("torch>=2", ""),
        ("nowhere; sys_platform == 'win32'", ""),
        ("pandas==2.2.0", "no run gets the package pandas==2.2.0: available: pandas 2.2.3"),
        ("yapf", "no run gets the package yapf: no wheel found"),
        ("scipy", "no run gets the package scipy: no wheel found for Python 3.13"),
    ],
)
def test_a_package_that_is_nowhere_is_named(wanted: str, why: str) -> None:
    assert missing(wanted, {"numpy": "2.4.6", "torch": ""}, FILES, "3.13") == why
    assert not missing("scipy; python_version < '3.12'", {}, FILES, "3.11")


def findings(tmp_path: Path, package: str, image: str = "python:3.13", **site: Any) -> list[lint.Finding]:
    file = tmp_path / "fitting.py"
    file.write_text(PIPELINE.format(package, image))
    known = sites.of_values(yaml.safe_load(VALUES))
    contract = read.contract({**known.raw, "packages": site}, known.source)
    found = [one for one in lint.file(file, lint.site(contract, "vision")) if one.severity.name != "NOTE"]
    assert all("packages_to_install" in file.read_text().splitlines()[one.line - 1] for one in found)
    return found


def codes(tmp_path: Path, package: str, **site: Any) -> list[str]:
    return [one.code for one in findings(tmp_path, package, **site)]


def test_an_index_that_is_not_asked_is_named(tmp_path: Path) -> None:
    indexed = 'yapf"], pip_index_urls=["https://ada:secret@wheels.example.org/simple'
    found = [one.reason for one in findings(tmp_path, indexed, wheels=FILES)]
    why = "no wheel found; https://wheels.example.org/simple, which it names, is not asked"
    assert found == [f"no run gets the package yapf: {why}"]


def test_what_is_missing_is_refused_where_that_is_known(tmp_path: Path) -> None:
    assert codes(tmp_path, "yapf", wheels=FILES) == ["TY306"]
    assert codes(tmp_path, "pandas", wheels=FILES) == codes(tmp_path, "numpy", wheels=FILES) == []
    assert codes(tmp_path, "yapf", wheels=FILES, index="https://pypi.example.org/simple") == []
    assert codes(tmp_path, "yapf") == []
    assert findings(tmp_path, "tensorflow", "tensorflow/tensorflow:2.21.0", wheels=FILES) == []
    assert findings(tmp_path, "torch==2.6.0", "pytorch/pytorch:2.6.0", wheels=FILES) == []


def test_wheels_are_those_of_the_image_s_python(tmp_path: Path) -> None:
    assert findings(tmp_path, "scipy", "python:3.11", wheels=FILES) == []
    [found] = findings(tmp_path, "pandas", "python:3.11", wheels=FILES)
    assert "no wheel found for Python 3.11" in found.reason and "put FILE --python 3.11`" in found.hint
