"""One request, as the parts of the API see it, and what they all share."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kfp_api.caller import Caller
from kfp_api.errors import invalid
from trainyard.contract import Contract

if TYPE_CHECKING:
    from kfp_api.artifacts import Artifacts

Json = dict[str, Any]


@dataclass(frozen=True)
class Service:
    """What all requests share.

    Args:
        contract: the platform's, asked for at each use.
        artifacts: the way to what runs left in the store; None: the service has no account there.
        rows: runs as lists show them, by the version of their object, in memory alone.
    """

    contract: Callable[[], Contract]
    artifacts: Artifacts | None = None
    rows: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One request of one caller.

    Args:
        at: parts of the path, by name.
        body: the whole body; `files` are the parts of a multipart one, by name.
    """

    service: Service
    caller: Caller
    at: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    files: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)

    def json(self) -> Json:
        """The body as an object. Raises RefusalError."""
        try:
            found = json.loads(self.body or b"{}", parse_constant=_finite, parse_float=_finite)
        except (ValueError, RecursionError):
            raise invalid("the body is not JSON") from None
        if not isinstance(found, dict):
            raise invalid("the body is not a JSON object")
        return found


def text(body: Mapping[str, Any], key: str, longest: int, *, needed: bool = False) -> str:
    """A text in a request's body. Raises RefusalError for one that is missing, too long, or something else."""
    found = body.get(key)
    if found is None or found == "":
        if needed:
            raise invalid(f"{key} is missing")
        return ""
    if not isinstance(found, str):
        raise invalid(f"{key} is not a text")
    if len(found) > longest:
        raise invalid(f"{key} has {len(found):,} characters; at most {longest:,} are allowed")
    if any(unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" for letter in found):
        raise invalid(f"{key} has control characters; remove them")
    return found


def _finite(number: str) -> float:
    """A number of a body. JSON has no others, so nobody could read them again."""
    if not math.isfinite(found := float(number)):
        raise ValueError(number)
    return found
