"""The inputs and outputs of a run's steps: lineage files that steps leave next to their artifacts, as tree and graph.

A step that was served from cache has the lineage file of the run that did the work; each input names its run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainyard.errors import TrainyardError

VERSION = 1
SHOWN = 12  # characters of a digest
KINDS = ("inputs", "outputs")


@dataclass(frozen=True)
class Artifact:
    """One artifact as a step saw it; `run` and `task` are its producer, if known."""

    name: str
    type: str
    uri: str
    sha256: str
    bytes: int
    run: str = ""
    task: str = ""

    def line(self) -> str:
        """One line for the terminal."""
        kind = self.type.removeprefix("system.")
        return f"{self.name}  {kind}  {size(self.bytes)}  sha256 {self.sha256[:SHOWN] or '-'}"


@dataclass(frozen=True)
class Step:
    """One finished step."""

    run: str
    task: str
    component: str
    image: str
    node: str
    state: str
    error: str
    started: str
    finished: str
    parameters: Mapping[str, Any]
    results: Mapping[str, Any]
    inputs: tuple[Artifact, ...]
    outputs: tuple[Artifact, ...]

    @property
    def key(self) -> str:
        """The step's name in the graph; the iterations of a loop share a task, not a node."""
        return f"{self.run}/{self.node or self.task}"

    @property
    def seconds(self) -> float:
        """The step's running time."""
        return (datetime.fromisoformat(self.finished) - datetime.fromisoformat(self.started)).total_seconds()


class Lineage:
    """The steps of one run, and of other runs that it took artifacts from, if their files were given."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps = sorted({step.key: step for step in steps}.values(), key=lambda step: (step.started, step.key))
        self._maker = {made.uri: step for step in self.steps for made in step.outputs if made.uri}

    def maker(self, artifact: Artifact) -> Step | None:
        """The step that made an artifact, if its file was given."""
        return self._maker.get(artifact.uri)

    def ends(self) -> list[Step]:
        """Steps whose artifacts no other step used."""
        taken = {made.uri for step in self.steps for made in step.inputs}
        return [step for step in self.steps if not any(made.uri in taken for made in step.outputs)]


def read(documents: Iterable[Mapping[str, Any]]) -> Lineage:
    """The lineage from parsed lineage files.

    Raises:
        TrainyardError: one is no lineage file, or has a version that this program doesn't support.
    """
    return Lineage(_step(document) for document in documents)


def tree(lineage: Lineage, run: str = "") -> str:
    """A tree for the terminal: from each last step back to its inputs. A step that was shown before is only named.

    Steps of runs other than `run`, served from the cache, name their run. Empty parameters are left out.
    """
    lines: list[str] = []
    shown: set[str] = set()
    for end in lineage.ends():
        lines += [*_branch(lineage, end, shown, run), ""]
    return "\n".join(lines).rstrip("\n")


def graph(lineage: Lineage) -> dict[str, Any]:
    """A graph for programs: steps and artifacts as nodes; an edge leads from an input to the result."""
    artifacts: dict[str, dict[str, Any]] = {}
    edges: list[dict[str, str]] = []
    for step in lineage.steps:
        for side in KINDS:
            for one in getattr(step, side):
                name = one.uri or f"{step.key}/{one.name}"
                known = artifacts.setdefault(
                    name, {"id": name, "type": one.type, "sha256": one.sha256, "bytes": one.bytes}
                )
                if one.run:
                    known |= {"run": one.run, "task": one.task}
                ends = (name, step.key) if side == "inputs" else (step.key, name)
                edges.append({"from": ends[0], "to": ends[1], "as": one.name})
    steps = [
        {"id": step.key, "run": step.run, "task": step.task, "component": step.component, "image": step.image,
         "state": step.state, "error": step.error, "started": step.started, "finished": step.finished,
         "parameters": dict(step.parameters), "results": dict(step.results)}
        for step in lineage.steps
    ]  # fmt: skip
    return {"steps": steps, "artifacts": list(artifacts.values()), "edges": edges}


def size(count: int) -> str:
    """Bytes in a readable unit."""
    amount, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"


def _branch(lineage: Lineage, step: Step, shown: set[str], run: str) -> Iterator[str]:
    elsewhere = f"  of run {step.run}" if run and step.run != run else ""
    head = f"{step.task}  {step.state}  {step.seconds:.0f} s  {step.image}".rstrip() + elsewhere
    if step.key in shown:
        yield f"{head}  (above)"
        return
    shown.add(step.key)
    yield head
    if step.error:
        yield f"    ! {step.error.splitlines()[0]}"
    given = {name: value for name, value in step.parameters.items() if value.get("value", 0) not in ("", [], {})}
    for sign, values in (("·", given), ("=", step.results)):
        yield from (f"    {sign} {name} = {_value(value)}" for name, value in values.items())
    for made in step.outputs:
        yield f"    → {made.line()}"
    for taken in step.inputs:
        yield f"    ← {taken.line()}"
        maker = lineage.maker(taken)
        if maker:
            yield from (f"        {line}" for line in _branch(lineage, maker, shown, run))
        elif taken.run:
            other = "" if taken.run == step.run else f" of run {taken.run}"
            yield f"        made by {taken.task}{other}"


def _value(value: Mapping[str, Any]) -> str:
    return repr(value["value"]) if "value" in value else f"sha256 {value.get('sha256', '')[:SHOWN]}"


def _step(document: Mapping[str, Any]) -> Step:
    try:
        if document["version"] != VERSION:
            raise TrainyardError(
                f"a lineage file is of version {document['version']}", hint="use a newer trainyard to read this run"
            )
        sides = {side: tuple(Artifact(**one) for one in document[side]) for side in KINDS}
        maps = {name: dict(document[name]) for name in ("parameters", "results")}
        plain = ("run", "task", "component", "image", "node", "state", "error", "started", "finished")
        known: dict[str, Any] = {**{name: str(document[name]) for name in plain}, **maps, **sides}
        step = Step(**known)
        datetime.fromisoformat(step.started), datetime.fromisoformat(step.finished)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TrainyardError(f"a lineage file is not one: {error!r}", hint="look at lineage.json of the run") from None
    return step
