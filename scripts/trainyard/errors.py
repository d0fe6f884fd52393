"""The one exception that users see: what went wrong, where, and how to fix it."""


class TrainyardError(Exception):
    """An error that its reader can act on.

    Args:
        what: what went wrong, as one sentence without a full stop.
        where: the file, host or object concerned, when the sentence doesn't name it.
        hint: what to do about it: a command or a change, also without a full stop.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what.rstrip("."), where, hint.rstrip(".")
        super().__init__(str(self))

    def __str__(self) -> str:
        """Both sentences in one line, for a text that quotes the error."""
        return " ".join(line.split(": ", 1)[1] + "." for line in self.lines())

    def lines(self) -> list[str]:
        """What a terminal shows: `error: …`, and `hint: …` where there is a hint."""
        return report(f"{self.where}: {self.what}" if self.where else self.what, self.hint)


class UsageError(TrainyardError):
    """A wrong flag, value or combination: nothing was started. Exit code 2."""

    exit_code = 2


def report(what: str, hint: str = "") -> list[str]:
    """The lines of an error: `error: …`, and `hint: …` where there is a hint."""
    return [f"error: {what}", *([f"hint: {hint}"] if hint else [])]
