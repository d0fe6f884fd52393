"""Judges every example by lint and a real API server."""

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
FILLS = (f"{fill.API}/{fill.KIND}",)  # API that the chart sees on a server that fills in


@contextmanager
def served(*, fills: bool = False) -> Iterator[MemberClient]:
    """Runs a separate server while the body runs; `fills`: one that fills in defaults of the platform."""
    objects = package.render("kind", values=[TEAMS], serves=FILLS if fills else ())
    with running() as server:
        install(server, [*objects, *yaml.safe_load_all(TEAMS.with_name("extra.yaml").read_text())])
        with volcano.admission(server):
            yield asker(server, of_objects(objects), "vision", fills=fills)


def asker(server: Any, known: Contract, team: str, fills: bool = False) -> MemberClient:
    """A client of a server on which the platform is installed, as a member of the team.

    Args:
        fills: its policies fill in defaults of the platform.
    """
    mine = known.team(team)
    someone = Identity(next(iter(mine.users), "member"), mine.groups)
    if fills:  # as the setup job leaves it: the policy that mounts a token comes before those that fill in
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": team, "name": "default"}}
        server.apply(account | {"automountServiceAccountToken": False})
    return MemberClient(Site(server, team, someone, known), known, mine, fills)


def judged(asking: MemberClient) -> LintSite:
    """The site for lint, of the same contract and team."""
    return site(asking.contract, asking.team.name)


def every(asking: MemberClient, show: Callable[[str], None] = lambda line: None) -> list[Result]:
    """Judges all examples of all groups. Raises TrainyardError when a module can't be downloaded."""
    lints, found = judged(asking), list[Result]()
    for group in GROUPS:
        mine = examples(group)
        show(f"{group}: {len(mine)} files")
        found += [judge(one, lints, asking) for one in mine]
    return found
