"""An object of any kind in the cluster: made or adopted, followed until its condition holds, deleted with its run."""

import contextlib
from collections.abc import Mapping
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.kinds.status import FAILED, SUCCEEDED
from trainyard.observe import refusals
from trainyard.pipelines.steps import conditions, stopping
from trainyard.pipelines.steps.jobs import Jobs
from trainyard.pipelines.steps.wish import CONTENT, ObjectRequest
from trainyard_agent.api import ApiError

Object = dict[str, Any]
QUICK_S, SLOW_S = 1.0, 5.0  # between polls: in the first minute, and later
AGAIN_S = 600.0  # the reason for waiting is printed again after this long
RIGHTS = "steps run as the team's account for pipelines; global.contract.pipelines.objects gives it further kinds"


def run(wish: ObjectRequest, jobs: Jobs) -> str:
    """Makes the object and waits; returns the step's output value as a text.

    Raises:
        TrainyardError: it is refused, fails, is deleted, or exceeds its time limit.
    """
    place = path_of(wish.manifest, jobs)
    known = registry.of_object(wish.manifest) is not None
    follow = Follow(wish, jobs, place, known)
    with stopping.stoppable():
        try:
            made = follow.adopt()
            ended = follow.to_end(made) if wish.waits(known) else made
        except stopping.Stopped:
            stopping.stop(jobs, wish.title, follow.take_away)
    value = conditions.found(ended, wish.output) if wish.output else ""
    if value is conditions.NOTHING:
        raise TrainyardError(f"{wish.title} has no {wish.output}", hint="correct `output`, or wait for it")
    return conditions.text(value)


def path_of(manifest: Mapping[str, Any], jobs: Jobs) -> str:
    """The API path of objects of this kind. Raises TrainyardError for a kind that the cluster doesn't have."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    try:
        resources = jobs.ask("GET", base).get("resources", [])
    except ApiError as error:
        if error.status != 404:
            raise TrainyardError(f"the kinds of {version} can't be asked for: {error.message}") from None
        resources = []
    found = next((one for one in resources if one["kind"] == kind and "/" not in one["name"]), None)
    if found is None:
        raise TrainyardError(f"this cluster has no {kind} of {version}", hint="correct apiVersion and kind")
    if not found["namespaced"]:
        what = f"a {kind} belongs to no namespace, and a step makes what lies in its team's"
        raise TrainyardError(what, hint="ask the platform's engineers for it")
    return f"{base}/namespaces/{jobs.namespace}/{found['name']}"


class Follow:
    """One object from its creation to its end."""

    def __init__(self, wish: ObjectRequest, jobs: Jobs, place: str, known: bool) -> None:
        self._wish, self._jobs, self._place, self._known = wish, jobs, place, known
        self._own = f"{place}/{wish.manifest['metadata']['name']}"
        self._said, self._said_at = "", 0.0

    def adopt(self) -> Object:
        """Makes the object, or adopts one by an earlier attempt of the same step; one that failed is created again."""
        while True:
            found = self._find()
            if found is not None:
                self._is_ours(found)
                if self._wish.ended(found, self._known)[0] != FAILED and not found["metadata"].get("deletionTimestamp"):
                    print(f"{self._wish.title} of an earlier attempt is there: adopted", flush=True)
                    return found
                print(f"{self._wish.title} of an earlier attempt failed: it is created again", flush=True)
                self.take_away()
                self._gone()
            try:
                made = self._jobs.ask("POST", self._place, self._wish.manifest)
                print(f"created {self._wish.title} in {self._jobs.namespace}", flush=True)
                return made
            except ApiError as error:
                if error.status == 409:
                    continue  # an attempt whose answer was lost has created it
                hint = RIGHTS if error.status == 403 and "cannot create resource" in error.message else ""
                raise TrainyardError(f"{self._wish.title} was refused: {error.message}", hint=hint) from None

    def to_end(self, made: Object) -> Object:
        """The object once its condition holds."""
        began, uid = self._jobs.clock(), made["metadata"]["uid"]
        while True:
            found = self._find()
            if found is None or found["metadata"]["uid"] != uid or found["metadata"].get("deletionTimestamp"):
                raise TrainyardError(f"{self._wish.title} was deleted while it was waited for")
            phase, why = self._wish.ended(found, self._known)
            if phase == SUCCEEDED:
                print(f"{self._wish.title} meets its condition", flush=True)
                return found
            if phase == FAILED:
                raise TrainyardError(f"{self._wish.title} failed: {why}")
            warnings = self._jobs.warnings(self._wish.manifest, uid)
            if refused := refusals.refusal(warnings):
                self.take_away()
                raise TrainyardError(f"{self._wish.title} makes no progress: {refused}")
            waits = "; ".join(filter(None, (self._wish.waiting(found), refusals.blocker(warnings))))
            took = self._jobs.clock() - began
            if took > self._wish.timeout:
                self.take_away()
                what = f"{self._wish.title} did not end within {self._wish.timeout} s"
                raise TrainyardError(what + (f"; {waits}" if waits else ""), hint="give it a longer timeout")
            self._say(waits or "runs")
            self._jobs.sleep(QUICK_S if took < 60 else SLOW_S)

    def take_away(self) -> None:
        """Deletes the object; its controller would continue work that nobody waits for."""
        with contextlib.suppress(ApiError):
            self._jobs.ask("DELETE", self._own, {"propagationPolicy": "Foreground"})

    def _is_ours(self, found: Object) -> None:
        meta, wanted = found["metadata"], self._wish.manifest["metadata"]
        owners = [[one.get("uid") for one in of.get("ownerReferences") or []] for of in (meta, wanted)]
        if owners[0] != owners[1]:
            what = f"{self._wish.title} already exists and belongs to another run"
            raise TrainyardError(what, hint="delete it, or leave out metadata.name: the step then finds one")
        if (meta.get("annotations") or {}).get(CONTENT) != wanted["annotations"][CONTENT]:
            what = f"{self._wish.title} already exists with other content"
            raise TrainyardError(what, hint="leave out metadata.name: each content then has a name of its own")

    def _find(self) -> Object | None:
        try:
            return self._jobs.ask("GET", self._own)
        except ApiError as error:
            if error.status == 404:
                return None
            raise TrainyardError(f"{self._wish.title} can't be read: {error.message}", hint=RIGHTS) from None

    def _gone(self) -> None:
        end = self._jobs.clock() + 180
        while self._find() is not None:
            if self._jobs.clock() > end:
                raise TrainyardError(f"{self._wish.title} of an earlier attempt stays", hint="see its finalizers")
            self._jobs.sleep(QUICK_S)

    def _say(self, text: str) -> None:
        now = self._jobs.clock()
        if text != self._said or now - self._said_at > AGAIN_S:
            print(f"{self._wish.title}: {'waits: ' if text != 'runs' else ''}{text}", flush=True)
            self._said, self._said_at = text, now
