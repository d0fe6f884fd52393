"""The one error a user of the trainers sees: what went wrong, where, and what fixes it."""

from __future__ import annotations


class TrainError(Exception):
    """A failure to report as one sentence; never raised for a programming mistake. `missing`: nothing is there."""

    def __init__(self, what: str, *, where: str = "", hint: str = "", missing: bool = False) -> None:
        self.what, self.where, self.hint, self.missing = what, where, hint, missing
        text = f"{where}: {what}" if where else what
        super().__init__(f"{text}; {hint}" if hint else text)
