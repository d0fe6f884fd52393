"""Findings as text for people, JSON for programs and SARIF for code hosts."""

import json
from collections.abc import Sequence
from typing import Any

from trainyard import __version__
from trainyard.policy.lint.codes import registry
from trainyard.policy.lint.finding import Finding, Severity
from trainyard.policy.lint.page import PAGE

FORMATS = ("text", "json", "sarif")
SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def render(findings: Sequence[Finding], form: str, files: int = 1, source: str = "") -> str:
    """The findings in one of FORMATS. `files` and `source` (of the contract) are in the text's last line."""
    if form == "json":
        return json.dumps({"contract": source, "findings": [one.as_dict() for one in findings]}, indent=2)
    if form == "sarif":
        return json.dumps(_sarif(findings), indent=2)
    return "\n".join([*map(_line, findings), _sum(findings, files, source)])


def _line(one: Finding) -> str:
    return f"{one.line_of_text}\n    {one.hint}" if one.hint else one.line_of_text


def _sum(findings: Sequence[Finding], files: int, source: str) -> str:
    counts = [(sum(one.severity is level for one in findings), str(level)) for level in reversed(Severity)]
    counted = ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in counts if count) or "no problems"
    return f"{files} file{'s' * (files != 1)}: {counted}" + (f" (contract: {source})" if source else "")


def _sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    codes = registry()
    used = sorted({one.code for one in findings})
    return {
        "$schema": SARIF,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "trainyard lint",
                        "version": __version__,
                        "rules": [
                            {
                                "id": code,
                                "shortDescription": {"text": codes[code].title},
                                "fullDescription": {"text": codes[code].why},
                                "help": {"text": f"{PAGE}#{code}"},
                                "defaultConfiguration": {"level": str(codes[code].severity)},
                            }
                            for code in used
                        ],
                    }
                },
                "results": [_result(one, used.index(one.code)) for one in findings],
            }
        ],
    }


def _result(one: Finding, index: int) -> dict[str, Any]:
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": one.file.replace("\\", "/")},
            "region": {"startLine": max(one.line, 1)},
        }
    }
    if one.task:
        place["logicalLocations"] = [{"fullyQualifiedName": one.task}]
    return {
        "ruleId": one.code,
        "ruleIndex": index,
        "level": str(one.severity),
        "message": {"text": f"{one.reason}. {one.hint}" if one.hint else one.reason},
        "locations": [place],
        "properties": {"task": one.task, "field": one.field},
    }
