"""Keeps what is counted of the cluster's objects: lists each kind once, page by page, and then watches it.

Polling ten thousand pods every few seconds would make the API server encode a hundred megabytes each time. A watch
sends only changes. Whole objects are never kept: `read` extracts from each what a series needs.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainyard_agent.api import MALFORMED, Api, ApiError
from trainyard_agent.say import say

AT_ONCE = 500  # objects per page
LARGEST = 8 << 20  # bytes of a page; a larger one is requested again in smaller pages, for members fill objects
WATCH_S = 290  # the server ends a watch then, and the next one resumes at the same version
QUIET_S = 150.0  # a watch that is silent this long is dead: the server sends a bookmark every minute
PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
GONE = 410  # the server no longer has the changes after that version
ABSENT = (403, 404)  # a kind that the site lacks, or that the exporter may not read

Object = dict[str, Any]
# One page in memory at a time, however many kinds there are.
_page = threading.Lock()


@dataclass(frozen=True)
class Source:
    """Objects of one kind. `read` raises one of api.MALFORMED for an invalid object, which is then left out."""

    name: str
    path: str
    read: Callable[[Object], Any]


class Informer:
    """The current objects of one kind, by uid."""

    def __init__(self, api: Api, source: Source, wall: Callable[[], float] = time.time) -> None:
        self.source = source
        self.settled = threading.Event()  # listed once, or known to be absent
        self.present = False
        self.seen = 0.0  # seconds since 1970: when the API server last answered about this kind
        self._api, self._wall = api, wall
        self._objects: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._version = ""
        self._unread: set[str] = set()

    def objects(self) -> list[Any]:
        """The current objects."""
        with self._lock:
            return list(self._objects.values())

    def run(self, stop: threading.Event) -> None:
        """Lists and watches until told to stop; prints each error once and tries again."""
        pause, said = PAUSE_S, ""
        while not stop.is_set():
            trouble, wait = "", PAUSE_S
            try:
                if not self._version:
                    self.list()
                self.watch(stop)
                pause = PAUSE_S
            except ApiError as error:
                trouble, wait = self._failed(error, pause)
                pause = min(LONGEST_PAUSE_S, pause * 2)
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                trouble, wait, self._version = f"the answer can't be read: {type(error).__name__}: {error}", pause, ""
                pause = min(LONGEST_PAUSE_S, pause * 2)
            if trouble and trouble != said:
                say(f"{self.source.name}: {trouble}")
            said = trouble
            stop.wait(wait * random.uniform(0.8, 1.2))

    def list(self) -> None:
        """Lists all objects. Raises ApiError."""
        found: dict[str, Any] = {}
        self._unread.clear()
        limit, query = AT_ONCE, {"limit": str(AT_ONCE)}
        while True:
            with _page:
                try:
                    answer = self._api.call("GET", self.source.path, query=query, most=LARGEST)
                except ApiError as error:
                    if error.status != 413 or limit == 1:
                        raise
                    limit = max(1, limit // 4)
                    query["limit"] = str(limit)
                    continue
                kind = str(answer.get("kind", "")).removesuffix("List")
                for obj in answer.get("items") or []:
                    obj.setdefault("kind", kind)
                    obj.setdefault("apiVersion", answer.get("apiVersion", ""))
                    self._put(found, obj)
                meta = answer.get("metadata") or {}
                del answer
            query["continue"] = meta.get("continue") or ""
            if not query["continue"]:
                break
        with self._lock:
            self._objects, self._version = found, str(meta.get("resourceVersion", ""))
        self.present, self.seen = True, self._wall()
        self.settled.set()

    def watch(self, stop: threading.Event) -> None:
        """Applies changes until the server ends the watch. Raises ApiError."""
        query = {
            "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_S + random.randrange(60)),
        }  # fmt: skip
        for line in self._api.lines(self.source.path, query, timeout=QUIET_S):
            self.take(json.loads(line))
            if stop.is_set():
                return

    def take(self, event: Object) -> None:
        """Applies one change. Raises ApiError when the watch can't continue."""
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            raise ApiError(int(obj.get("code") or 0), str(obj.get("message") or "the watch ended with an error"))
        with self._lock:
            if kind in ("ADDED", "MODIFIED"):
                self._put(self._objects, obj)
            elif kind == "DELETED":
                self._objects.pop(obj["metadata"]["uid"], None)
            self._version = str(obj["metadata"]["resourceVersion"])
        self.seen = self._wall()

    def _put(self, into: dict[str, Any], obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        try:
            into[uid] = self.source.read(obj)
        except MALFORMED as error:  # one member's invalid object must not hide all others
            into.pop(uid, None)
            if uid not in self._unread and len(self._unread) < AT_ONCE:
                self._unread.add(uid)
                meta = obj["metadata"]
                where = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
                say(f"{self.source.name}: {where} can't be read and is not counted: {type(error).__name__}: {error}")

    def _failed(self, error: ApiError, pause: float) -> tuple[str, float]:
        """(message to print, seconds until the next try)."""
        if error.status == GONE:
            self._version = ""
            return "", 0.0
        if error.status in ABSENT:
            with self._lock:
                self._objects, self._version = {}, ""
            self.present = False
            self.settled.set()
            why = "the cluster has no such kind" if error.status == 404 else error.message
            return f"not counted: {why}", LONGEST_PAUSE_S
        if error.status == 0 and self._version and self._wall() - self.seen >= QUIET_S:
            return f"nothing came for {QUIET_S:.0f} s: {error.message}", pause
        return error.message, pause
