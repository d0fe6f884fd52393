"""Alerts fire, clear and stay silent as their cases say, in promtool; and what a site sets takes its place in them."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.paths import ROOT
from trainyard_dev import tools
from trainyard_dev.monitoring import rules

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("*.test.yaml"))
HELPER = ROOT / "charts" / "monitoring" / "templates" / "_rules.tpl"
ALERTS = (
    "TrainyardGangWaits", "TrainyardNodeLost", "TrainyardGpuLost", "TrainyardGpuSick", "TrainyardJobIdleOnGpus",
    "TrainyardControllerDown", "TrainyardControllerRestarts", "TrainyardCertificateEnds", "TrainyardKeyOld",
    "TrainyardBackupMissed", "TrainyardVolumeFills", "TrainyardEtcdFills", "TrainyardQueueStarved",
    "TrainyardTargetDown",
)  # fmt: skip
TEMPLATE = """{{- range $file, $_ := .Files.Glob "files/rules/*.yaml" }}
---
{{ include "monitoring.rulesFile" (dict "root" $ "file" $file) }}
{{- end }}
"""


def _run(program: Path, *words: str | Path) -> None:
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_files_are_rules(promtool: Path) -> None:
    _run(promtool, "check", "rules", *rules.files())


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name.partition(".")[0])
def test_alerts_fire_and_clear(promtool: Path, case: Path) -> None:
    _run(promtool, "test", "rules", case)


def test_these_are_the_alerts() -> None:
    assert {alert["alert"] for alert in rules.alerts()} == set(ALERTS)


def test_every_alert_says_how_bad_what_and_what_to_do() -> None:
    for alert in rules.alerts():
        assert alert["labels"]["severity"] in ("warning", "critical"), alert["alert"]
        assert alert["annotations"]["summary"] and alert["annotations"]["description"], alert["alert"]
        assert alert["annotations"]["runbook_url"] == f"docs/runbooks/{alert['alert']}.md"
        assert re.fullmatch(r"[0-9]+[smh]", alert["for"]), alert["alert"]
        # Labels of the rule itself are none of $labels: a text that names them would be blank there.
        named = set(re.findall(r"\$labels\.(\w+)", "".join(alert["annotations"].values())))
        assert not named & set(alert["labels"]), alert["alert"]


def test_every_alert_has_cases_in_which_it_fires_clears_and_must_not_fire() -> None:
    fires, clears, silent = set(), set(), set()
    for case in (case for file in CASES for case in yaml.safe_load(file.read_text())["tests"]):
        looks = case["alert_rule_test"]
        name = looks[0]["alertname"]
        fired = [place for place, look in enumerate(looks) if look["exp_alerts"]]
        fires |= {name} if fired else set()
        clears |= {name} if fired and fired[-1] < len(looks) - 1 else set()
        silent |= set() if fired else {name}
    assert fires == clears == silent == set(ALERTS)


def test_a_threshold_is_written_once_and_used() -> None:
    said = [rule["labels"]["alert"] for rule in rules.all_rules() if rule.get("record") == rules.THRESHOLD]
    assert len(said) == len(set(said))
    text = "\n".join(file.read_text() for file in rules.files())
    for alert in said:
        assert f'{rules.THRESHOLD}{{alert="{alert}"}}' in text, alert


@pytest.fixture(scope="module")
def templated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The files as Helm gives them out for some values, in a chart that has nothing else."""
    folder = tmp_path_factory.mktemp("chart")
    (folder / "templates").mkdir()
    (folder / "files").symlink_to(rules.FOLDER.parent)
    (folder / "Chart.yaml").write_text("{apiVersion: v2, name: rules, version: 0.0.1}\n")
    (folder / "templates" / "_rules.tpl").write_text(HELPER.read_text())
    (folder / "templates" / "rules.yaml").write_text(TEMPLATE)

    def render(alerts: dict[str, Any]) -> list[dict[str, Any]]:
        file = folder / "own.yaml"
        file.write_text(yaml.safe_dump({"alerts": alerts}))
        argv = [tools.binary("helm"), "template", "x", folder, "-f", file]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        documents = [document for document in yaml.safe_load_all(done.stdout) if document]
        return [rule for document in documents for group in document["groups"] for rule in group["rules"]]

    return render


def test_without_values_helm_gives_out_the_files_as_they_are(templated: Any) -> None:
    assert templated({}) == [rule for file in rules.files() for rule in rules.rules_of(file)]


def test_what_a_site_sets_takes_its_place(templated: Any, promtool: Path, tmp_path: Path) -> None:
    found = templated(
        {
            "runbooks": "https://wiki.example.org/runbooks/",
            "rules": {
                "TrainyardGangWaits": {"threshold": 7200, "for": "10s", "severity": "critical"},
                "TrainyardKeyOld": {"enabled": False},
            },
        }
    )
    by_name = {rule["alert"]: rule for rule in found if "alert" in rule}
    waits = by_name["TrainyardGangWaits"]
    assert (waits["for"], waits["labels"]["severity"]) == ("10s", "critical")
    assert waits["annotations"]["runbook_url"] == "https://wiki.example.org/runbooks/TrainyardGangWaits.md"
    assert "TrainyardKeyOld" not in by_name and "TrainyardEtcdFills" in by_name
    bounds = {rule["labels"]["alert"]: rule["expr"] for rule in found if rule.get("record") == rules.THRESHOLD}
    assert bounds["TrainyardGangWaits"] == "7200" and bounds["TrainyardVolumeFills"] == "0.85"
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": found}]}))
    _run(promtool, "check", "rules", file)
