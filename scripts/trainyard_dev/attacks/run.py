"""Puts every attempt to this tree's release on a real API server, then hears each guard by itself."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.policy.rules import PREFIX, advice
from trainyard_dev import recorded, tools
from trainyard_dev.apiserver import Answer, ApiServer, running
from trainyard_dev.attacks.attempts import Attempt, ask, attempts
from trainyard_dev.attacks.guards import LIMITS, NOT_BEGUN, POD_SECURITY, QUOTA, RBAC, Verdict, all_refusers, verdict
from trainyard_dev.attacks.opened import VALUES, full, open_up, prepare
from trainyard_dev.attacks.results import Outcome, Report
from trainyard_dev.chart import options, package
from trainyard_dev.versions import load

PROFILE = "kind"
OPTIONS = options.switched(*options.OPTIONS)  # off by default
OTHERS = (RBAC, POD_SECURITY, QUOTA, LIMITS)  # guards that are no policies
# Kubernetes before 1.35 leaves images as volumes out of what is asked for, unless it is told otherwise.
FEATURES = ("ImageVolume",)


def attack(say: Callable[[str], None]) -> Report:
    """The whole run: the release as installed, then with each guard's word heard by itself.

    Raises:
        TrainyardError: the chart can't be rendered, or an API server doesn't start.
    """
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the cluster of whoever runs this
    wanted = attempts()
    objects = package.render(PROFILE, sets=OPTIONS, values=[VALUES, VALUES.with_name("options.yaml")])
    say(f"{len(wanted)} attempts")
    with running(audit=False, features=FEATURES) as server:
        prepare(server, objects)
        found, _ = judged(server, wanted)
        say("each guard by itself")
        open_up(server)
        _, opened = judged(server, wanted)
    outcomes = [
        Outcome(one.id, one.who, one.tried, one.guard, one.says, found[one.id],
                all_refusers(found[one.id].guard, opened[one.id], one.kind) if one.id in opened else [])
        for one in wanted
    ]  # fmt: skip
    policies = {obj["metadata"]["name"] for obj in objects if obj["kind"] == "ValidatingAdmissionPolicy"}
    guards = [*sorted({name.removeprefix(PREFIX) for name in policies} - advice()), *OTHERS]
    day, kubernetes = datetime.date.today().isoformat(), tools.tested_kubernetes().number
    return Report(day, str(load().raw["trainyard"]), recorded.commit(ROOT, ()), kubernetes, guards, outcomes)


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
