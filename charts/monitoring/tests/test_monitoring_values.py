"""Values of monitoring: their effects, and refusals of those that can't work."""

from __future__ import annotations

import re
from typing import Any

import pytest
from found import named, pod_of
from monitored import config_of, on

from rendering import Rendering
from trainyard.components import MONITORING
from trainyard.paths import ROOT
from trainyard_dev.monitoring import rules


@pytest.mark.parametrize(
    ("every", "timeout"), [("5s", "5s"), ("7s", "5s"), ("10s", "10s"), ("55s", "10s"), ("2m", "10s")]
)
def test_an_answer_is_not_awaited_longer_than_until_the_next_question(
    render: Rendering, every: str, timeout: str
) -> None:
    said = config_of(render(on(prometheus={"scrapeEvery": every})))["global"]
    assert (said["scrape_interval"], said["scrape_timeout"]) == (every, timeout)


def test_alerts_without_a_threshold_are_those_that_the_rules_have() -> None:
    """Of all others a threshold is taken up."""
    said = {str(rule["labels"]["alert"]) for rule in rules.all_rules() if rule.get("record") == rules.THRESHOLD}
    refusing = (ROOT / "charts" / "monitoring" / "umbrella" / "_validate-monitoring.tpl").read_text()
    assert set(re.findall(r'"(Trainyard\w+)"', refusing)) == set(rules.names()) - said


ROUTE = {"receiver": "ops", "routes": [{"receiver": "night", "matchers": ['team="vision"']}]}
REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"prometheus": {"retentionSize": "20Gi", "storage": {"size": "20Gi", "class": ""}}},
        "monitoring.prometheus.retentionSize is 20Gi, but the volume has 20Gi: the volume would fill up first; "
        "make storage.size larger, or leave retentionSize empty.",
    ),
    (
        {"prometheus": {"enabled": False}},
        "monitoring.alertmanager.enabled is true and monitoring.prometheus.enabled is false: "
        "nothing would send alerts to it; set alertmanager.enabled to false as well.",
    ),
    (
        {"kubeStateMetrics": {"enabled": False}},
        "monitoring.kubeStateMetrics.enabled is false: the bundled Prometheus has no other source, so alerts on nodes, "
        "controllers and backups could not fire; leave it true.",
    ),
    (
        {"alerts": {"rules": {"TrainyardNodeLost": {"threshold": 600}}}},
        "monitoring.alerts.rules.TrainyardNodeLost.threshold is 600, but this alert has no threshold: "
        "remove it, or set `for`.",
    ),
    (
        {"mockGpus": {"enabled": True}, "dcgm": {"namespace": "gpu-operator"}},
        "monitoring.mockGpus.enabled is true and monitoring.dcgm.namespace is gpu-operator: "
        "mock GPUs have no DCGM exporter; disable mockGpus if the GPUs are real.",
    ),
    (
        {"alertmanager": {"config": {"route": ROUTE, "receivers": [{"name": "ops"}]}}},
        "monitoring.alertmanager.config has a route to night, which is not among its receivers (ops): "
        "add it, or name one of these.",
    ),
    (
        {"alertmanager": {"config": {"route": {"receiver": None}, "receivers": [{"name": "ops"}]}}},
        "monitoring.alertmanager.config.route has no receiver: name the receiver of alerts that no other route "
        "matches.",
    ),
    (
        {"alertmanager": {"config": {"receivers": [{"slack_configs": []}], "route": {"receiver": "ops"}}}},
        "monitoring.alertmanager.config.receivers[0] has no name: routes refer to receivers by name, so give it one.",
    ),
]


@pytest.mark.parametrize(("values", "said"), REFUSED)
def test_values_that_can_t_work_are_refused_by_a_sentence(render: Rendering, values: dict[str, Any], said: str) -> None:
    assert said in render.errors({MONITORING: {"enabled": True, **values}})
    assert not [line for line in render.errors({MONITORING: {**values, "enabled": False}}) if "monitoring" in line]


def test_a_receiver_of_the_site_s_own_secret_is_not_looked_into(render: Rendering) -> None:
    found = render(on(alertmanager={"secret": "receivers", "config": {"route": {"receiver": "elsewhere"}}}))
    assert ("Secret", "trainyard-system", "trainyard-alertmanager") not in named(found)
    spec = pod_of(found, "StatefulSet", "trainyard-alertmanager")
    assert spec["volumes"][0]["secret"]["secretName"] == "receivers"


def test_a_team_gives_no_series_of_gpus(render: Rendering) -> None:
    teams = {"contract": {"teams": [{"name": "vision", "gid": 20001}]}}
    said = render.errors({"global": teams, MONITORING: {"enabled": True, "dcgm": {"namespace": "vision"}}})
    assert any(line.startswith("monitoring.dcgm.namespace is vision, a team's") for line in said)
