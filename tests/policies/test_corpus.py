"""Upstream's examples: lint and the API server agree on a file, as it is and after lint's hints were followed.

Here every fifth file is asked about, and those that a page or a check names; `make corpus` asks about all.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev import tools
from trainyard_dev.corpus import page as pages
from trainyard_dev.corpus import picked, results, run, sources, started
from trainyard_dev.corpus.asking import MemberClient
from trainyard_dev.corpus.judge import Result, judge, typical

pytestmark = pytest.mark.long
NAMED = {"jobflow/JobFlow.yaml", "coinflip.yaml", *(file for one in picked.PICKED for file in one.files)}
SERVED = tuple(int(part) for part in tools.tested_kubernetes().number.split(".")[:2]) >= (1, 36)


@pytest.fixture(scope="module")
def asker() -> Iterator[MemberClient]:
    """Asks a server of the platform as it is without options."""
    with run.served() as asking:
        yield asking


@pytest.fixture(scope="module")
def filling() -> Iterator[MemberClient]:
    """Asks a server that fills in what the platform knows."""
    with run.served(fills=True) as asking:
        yield asking


def had(group: str) -> list[sources.Example]:
    """The sample of a group; the test is skipped, with the reason, where the module can't be had."""
    try:
        return [one for at, one in enumerate(sources.examples(group)) if at % 5 == 0 or one.name in NAMED]
    except TrainyardError as error:
        pytest.skip(f"the module of {group} can't be had: {error.what}")


@pytest.fixture(scope="module")
def plain(asker: MemberClient) -> dict[str, list[Result]]:
    """The verdicts on the sample, as it is."""
    return judged(asker)


@pytest.fixture(scope="module")
def filled(filling: MemberClient) -> dict[str, list[Result]]:
    """The verdicts on the sample where the server fills in."""
    return judged(filling)


def judged(asker: MemberClient) -> dict[str, list[Result]]:
    site = run.judged(asker)
    return {group: [judge(one, site, asker) for one in had(group)] for group in sources.GROUPS}


@pytest.mark.parametrize("group", sources.GROUPS)
def test_lint_and_the_server_agree(plain: dict[str, list[Result]], group: str) -> None:
    _agree(plain[group])


@pytest.mark.skipif(not SERVED, reason="MutatingAdmissionPolicy is served from Kubernetes 1.36 on")
@pytest.mark.parametrize("group", sources.GROUPS)
def test_lint_of_what_is_filled_in_and_the_server_that_fills_in_agree(
    filled: dict[str, list[Result]], group: str
) -> None:
    _agree(filled[group])


def _agree(found: list[Result]) -> None:
    assert len(found) > 8
    assert [one.file for one in found if one.again] == [], "a second round of hints"
    assert [f"{one.file}: {what}" for one in found for what in one.differences] == []


def test_results_and_pages_hold_every_file_with_its_check_or_why_none_runs_it(
    plain: dict[str, list[Result]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [one for of in plain.values() for one in of]
    for name in ("FILE", "FILLED"):
        monkeypatch.setattr(results, name, tmp_path / f"{name}.json")
        results.write(found, tmp_path / f"{name}.json")
    assert results.read()[1] == found
    assert max(len(line) for line in results.FILE.read_text().splitlines()) < 700, "names and verdicts alone"
    ran = {f"{one.group}/{one.file}": results.ran(one) for one in found}
    due = {f"{one.group}/{file}": f"`arrivals.upstream-{one.kind}`" for one in picked.PICKED for file in one.files}
    assert {file: said for file, said in ran.items() if said.startswith("`arrivals.")} == due
    assert all(ran.values()) and ran["volcano/jobflow/JobFlow.yaml"] == "stays refused: TY106"
    assert ran["argo/coinflip.yaml"] == started.MORE
    page = pages.files()
    assert all(f"| `{one.file}` |" in page for one in found) and f"| all | {len(found)} |" in pages.render()


def test_a_file_that_could_be_run_and_is_not_needs_a_reason() -> None:
    with pytest.raises(TrainyardError, match="no reason states why volcano/new"):
        started.run("volcano", "new.yaml")


@pytest.mark.skipif(not SERVED, reason="MutatingAdmissionPolicy is served from Kubernetes 1.36 on")
def test_most_files_need_one_edit_where_the_server_fills_in(filled: dict[str, list[Result]]) -> None:
    good = _good(filled)
    assert len(good) > 50 and typical(good, lambda one: one.edits) <= 1


def test_most_files_need_one_decision_of_a_person(plain: dict[str, list[Result]]) -> None:
    good = _good(plain)
    assert len(good) > 50 and typical(good, lambda one: one.by_hand) <= 2


def _good(found: dict[str, list[Result]]) -> list[Result]:
    return [one for of in found.values() for one in of if one.taken]
