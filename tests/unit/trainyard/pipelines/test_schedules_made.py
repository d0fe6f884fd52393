"""Schedules as Argo's CronWorkflows: their content, and times and names refused before sending."""

from datetime import UTC, datetime
from typing import Any

import pytest

from trainyard.errors import UsageError
from trainyard.pipelines.schedules import Times, checked, cron_workflow, moment, of_clock, row, state
from trainyard.policy.lint import shapes

WORKFLOW = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Workflow",
    "metadata": {
        "generateName": "nightly-", "namespace": "vision", "labels": {"trainyard.io/pipeline": "nightly"},
        "annotations": {"trainyard.io/submitted-by": "ada"},
    },
    "spec": {"entrypoint": "say", "templates": [{"name": "say", "container": {"image": "i"}}]},
}  # fmt: skip


def made(**times: Any) -> dict[str, Any]:
    found: dict[str, Any] = cron_workflow("nightly", WORKFLOW, Times(**({"cron": ["0 4 * * *"]} | times)))
    return found


def test_the_runs_are_the_workflow_that_submit_would_send() -> None:
    found = made()
    spec = found["spec"]
    assert spec["workflowSpec"] == WORKFLOW["spec"]
    assert spec["workflowMetadata"] == {key: WORKFLOW["metadata"][key] for key in ("labels", "annotations")}
    assert found["metadata"]["namespace"] == "vision" and found["metadata"]["name"] == "nightly"
    assert (spec["schedules"], spec["timezone"], spec["concurrencyPolicy"]) == (["0 4 * * *"], "UTC", "Forbid")
    assert "suspend" not in spec and "when" not in spec and "startingDeadlineSeconds" not in spec
    assert list(shapes.validation_errors(found)) == []


def test_every_option_has_its_field() -> None:
    start, end = datetime(2026, 12, 1, tzinfo=UTC), datetime(2026, 12, 24, 18, tzinfo=UTC)
    spec = made(cron=(), every_s=5400, start=start, end=end, late_s=3600, at_most=3, zone="Europe/Berlin")["spec"]
    assert (spec["schedules"], spec["timezone"], spec["startingDeadlineSeconds"]) == (
        ["0 0,3,6,9,12,15,18,21 * * *", "30 1,4,7,10,13,16,19,22 * * *"], "Europe/Berlin", 3600
    )  # fmt: skip
    assert spec["when"] == "{{=now() >= date('2026-12-01T00:00:00Z') && now() < date('2026-12-24T18:00:00Z')}}"
    assert spec["concurrencyPolicy"] == "Allow"
    semaphore = {"configMapKeyRef": {"name": "schedule-nightly", "key": "limit"}}
    assert spec["workflowSpec"]["synchronization"] == {"semaphores": [semaphore]}
    assert "synchronization" not in WORKFLOW["spec"]
    assert made(replace=True)["spec"]["concurrencyPolicy"] == "Replace"
    assert made(at_most=0)["spec"]["concurrencyPolicy"] == "Allow"


def test_an_interval_is_counted_from_midnight() -> None:
    found = [of_clock(minutes * 60) for minutes in (1, 30, 60, 720, 1440)]
    assert found == [["* * * * *"], ["*/30 * * * *"], ["0 * * * *"], ["0 0,12 * * *"], ["0 0 * * *"]]
    with pytest.raises(UsageError, match="an interval of 7 minutes does not divide a day"):
        of_clock(420)


@pytest.mark.parametrize("line", ["*/5 * * * *", "0 4 1,15 jan-mar mon-fri", "@daily", "0 0 ? * 0", "1-59/2 * * * *"])
def test_lines_that_argo_takes(line: str) -> None:
    assert checked(line) == line


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("61 4 * * *", "invalid minute: 61"),
        ("0 24 * * *", "invalid hour: 24"),
        ("0 4 0 * *", "invalid day of month: 0"),
        ("0 4 * 13 *", "invalid month: 13"),
        ("0 4 * * 7", "invalid day of week: 7"),
        ("0 4 * * mo", "invalid day of week: mo"),
        ("30-10 * * * *", "invalid minute: 30-10"),
        ("*/0 * * * *", "invalid minute: */0"),
        ("0 4 * *", "it has 4 fields"),
        ("@often", "it has 1 fields"),
    ],
)
def test_a_line_that_argo_would_refuse_is_refused_here(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("*", r"\*")):
        checked(line)


@pytest.mark.parametrize("name", ["Nightly", "a" * 53, "-a", "a_b", ""])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(UsageError, match="invalid name of a schedule"):
        cron_workflow(name, WORKFLOW, Times(["0 4 * * *"]))


def test_dates_count_in_the_zone_of_the_schedule() -> None:
    assert moment("2026-12-24T18:00", "Europe/Berlin") == datetime(2026, 12, 24, 17, tzinfo=UTC)
    assert moment("2026-12-24T18:00+00:00", "Europe/Berlin").hour == 18
    for text, zone, said in (("soon", "UTC", "invalid date 'soon'"), ("2026-12-24", "Berlin", "unknown time zone")):
        with pytest.raises(UsageError, match=said):
            moment(text, zone)


def test_the_table_says_how_it_stands() -> None:
    one = made()
    assert state(one) == "active"
    at = datetime(2026, 12, 1, 5, tzinfo=UTC)
    one["status"] = {
        "lastScheduledTime": "2026-12-01T04:00:00Z",
        "active": [{"name": "n"}],
        "succeeded": 3,
        "failed": 1,
    }
    assert row(one, at) == ["nightly", "0 4 * * *", "UTC", "active", "1h00m", "1", "3", "1", "ada"]
    one["status"]["conditions"] = [{"type": "SubmissionError", "message": "exceeded quota"}]
    assert state(one) == "refused"
    one["spec"]["suspend"] = True
    assert state(one) == "paused"
