"""Follows a job to its end: prints what it waits for, rank 0's log, and the last lines of a failing rank."""

from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kinds.pods import JOB_LABEL
from trainyard.kinds.status import FAILED, RUNNING, STOPPED, outcome
from trainyard.observe import blame, pods, refusals
from trainyard.observe.words import reason
from trainyard.pipelines.steps.follow import Follower
from trainyard.pipelines.steps.jobs import Jobs

Object = dict[str, Any]
QUICK_S, SLOW_S = 1.0, 3.0  # between polls: in the first minute, and later
STUCK_S = 300.0  # a registry may be unavailable for a while
SILENT_S = 60.0  # the same reason for waiting is printed again after this long
TAIL, LONGEST = 50, 1200


class Watch:
    """The state of following one job."""

    def __init__(self, jobs: Jobs, manifest: Object, uid: str) -> None:
        self._jobs, self._manifest, self._uid = jobs, manifest, uid
        self._name = manifest["metadata"]["name"]
        self._follower = Follower(jobs.api, jobs.namespace)
        self._said, self._said_at, self._stuck_since = "", 0.0, 0.0

    def to_end(self) -> None:
        """Returns when the job has succeeded. Raises TrainyardError if it fails, is deleted or can never start."""
        began = self._jobs.clock()
        while True:
            job = self._jobs.find(self._manifest)
            if job is None or job["metadata"].get("uid") != self._uid:
                raise TrainyardError(f"{self._title} was deleted while it ran")
            phase, message = outcome(job)
            found = self._jobs.pods(JOB_LABEL, self._name)
            if phase != RUNNING:
                self._follower.finish(10.0)
                if phase == FAILED:
                    raise self._failed(message, found)
                if phase == STOPPED:
                    raise TrainyardError(f"{self._title} was stopped while it ran", hint="retry the run")
                print(f"{self._title} succeeded", flush=True)
                return
            self._poll(found)
            self._jobs.sleep(QUICK_S if self._jobs.clock() - began < SILENT_S else SLOW_S)

    @property
    def _title(self) -> str:
        return f"{self._manifest['kind']} {self._name}"

    def _poll(self, found: list[Object]) -> None:
        if found and pods.running(found[:1]):
            self._follower.follow(
                found[0]["metadata"]["name"], pods.main_container(found[0]), found[0]["metadata"]["uid"]
            )
        up = pods.running(found)
        if found and up == len(found):
            self._say(f"{up} pods run")
            self._stuck_since = 0.0
            return
        events = self._jobs.warnings(self._manifest, self._uid)
        if text := refusals.refusal(events):
            self._take_away()
            raise TrainyardError(f"pods of {self._title} are refused: {text}")
        why, never = pods.stuck(found)
        if why:
            self._stuck_since = self._stuck_since or self._jobs.clock()
            if never or self._jobs.clock() - self._stuck_since > STUCK_S:
                self._take_away()
                raise TrainyardError(f"{self._title} can't start: {why}", hint="correct the image or its settings")
        waits = why or pods.waits_for(found) or refusals.blocker(events)
        stands = f"{up} of {len(found)} pods run" if found else "no pods yet"
        self._say(stands + (f"; waits: {waits}" if waits else ""))

    def _say(self, text: str) -> None:
        now = self._jobs.clock()
        if text != self._said or now - self._said_at > SILENT_S * 10:
            print(f"{self._name}: {text}", flush=True)
            self._said, self._said_at = text, now

    def _take_away(self) -> None:
        """Deletes the job, which its controller would retry forever."""
        self._jobs.delete(self._manifest)

    def _failed(self, message: str, found: list[Object]) -> TrainyardError:
        seen = blame.blamed(found, self._jobs.log, reason)
        if seen is None:
            return TrainyardError(f"{self._title} failed: {message}")
        first = seen.failure
        if first.message:
            return TrainyardError(f"{self._title} failed: {first.rank} can't be started: {first.message}")
        if first.thrown_off:
            return TrainyardError(f"{self._title} failed: {first.rank}: {first.why}")
        for line in seen.log[-TAIL:]:
            print(f"  {first.pod} | {line}", flush=True)
        words = seen.words[-LONGEST:] or "nothing"
        return TrainyardError(f"{self._title} failed: {first.rank} ({first.why}) said: {words}")
