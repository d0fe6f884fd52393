"""What goes wrong, where, and what to do about it: for the person who starts the server, and for its clients."""

from __future__ import annotations


class ServerError(Exception):
    """An error that its reader can act on.

    Args:
        what: what went wrong, as one sentence without a full stop.
        where: the file, setting or field concerned.
        hint: what to do about it, also without a full stop.
    """

    status = 500  # of HTTP, where a request ends with it

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what.rstrip("."), where, hint.rstrip(".")
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}. {self.hint}." if self.hint else f"{text}."


class CardError(ServerError):
    """A model's card or files that can't be served."""


class RequestError(ServerError):
    """A request that is not what the model takes."""

    status = 400


class NotFoundError(ServerError):
    """A path, model or version that is not here."""

    status = 404


class LateError(ServerError):
    """A request whose body does not come."""

    status = 408


class TooLargeError(ServerError):
    """More bytes or rows than one request may have."""

    status = 413


class BusyError(ServerError):
    """Nothing is wrong with the request; later it is answered."""

    status = 503
