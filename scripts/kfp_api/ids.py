"""Ids, which carry what a service without a database must know: the team, and the object's name.

    run, recurring run   TEAM.NAME       of the Workflow or the CronWorkflow
    experiment           TEAM.LABEL      the value of its runs' label
    pipeline             TEAM.DIGEST     of its name, so that no name exists twice
    pipeline version     TEAM.DIGEST.DIGEST
    artifact             TEAM.RUN/STEP/NAME, encoded

An invented id opens nothing: the API server decides. The patterns keep the paths of its API whole.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass

from kfp_api.errors import invalid, missing

TEAM = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
LABEL = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
DIGEST = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Id:
    """A team, and the name of an object of it."""

    team: str
    name: str

    def __str__(self) -> str:
        return f"{self.team}.{self.name}"


def digest(text: str) -> str:
    """The part of an id that stands for a name of any form."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def team(text: str) -> str:
    """A team's name. Raises RefusalError for what can be none."""
    if not TEAM.fullmatch(text):
        raise invalid(f"{text[:100]!r} is not a namespace")
    return text


def read(what: str, text: str, pattern: re.Pattern[str] = NAME) -> Id:
    """The id in a text. Raises RefusalError: nothing has this id."""
    place, dot, name = text.partition(".")
    if not (dot and TEAM.fullmatch(place) and pattern.fullmatch(name)):
        raise missing(what, text)
    return Id(place, name)


def version(text: str) -> tuple[Id, str]:
    """The pipeline and the digest of a pipeline version. Raises RefusalError."""
    pipeline, _, name = text.rpartition(".")
    if not DIGEST.fullmatch(name):
        raise missing("pipeline version", text)
    return read("pipeline version", pipeline, DIGEST), name


def artifact(run: Id, step: str, name: str) -> str:
    """The id of a run's artifact: `step` is the step's id, `name` the output's."""
    return base64.urlsafe_b64encode(json.dumps([str(run), step, name]).encode()).decode().rstrip("=")


def read_artifact(text: str) -> tuple[Id, str, str]:
    """The run, the step's id and the output's name. Raises RefusalError."""
    try:
        run, step, name = map(str, json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
    except (ValueError, TypeError, RecursionError):
        raise missing("artifact", text) from None
    return read("artifact", run), step, name
