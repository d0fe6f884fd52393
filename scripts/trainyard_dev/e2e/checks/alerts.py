"""Every alert fires by a real cause and clears when it ends; every panel of every dashboard has data."""

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from trainyard.names import GPU
from trainyard_dev.cluster.nodes import mock_gpu_folder
from trainyard_dev.e2e import options, panel_data, releases, runs
from trainyard_dev.e2e.checks import alert_causes as causes
from trainyard_dev.e2e.checks.alert_causes import Fault
from trainyard_dev.e2e.checks.monitoring import ask, prometheus
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.entry import ALONE, DATA, PIPELINE_IMAGES, check
from trainyard_dev.e2e.recorder import patience, require
from trainyard_dev.e2e.releases import layer
from trainyard_dev.e2e.sites import alert_receiver
from trainyard_dev.e2e.sites.listening import Listener
from trainyard_dev.gpu import mock
from trainyard_dev.monitoring import panels, rules

ALERTS, PANELS = "seeing.alerts", "seeing.panels"
TITLES = {
    ALERTS: "every alert fires for a real cause, reaches a receiver, and clears when the cause is gone",
    PANELS: "every query of every dashboard returns data from the real Prometheus",
}
FIRES_S, CLEARS_S, SENT_S, DATA_S, POLL_S = 420.0, 300.0, 300.0, 240.0, 3.0
RECEIVER = Listener("alerts", alert_receiver.__file__, alert_receiver.PORT)
# What the waiting team's queue deserves, so that it can be below that; without reclaim it is reserved for the queue.
SHARE = {"cpu": "1", "memory": "2Gi", GPU: "4"}
BUSY, USED_MIB = 80, 8192


# Stops a kubelet, breaks a GPU, scales a controller down.
@check(ALERTS, PANELS, needs=(DATA,), after=("pipelines.outages",), locks={ALONE}, long=True,
       images=(*options.IMAGES, *PIPELINE_IMAGES),
       inputs=("charts/monitoring", "scripts/trainyard_dev/monitoring", "scripts/trainyard_agent"))  # fmt: skip
def seen(context: Context) -> None:
    """Both, on one release with monitoring and bounds of seconds; then off again."""
    try:
        with layer(context, _values(causes.bounds(causes.etcd_bytes(context)))) as values:
            with context.recorder.check(ALERTS, TITLES[ALERTS]) as figures, RECEIVER.there(context):
                figures["upgrade_seconds"] = values.seconds
                fired = figures["alerts"] = {}
                _all(context, values, fired)
                figures["received"] = _received(context, set(fired))
                skipped = sorted(set(rules.names()) - set(fired))
                figures["not_tried"] = dict.fromkeys(skipped, "faults can be injected only into mock GPUs")
                require(context.gpu != "mock" or not skipped, f"no cause exists for {', '.join(skipped)}")
            with context.recorder.check(PANELS, TITLES[PANELS]) as figures:
                if context.recorder.failed(ALERTS):
                    values.set(_values({}))
                figures |= _panels(context)
    finally:
        options.drop_claims(context)


def _values(bounds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Monitoring with these bounds, and a share for the queue of the first team."""
    teams = releases.teams()
    for team in teams:
        if team["name"] == NAMESPACE:
            team["queue"] = {"deserved": SHARE, "guarantee": SHARE}
    route = {"receiver": RECEIVER.name, "group_by": ["alertname"], "group_wait": "1s", "group_interval": "5s"}
    receiver = {"name": RECEIVER.name, "webhook_configs": [{"url": RECEIVER.url}]}
    monitoring = {
        "enabled": True,
        "alerts": {"rules": bounds},
        "alertmanager": {"config": {"route": route, "receivers": [receiver]}},
    }
    return {"monitoring": monitoring, "global": {"contract": {"teams": teams}}}


def _all(context: Context, values: releases.Layer, found: dict[str, dict[str, float]]) -> None:
    """Makes all alerts fire and clear; the seconds of each go into `found`."""
    for faults in (causes.TOGETHER, causes.ALONE):
        here = possible(context, faults)
        with prometheus(context) as port:
            with _there(context, here):
                _wait(port, here, True, found)
            _wait(port, here, False, found)
    here = possible(context, causes.LAST)
    with _there(context, here):
        with prometheus(context) as port:
            _wait(port, here, True, found)
        values.set(_values({}))
        with prometheus(context) as port:
            _wait(port, here, False, found)


def possible(context: Context, faults: Iterable[Fault]) -> list[Fault]:
    """Faults that can be caused here: real GPUs can't be broken on purpose."""
    return [fault for fault in faults if context.gpu == "mock" or not fault.mock]


@contextmanager
def _there(context: Context, faults: Iterable[Fault]) -> Iterator[None]:
    """All causes at once; they end in reverse order, even after a failure."""
    with ExitStack() as stack:
        for fault in faults:
            stack.enter_context(fault.cause(context))
        yield


def _wait(port: int, faults: list[Fault], due: bool, found: dict[str, dict[str, float]]) -> None:
    """Waits until each of them fires, or none does any more; records after how many seconds."""
    began, word = time.monotonic(), "fired_after" if due else "cleared_after"
    seconds, left = FIRES_S if due else CLEARS_S, list(faults)
    while True:
        firing = [one["labels"] for one in ask(port, "alerts")["alerts"] if one["state"] == "firing"]
        known = evaluated(ask(port, "rules"))
        for fault in list(left):
            if fault.alert in known and fires(fault, firing) == due:
                found.setdefault(fault.alert, {})[word] = round(time.monotonic() - began, 1)
                left.remove(fault)
        if not left:
            return
        names = ", ".join(fault.alert for fault in left)
        what = "does not fire" if due else "does not clear"
        others = ", ".join(sorted({labels["alertname"] for labels in firing})) or "none"
        require(time.monotonic() - began < seconds, f"{names} {what} within {seconds:.0f} s; firing: {others}")
        time.sleep(POLL_S)


def _received(context: Context, due: set[str]) -> int:
    """How many notifications the receiver got, once each of these alerts was sent as firing and as resolved."""
    wait = patience(SENT_S, POLL_S)
    while True:
        heard = RECEIVER.heard(context)
        sent = {(one["labels"]["alertname"], one["status"]) for one in heard}
        missing = sorted(
            f"{alert} {word}" for alert in due for word in ("firing", "resolved") if (alert, word) not in sent
        )
        if not missing:
            return len(heard)
        wait(f"the receiver did not get, within {SENT_S:.0f} s: {', '.join(missing)}")


def fires(fault: Fault, firing: Iterable[dict[str, str]]) -> bool:
    """Whether the alert is among the firing ones, with the labels of this cause."""
    due = {"alertname": fault.alert, **fault.labels}
    return any(due.items() <= labels.items() for labels in firing)


def evaluated(answer: dict[str, Any]) -> set[str]:
    """Alerts whose rules Prometheus has evaluated since it started: before that, none fires, which proves nothing."""
    told = [rule for group in answer["groups"] for rule in group["rules"] if rule["type"] == "alerting"]
    return {rule["name"] for rule in told} - {rule["name"] for rule in told if rule["health"] != "ok"}


def _panels(context: Context) -> dict[str, Any]:
    """Produces data for all panels, then runs each query until it has results."""
    folder = mock_gpu_folder(context.cluster, context.gpu_nodes[0])
    with causes.waiting_gang(context), causes.idle_pod(context):
        if context.gpu == "mock":
            for gpu in range(context.spec.count):
                mock.work(folder, gpu, BUSY, USED_MIB)
        try:
            line = runs.succeed(context, runs.FLOWS / "line.py", "-p", f"salt={time.time_ns()}", timeout=240)
            with prometheus(context) as port:
                began, queries = time.monotonic(), panels.queries()
                answers: dict[str, int] = {}
                while left := [query for query in queries if str(query) not in answers]:
                    for query in left:
                        if count := numbers(ask(port, "query", query=query.expr)):
                            answers[str(query)] = count
                    missing = [str(query) for query in queries if str(query) not in answers]
                    late = time.monotonic() - began > DATA_S
                    require(not (missing and late), f"without data after {DATA_S:.0f} s: {'; '.join(missing)}"[:1500])
                    time.sleep(POLL_S if missing else 0)
                drawn = panel_data.shown(partial(ask, port))
            runs.forget(context, line)
        finally:
            if context.gpu == "mock":
                for gpu in range(context.spec.count):
                    mock.work(folder, gpu, 0, 0)
    seconds = round(time.monotonic() - began, 1)
    return {"queries": len(answers), "series": sum(answers.values()), "seconds": seconds, "answers": answers,
            "dashboards": drawn}  # fmt: skip


def numbers(answer: dict[str, Any]) -> int:
    """How many numbers an instant query returned, without NaN and infinity."""
    if answer["resultType"] == "scalar":
        return 1
    return sum(math.isfinite(float(one["value"][1])) for one in answer["result"])
