"""Asks lint and a real API server about every example."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from trainyard.contract import Contract, of_objects
from trainyard.paths import ROOT
from trainyard.policy import fill
from trainyard.policy.lint.report import Site as LintSite
from trainyard.policy.lint.report import site
from trainyard_dev.apiserver import Identity, running
from trainyard_dev.apiserver.install import install
from trainyard_dev.chart import package
from trainyard_dev.corpus import volcano
from trainyard_dev.corpus.asking import MemberClient
from trainyard_dev.corpus.judge import Result, judge
from trainyard_dev.corpus.sources import GROUPS, examples
from trainyard_dev.policy.check import Site

Object = dict[str, Any]
TEAMS = ROOT / "tests" / "policies" / "teams.yaml"
FILLS = (f"{fill.API}/{fill.KIND}",)  # what the chart is told of a server that fills in


@contextmanager
def served(*, fills: bool = False) -> Iterator[MemberClient]:
    """Asks a server of its own for the time of the body; `fills`: one that fills in what the platform knows."""
    objects = package.render("kind", values=[TEAMS], serves=FILLS if fills else ())
    with running() as server:
        install(server, [*objects, *yaml.safe_load_all(TEAMS.with_name("extra.yaml").read_text())])
        with volcano.admission(server):
            yield asker(server, of_objects(objects), "vision", fills=fills)


def asker(server: Any, known: Contract, team: str, fills: bool = False) -> MemberClient:
    """Asks a server on which the platform is installed, as somebody of the team.

    Args:
        fills: its policies fill in what the platform knows.
    """
    mine = known.team(team)
    someone = Identity(next(iter(mine.users), "member"), mine.groups)
    if fills:  # as the setup job leaves it: what mounts a token comes before what fills in
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": team, "name": "default"}}
        server.apply(account | {"automountServiceAccountToken": False})
    return MemberClient(Site(server, team, someone, known), known, mine, fills)


def judged(asking: MemberClient) -> LintSite:
    """The site by which lint judges, of the same contract and team."""
    return site(asking.contract, asking.team.name)


def every(asking: MemberClient, show: Callable[[str], None] = lambda line: None) -> list[Result]:
    """All examples of all groups. Raises TrainyardError: a module can't be had."""
    lints, found = judged(asking), list[Result]()
    for group in GROUPS:
        mine = examples(group)
        show(f"{group}: {len(mine)} files")
        found += [judge(one, lints, asking) for one in mine]
    return found
