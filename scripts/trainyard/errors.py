"""The exceptions that users see: what went wrong, where, and how to fix it."""


class TrainyardError(Exception):
    """An error that the user can fix.

    Args:
        what: what went wrong, as one sentence without a full stop.
        where: the affected file, host or object, if the sentence doesn't name it.
        hint: how to fix it: a command or a change, also without a full stop.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what.rstrip("."), where, hint.rstrip(".")
        super().__init__(str(self))

    def __str__(self) -> str:
        """Both sentences on one line, for texts that quote the error."""
        return " ".join(line.split(": ", 1)[1] + "." for line in self.lines())

    def lines(self) -> list[str]:
        """Lines for a terminal: `error: …`, and `hint: …` if there is a hint."""
        return report(f"{self.where}: {self.what}" if self.where else self.what, self.hint)


class UsageError(TrainyardError):
    """A wrong flag, value or combination: nothing was started. Exit code 2."""

    exit_code = 2


def report(what: str, hint: str = "") -> list[str]:
    """The lines of an error: `error: …`, and `hint: …` if there is a hint."""
    return [f"error: {what}", *([f"hint: {hint}"] if hint else [])]
