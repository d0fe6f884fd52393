"""The chart in Helm 4: no more warnings than in Helm 3, the same objects, and the same refused values.

What an installation by Helm 4 does on a cluster is in tests/policies/test_helm_4.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.chart import helm
from trainyard.shell import CommandError, run
from trainyard_dev import tools
from trainyard_dev.chart import parts

pytestmark = pytest.mark.long
Objects = dict[tuple[str, str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def helm_4() -> Path:
    return tools.binary("helm", "4")


def rendered(program: Path, chart: Path, profile: str) -> Objects:
    """The objects that a Helm renders from a profile, hooks, tests and CRDs included; fails on duplicate names."""
    files = [word for file in parts.profile_files(profile) for word in ("--values", file)]
    argv = ["template", helm.RELEASE, chart, "--namespace", helm.NAMESPACE, "--include-crds", *files]
    done = run([program, *argv, "--kube-version", tools.tested_kubernetes().number], timeout=120)
    made: Objects = {}
    for obj in helm.parse(done.stdout):
        name = obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        assert name not in made, name
        made[name] = obj
    return made


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value of an object with where it stands; an empty list or mapping counts as one."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inside = [leaf for key, one in below for leaf in leaves(one, f"{path}.{key}")]
    yield from inside or [(path, value)]


def test_the_version_is_4(helm_4: Path) -> None:
    assert run([helm_4, "version", "--template", "{{.Version}}"]).stdout == tools.build.builder("helm", "4").version


def test_lint_finds_nothing(helm_4: Path, chart: Path, profile: str) -> None:
    files = [word for file in parts.profile_files(profile) for word in ("--values", file)]
    kubernetes = ["--kube-version", tools.tested_kubernetes().number]
    said = run([helm_4, "lint", chart, "--strict", "--with-subcharts=false", *kubernetes, *files], timeout=120).stdout
    assert "1 chart(s) linted, 0 chart(s) failed" in said
    assert "[WARNING]" not in said
    assert "[ERROR]" not in said


def test_the_objects_are_those_of_helm_3(helm_4: Path, chart: Path, profile: str) -> None:
    three = tools.binary("helm")
    first, second, found = (rendered(program, chart, profile) for program in (three, three, helm_4))
    assert found.keys() == first.keys()
    assert len(found) > 50
    drawn = 0
    for name, wanted in first.items():
        again, here = dict(leaves(second[name])), dict(leaves(found[name]))
        assert here.keys() == dict(leaves(wanted)).keys(), name
        for path, value in leaves(wanted):
            if again[path] == value:
                assert here[path] == value, (name, path)
            else:
                drawn += 1  # a key that is generated for each rendering
                assert isinstance(here[path], str), (name, path)
                assert here[path] not in (value, again[path]), (name, path)
    assert drawn < 30


@pytest.mark.parametrize(
    "values",
    [
        {"global": {"contract": {"teams": [{"name": "Vision"}]}}},
        {"argo": {"replicas": 2}},
        {"global": {"contract": {"storage": {"s3": {"mode": "somewhere"}}}}},
    ],
)
def test_wrong_values_are_refused_with_the_same_words(
    helm_4: Path, chart: Path, tmp_path: Path, values: dict[str, Any]
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    said = []
    for program in (tools.binary("helm"), helm_4):
        files = ["--values", parts.profile_file("kind"), "--values", file]
        with pytest.raises(CommandError) as refused:
            run([program, "template", helm.RELEASE, chart, *files])
        lines = [line.strip() for line in refused.value.output.splitlines() if line.strip().startswith("- ")]
        said.append(sorted(lines))
    assert said[0] == said[1] != []
