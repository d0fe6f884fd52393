"""A small server that speaks Prometheus' query API: it answers instant queries by their content."""

import re
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from local_server import Answers, serving

Vector = list[tuple[dict[str, str], float]]


class Server:
    """`answers` are vectors by an expression that finds the query; the first one counts. `asked` are all queries."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, Vector | Callable[[str, float], Vector]]] = []
        self.asked: list[tuple[str, float]] = []
        self.address = ""
        self.refuses = ""

    def answer(self, query: str, at: float) -> Vector:
        """Returns the vector for a query; empty for an unexpected one."""
        for found, vector in self.answers:
            if re.search(found, query):
                return vector(query, at) if callable(vector) else vector
        return []


@contextmanager
def served() -> Iterator[Server]:
    """Runs the server on its own port while the block runs."""
    known = Server()

    class Handler(Answers):
        def post(self) -> None:
            form = urllib.parse.parse_qs(self.body().decode())
            self.answer(*self._of(form) if self.path == "/api/v1/query" else (404, {"status": "error"}))

        def _of(self, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
            query, at = form["query"][0], float(form["time"][0])
            known.asked.append((query, at))
            if known.refuses:
                return 400, {"status": "error", "errorType": "bad_data", "error": known.refuses}
            result = [{"metric": labels, "value": [at, str(value)]} for labels, value in known.answer(query, at)]
            return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}

    with serving(Handler) as known.address:
        yield known
