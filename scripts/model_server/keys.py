"""API keys: the SHA-256 digests of valid keys, reloaded when the file changes."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from pathlib import Path

from model_server.errors import ServerError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_LOOK_S = 5.0


class Keys:
    """The valid keys in a file. While the file can't be read, all keys are refused.

    Raises:
        ServerError: at the server's start, the file can't be read, or is not a list of digests.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._looked = file, time.monotonic()
        self._digests = read(file)

    def allow(self, authorization: str) -> bool:
        """Whether the Authorization header contains a valid key."""
        self._look()
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            return False
        found = hashlib.sha256(key.strip().encode()).hexdigest()
        return sum(hmac.compare_digest(found, one) for one in self._digests) > 0  # all: constant time

    def _look(self) -> None:
        if time.monotonic() - self._looked < _LOOK_S:
            return
        self._looked = time.monotonic()
        try:
            self._digests = read(self._file)
        except ServerError as error:
            if self._digests:
                print(f"all keys are refused: {error}", flush=True)
            self._digests = []


def read(file: Path) -> list[str]:
    """Reads the digests of a file. Raises ServerError."""
    hint = "write a JSON list of SHA-256 digests of keys, each 64 hexadecimal digits"
    try:
        said = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ServerError(f"can't be read: {error}", where=str(file), hint=hint) from None
    if not isinstance(said, list) or not all(isinstance(one, str) and _DIGEST.fullmatch(one) for one in said):
        raise ServerError("must contain digests only", where=str(file), hint=hint)
    return said
