"""`trainyard schedule`, as a member of a team types it, against the real controller: runs begin when they should."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pipeline_harness import MERGE, WORKFLOWS, PipelineHarness

from waiting import wait

pytestmark = pytest.mark.long  # runs begin once a minute at most
MINUTE_S = 90.0
PIPELINE = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Workflow",
    "metadata": {"generateName": "often-"},
    "spec": {
        "entrypoint": "say",
        "templates": [
            {
                "name": "say",
                "container": {
                    "image": "site.invalid/trainyard/pipeline:0.4.0", "command": ["sh", "-c", "sleep 1"],
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "16Mi"}},
                },
            }
        ],
    },
}  # fmt: skip
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "often.yaml"
    path.write_text(yaml.safe_dump(PIPELINE))
    return path


def _runs(harness: PipelineHarness, name: str) -> list[dict[str, Any]]:
    found = harness.server.call("GET", WORKFLOWS.format("vision")).body["items"]
    return [one for one in found if one["metadata"]["labels"].get("workflows.argoproj.io/cron-workflow") == name]


def test_runs_begin_at_their_times_and_at_no_others(harness: PipelineHarness, call: Call, pipeline: Path) -> None:
    each = ("--cron", "* * * * *", "--time-zone", "Asia/Tokyo")
    for name, more in {
        "often": ("--start", "2026-01-01", "--end", "2099-01-01", "--max-running", "2", "-e", "nights"),
        "early": ("--start", "2099-01-01"), "over": ("--end", "2026-01-01"),
    }.items():  # fmt: skip
        code, _, err = call("schedule", "create", name, pipeline, *each, *more)
        assert code == 0, err
    assert call("schedule", "create", "still", pipeline, "--every", "1m", "--paused")[0] == 0
    code, _, err = call("schedule", "create", "often", pipeline, *each)
    assert code == 1 and "schedule often already exists in vision" in err

    wait(lambda: any(one["status"].get("phase") == "Succeeded" for one in _runs(harness, "often")), "a run", MINUTE_S)
    run = _runs(harness, "often")[0]
    assert run["metadata"]["annotations"]["trainyard.io/submitted-by"] == "ada"
    assert run["metadata"]["labels"]["trainyard.io/experiment"] == "nights"
    assert run["spec"]["podMetadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "vision"
    assert [_runs(harness, name) for name in ("early", "over", "still")] == [[], [], []]

    code, out, _ = call("schedule", "list")
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0 and "active" in rows["often"] and "paused" in rows["still"] and rows["often"].endswith("ada")
    assert call("schedule", "resume", "still")[0] == 0 and call("schedule", "pause", "often")[0] == 0
    wait(lambda: _runs(harness, "still"), "a run of what was resumed", MINUTE_S)

    for name in ("often", "early", "over", "still"):
        assert call("schedule", "delete", name)[0] == 0
    code, _, err = call("schedule", "delete", "often")
    assert code == 1 and "no schedule often in vision" in err
    assert call("schedule", "list")[2] == "no schedules in vision\n"


def test_a_suspended_team_stops_its_schedules(harness: PipelineHarness, call: Call, pipeline: Path) -> None:
    """A team whose quota has no workflows left begins no run, and the table says why."""
    quotas = "/api/v1/namespaces/vision/resourcequotas"
    none = {"count/workflows.argoproj.io": "0"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "suspended"}, "spec": {"hard": none}}
    assert harness.server.call("POST", quotas, quota).ok
    status = {"status": {"hard": none, "used": none}}  # which a cluster's controller writes
    assert harness.server.call("PATCH", f"{quotas}/suspended/status", status, content=MERGE).ok
    try:
        assert call("schedule", "create", "held", pipeline, "--cron", "* * * * *")[0] == 0

        def refused() -> str:
            _, out, err = call("schedule", "list")
            return out + err if "refused" in out else ""

        assert "exceeded quota: suspended" in wait(refused, "a refusal", MINUTE_S)
        assert _runs(harness, "held") == []
    finally:
        harness.server.call("DELETE", f"{quotas}/suspended")
        call("schedule", "delete", "held")
