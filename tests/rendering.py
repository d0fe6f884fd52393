"""The chart as rendered by real helm, once for each profile with its values as long as the chart stays the same."""

from __future__ import annotations

import hashlib
import pickle
import shutil
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard import programs
from trainyard.chart import helm
from trainyard.errors import TrainyardError
from trainyard.paths import cache_dir
from trainyard_dev import tools
from trainyard_dev.chart import images, package, parts

Objects = list[dict[str, Any]]
Values = dict[str, Any] | Path
HOUR_S = 3600


def one(objects: Objects, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    """The only object of this kind and name; of several, without `namespace`, the one in the release's namespace."""
    found = [obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) == (kind, name)]
    if namespace or len(found) > 1:
        found = [obj for obj in found if obj["metadata"].get("namespace") == (namespace or helm.NAMESPACE)]
    assert len(found) == 1, (kind, name, namespace, len(found))
    return found[0]


def kept(chart: Path) -> Path:
    """The folder of this chart's kept renderings; removes those of charts that no run of the last hour used."""
    digest = hashlib.sha256(f"{programs.find('helm')}{tools.tested_kubernetes()}".encode())
    for file in sorted(path for path in chart.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(chart)).encode() + file.read_bytes())
    folder = cache_dir() / "renderings" / digest.hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    folder.touch()
    for other in folder.parent.iterdir():
        if other.stat().st_mtime < time.time() - HOUR_S:
            shutil.rmtree(other, ignore_errors=True)
    return folder


class Rendering:
    """`render(values, profile="cloud", sets=["a=b"])` returns the objects; equal calls return the same, unchanged.

    The chart is assembled without csi-driver-nfs, whose repository the tests don't use.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.chart = folder, package.assembled()
        self.kept = kept(self.chart)
        self._made: dict[tuple[Any, ...], Objects] = {}

    def __call__(
        self,
        *values: Values,
        profile: str = "kind",
        sets: Sequence[str] = (),
        serves: Sequence[str] = (),
        again: bool = False,
    ) -> Objects:
        """Every object that a profile installs, hooks included; with `again` helm runs even if the result is known."""
        files = self.files(*values)
        texts = [file.read_text() for file in (*parts.profile_files(profile), *files)]
        key = profile, tuple(texts), tuple(sets), tuple(serves)
        if again or key not in self._made:
            file = self.kept / f"{hashlib.sha256(repr(key).encode()).hexdigest()}.pickle"
            if again or not file.exists():
                part = file.with_suffix(".part")
                said: str | TrainyardError
                try:
                    said = package.template(profile, self.chart, sets, files, serves)
                except TrainyardError as error:
                    said = error
                part.write_bytes(zlib.compress(pickle.dumps(said), 1))
                part.rename(file)
            said = pickle.loads(zlib.decompress(file.read_bytes()))
            if isinstance(said, TrainyardError):
                raise said
            self._made[key] = helm.shared(said)
        return self._made[key]

    def files(self, *values: Values) -> list[Path]:
        """These values as files, which last until the next call."""
        found = [one if isinstance(one, Path) else self.folder / f"values-{at}.yaml" for at, one in enumerate(values)]
        for file, one in zip(found, values, strict=True):
            if not isinstance(one, Path):
                file.write_text(yaml.safe_dump(one))
        return found

    def images(self, *sets: str, profile: str = "kind") -> list[images.Listed]:
        """Every image that a profile can start."""
        return images.listed(profile, sets=sets, render=lambda of, sets, values: self(*values, profile=of, sets=sets))

    def refusal(self, *values: Values, **more: Any) -> str:
        """The error with which these values are refused."""
        with pytest.raises(TrainyardError) as caught:
            self(*values, **more)
        return str(caught.value)

    def errors(self, *values: Values, **more: Any) -> list[str]:
        """The contradictions in the values, one sentence each; empty when the chart accepts them."""
        try:
            self(*values, **more)
        except TrainyardError as error:
            text = str(error).removesuffix(" see the chart's values.yaml.")
            if "The values don't fit together:" not in text:
                raise
            return [line.strip() for line in text.split(" - ")[1:]]
        return []
