"""The harness's view of pods: all that the API server reported, even after an interrupted watch."""

import threading
from collections.abc import Iterator
from typing import Any

from trainyard_dev.bench.harness import ALL_LISTED, Harness


def event(kind: str, name: str = "", **annotations: str) -> dict[str, Any]:
    pod = {"metadata": {"name": name, "annotations": annotations}, "spec": {}, "status": {}}
    return {"type": kind, "object": pod}


class Server:
    """Ends its first watch after two pods; one of them is gone when the second begins."""

    def __init__(self) -> None:
        self.watches = 0
        self.end = threading.Event()

    def connection(self) -> None: ...

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        assert "sendInitialEvents=true" in path
        self.watches += 1
        yield event("ADDED", "stays")
        if self.watches == 1:
            yield event("BOOKMARK", **{ALL_LISTED: "true"})
            yield event("ADDED", "goes")
        else:
            yield event("BOOKMARK")
            yield event("ADDED", "new")
            yield event("BOOKMARK", **{ALL_LISTED: "true"})
            self.end.wait(10)


def test_pods_that_went_while_no_watch_was_open_are_gone() -> None:
    server = Server()
    harness = Harness(server)  # type: ignore[arg-type]
    try:
        harness.sees(["stays", "new"])
        harness.sees(["goes"], gone=True)
        assert set(harness.pods) == {"stays", "new"}
    finally:
        harness.close()
        server.end.set()
