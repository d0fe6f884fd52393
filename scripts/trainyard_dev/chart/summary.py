"""The summary before an upgrade: this package's effect on an installed release, and the components' verdicts."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainyard.chart.release import compare
from trainyard.chart.release.compare import Change
from trainyard.chart.release.installed import Installed, Objects
from trainyard.errors import TrainyardError
from trainyard.paths import cache_dir
from trainyard_dev.chart import verdicts
from trainyard_dev.chart.package import VERSION, package
from trainyard_dev.chart.verdicts import Judgement

MOST_FIELDS = 4


@dataclass(frozen=True)
class Summary:
    """The facts to know before `helm upgrade`."""

    release: str
    namespace: str
    revision: int
    before: str
    after: str
    components: list[Judgement]
    images: list[tuple[str, str, str]]
    crds: dict[str, str]
    changes: list[Change]

    @property
    def blocked(self) -> list[Judgement]:
        """Components with a blocked move."""
        return [one for one in self.components if one.verdict == "blocked"]

    @property
    def refused(self) -> list[Change]:
        """Changes that the API server will refuse."""
        return [change for change in self.changes if change.refused]

    def data(self) -> dict[str, Any]:
        """The summary as plain data."""
        found = asdict(self)
        found["images"] = [dict(zip(("image", "before", "after"), row, strict=True)) for row in self.images]
        refused = {change.object: change.refused for change in self.refused}
        return found | {"blocked": [one.component for one in self.blocked], "refused": refused}


def summarize(installed: Installed, chart: Path, values: Sequence[Path] = ()) -> Summary:
    """Compare a release with a package. Changes nothing. Raises TrainyardError if there is no release."""
    meta = installed.metadata()
    old, new = installed.objects(), installed.planned(chart, values)
    fresh = [obj for obj in new if compare.is_crd(obj)] + moved_by_hook(new, f"{installed.name}-crds")
    names = [obj["metadata"]["name"] for obj in fresh]
    held = [found for name in names if (found := installed.kubectl.find("crd", name))]
    return Summary(
        release=installed.name,
        namespace=installed.namespace,
        revision=int(meta["revision"]),
        before=meta["version"],
        after=VERSION,
        components=verdicts.assess(meta["version"]),
        images=compare.image_moves(old, new),
        crds=compare.crd_changes(held, fresh),
        changes=compare.changes(old, new),
    )


def moved_by_hook(objects: Objects, name: str) -> Objects:
    """The CRDs in the bundle of the hook that moves them: the ConfigMap `name`. [] without a hook."""
    held = [obj for obj in objects if obj["kind"] == "ConfigMap" and obj["metadata"]["name"] == name]
    return [json.loads(text) for obj in held for text in obj["data"].values()]


def of_tree(installed: Installed, values: Sequence[Path] = ()) -> Summary:
    """Like summarize, with the chart of this source tree."""
    with tempfile.TemporaryDirectory(prefix="diff-", dir=cache_dir()) as folder:
        return summarize(installed, package(Path(folder)), values)


def table(summary: Summary, most: int = 1000) -> str:
    """The summary as text; `most` is how many objects of each kind of change are named."""
    lines = [
        f"release {summary.release} in {summary.namespace}, revision {summary.revision}: "
        f"{summary.before} -> {summary.after}",
        "",
        "COMPONENTS",
    ]
    for one in summary.components:
        move = one.after if one.before == one.after else f"{one.before or 'none'} -> {one.after}"
        lines.append(f"  {one.verdict:8} {one.component:22} {move}")
        if one.verdict != "safe":
            lines.append(f"           {one.why}")
        lines += [f"           needs: {text}" for text in one.preconditions if one.before != one.after]
        lines += [f"           step:  {text}" for text in one.steps]
    lines += ["", f"IMAGES ({len(summary.images)} change)"]
    lines += [f"  {name}: {old or 'none'} -> {new or 'none'}" for name, old, new in summary.images]
    lines += ["", f"CRDS ({len(summary.crds)} change)"]
    lines += [f"  {name}: {said}" for name, said in summary.crds.items()]
    for kind in ("removed", "kept", "added", "changed"):
        rows = [change for change in summary.changes if change.kind == kind]
        heading = {"kept": "KEPT, but no longer in the release"}.get(kind, kind.upper())
        if rows:
            rest = [f"  … and {len(rows) - most} more"] if len(rows) > most else []
            lines += ["", f"{heading} ({len(rows)})", *map(_row, rows[:most]), *rest]
    return "\n".join(lines)


def _row(change: Change) -> str:
    marks = {"hook": change.hook, "restarts its pods": change.restarts, "IMMUTABLE": change.refused}
    notes = [word for word, there in marks.items() if there]
    note = f" ({', '.join(notes)})" if notes else ""
    fields = ", ".join(change.fields[:MOST_FIELDS])
    more = f" and {len(change.fields) - MOST_FIELDS} more" if len(change.fields) > MOST_FIELDS else ""
    return f"  {change.object}{note}" + (f": {fields}{more}" if fields else "")


def refuse_blocked(summary: Summary) -> None:
    """Raises TrainyardError if a component's move is blocked, or an immutable field would change."""
    if summary.blocked:
        names = ", ".join(one.component for one in summary.blocked)
        raise TrainyardError(
            f"the upgrade from {summary.before} to {summary.after} is blocked by {names}",
            hint="upgrade through a version that its component.yaml assesses",
        )
    if summary.refused:
        names = "; ".join(f"{', '.join(change.refused)} of {change.object}" for change in summary.refused)
        raise TrainyardError(
            f"the API server will reject the upgrade: {names} cannot be changed",
            hint="keep the old value, or delete the object first; check what uses the object",
        )
