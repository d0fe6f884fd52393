"""What a rule has found, and how bad that is."""

import dataclasses
import enum


class Severity(enum.IntEnum):
    """`note` is for people alone; `error` means that it would be refused or fail."""

    NOTE = 0
    WARNING = 1
    ERROR = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """One problem at one place. `task` is a pipeline's task or the object; `field` the part of it."""

    file: str
    line: int
    code: str
    reason: str
    hint: str = ""
    task: str = ""
    field: str = ""
    severity: Severity = Severity.ERROR
    policy: str = ""  # the admission rule that says so

    @property
    def where(self) -> str:
        """`file:line`, as editors understand it."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def line_of_text(self) -> str:
        """Everything but the hint, in one line."""
        place = " ".join(filter(None, [self.task, self.field]))
        rule = f"{self.code} {self.policy}".rstrip()
        return f"{self.where}: {self.severity} {rule} {f'[{place}] ' if place else ''}{self.reason}"

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
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
