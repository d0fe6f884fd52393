"""Alert and recording rules of the chart `monitoring`, read from its files."""

from pathlib import Path
from typing import Any

import yaml

from trainyard.paths import ROOT

FOLDER = ROOT / "charts" / "monitoring" / "files" / "rules"
RUNBOOKS = ROOT / "docs" / "runbooks"
THRESHOLD = "trainyard:threshold"
Rule = dict[str, Any]


def files() -> list[Path]:
    """Every file of rules, by name."""
    return sorted(FOLDER.glob("*.yaml"))


def rules_of(file: Path) -> list[Rule]:
    """The rules of one file, in order."""
    return [rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


def all_rules() -> list[Rule]:
    """The rules of all files."""
    return [rule for file in files() for rule in rules_of(file)]


def alerts() -> list[Rule]:
    """The alert rules; a name may occur several times, for several causes."""
    return [rule for rule in all_rules() if "alert" in rule]


def names() -> list[str]:
    """Names of the alerts, each once, in the files' order."""
    return list(dict.fromkeys(rule["alert"] for rule in alerts()))


def records() -> set[str]:
    """Names of the series that the recording rules make."""
    return {rule["record"] for rule in all_rules() if "record" in rule}
