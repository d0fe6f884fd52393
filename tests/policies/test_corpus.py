"""Upstream's examples: lint and the API server agree on each, as it is and after lint's hints were followed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from conftest import HERE

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev import tools
from trainyard_dev.apiserver import running
from trainyard_dev.apiserver.install import install
from trainyard_dev.chart import package
from trainyard_dev.corpus import cli, picked, results, run, sources, started, volcano
from trainyard_dev.corpus import page as pages
from trainyard_dev.corpus.asking import Asker
from trainyard_dev.corpus.judge import judge, typical

SERVED = tuple(int(part) for part in tools.tested_kubernetes().number.split(".")[:2]) >= (1, 36)


@pytest.fixture(scope="module")
def asker() -> Iterator[Asker]:
    """Asks a server of the platform as it is without options."""
    objects = package.render("kind", values=[HERE / "teams.yaml"])
    with running() as server:
        install(server, [*objects, *yaml.safe_load_all((HERE / "extra.yaml").read_text())])
        with volcano.admission(server):
            yield run.asker(server, run.contract(objects), "vision")


@pytest.fixture(scope="module")
def filling() -> Iterator[Asker]:
    """Asks a server that fills in what the platform knows."""
    objects = package.render("kind", values=[HERE / "teams.yaml"], serves=cli.FILLS)
    with running() as server:
        install(server, [*objects, *yaml.safe_load_all((HERE / "extra.yaml").read_text())])
        with volcano.admission(server):
            yield run.asker(server, run.contract(objects), "vision", fills=True)


def had(group: str) -> list[sources.Example]:
    """The examples of a group; the test is skipped, with the reason, where the module can't be had."""
    try:
        return sources.examples(group)
    except TrainyardError as error:
        pytest.skip(f"the module of {group} can't be had: {error.what}")


@pytest.mark.parametrize("group", sources.GROUPS)
def test_lint_and_the_server_agree(asker: Asker, group: str) -> None:
    _compare(asker, group, results.FILE)


@pytest.mark.skipif(not SERVED, reason="MutatingAdmissionPolicy is served from Kubernetes 1.36 on")
@pytest.mark.parametrize("group", sources.GROUPS)
def test_lint_of_what_is_filled_in_and_the_server_that_fills_in_agree(filling: Asker, group: str) -> None:
    _compare(filling, group, results.FILLED)


def _compare(asker: Asker, group: str, file: str) -> None:
    found = had(group)
    assert len(found) > 25
    site = run.judged(asker)
    verdicts = [judge(example, site, asker) for example in found]
    assert [one.file for one in verdicts if one.again] == [], "a second round of hints"
    assert [f"{one.file}: {what}" for one in verdicts for what in one.differences] == []
    _, written = results.read(ROOT, file)
    known = {one.file: results.row(one) for one in written if one.group == group}
    assert {one.file: results.row(one) for one in verdicts} == known, (
        "run `bin/trainyard corpus run` and read what changed"
    )


@pytest.mark.parametrize("file", [results.FILE, results.FILLED])
def test_what_is_written_down_is_of_the_pinned_modules_and_holds_names_and_verdicts_alone(file: str) -> None:
    modules, written = results.read(ROOT, file)
    assert modules == results.versions()
    assert len({(one.group, one.file) for one in written}) == len(written) > 250
    assert [one.file for one in written if one.differences] == []
    assert [one.file for one in written if one.again] == [], "following all hints once is enough"
    assert max(len(line) for line in (ROOT / file).read_text().splitlines()) < 700


def test_every_file_says_by_which_check_it_is_run_or_why_not() -> None:
    rows = json.loads((ROOT / results.FILE).read_text())["files"]
    ran = {row["file"]: row["run"] for row in rows}
    due = {f"{one.group}/{file}": f"`arrivals.upstream-{one.kind}`" for one in picked.PICKED for file in one.files}
    assert {file: said for file, said in ran.items() if said.startswith("`arrivals.")} == due
    assert all(ran.values()) and ran["volcano/jobflow/JobFlow.yaml"] == "stays refused: TY106"
    assert ran["argo/coinflip.yaml"] == started.MORE
    page = (ROOT / pages.FILES).read_text()
    assert all(f"| `{row['file'].partition('/')[2]}` |" in page for row in rows)
    assert f"({pages.FILES.removeprefix('docs/')})" in (ROOT / pages.PAGE).read_text()


def test_a_file_that_could_be_run_and_is_not_needs_a_reason() -> None:
    with pytest.raises(TrainyardError, match="nothing says why volcano/new"):
        started.run("volcano", "new.yaml")


def test_most_files_need_one_edit_where_the_server_fills_in() -> None:
    _, written = results.read(ROOT, results.FILLED)
    good = [one for one in written if not one.lint_after.refuses and not one.server_after.refused]
    assert len(good) > 200
    assert typical(good, lambda one: one.edits) <= 1


def test_most_files_need_one_decision_of_a_person() -> None:
    _, written = results.read(ROOT)
    good = [one for one in written if not one.lint_after.refuses and not one.server_after.refused]
    assert len(good) > 200
    assert typical(good, lambda one: one.by_hand) <= 2
