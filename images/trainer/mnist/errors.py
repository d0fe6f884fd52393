"""The one error a user of the trainers sees: what went wrong, where, and what mends it."""

from __future__ import annotations


class TrainError(Exception):
    """A failure to report as one sentence; never raised for a programming mistake. `missing`: nothing is there."""

    def __init__(self, what: str, *, where: str = "", mend: str = "", missing: bool = False) -> None:
        self.what, self.where, self.mend, self.missing = what, where, mend, missing
        text = f"{where}: {what}" if where else what
        super().__init__(f"{text}; {mend}" if mend else text)
