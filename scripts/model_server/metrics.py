"""Prometheus metrics of a server: requests, their seconds, batches, and readiness."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from model_server.contract import Card

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Metrics of one server, all labelled with its model and version."""

    def __init__(self, card: Card) -> None:
        disable_created_metrics()  # creation times are not used, and would double the number of series
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        of = {"model": card.name, "version": card.version}
        labels = list(of)
        self._requests = Counter(
            "trainyard_model_requests",
            "Requests answered, by protocol and HTTP status.",
            [*labels, "way", "code"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "trainyard_model_request_seconds",
            "Seconds from a request's first byte to its answer.",
            [*labels, "way"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._of = of
        self.in_flight = self._gauge("requests_in_flight", "Requests in progress.")
        self.waiting = self._gauge("requests_waiting", "Requests in the queue.")
        self.ready = self._gauge("ready", "1 if the model is warm and the server accepts requests.")
        self._batch_rows = Histogram(
            "trainyard_model_batch_rows", "Rows per batch.", labels, buckets=_ROWS, registry=self.registry
        ).labels(**of)
        self._batch_seconds = Histogram(
            "trainyard_model_batch_seconds",
            "Seconds that the model took for a batch.",
            labels,
            buckets=_SECONDS,
            registry=self.registry,
        ).labels(**of)
        self._ways: dict[tuple[str, int], Counter] = {}
        self._times = {way: self._seconds.labels(**of, way=way) for way in ("infer", "predict")}
        for way in self._times:
            self._count(way, 200)  # exists from the start, so that a rate begins at 0

    def request(self, way: str, code: int, seconds: float) -> None:
        """Counts an answered request."""
        self._count(way, code).inc()
        self._times[way].observe(seconds)

    def batch(self, rows: int, seconds: float) -> None:
        """Records a computed batch; called by the model's thread."""
        self._batch_rows.observe(rows)
        self._batch_seconds.observe(seconds)

    def page(self) -> bytes:
        """All metrics in Prometheus' format."""
        return generate_latest(self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        found = Gauge(f"trainyard_model_{name}", text, list(self._of), registry=self.registry)
        return found.labels(**self._of)

    def _count(self, way: str, code: int) -> Counter:
        if (way, code) not in self._ways:
            self._ways[way, code] = self._requests.labels(**self._of, way=way, code=str(code))
        return self._ways[way, code]
