"""Phases of the server: loading, ready, or ending."""

from __future__ import annotations

from dataclasses import dataclass, field

from model_server.batching import Batcher
from model_server.contract import Card
from model_server.keys import Keys
from model_server.metrics import Metrics
from model_server.settings import Settings

LOADING, READY, ENDING = "loads its model", "ready", "ends"


@dataclass
class State:
    """State that both ports share."""

    settings: Settings
    card: Card
    metrics: Metrics
    keys: Keys | None = None
    batcher: Batcher | None = None
    phase: str = field(default=LOADING)
    held: int = 0  # bytes of the bodies of unanswered requests

    @property
    def ready(self) -> bool:
        """Whether the server should get new requests."""
        return self.phase == READY and self.batcher is not None and self.batcher.alive

    def enter(self, phase: str) -> None:
        """Enters a phase."""
        self.phase = phase
        self.metrics.ready.set(self.ready)
