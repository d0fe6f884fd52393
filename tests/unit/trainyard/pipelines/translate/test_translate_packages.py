"""A component as kfp's decorator writes it by default: its runtime is present, its packages are supplied."""

import json
from pathlib import Path

import pytest
from kfp import dsl
from translated import SETTINGS, of, on, template

from trainyard.kinds import packages
from trainyard.pipelines import translate


def made(folder: Path, settings: translate.Settings = SETTINGS, **more: object) -> dict:
    @dsl.component(**more)
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    @dsl.pipeline(name="hello")
    def hello(name: str = "World"):
        greet(name=name)

    return template(of(hello, folder, settings=settings), "greet")


def test_kfp_s_runtime_is_there_without_an_installation(tmp_path: Path) -> None:
    found = made(tmp_path)
    start = found["container"]["args"][:4]
    assert start[:2] == ["sh", "-c"] and "/var/run/argo/kfp.whl" in start[2] and start[3] == "sh"
    assert "pip install" not in json.dumps(found["container"]) and "initContainers" not in found
    assert found["container"]["image"] == "python:3.11"


@pytest.mark.parametrize("index", ["", "https://pypi.example.org/simple"])
def test_packages_come_from_wheels_or_the_site_s_index_and_are_kept(tmp_path: Path, index: str) -> None:
    settings = on(images={"platform": "example.org/platform:1"}, raw={"packages": {"index": index}})
    found = made(
        tmp_path, settings, packages_to_install=["pandas==2.2.0", "einops"], pip_index_urls=["https://x.org/s"]
    )
    fetch, install, keep = found["initContainers"]
    assert fetch["image"] == keep["image"] == "example.org/platform:1" and install["image"] == "python:3.11"
    env = {one["name"]: one.get("value") for one in fetch["env"]}
    assert json.loads(env[packages.FILES]) == {"packages_to_install": "pandas==2.2.0\neinops\n"}
    assert env.get("INDEX_URL", "") == index
    place = next(word for word in fetch["args"] if word.startswith("--packages="))
    assert place in keep["args"] and place.startswith("--packages=runs/vision/packages/")
    assert packages.USER_BASE in found["container"]["env"] and found["metadata"]["labels"] == packages.LABEL
    other = made(tmp_path, settings, packages_to_install=["pandas==2.2.1", "einops"])
    assert place not in other["initContainers"][0]["args"]


@pytest.mark.parametrize("package", ["", "pandas requests", "pandas; rm -rf /", "pandas==={{workflow.name}}"])
def test_what_is_no_requirement_is_refused(tmp_path: Path, package: str) -> None:
    with pytest.raises(translate.Unsupported, match="greet uses the invalid requirement"):
        made(tmp_path, packages_to_install=[package])


@pytest.mark.parametrize("package", ["git+https://x.org/a.git", "./a-1.0-py3-none-any.whl", "https://x.org/a.whl"])
def test_a_package_of_no_index_is_refused_by_name(tmp_path: Path, package: str) -> None:
    with pytest.raises(translate.Unsupported, match=r"greet uses .*, which is not a package from an index") as caught:
        made(tmp_path, packages_to_install=[package])
    assert package in str(caught.value)
