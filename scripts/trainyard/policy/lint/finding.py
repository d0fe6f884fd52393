"""Finding of a rule, and its severity."""

import dataclasses
import enum


class Severity(enum.IntEnum):
    """Severity of a finding. `note` is for people only; `error` means that the object would be rejected or fail."""

    NOTE = 0
    WARNING = 1
    ERROR = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """One problem at one place. `task` is a pipeline's task or the object; `field` is the affected field."""

    file: str
    line: int
    code: str
    reason: str
    hint: str = ""
    task: str = ""
    field: str = ""
    severity: Severity = Severity.ERROR
    policy: str = ""  # the admission rule that reports it

    @property
    def where(self) -> str:
        """`file:line`, as editors expect it."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def line_of_text(self) -> str:
        """All except the hint, in one line."""
        place = " ".join(filter(None, [self.task, self.field]))
        rule = f"{self.code} {self.policy}".rstrip()
        return f"{self.where}: {self.severity} {rule} {f'[{place}] ' if place else ''}{self.reason}"

    def as_dict(self) -> dict[str, object]:
        """The finding as a dictionary for JSON output."""
        said = {
            "code": self.code,
            "severity": str(self.severity),
            "file": self.file,
            "line": self.line,
            "task": self.task,
            "field": self.field,
            "reason": self.reason,
            "hint": self.hint,
        }
        return said | ({"policy": self.policy} if self.policy else {})
