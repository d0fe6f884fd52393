"""Files that are made from others, and GitOps examples that name the chart's version; part of `trainyard verify`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from trainyard.contract import render
from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.chart import component_page, reference
from trainyard_dev.images import contents
from trainyard_dev.verify import steps

# (file, what is wrong, what to change)
Finding = tuple[str, str, str]

GITOPS = "manifests/gitops"
# Keys by which Argo CD and Flux name a chart's version or a tag of the repository.
_VERSION = re.compile(
    r"^\s*(?:-\s+)?(?:targetRevision|version|tag|semver):\s*[\"']?v?(\d+\.\d+\.\d+)[\"']?\s*(?:#.*)?$"
)


def differences(root: Path, raw: dict[str, Any]) -> Iterator[Finding]:
    """Everything generated that is out of date, and every example with another version than `versions.yaml`."""
    yield from _values(root)
    yield from _benchmarks(root)
    yield from _lint(root)
    yield from _components(root)
    yield from _steps(root)
    yield from _support(root, raw)
    yield from _images(root)
    for file in sorted((root / GITOPS).rglob("*.yaml")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if (match := _VERSION.match(line)) and match[1] != raw["trainyard"]:
                where = f"{file.relative_to(root).as_posix()}:{number}"
                yield where, f"the chart's version is {match[1]}", f"write {raw['trainyard']}"


def _values(root: Path) -> Iterator[Finding]:
    if not (root / "charts" / "trainyard" / "values.schema.json").exists():
        return  # a tree without the chart
    page = root / "docs" / "values.md"
    if not page.exists() or page.read_text() != reference.render():
        yield "docs/values.md", "the page is out of date", "run `bin/trainyard chart values-reference`"
    if render.DEFAULTS.read_text() != render.text():
        where = render.DEFAULTS.relative_to(ROOT).as_posix()
        yield where, "it is not what the chart publishes by default", "run `bin/trainyard chart contract`"


def _components(root: Path) -> Iterator[Finding]:
    page = root / component_page.PAGE
    if (root / "components").exists() and (not page.exists() or page.read_text() != component_page.render()):
        yield component_page.PAGE, "the page is out of date", "run `bin/trainyard versions sync`"


def _support(root: Path, raw: dict[str, Any]) -> Iterator[Finding]:
    """What is pinned against what is said of its support, the page of both, and the charts' newest Kubernetes."""
    from trainyard_dev.matrix import page as pages
    from trainyard_dev.matrix import results, support

    yield from support.differences(root, raw)
    if not (root / support.FILE).exists():
        return
    page, write = root / pages.PAGE, "run `bin/trainyard matrix page`"
    try:
        if not page.exists() or page.read_text() != pages.render(root, raw):
            yield pages.PAGE, "the page is out of date", write
        ceiling = results.ceiling(results.read(root))
    except TrainyardError as error:
        yield pages.PAGE, error.what, error.hint
        return
    for file in sorted((root / "charts").glob("*/Chart.yaml")) if ceiling else ():
        have = str(yaml.safe_load(file.read_text()).get("kubeVersion", ""))
        if have and have != results.bounded(have, ceiling):
            where = file.relative_to(root).as_posix()
            yield where, f"kubeVersion is {have}", f"write {results.bounded(have, ceiling)}"


def _images(root: Path) -> Iterator[Finding]:
    """The page of what images with CUDA hold, against their pins."""
    page = root / contents.PAGE
    if not any((root / "images").glob("trainer-*-cuda/requirements.txt")):
        return  # a tree without such images
    if not page.exists() or page.read_text() != contents.render(root):
        yield contents.PAGE, "the page is out of date", "run `bin/trainyard versions sync`"


def _steps(root: Path) -> Iterator[Finding]:
    if (root / "pipelines").exists():
        for file, text in steps.files(root):
            if not (root / file).exists() or (root / file).read_text() != text:
                yield file, "it is not what the registry of kinds says", "run `bin/trainyard versions sync`"


def _lint(root: Path) -> Iterator[Finding]:
    if not (root / "policies").exists():
        return  # a tree without rules
    from trainyard.policy.lint import page as pages

    page = root / pages.PAGE
    if not page.exists() or page.read_text() != pages.render():
        yield pages.PAGE, "the page is out of date", f"run `bin/trainyard lint --page > {pages.PAGE}`"


def _benchmarks(root: Path) -> Iterator[Finding]:
    """The page against its figures, and the chart's configuration against what was measured, in full or by the gate."""
    page, folder = root / "docs" / "benchmarks.md", root / "docs" / "benchmarks"
    if not page.exists() and not folder.exists():
        return  # a tree that publishes no figures
    from trainyard_dev.bench import configurations, gate, summary
    from trainyard_dev.bench import page as pages

    where = folder.relative_to(root).as_posix()
    try:
        found = summary.read(folder)
    except TrainyardError as error:
        yield error.where, error.what, error.hint
        return
    for name in summary.unproved(found):
        yield where, f"{name} says no version or no overlay", "write with what it was measured, or take the row out"
    if not page.exists() or page.read_text() != pages.render(found):
        yield "docs/benchmarks.md", "the page is out of date", "run `bin/trainyard bench page`"
    today, held = configurations.configurations(), gate.passed(root / gate.FILE.relative_to(ROOT))
    for name in summary.outdated(found):
        if held and name not in held:
            continue  # a variant of what the gate measures: the page says that it is stale
        if name not in today or held.get(name) != today[name].digest:
            what = f"{name} is neither the configuration that was measured nor one that passed the gate"
            yield where, what, "run `bin/trainyard bench gate`, then `bin/trainyard bench page`"
