"""The log of the job's main rank, line by line, while the job runs."""

import threading
from contextlib import suppress

from trainyard.kinds.launcher_log import is_noise
from trainyard_agent.api import Api, ApiError

PAUSE_S = 2.0


class Follower:
    """Prints a container's log as it grows, in a thread; after an interruption it resumes where it was."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._of = ""

    def follow(self, pod: str, container: str, uid: str) -> None:
        """Follows this pod from now on; the previous one has ended."""
        if uid == self._of:
            return
        self.finish(0)
        self._of, self._stop = uid, threading.Event()
        self._thread = threading.Thread(target=self._run, args=(pod, container, self._stop), daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Waits some seconds for the last lines, then stops."""
        if self._thread is not None:
            self._thread.join(seconds)
            self._stop.set()
            self._thread = None

    def _run(self, pod: str, container: str, stop: threading.Event) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/pods/{pod}/log"
        query = {"container": container, "follow": "true", "timestamps": "true"}
        last = ""
        while not stop.is_set():
            with suppress(ApiError):
                for line in self._api.lines(path, query):
                    stamp, _, text = line.partition(" ")
                    if stamp > last:  # the server counts in seconds, so some lines arrive twice
                        last = stamp
                        if not is_noise(text):
                            print(f"  {pod} | {text}", flush=True)
                    if stop.is_set():
                        return
                if last or stop.is_set():
                    return  # end of the log
            if last:
                query["sinceTime"] = last
            stop.wait(PAUSE_S)
