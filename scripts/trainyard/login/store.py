"""Storage of tokens: one file for each issuer and client, readable only by its owner."""

import fcntl
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.login.tokens import Tokens

FOLDER = "TRAINYARD_LOGIN"  # another folder, for tests and for shared home folders


def folder() -> Path:
    """`$TRAINYARD_LOGIN`, else `~/.config/trainyard/login`; created with mode 0700 if absent."""
    found = Path(os.environ.get(FOLDER) or Path.home() / ".config" / "trainyard" / "login")
    found.mkdir(mode=0o700, parents=True, exist_ok=True)
    return found


def file(issuer: str, client: str) -> Path:
    """Path of the file for one issuer and client, even if it does not exist."""
    digest = hashlib.sha256(" ".join((issuer.rstrip("/"), client)).encode()).hexdigest()
    return folder() / f"{digest[:24]}.json"


@contextmanager
def held(issuer: str, client: str) -> Iterator[None]:
    """Locks these tokens against other processes: an issuer accepts a refresh token only once."""
    descriptor = os.open(file(issuer, client).with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read(issuer: str, client: str, *, strict: bool = True) -> Tokens | None:
    """The stored tokens, or None.

    Raises:
        TrainyardError: another user can read or owns the file, unless not `strict`.
    """
    place = file(issuer, client)
    try:
        with place.open("rb") as opened:
            found = os.fstat(opened.fileno())
            if strict and (stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != os.geteuid()):
                raise TrainyardError(
                    f"others can read the tokens (mode {stat.S_IMODE(found.st_mode):04o})",
                    where=str(place),
                    hint="run `trainyard logout`, then log in again",
                )
            said = json.loads(opened.read())
        return Tokens(str(said["id_token"]), str(said["refresh_token"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return None  # incomplete file of another program: treat it as missing


def write(issuer: str, client: str, tokens: Tokens, ca: str = "") -> Path:
    """Stores the tokens atomically, with mode 0600; `ca` is the file of the issuer's certificate authority."""
    place = file(issuer, client)
    said = {"issuer": issuer, "client": client, "ca": ca, "id_token": tokens.id_token}
    said["refresh_token"] = tokens.refresh_token
    descriptor, name = tempfile.mkstemp(prefix=".new-", dir=place.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "w") as opened:
            json.dump(said, opened)
        os.replace(name, place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return place


def kept() -> list[tuple[str, str, str]]:
    """(issuer, client, certificate authority file) of every stored log-in."""
    found = []
    for place in sorted(folder().glob("*.json")):
        try:
            said = json.loads(place.read_text())
            found.append((str(said["issuer"]), str(said["client"]), str(said.get("ca") or "")))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def forget(issuer: str, client: str) -> bool:
    """Deletes the tokens; returns whether there were any."""
    place = file(issuer, client)
    there = place.exists()
    place.unlink(missing_ok=True)
    return there
