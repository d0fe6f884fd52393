"""Errors with what went wrong, where, and how to fix it: for the person who starts the server, and for its clients."""

from __future__ import annotations


class ServerError(Exception):
    """An error that the user can fix.

    Args:
        what: what went wrong, as one sentence without a full stop.
        where: the affected file, setting or field.
        hint: how to fix it, also without a full stop.
    """

    status = 500  # HTTP status of a request that fails with this error

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what.rstrip("."), where, hint.rstrip(".")
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}. {self.hint}." if self.hint else f"{text}."


class CardError(ServerError):
    """The model's card or files can't be served."""


class RequestError(ServerError):
    """The request does not match the model's inputs."""

    status = 400


class NotFoundError(ServerError):
    """The path, model or version does not exist."""

    status = 404


class LateError(ServerError):
    """The request's body did not arrive in time."""

    status = 408


class TooLargeError(ServerError):
    """The request exceeds the limit of bytes or rows."""

    status = 413


class BusyError(ServerError):
    """The server is too busy; the request is valid and can be retried."""

    status = 503
