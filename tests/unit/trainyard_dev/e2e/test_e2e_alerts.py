"""What the check of alerts counts as fired and cleared, and that every alert of the rules has a cause."""

from trainyard_dev.e2e.checks import alert_causes, alerts
from trainyard_dev.monitoring import rules

FAULT = alert_causes.Fault("TrainyardGpuSick", alert_causes.broken_gpu, {"cause": "xid"}, mock=True)


def test_every_alert_is_fired_once() -> None:
    assert sorted(fault.alert for fault in alert_causes.ALL) == sorted(rules.names())


def test_bounds_are_those_of_seconds_for_every_alert() -> None:
    bounds = alert_causes.bounds(10_000_000)
    assert set(bounds) == set(rules.names())
    assert {one["for"] for one in bounds.values()} == {"10s"}
    with_bound = {rule["labels"]["alert"] for rule in rules.all_rules() if rule.get("record") == rules.THRESHOLD}
    assert {name for name, one in bounds.items() if "threshold" in one} <= with_bound
    assert bounds["TrainyardEtcdFills"]["threshold"] > 10_000_000


def test_an_alert_of_another_cause_is_not_this_one() -> None:
    hot = {"alertname": "TrainyardGpuSick", "cause": "temperature"}
    assert not alerts.fires(FAULT, [hot, {"alertname": "TrainyardNodeLost", "cause": "xid"}])
    assert alerts.fires(FAULT, [hot, hot | {"cause": "xid", "gpu": "3"}])


def test_a_rule_that_was_not_evaluated_yet_says_nothing() -> None:
    def rule(name: str, health: str, kind: str = "alerting") -> dict[str, str]:
        return {"name": name, "health": health, "type": kind}

    told = [rule("A", "ok"), rule("B", "unknown"), rule("C", "ok"), rule("C", "unknown"), rule("r", "ok", "recording")]
    assert alerts.evaluated({"groups": [{"rules": told}]}) == {"A"}


def test_nothing_and_no_number_are_no_data() -> None:
    def vector(*values: str) -> dict[str, object]:
        return {"resultType": "vector", "result": [{"value": [0, value]} for value in values]}

    assert alerts.numbers(vector()) == alerts.numbers(vector("NaN", "+Inf")) == 0
    assert alerts.numbers(vector("0", "1.5", "NaN")) == 2
    assert alerts.numbers({"resultType": "scalar", "result": [0, "1"]}) == 1


def test_the_waiting_team_has_a_share_and_the_other_none() -> None:
    teams = alerts._values({})["global"]["contract"]["teams"]
    assert [bool(team.get("queue", {}).get("deserved")) for team in teams] == [True, False]
