"""Queries Prometheus for instant vectors: the one call of its query API that the agent needs."""

from __future__ import annotations

import http.client
import json
import math
import urllib.parse
from collections.abc import Mapping
from typing import Any

from trainyard_agent.say import PlatformError

LARGEST = 64 << 20  # bytes of an answer
Sample = tuple[dict[str, str], float]


class PrometheusError(PlatformError):
    """Prometheus did not answer, or refused the query; the text is one sentence."""


class Prometheus:
    """One server, by its address such as `http://trainyard-prometheus:9090`, with a path if it has one."""

    def __init__(self, address: str, timeout: float = 30.0) -> None:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PlatformError(f"invalid address of Prometheus, {address!r}: write http://HOST:PORT")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._path, self._timeout = parts.path.rstrip("/"), timeout
        self.address = address

    def vector(self, query: str, at: float) -> list[Sample]:
        """The query's result at that Unix time: labels and value, without values that aren't numbers.

        Raises:
            PrometheusError: it can't be reached, or rejects the query.
        """
        body = urllib.parse.urlencode({"query": query, "time": f"{at:.3f}", "timeout": f"{self._timeout:g}s"})
        answer = self._post(f"{self._path}/api/v1/query", body)
        try:
            found = [(dict(one["metric"]), float(one["value"][1])) for one in answer["data"]["result"]]
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise PrometheusError(f"Prometheus at {self.address} answered with no vector: {error}") from None
        return [(labels, value) for labels, value in found if math.isfinite(value)]

    def _post(self, path: str, body: str) -> Mapping[str, Any]:
        connect = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = connect(self._host, self._port, timeout=self._timeout)
        try:
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            text = response.read(LARGEST + 1)
        except (OSError, http.client.HTTPException) as error:
            raise PrometheusError(f"Prometheus at {self.address} did not answer: {error}") from error
        finally:
            connection.close()
        if len(text) > LARGEST:
            raise PrometheusError(f"Prometheus at {self.address} answered with more than {LARGEST >> 20} MiB")
        try:
            answer = json.loads(text)
        except ValueError:
            raise PrometheusError(f"Prometheus at {self.address} answered {response.status} without JSON") from None
        if not isinstance(answer, dict) or answer.get("status") != "success":
            said = answer.get("error", response.reason) if isinstance(answer, dict) else response.reason
            raise PrometheusError(f"Prometheus at {self.address} refused a query: {said}")
        return answer
