"""A small API server over HTTP that has only ConfigMaps, and a kubeconfig for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_server import Answers, kubeconfig, serving


class Maps:
    """The state: `data` has the ConfigMaps' data by "namespace/name"; `asked` are the paths of all requests."""

    def __init__(self) -> None:
        self.data: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.host = ""

    def kubeconfig(self, file: Path, namespace: str) -> Path:
        """Writes a kubeconfig for the server."""
        return kubeconfig(file, self.host, namespace)


@contextmanager
def served() -> Iterator[Maps]:
    """Runs the server on its own port while the block runs."""
    known = Maps()

    class Handler(Answers):
        def get(self) -> None:
            known.asked.append(self.path)
            words = self.path.partition("?")[0].split("/")
            found = known.data.get(f"{words[4]}/{words[6]}") if words[5:6] == ["configmaps"] else None
            absent = {"kind": "Status", "reason": "NotFound", "message": "not found", "code": 404}
            self.answer(404, absent) if found is None else self.answer(200, {"kind": "ConfigMap", "data": found})

    with serving(Handler) as known.host:
        yield known
