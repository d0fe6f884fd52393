"""What runs left in the store, read with the service's own account, which reaches only `TEAM/pipelines/` of one bucket.

A member may write anything into a Workflow of theirs, the places of its artifacts, too. So a place counts only within
the team's own prefix, and the team is the namespace from which the API server gave the caller this run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kfp_api.errors import Code, RefusalError
from trainyard.pipelines.runs import lineage, stored
from trainyard.pipelines.runs.model import Run, Step
from trainyard.pipelines.runs.stored import Place

LARGEST = 8 << 20  # bytes of an object that is read whole
LARGEST_META = 2 << 20  # of what kfp noted about an artifact
MOST = 1000  # names of a folder


class Artifacts:
    """The store with the service's account. `client` is MinIO's, `bucket` that of the runs."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client, self.bucket = client, bucket

    def within(self, run: Run, place: Place | None) -> bool:
        """Whether a place is one of the run's team: a member may have written any other."""
        if place is None or place.bucket != self.bucket:
            return False
        parts = place.key.split("/")
        return parts[:2] == [run.namespace, "pipelines"] and not {"", ".", ".."} & {*parts[:-1]} and ".." not in parts

    def of(self, run: Run, step: Step | None = None) -> list[Place]:
        """Artifacts of a run or of one step: kfp's, without logs and lineage."""
        return [place for place in stored.artifacts(run, step) if self.within(run, place)]

    def find(self, run: Run, step: str, name: str) -> Place | None:
        """The artifact of a step, by the step's id; lineage and logs by their names, too."""
        chosen = next((one for one in run.steps if one.id == step), None)
        place = stored.place(run, chosen.outputs, name, chosen.name) if chosen else None
        return place if self.within(run, place) else None

    def names(self, run: Run, place: Place) -> dict[str, int]:
        """Objects below a place, by relative name, with their sizes; at most a thousand. Raises RefusalError."""
        self._check(run, place)
        prefix, found = f"{place.key.rstrip('/')}/", dict[str, int]()
        with _answers(place):
            for one in self._client.list_objects(place.bucket, prefix=prefix, recursive=True):
                found[one.object_name.removeprefix(prefix)] = int(one.size or 0)
                if len(found) >= MOST:
                    break
        return found

    def read(self, run: Run, place: Place, below: str = "", *, longest: int = LARGEST) -> bytes:
        """The first bytes of an object, or of the one `below` a folder. Raises RefusalError."""
        key = f"{place.key.rstrip('/')}/{below}" if below else place.key
        at = Place(place.step, place.name, place.bucket, key)
        self._check(run, at)
        with _answers(place):
            answer = self._client.get_object(at.bucket, at.key, offset=0, length=longest)
            try:
                return bytes(answer.read())
            finally:
                answer.close()
                answer.release_conn()
        raise AssertionError

    def data(self, run: Run, place: Place, *, longest: int = LARGEST) -> bytes:
        """The bytes of an artifact: kfp's are in `data` beside `meta.json`, others are the object itself."""
        names = self.names(run, place)
        return self.read(run, place, stored.DATA if stored.DATA in names else "", longest=longest)

    def meta(self, run: Run, place: Place) -> dict[str, Any]:
        """What kfp noted about an artifact: type, uri, metadata. {} without it."""
        try:
            found = json.loads(self.read(run, place, "meta.json", longest=LARGEST_META))
        except (RefusalError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def type_of(self, run: Run, place: Place) -> tuple[str, dict[str, Any]]:
        """The type of kfp's artifact, such as system.Metrics, and its metadata; "" and {} where they are not noted."""
        meta = self.meta(run, place)
        kind, values = meta.get("type"), meta.get("metadata")
        title = kind.get("schemaTitle") if isinstance(kind, dict) else kind
        return str(title or ""), values if isinstance(values, dict) else {}

    def lineage(self, run: Run) -> lineage.Lineage:
        """The lineage of a run; steps without a readable file are left out."""
        return lineage.read(self._documents(run))

    def _documents(self, run: Run) -> Iterator[dict[str, Any]]:
        for place in stored.lineage(run):
            if not self.within(run, place):
                continue
            try:
                found = json.loads(self.read(run, place))
                lineage.read([found])
            except Exception:  # a member's own file, of any content
                continue
            yield found

    def _check(self, run: Run, place: Place) -> None:
        if not self.within(run, place):
            raise RefusalError(Code.NOT_FOUND, f"{place.step}/{place.name} is not in the store of team {run.namespace}")


class _answers:  # noqa: N801  reads as a statement
    """Turns the store's errors into refusals that name the artifact, and nothing of the store."""

    def __init__(self, place: Place) -> None:
        self._what = f"{place.step}/{place.name}"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, RefusalError):
            return
        if getattr(error, "code", "") in ("NoSuchKey", "NoSuchBucket", "AccessDenied", "InvalidRange"):
            raise RefusalError(Code.NOT_FOUND, f"{self._what} is not in the store any more") from None
        raise RefusalError(
            Code.UNAVAILABLE, f"the store does not answer, so {self._what} can't be read; try again"
        ) from None
