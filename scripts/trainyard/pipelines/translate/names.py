"""Names that Argo accepts, derived from kfp's, the same each time."""

import re

# Words of Argo's expression language; no other task could depend on a task of such a name.
_WORDS = {"and", "or", "not", "in", "let", "matches", "contains", "true", "false", "nil", "if", "else"}


def task(name: str) -> str:
    """A DAG task's name. Nearly all of kfp's names are valid."""
    clean = re.sub(r"[^A-Za-z0-9-]+", "-", name).strip("-") or "task"
    return f"task-{clean}" if clean in _WORDS or clean[0].isdigit() else clean


def template(name: str) -> str:
    """A template's name, which becomes part of its pods' names."""
    clean = re.sub(r"[^a-z0-9-]+", "-", name.lower().removeprefix("comp-")).strip("-")
    return clean or "step"


def workflow(pipeline: str) -> str:
    """The prefix of a run's name."""
    clean = re.sub(r"[^a-z0-9-]+", "-", pipeline.lower()).strip("-") or "pipeline"
    return clean[:40].rstrip("-")


class Unique:
    """Makes names unique: a repeated one gets a number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}-{count}"
        self._taken.add(name)
        return name
