"""Refusals, in the form in which KFP's server writes them."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from trainyard.errors import TrainyardError, UsageError
from trainyard.kube import KubeError

LONGEST = 8000  # characters of a message: it may quote what the caller sent


class Code(IntEnum):
    """gRPC's codes, as far as KFP uses them."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


HTTP = {
    Code.INVALID_ARGUMENT: 400,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.UNAUTHENTICATED: 401,
}
# What the API server's status means to a client of KFP; others are its failures.
OF_KUBERNETES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    409: Code.ALREADY_EXISTS,
    413: Code.INVALID_ARGUMENT,
    422: Code.INVALID_ARGUMENT,
    429: Code.RESOURCE_EXHAUSTED,
}


class RefusalError(Exception):
    """A request that is not answered. `message` is one sentence that says what is wrong and how to fix it."""

    def __init__(self, code: Code, message: str, *, http: int = 0) -> None:
        message = message if len(message) <= LONGEST else f"{message[:LONGEST]} …"
        super().__init__(message)
        self.code, self.message, self.http = code, message, http or HTTP[code]

    def body(self) -> dict[str, Any]:
        """KFP's JSON: `error` repeats the message, and clients print either."""
        return {"error": self.message, "code": int(self.code), "message": self.message, "details": []}


def invalid(message: str) -> RefusalError:
    """A refusal of the request's own content."""
    return RefusalError(Code.INVALID_ARGUMENT, message)


def missing(what: str, name: str) -> RefusalError:
    """A refusal of an id that names nothing. The id may be anything, so it is shortened."""
    return RefusalError(Code.NOT_FOUND, f"no {what} {name[:100]!r}")


def logged(what: str, error: BaseException) -> None:
    """Prints where an error came from that nobody foresaw, without what the caller sent."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    print(f"{what}: {type(error).__name__} at {where.name}:{where.lineno}", flush=True)


@contextmanager
def compiled() -> Iterator[None]:
    """Refuses pipelines that break the translation: those that kfp's compiler does not write."""
    try:
        yield
    except (RefusalError, TrainyardError):
        raise
    except Exception as error:
        logged("a pipeline was refused", error)
        raise invalid("the pipeline is in a form that kfp's compiler does not write, or nests too deeply") from None


def of(error: TrainyardError) -> RefusalError:
    """The refusal for an error of the product."""
    text = f"{error.what}; {error.hint}" if error.hint else error.what
    if isinstance(error, KubeError) and error.status == 401:
        return RefusalError(Code.UNAUTHENTICATED, "the cluster does not accept this token; log in again")
    if isinstance(error, KubeError):
        return RefusalError(OF_KUBERNETES.get(error.status, Code.UNAVAILABLE), text)
    return RefusalError(Code.INVALID_ARGUMENT if isinstance(error, UsageError) else Code.FAILED_PRECONDITION, text)
