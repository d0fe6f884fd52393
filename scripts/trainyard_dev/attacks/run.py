"""Puts every attempt to two releases, one after the other, each on a real API server of its own."""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from trainyard.chart import helm
from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.policy.rules import PREFIX, advice
from trainyard_dev import recorded, tools
from trainyard_dev.apiserver import Answer, ApiServer, Identity, running
from trainyard_dev.attacks.attempts import Attempt, ask, attempts, findings
from trainyard_dev.attacks.guards import LIMITS, NOT_BEGUN, POD_SECURITY, QUOTA, RBAC, Verdict, all_refusers, verdict
from trainyard_dev.attacks.opened import VALUES, full, open_up, prepare
from trainyard_dev.attacks.results import FILE, Outcome, Report, Version
from trainyard_dev.chart import history, options, package
from trainyard_dev.policy.cases import SYSTEM, WHO
from trainyard_dev.versions import load

BEFORE = Version("0.2.0", "eb5fe0f8ee2b8e0537e3d69e81af2304f1e7469e")
PROFILE = "kind"
OPTIONS = options.switched(*options.OPTIONS)  # off by default; the earlier release had none
OTHERS = (RBAC, POD_SECURITY, QUOTA, LIMITS)  # guards that are no policies
# Kubernetes before 1.35 leaves images as volumes out of what is asked for, unless it is told otherwise.
FEATURES = ("ImageVolume",)
SINCE = (
    ("global", "contract", "gpuImages"),
    ("policies", "modes"),
)  # values that the earlier release doesn't know
WRITTEN = (FILE, "docs/attacks.md")  # by the run itself: no change of what is attacked


def attack(say: Callable[[str], None]) -> Report:
    """The whole run: the earlier release, then this tree, then this tree with each guard's word heard by itself.

    Raises:
        TrainyardError: the clone lacks the earlier release, it can't be rendered, or an API server doesn't start.
    """
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the cluster of whoever runs this
    wanted = attempts()
    known = findings()["findings"]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(_known_before(VALUES.read_text()))
        file.flush()
        earlier = helm.parse(history.rendered(BEFORE.version, BEFORE.commit, PROFILE, Path(file.name)))
    now = package.render(PROFILE, sets=OPTIONS, values=[VALUES, VALUES.with_name("options.yaml")])
    say(f"{len(wanted)} attempts against {BEFORE.version}")
    with running(audit=False, features=FEATURES) as server:
        prepare(server, earlier)
        with one_controller():
            then, _ = judged(server, wanted)
    say(f"{len(wanted)} attempts against this tree")
    with running(audit=False, features=FEATURES) as server:
        prepare(server, now)
        today, _ = judged(server, wanted)
        say("each guard by itself")
        open_up(server)
        _, opened = judged(server, wanted)
    outcomes = [
        Outcome(one.id, one.who, one.tried, one.wins, one.finding, one.guard, one.says, then[one.id], today[one.id],
                all_refusers(today[one.id].guard, opened[one.id], one.kind) if one.id in opened else [])
        for one in wanted
    ]  # fmt: skip
    policies = {obj["metadata"]["name"] for obj in now if obj["kind"] == "ValidatingAdmissionPolicy"}
    guards = [*sorted({name.removeprefix(PREFIX) for name in policies} - advice()), *OTHERS]
    this = Version(str(load().raw["trainyard"]), recorded.commit(ROOT, WRITTEN))
    return Report(datetime.date.today().isoformat(), BEFORE, this, tools.tested_kubernetes().number, list(known),
                  guards, outcomes)  # fmt: skip


def _known_before(values: str) -> str:
    """Values without those that came after the earlier release, whose schema refuses them."""
    known = yaml.safe_load(values)
    for *above, last in SINCE:
        at = known
        for key in above:
            at = at[key]
        del at[last]
    return yaml.safe_dump(known)


@contextmanager
def one_controller() -> Iterator[None]:
    """The earlier release has one controller of Argo, which is every team's, as long as the body runs."""
    now = dict(WHO)
    WHO.update(dict.fromkeys(("argo", "speech-argo"), Identity.account(SYSTEM, "trainyard-workflow-controller")))
    try:
        yield
    finally:
        WHO.update(now)


def judged(server: ApiServer, wanted: list[Attempt]) -> tuple[dict[str, Verdict], dict[str, Answer]]:
    """Verdict and answer of each attempt, by its id; one whose beginning can't be stored has no answer."""
    verdicts: dict[str, Verdict] = {}
    answers: dict[str, Answer] = {}

    def put(attempt: Attempt) -> None:
        try:
            answers[attempt.id] = ask(server, attempt)
            verdicts[attempt.id] = verdict(answers[attempt.id])
        except TrainyardError as error:
            verdicts[attempt.id] = Verdict(NOT_BEGUN, words=error.what)

    for one in wanted:
        if not one.full:
            put(one)
    with full(server):
        for one in wanted:
            if one.full:
                put(one)
    return verdicts, answers
