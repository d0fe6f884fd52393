"""One line of the doctor's list."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "missing", "not needed"]


@dataclass(frozen=True)
class Finding:
    """The result ``found`` by a ``check``; ``hint`` is the command that fixes it, empty where none is needed.

    ``warn`` works but costs something (slower, less is tested); ``missing`` stops `make e2e`.
    """

    group: str
    check: str
    found: str
    state: State
    hint: str = ""


@dataclass(frozen=True)
class Wanted:
    """The options of the run: ``images`` pull or build, ``gpu`` mock or real, ``engine`` docker or podman, or auto."""

    images: str = "auto"
    gpu: str = "auto"
    engine: str = "auto"


def healthy(findings: Iterable[Finding]) -> bool:
    """Whether everything that is needed is there."""
    return all(finding.state != "missing" for finding in findings)
