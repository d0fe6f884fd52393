"""What the server is doing: loading, ready, or ending."""

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
    """What both ports answer from."""

    settings: Settings
    card: Card
    metrics: Metrics
    keys: Keys | None = None
    batcher: Batcher | None = None
    phase: str = field(default=LOADING)
    held: int = 0  # bytes of bodies whose requests are not answered yet

    @property
    def ready(self) -> bool:
        """Whether new requests should come here."""
        return self.phase == READY and self.batcher is not None and self.batcher.alive

    def enter(self, phase: str) -> None:
        """Goes on to a phase."""
        self.phase = phase
        self.metrics.ready.set(self.ready)
